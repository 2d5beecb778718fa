"""YAML experiments: read strictly, checked before any work, run into a folder that can be resumed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasrlm.experiment.load import load_experiment
from nasrlm.experiment.schema import SCHEMA, Experiment

if TYPE_CHECKING:
    from nasrlm.experiment.progress import Progress

__all__ = ["SCHEMA", "Experiment", "load_experiment", "run_experiment"]


def run_experiment(path: str | Path, sets: Sequence[str] = (), *, progress: Progress | None = None) -> Any:
    """Run an experiment file, or go on with it.

    Args:
        path: the YAML file.
        sets: changes such as `"study.n_trials=100"`.
        progress: told about each step, see `nasrlm.experiment.progress.Progress`; None = silent.

    Returns:
        By kind: SearchResult (search), TrainRun (train), EvaluateRun (evaluate), BenchmarkRun (benchmark).

    Raises:
        ConfigError: Mistakes in the file, all in one message.
        RunFolderError: The folder cannot be written, or belongs to another experiment.
        RunError: The run itself failed.
    """
    from nasrlm.experiment.run import run

    done = run(path, sets, progress=progress)
    return done.result if hasattr(done, "result") else done

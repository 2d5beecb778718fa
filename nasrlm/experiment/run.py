"""From an experiment file to its result: read, check, make, run."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nasrlm.errors import ConfigError
from nasrlm.experiment.load import load_document
from nasrlm.experiment.paths import resolve_paths
from nasrlm.experiment.prepare import Prepared, prepare
from nasrlm.experiment.progress import Progress, silent
from nasrlm.experiment.schema import VERBS, Experiment

# kind -> module and function; modules load what they need only when their kind runs.
_RUNNERS = {
    "search": ("run_search", "run_search"),
    "train": ("run_train", "run_train"),
    "evaluate": ("run_evaluate", "run_evaluate"),
    "label": ("run_label", "run_label"),
    "benchmark": ("run_benchmark", "run_benchmark"),
    "few_labels": ("run_few_labels", "run_few_labels"),
    "compare": ("run_compare", "run_compare"),
}


def run(
    path: str | Path, sets: Sequence[str] = (), *, kind: str | None = None, progress: Progress | None = None
) -> Any:
    """Run an experiment file; see `nasrlm.experiment.run_experiment`.

    Args:
        path: the YAML file.
        sets: changes such as `"study.n_trials=100"`.
        kind: the verb whose kinds alone will do; None = any.
        progress: told about each step.

    Returns:
        SearchRun, TrainRun, EvaluateRun, LabelRun, BenchmarkRun, FewLabelsRun or CompareRun.
    """
    experiment, prepared = _ready(path, sets, kind)
    module, function = _RUNNERS[experiment.kind]
    runner = getattr(importlib.import_module(f"nasrlm.experiment.{module}"), function)
    return runner(experiment, prepared, progress or silent)


def check(path: str | Path, sets: Sequence[str] = ()) -> tuple[Experiment, list[str]]:
    """Check everything that can be checked before a run.

    Returns:
        The experiment with its defaults and absolute paths, and notes on what is not there yet.

    Raises:
        ConfigError: All mistakes, in one message.
    """
    experiment, prepared = _ready(path, sets, None)
    return experiment, prepared.notes


def _ready(path: str | Path, sets: Sequence[str], kind: str | None) -> tuple[Experiment, Prepared]:
    experiment, document = load_document(path, sets)
    verb = VERBS.get(experiment.kind, experiment.kind)
    if kind is not None and verb != kind:
        file, line = document.place(("kind",))
        raise ConfigError(
            f"is {experiment.kind!r}, but `nasrlm {kind}` runs the kind {kind!r}. Run it with: nasrlm {verb} {path}",
            file=file,
            line=line,
            key="kind",
        )
    resolved = resolve_paths(experiment, document.folder)
    return resolved, prepare(resolved, document)

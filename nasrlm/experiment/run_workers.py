"""Several processes on this machine that share the study of an experiment, be it a search or labels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from nasrlm.errors import UsageError
from nasrlm.experiment.load import load_document
from nasrlm.experiment.paths import resolve_paths
from nasrlm.experiment.prepare import Prepared, prepare
from nasrlm.experiment.progress import Progress, Step
from nasrlm.experiment.run_folder import open_run_folder
from nasrlm.experiment.run_label import work_on_labels
from nasrlm.experiment.run_search import resolved_values, storage_in, work_on_search
from nasrlm.experiment.schema import LabelExperiment, SearchExperiment
from nasrlm.search.storage import in_memory, open_storage
from nasrlm.search.workers import counter, end_with_parent, run_workers


def fill_study(
    path: str | Path, sets: Sequence[str], workers: int, progress: Progress, say: Callable[[str], None]
) -> None:
    """Fill an experiment's study by several processes on this machine; running the experiment then finds it done.

    Args:
        path, sets: as for `nasrlm.experiment.run_experiment`.
        workers: processes.
        progress: told how far the study is.
        say: told, in a sentence, when a worker died and was started again.

    Raises:
        UsageError: A study in memory, or an experiment that is wrong.
        RunError: A worker keeps failing; finished batches are kept.
        KeyboardInterrupt: Ctrl-C; all workers have been stopped.
    """
    experiment, _ = _load(path, sets)
    if in_memory(experiment.study.storage):
        raise UsageError(
            f"{workers} workers cannot share a study in memory. Give a storage: --storage journal:study.log, "
            "sqlite:///study.db, postgresql+psycopg://USER:PASSWORD@HOST/DATABASE or grpc://HOST:PORT."
        )
    folder = open_run_folder(experiment.outputs.folder, resolved_values(experiment))
    storage = open_storage(storage_in(experiment.study.storage, folder.path))
    assert storage is not None
    total = experiment.study.n_trials
    words = [word for change in sets for word in ("--set", change)]
    folder.log("workers", n=workers)
    run_workers(
        [sys.executable, "-m", "nasrlm", experiment.kind, str(path), *words, "--as-worker"],
        workers,
        logs=folder.path / "workers",
        count=counter(storage, experiment.name),
        progress=lambda done: progress(Step(experiment.kind, min(done, total), total)),
        say=say,
    )


def work(path: str | Path, sets: Sequence[str]) -> None:
    """What each process of `fill_study` does."""
    end_with_parent(sys.stdin.fileno())
    experiment, prepared = _load(path, sets)
    if isinstance(experiment, SearchExperiment):
        work_on_search(experiment, prepared)
    else:
        work_on_labels(experiment, prepared)


def _load(path: str | Path, sets: Sequence[str]) -> tuple[SearchExperiment | LabelExperiment, Prepared]:
    experiment, document = load_document(path, sets)
    if not isinstance(experiment, SearchExperiment | LabelExperiment):
        raise UsageError(f"{path} is of the kind {experiment.kind}. Only a search and labels are shared by workers.")
    experiment = resolve_paths(experiment, document.folder)
    return experiment, prepare(experiment, document)

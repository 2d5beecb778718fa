"""Runs an experiment of kind label: evaluates a random sample of a space and writes the table of labels."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nasrlm.errors import NasrlmError, RunError
from nasrlm.experiment.data_card import data_card, metric_ranges, seed_noise, spread_noise
from nasrlm.experiment.files import write_atomic, write_csv, write_json, write_text
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.progress import Progress, Step
from nasrlm.experiment.run_folder import SUMMARY, RunFolder, open_run_folder
from nasrlm.experiment.run_search import resolved_values, storage_in
from nasrlm.experiment.schema import LabelExperiment
from nasrlm.experiment.versions import versions
from nasrlm.search import Objective
from nasrlm.search.interrupts import quiet_optuna
from nasrlm.search.plan import StudyPlan
from nasrlm.search.result import trials_frame
from nasrlm.search.study import Worker

FAILURES, CARD = "failures.csv", "README.md"
_WRITTEN_EVERY_S = 10.0  # the study has every row at once; the table follows


@dataclass(frozen=True)
class LabelRun:
    """Labels that are done.

    Attributes:
        name: the experiment's.
        folder: the run folder.
        file: the table.
        labels: arch, architecture_id, one column a metric, then quantile columns such as
            `latency_ms/onnxruntime_cpu@0.25`; one row an architecture.
        failures: arch, architecture_id and failure (why) of architectures without a row.
        metrics: that were asked for.
    """

    name: str
    folder: Path
    file: Path
    labels: pd.DataFrame
    failures: pd.DataFrame
    metrics: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "table": str(self.file),
            "rows": len(self.labels),
            "failures": len(self.failures),
            "metrics": metric_ranges(self.labels, self.metrics).to_dict("records"),
            "seeds": seed_noise(self.labels, self.metrics).to_dict("records"),
            "spread_percent": spread_noise(self.labels, self.metrics).to_dict("records"),
        }


def run_label(experiment: LabelExperiment, prepared: Prepared, progress: Progress) -> LabelRun:
    """Label architectures, or go on with it; write the run folder.

    Raises:
        RunFolderError: The folder cannot be written or belongs to another experiment.
        RunError: An evaluator failed for every architecture of a batch, or the disk is full; finished batches are
            kept.
        KeyboardInterrupt: Ctrl-C; finished batches are kept.
    """
    folder = open_run_folder(experiment.outputs.folder, resolved_values(experiment))
    folder.log("resume" if folder.resumed else "start", kind="label", n_trials=experiment.study.n_trials,
               processor=versions()["machine"]["processor"], load=_load())  # fmt: skip
    started = time.monotonic()
    try:
        run = _label(experiment, prepared, folder, progress)
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk takes no log either
            folder.log("stopped", reason=type(error).__name__, message=str(error))
        raise
    folder.log("done", seconds=round(time.monotonic() - started, 3), rows=len(run.labels),
               failures=len(run.failures), load=_load())  # fmt: skip
    write_text(folder.path / CARD, data_card(experiment, prepared, run.labels, run.failures, run.metrics))
    write_json(folder.path / SUMMARY, run.summary())
    return run


def work_on_labels(experiment: LabelExperiment, prepared: Prepared) -> None:
    """What one of several workers does: evaluate, and leave the run folder's files to its parent."""
    with quiet_optuna():
        worker = Worker(_plan(experiment, prepared, Path(experiment.outputs.folder)))
        try:
            worker.run(lambda done, total: None)
        finally:
            worker.close()


def _label(experiment: LabelExperiment, prepared: Prepared, folder: RunFolder, progress: Progress) -> LabelRun:
    plan = _plan(experiment, prepared, folder.path)
    with quiet_optuna():
        worker = Worker(plan)
        writer = _Writer(experiment, folder.path, worker, plan.metrics, progress)
        try:
            worker.run(writer.after_batch)
        except (KeyboardInterrupt, RunError):
            with contextlib.suppress(NasrlmError):  # the study has the rows, whatever becomes of the table
                writer.write()
            raise
        finally:
            worker.close()
        return writer.write()


def _plan(experiment: LabelExperiment, prepared: Prepared, folder: Path) -> StudyPlan:
    """A study of random samples. Each metric is an objective, so every trial must have all."""
    given = dict.fromkeys(metric for evaluator in prepared.evaluators for metric in evaluator.metrics)
    metrics = experiment.metrics or list(given)
    better = ["maximize" if metric.startswith("accuracy") else "minimize" for metric in metrics]
    return StudyPlan(
        space=prepared.space,
        evaluators=tuple(prepared.evaluators),
        objectives=tuple(Objective(metric, way) for metric, way in zip(metrics, better, strict=True)),  # type: ignore[arg-type]
        constraints=(),
        sampler="random",
        sampler_options={},
        n_trials=experiment.study.n_trials,
        batch_size=experiment.study.batch_size,
        seed=experiment.seed,
        storage=storage_in(experiment.study.storage, folder),
        study_name=experiment.name,
        folder=folder,
    )


class _Writer:
    """Writes what a study has so far."""

    def __init__(
        self, experiment: LabelExperiment, folder: Path, worker: Worker, metrics: tuple[str, ...], progress: Progress
    ) -> None:
        self._experiment, self._folder, self._worker = experiment, folder, worker
        self._metrics, self._progress = metrics, progress
        self._next = 0.0

    def after_batch(self, done: int, total: int) -> None:
        """Tell how far the study is, and write the table now and then."""
        self._progress(Step("label", done, total))
        if time.monotonic() >= self._next and done:
            self.write()
            self._next = time.monotonic() + _WRITTEN_EVERY_S

    def write(self) -> LabelRun:
        """Write the table and failures.csv; an architecture that was drawn again is one row."""
        trials = trials_frame(self._worker.trials(), self._metrics)
        complete = trials["state"] == "complete"
        labels = trials[complete].drop_duplicates("architecture_id", ignore_index=True)
        others = trials[~complete & ~trials["architecture_id"].isin(labels["architecture_id"])]
        quantiles = [column for column in labels.columns if "@" in str(column)]
        labels = labels[["arch", "architecture_id", *self._metrics, *quantiles]]
        failures = others.drop_duplicates("architecture_id")[["arch", "architecture_id", "failure"]]
        experiment, file = self._experiment, self._folder / self._experiment.outputs.table
        write_atomic(file, lambda part: labels.to_parquet(part, index=False))
        write_csv(self._folder / FAILURES, failures)
        return LabelRun(experiment.name, self._folder, file, labels, failures, self._metrics)


def _load() -> float | None:
    """Programs that want a core, on the mean of the last minute; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None

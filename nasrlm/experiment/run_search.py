"""Runs an experiment of kind search in its run folder."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nasrlm.experiment.files import write_csv, write_json
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.progress import Progress, Step, silent
from nasrlm.experiment.run_folder import SUMMARY, RunFolder, open_run_folder
from nasrlm.experiment.schema import LabelExperiment, ObjectiveSpec, SearchExperiment
from nasrlm.experiment.search_outputs import CONFIRMED, draw, write_front, write_networks
from nasrlm.search import Constraint, Objective, SearchResult, confirm, hypervolume
from nasrlm.search.confirmation import confirmed_values
from nasrlm.search.dashboard import publish
from nasrlm.search.run import search
from nasrlm.search.storage import describe_storage


@dataclass(frozen=True)
class SearchRun:
    """A search that is done.

    Attributes:
        name: the experiment's.
        folder: the run folder.
        result: trials, front, hypervolume.
    """

    name: str
    folder: Path
    result: SearchResult

    def summary(self) -> dict[str, Any]:
        """Plain values: what was found, for machines."""
        result = self.result
        knee = result.knee()
        metrics = [objective.metric for objective in result.objectives]
        return {
            "name": self.name,
            "folder": str(self.folder),
            "trials": len(result.trials),
            "candidates": int(result.trials["architecture_id"].nunique()),
            "feasible": int(result.trials["feasible"].sum()),
            "hypervolume": result.hypervolume,
            "reference_point": dict(zip(metrics, result.reference_point, strict=True)),
            "knee": None if knee is None else str(knee["architecture_id"]),
            "front": result.front.to_dict("records"),
            "confirmed": None if result.confirmed is None else result.confirmed.to_dict("records"),
            "confirmed_hypervolume": self.confirmed_hypervolume(),
        }

    def confirmed_hypervolume(self) -> float | None:
        """The hypervolume of the confirmed values, with the search's reference point; None where there are none."""
        result = self.result
        if result.confirmed is None or result.confirmed.empty:
            return None
        values = confirmed_values(result.confirmed, result.objectives, result.constraints)
        return hypervolume(values, result.objectives, result.reference_point)


def run_search(experiment: SearchExperiment, prepared: Prepared, progress: Progress) -> SearchRun:
    """Search, or go on with a search; write the run folder.

    Raises:
        RunFolderError: The folder cannot be written or belongs to another experiment.
        RunError: An evaluator failed; finished batches are kept.
        KeyboardInterrupt: Ctrl-C; what is finished is kept.
    """
    folder = open_run_folder(experiment.outputs.folder, resolved_values(experiment))
    folder.log("resume" if folder.resumed else "start", kind="search", n_trials=experiment.study.n_trials)
    started = time.monotonic()
    try:
        result = _search(experiment, prepared, folder.path, progress)
        write_front(result, folder.path)
        write_networks(result, prepared.space, folder.path)  # before confirming, which may take long or be stopped
        result = _confirm(experiment, prepared, result, folder, progress)
        write_networks(result, prepared.space, folder.path)
        draw(result, folder.path, experiment.outputs.plots)
    except BaseException as error:
        folder.log("stopped", reason=type(error).__name__, message=str(error))
        raise
    done = SearchRun(experiment.name, folder.path, result)
    summary = done.summary()
    del summary["confirmed"], summary["front"], summary["folder"]
    write_json(folder.path / SUMMARY, {**summary, **_confirm_key(experiment, result)})
    folder.log("done", seconds=round(time.monotonic() - started, 3), trials=len(result.trials),
               hypervolume=result.hypervolume, front=len(result.front))  # fmt: skip
    _publish(experiment, result, folder.path)
    return done


def work_on_search(experiment: SearchExperiment, prepared: Prepared) -> None:
    """What one of several workers does: search, and leave the run folder's files to its parent."""
    _search(experiment, prepared, Path(experiment.outputs.folder), silent)


def resolved_values(experiment: SearchExperiment | LabelExperiment) -> dict[str, Any]:
    """The experiment as plain values for experiment.yaml; a database's password stays out."""
    values: dict[str, Any] = experiment.model_dump(by_alias=True, exclude_none=True)
    if experiment.study.storage is not None:
        values["study"]["storage"] = describe_storage(experiment.study.storage)
    return values


def goals_of(specs: Sequence[ObjectiveSpec]) -> tuple[list[Objective], dict[str, float]]:
    """Objectives, and the reference point as far as it is given."""
    point = {spec.metric: spec.reference for spec in specs if spec.reference is not None}
    return [Objective(spec.metric, spec.direction) for spec in specs], point


def objectives_of(experiment: SearchExperiment) -> tuple[list[Objective], list[Constraint], dict[str, float]]:
    """Objectives, constraints, and the reference point as far as it is given."""
    objectives, point = goals_of(experiment.objectives)
    constraints = [Constraint(spec.metric, spec.at_most, spec.at_least) for spec in experiment.constraints]
    return objectives, constraints, point


def _search(experiment: SearchExperiment, prepared: Prepared, folder: Path, progress: Progress) -> SearchResult:
    objectives, constraints, point = objectives_of(experiment)
    study = experiment.study
    return search(
        prepared.space,
        prepared.evaluators,
        objectives,
        constraints,
        sampler=study.sampler.name,
        sampler_options=study.sampler.options,
        n_trials=study.n_trials,
        batch_size=study.batch_size,
        seed=experiment.seed,
        storage=storage_in(study.storage, folder),
        study_name=experiment.name,
        folder=folder,
        reference_point=point or None,
        progress=lambda done, total: progress(Step("search", done, total)),
    )


def _publish(experiment: SearchExperiment, result: SearchResult, folder: Path) -> None:
    """Show the front's networks and plots in optuna-dashboard."""
    knee = result.knee()
    attributes = {
        "front": dict(zip(map(str, result.front["architecture_id"]), map(str, result.front["arch"]), strict=True)),
        "knee": None if knee is None else str(knee["architecture_id"]),
        "hypervolume": result.hypervolume,
        "run_folder": str(folder),
        "plots": [str(folder / f"front.{suffix}") for suffix in experiment.outputs.plots],
    }
    publish(storage_in(experiment.study.storage, folder), experiment.name, attributes, lambda: _figures(result))


def _figures(result: SearchResult) -> dict[str, Any]:
    from nasrlm.plots.data import front_plot, history_data
    from nasrlm.plots.html import history_html, pareto_html

    return {"front": pareto_html(front_plot(result), result), "history": history_html(history_data(result))}


def storage_in(storage: str | None, folder: Path) -> str | None:
    """The storage with a relative file put into the run folder.

    >>> storage_in("journal:study.log", Path("/runs/a"))
    'journal:/runs/a/study.log'
    """
    for start in ("journal:", "sqlite:///"):
        if storage is not None and storage.startswith(start):
            return start + str(folder.absolute() / Path(storage[len(start) :]).expanduser())
    return storage


def _confirm(
    experiment: SearchExperiment, prepared: Prepared, result: SearchResult, folder: RunFolder, progress: Progress
) -> SearchResult:
    """Measure the best again, unless this front was confirmed in the same way before."""
    file = folder.path / CONFIRMED
    if experiment.confirm is None or result.front.empty:
        file.unlink(missing_ok=True)  # belongs to an earlier front
        return result
    top = experiment.confirm.top
    if file.exists() and _same(folder.path / SUMMARY, _confirm_key(experiment, result)):
        return dataclasses.replace(result, confirmed=pd.read_csv(file))
    progress(Step("confirm", 0, top))
    confirmed = confirm(result, prepared.confirm_evaluators, prepared.space, top=top)
    write_csv(file, confirmed)
    progress(Step("confirm", top, top))
    folder.log("confirmed", networks=len(confirmed))
    return dataclasses.replace(result, confirmed=confirmed)


def _confirm_key(experiment: SearchExperiment, result: SearchResult) -> dict[str, Any]:
    """What confirmed.csv belongs to."""
    how = None if experiment.confirm is None else experiment.confirm.model_dump(exclude_none=True)
    front = [str(identity) for identity in result.front["architecture_id"]]
    return {"confirm": how, "front_ids": front, "trials": len(result.trials)}


def _same(summary: Path, key: dict[str, Any]) -> bool:
    try:
        before = json.loads(summary.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return all(before.get(name) == value for name, value in key.items())

"""nasrlm search: run a search experiment, or go on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nasrlm.cli.common import Experiment, Json, Sets, out, out_json, out_table, say
from nasrlm.cli.shared import AsWorker, Storage, Workers, run_shared

if TYPE_CHECKING:
    from nasrlm.experiment.run_search import SearchRun


def command(
    experiment: Experiment,
    sets: Sets = None,
    storage: Storage = None,
    workers: Workers = 1,
    as_json: Json = False,
    as_worker: AsWorker = False,
) -> None:
    """Search for the Pareto front, or go on with a search.

    The same command on other machines joins in, where they reach the storage.
    """
    done = run_shared(experiment, "search", sets, storage, workers, as_worker)
    if done is not None:
        report(done, as_json)


def report(done: SearchRun, as_json: bool) -> None:
    """The front, its hypervolume, what was confirmed, and where the files are."""
    if as_json:
        out_json(done.summary())
        return
    result = done.result
    objectives = [objective.metric for objective in result.objectives]
    limits = [constraint.metric for constraint in result.constraints if constraint.metric not in objectives]
    arrows = {o.metric: f"{o.metric} {'max' if o.maximize else 'min'}" for o in result.objectives}
    rows = [_row(row, [*objectives, *limits], arrows) for row in result.front.to_dict("records")]
    if rows:
        out_table(rows, title=f"Pareto front of {done.name}: {len(rows)} of {len(result.trials)} trials")
    else:
        out(f"{done.name}: no feasible candidate among {len(result.trials)} trials, so there is no front.")
    point = ", ".join(f"{m} {v:g}" for m, v in zip(objectives, result.reference_point, strict=True))
    out(f"hypervolume {result.hypervolume:.6g} (reference point: {point})")
    if result.confirmed is not None and len(result.confirmed):
        _confirmed(result.confirmed, objectives)
        out(f"hypervolume of the confirmed values {done.confirmed_hypervolume():.6g} (* on their front)")
    say(f"run folder: {done.folder}")


def _row(row: dict[Any, Any], metrics: list[str], names: dict[str, str]) -> dict[str, Any]:
    shown: dict[str, Any] = {"architecture": row["architecture_id"]}
    shown.update({names.get(metric, metric): float(row[metric]) for metric in metrics})
    return {**shown, "": "knee" if row["knee"] else ""}


def _confirmed(frame: Any, objectives: list[str]) -> None:
    from nasrlm.datasets.metric_names import CONFIRMED
    from nasrlm.search.confirmation import ON_CONFIRMED_FRONT

    measured = [c for c in frame.columns if str(c).startswith(CONFIRMED) and "@" not in str(c)]
    rows = [
        {
            "architecture": row["architecture_id"] + (" *" if row.get(ON_CONFIRMED_FRONT) else ""),
            **{metric: float(row[metric]) for metric in objectives},
            **{str(column).replace(CONFIRMED, "confirmed\n"): float(row[column]) for column in measured},
        }
        for row in frame.to_dict("records")
    ]
    out_table(rows, title="\nConfirmed")

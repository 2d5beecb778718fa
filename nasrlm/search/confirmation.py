"""Measuring the best of a front for real, beside what was predicted for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from nasrlm.datasets.metric_names import CONFIRMED
from nasrlm.errors import UsageError
from nasrlm.evaluators import Evaluator, assign_metrics, evaluate_all
from nasrlm.search.evaluate import as_evaluators
from nasrlm.search.front import knee_index, pareto_front, scale_front, within_reference
from nasrlm.search.objective import Constraint, Objective
from nasrlm.search.result import SearchResult
from nasrlm.spaces import Architecture, SearchSpace

ON_CONFIRMED_FRONT = "confirmed_front"


def confirm(
    result: SearchResult,
    evaluators: Evaluator | Iterable[Evaluator],
    space: SearchSpace,
    *,
    top: int = 8,
    metrics: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Evaluate the ``top`` best candidates of a search again: members of the front first, spread along it.

    A front that was found under noise holds the lucky ones, and the truly good are often just behind it. So where the
    front has fewer members than ``top``, those follow that would be the front without it, and so on. Candidates
    beyond the reference point are left out, unless the whole front is.

    Args:
        result: A search's result.
        evaluators: They measure (a device, a table); predicted values stay beside theirs.
        space: The space that was searched.
        top: How many, at most as many as there are feasible candidates.
        metrics: What to measure; by default all that the evaluators give.

    Returns:
        Rows in the order of the front, with its columns and ``on_front``. A metric that was predicted and confirmed
        has its columns side by side: ``latency_ms/pixel3`` and ``confirmed:latency_ms/pixel3``; metrics that were
        only confirmed come after them, and last ``confirmed_front``: whether the row is on the front of the
        confirmed values (of an objective that was not confirmed, its value in the search). A network whose
        confirmation failed, or whose confirmed values break a limit, is not.

    Raises:
        UsageError: ``top`` below 1, or no evaluator.
        MetricError: No evaluator gives a metric.
    """
    check_top(top)
    givers = as_evaluators(evaluators)
    wanted = list(dict.fromkeys(metrics or [name for giver in givers for name in giver.metrics]))
    if not wanted:
        raise UsageError("confirm: no evaluator gives any metric. Give at least one, such as a device.")
    assign_metrics(givers, wanted)
    chosen = _best(result, top)
    if chosen.empty:
        empty = chosen.assign(**{CONFIRMED + metric: pd.Series(dtype=float) for metric in wanted})
        return empty.assign(**{ON_CONFIRMED_FRONT: pd.Series(dtype=bool)})
    measured = evaluate_all(givers, architectures(chosen, space), wanted)
    found = _side_by_side(chosen, measured.reset_index(drop=True))
    values = confirmed_values(found, result.objectives, result.constraints)
    mask = pareto_front(values, result.objectives, distinct=True)
    return found.assign(**{ON_CONFIRMED_FRONT: mask})


def confirmed_values(
    confirmed: pd.DataFrame, objectives: Sequence[Objective], constraints: Sequence[Constraint] = ()
) -> pd.DataFrame:
    """Return the objectives' columns of a DataFrame of `confirm`: of metrics that were confirmed the confirmed values.

    NaN throughout a row whose values break a constraint.
    """

    def of(metric: str) -> pd.Series:
        return confirmed[CONFIRMED + metric if CONFIRMED + metric in confirmed else metric]

    values = pd.DataFrame({goal.metric: of(goal.metric) for goal in objectives})
    for limit in constraints:
        values = values.where(pd.Series(limit.holds(of(limit.metric)), index=values.index), axis=0)
    return values


def _best(result: SearchResult, top: int) -> pd.DataFrame:
    """Up to ``top`` feasible candidates, layer by layer of dominance; of the last layer a spread-out part."""
    front, goals = result.front, result.objectives
    trials = result.trials[result.trials["feasible"]]
    rest = trials.sort_values("on_front", ascending=False, kind="stable").drop_duplicates("architecture_id")
    if len(rest):
        rest = rest[within_reference(rest, goals, result.reference_point)]
    rest = rest.assign(knee=rest["architecture_id"].isin(front.loc[front["knee"], "architecture_id"]))
    rest = rest[[*front.columns, "on_front"]]
    chosen = [rest.iloc[:0]]
    missing = top
    while missing > 0 and len(rest):
        mask = pareto_front(rest, goals, distinct=True)
        layer, rest = rest[mask], rest[~mask]
        chosen.append(layer.iloc[spread(layer, goals, missing)])
        missing -= len(chosen[-1])
    ascending = [not goal.maximize for goal in goals]
    return pd.concat(chosen).sort_values([goal.metric for goal in goals], ascending=ascending, ignore_index=True)


def check_top(top: int) -> None:
    """Refuse a number of candidates that is no whole number of at least 1."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise UsageError(f"confirm: top is {top!r}. It must be a whole number of at least 1.")


def architectures(frame: pd.DataFrame, space: SearchSpace) -> list[Architecture]:
    """Return the architectures of a trials or front DataFrame, read from its column ``arch``."""
    return [space.architecture(str(arch)) for arch in frame["arch"]]


def spread(front: pd.DataFrame, objectives: Sequence[Objective], top: int) -> list[int]:
    """Return up to ``top`` row positions of a front, ascending: the knee (of a front without one, the row that
    `knee_index` finds), then always the row farthest from those chosen, with objectives scaled to the front's range.
    """
    if front.empty:
        return []
    points = scale_front(front, objectives)
    marked = np.flatnonzero(front["knee"])
    chosen = [int(marked[0]) if len(marked) else knee_index(front, objectives)]
    distance = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < min(top, len(front)):
        distance[chosen] = -1.0
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return sorted(chosen)


def _side_by_side(chosen: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, pd.Series] = {}
    for name in chosen.columns:
        columns[name] = chosen[name]
        if name in measured.columns:
            columns[CONFIRMED + name] = measured[name]
    for name in measured.columns.difference(chosen.columns, sort=False):
        columns[CONFIRMED + name] = measured[name]
    return pd.DataFrame(columns)

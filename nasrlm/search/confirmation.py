"""Measuring the best of a front for real, beside what was predicted for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from nasrlm.errors import UsageError
from nasrlm.evaluators import Evaluator, assign_metrics, evaluate_all
from nasrlm.search.evaluate import as_evaluators
from nasrlm.search.front import scale_front, within_reference
from nasrlm.search.objective import Objective
from nasrlm.search.result import SearchResult
from nasrlm.spaces import Architecture, SearchSpace

CONFIRMED = "confirmed:"  # put before the metric's name


def confirm(
    result: SearchResult,
    evaluators: Evaluator | Iterable[Evaluator],
    space: SearchSpace,
    *,
    top: int = 8,
    metrics: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Evaluate ``top`` members of the front, spread along it, the knee among them.

    Members beyond the reference point are left out, unless all are.

    Args:
        result: A search's result.
        evaluators: They measure (a device, a table); predicted values stay beside theirs.
        space: The space that was searched.
        top: How many, at most as many as the front has.
        metrics: What to measure; by default all that the evaluators give.

    Returns:
        Rows of the front in its order. A metric that was predicted and confirmed has its columns side by
        side: ``latency_ms/pixel3`` and ``confirmed:latency_ms/pixel3``; metrics that were only confirmed come
        last.

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
    front = result.front
    if len(front):
        front = front[within_reference(front, result.objectives, result.reference_point)]
    chosen = front.iloc[spread(front, result.objectives, top)].reset_index(drop=True)
    if chosen.empty:
        return chosen.assign(**{CONFIRMED + metric: pd.Series(dtype=float) for metric in wanted})
    measured = evaluate_all(givers, architectures(chosen, space), wanted)
    return _side_by_side(chosen, measured.reset_index(drop=True))


def check_top(top: int) -> None:
    """Refuse a number of candidates that is no whole number of at least 1."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise UsageError(f"confirm: top is {top!r}. It must be a whole number of at least 1.")


def architectures(frame: pd.DataFrame, space: SearchSpace) -> list[Architecture]:
    """Return the architectures of a trials or front DataFrame, read from its column ``arch``."""
    return [space.architecture(str(arch)) for arch in frame["arch"]]


def spread(front: pd.DataFrame, objectives: Sequence[Objective], top: int) -> list[int]:
    """Return up to ``top`` row positions of a front, ascending: the knee, then always the row farthest
    from those chosen, with objectives scaled to the front's range.
    """
    if front.empty:
        return []
    points = scale_front(front, objectives)
    chosen = [int(np.flatnonzero(front["knee"])[0])]
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

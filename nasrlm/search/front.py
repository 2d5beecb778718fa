"""The Pareto front, its hypervolume and its knee; dominance and hypervolume are moocore's.

Values are given in the metrics' own units and directions; a candidate dominates another when it is at least
as good in every objective and better in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import moocore
import numpy as np
import numpy.typing as npt
import pandas as pd

from nasrlm.errors import MetricError, UsageError, nearest
from nasrlm.search.objective import Objective, parse_objectives, to_minimize

Values: TypeAlias = "npt.ArrayLike | pd.DataFrame"
Mask: TypeAlias = "npt.NDArray[np.bool_]"

_MARGIN = 0.1  # the default reference point lies this share of the range beyond the worst value


def pareto_front(values: Values, objectives: Sequence[Objective | str], *, distinct: bool = False) -> Mask:
    """Return which rows no other row dominates.

    Args:
        values: Shape (n, objectives), or a DataFrame with one column a metric. Rows with NaN are never on the
            front.
        objectives: One for each column.
        distinct: Of rows with equal values keep only the first; else all of them are on the front.

    Returns:
        Shape (n,), True for rows on the front.

    >>> pareto_front([[90, 3], [80, 2], [80, 4]], ["accuracy:max", "latency_ms:min"]).tolist()
    [True, True, False]
    """
    costs = _costs(values, objectives)
    mask = np.zeros(len(costs), dtype=bool)
    usable = np.flatnonzero(~np.isnan(costs).any(axis=1))
    if len(usable):
        mask[usable] = _nondominated(costs[usable], distinct)
    return mask


def hypervolume(values: Values, objectives: Sequence[Objective | str], reference_point: Sequence[float]) -> float:
    """Return the volume that the rows dominate, bounded by the reference point (larger is better).

    Args:
        values: As in :func:`pareto_front`; dominated rows, rows with NaN and rows beyond the point add
            nothing.
        objectives: One for each column.
        reference_point: One value an objective, in its own unit: a point that every row of interest
            dominates.

    Source: Zitzler and Thiele, 1998, "Multiobjective optimization using evolutionary algorithms".

    >>> hypervolume([[90, 3], [80, 2]], ["accuracy:max", "latency_ms:min"], [60, 5])
    80.0
    """
    parsed = parse_objectives(objectives)
    point = _reference(reference_point, parsed)
    costs = _costs(values, parsed)
    return _volume(costs[~np.isnan(costs).any(axis=1)], point)


def hypervolume_history(
    values: Values, objectives: Sequence[Objective | str], reference_point: Sequence[float]
) -> npt.NDArray[np.float64]:
    """Return the hypervolume after each row: shape (n,), never falling; a row with NaN leaves it as it was.

    >>> hypervolume_history([[80, 2], [70, 4], [90, 3]], ["accuracy:max", "latency_ms:min"], [60, 5]).tolist()
    [60.0, 60.0, 80.0]
    """
    parsed = parse_objectives(objectives)
    point = _reference(reference_point, parsed)
    front = np.empty((0, len(parsed)))
    history, current = [], 0.0
    for cost in _costs(values, parsed):
        # Only a row that enters the front can change the volume; most rows do not.
        if (cost < point).all() and not (front <= cost).all(axis=1).any():
            front = np.vstack([front[~(cost <= front).all(axis=1)], cost])
            current = max(current, _volume(front, point))
        history.append(current)
    return np.array(history, dtype=float)


def default_reference_point(values: Values, objectives: Sequence[Objective | str]) -> tuple[float, ...]:
    """Return a point that every finite row dominates: the worst value of each objective and 10 % of the range
    beyond.

    An objective with one value only is moved by 10 % of that value (by 1 at zero); no rows at all give NaN.

    >>> default_reference_point([[80.0, 2.0], [90.0, 12.0]], ["accuracy:max", "latency_ms:min"])
    (79.0, 13.0)
    """
    parsed = parse_objectives(objectives)
    costs = _costs(values, parsed)
    costs = costs[np.isfinite(costs).all(axis=1)]
    if not len(costs):
        return (float("nan"),) * len(parsed)
    worst, span = costs.max(axis=0), costs.max(axis=0) - costs.min(axis=0)
    step = np.where(span > 0, span, np.where(worst != 0, np.abs(worst), 1.0 / _MARGIN))
    return tuple(float(x) for x in to_minimize(worst + _MARGIN * step, parsed))


def knee_index(values: Values, objectives: Sequence[Objective | str]) -> int:
    """Return the row of a front where giving up a little of one objective stops buying much of another.

    It is the row farthest below the chord between the extremes when each objective is scaled to 0 (best on
    the front) .. 1 (worst); with three objectives and more, below the plane through the extremes. The first
    row wins a tie, so that one or two points have a knee too.

    Source: Das, 1999, "On characterizing the knee of the Pareto curve".

    Raises:
        UsageError: No rows.

    >>> knee_index([[90, 9], [89, 3], [70, 2]], ["accuracy:max", "latency_ms:min"])
    1
    """
    scaled = scale_front(values, objectives)
    if not len(scaled):
        raise UsageError("an empty front has no knee.")
    # Rounded, so that noise in the last bit does not decide between rows on the chord.
    return int(np.argmin(np.round(scaled.sum(axis=1), 12)))


def within_reference(values: Values, objectives: Sequence[Objective | str], reference_point: Sequence[float]) -> Mask:
    """Return which rows dominate the reference point in every objective: those that count for the hypervolume.

    All rows when none does, so that there is always something to choose from.
    """
    parsed = parse_objectives(objectives)
    point = _reference(reference_point, parsed)
    inside = np.asarray((_costs(values, parsed) < point).all(axis=1), dtype=bool)
    return inside if inside.any() else np.ones(len(inside), dtype=bool)


def scale_front(values: Values, objectives: Sequence[Objective | str]) -> npt.NDArray[np.float64]:
    """Return the rows as costs scaled to their own range: 0 the best value of an objective, 1 the worst.

    >>> scale_front([[90, 9], [70, 2]], ["accuracy:max", "latency_ms:min"]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    costs = _costs(values, objectives)
    if not len(costs):
        return costs
    low, span = costs.min(axis=0), costs.max(axis=0) - costs.min(axis=0)
    return (costs - low) / np.where(span > 0, span, 1.0)


def _costs(values: Values, objectives: Sequence[Objective | str]) -> npt.NDArray[np.float64]:
    parsed = parse_objectives(objectives)
    if isinstance(values, pd.DataFrame):
        for objective in parsed:
            if objective.metric not in values.columns:
                close = nearest(objective.metric, [str(column) for column in values.columns])
                raise MetricError(
                    f"the values have no column {objective.metric!r}. Nearest: {', '.join(close) or 'none'}."
                )
        values = values[[objective.metric for objective in parsed]].to_numpy(dtype=float)
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        return np.empty((0, len(parsed)))
    if array.ndim != 2:
        raise UsageError(f"values must have two dimensions (rows, objectives); got shape {array.shape}.")
    return to_minimize(array, parsed)


def _reference(point: Sequence[float], objectives: Sequence[Objective]) -> npt.NDArray[np.float64]:
    if np.shape(point) != (len(objectives),):
        raise UsageError(
            f"reference point {point!r} needs {len(objectives)} values, one for each of: "
            f"{', '.join(objective.metric for objective in objectives)}."
        )
    return to_minimize(point, objectives)


def _nondominated(costs: npt.NDArray[np.float64], distinct: bool) -> Mask:
    if costs.shape[1] > 1:
        return np.asarray(moocore.is_nondominated(costs, keep_weakly=not distinct), dtype=bool)
    best = costs[:, 0] == costs[:, 0].min()  # moocore wants two objectives
    return best & (np.arange(len(best)) == best.argmax()) if distinct else best


def _volume(costs: npt.NDArray[np.float64], point: npt.NDArray[np.float64]) -> float:
    inside = costs[(costs < point).all(axis=1)]
    if not len(inside):
        return 0.0
    if costs.shape[1] == 1:
        return float(point[0] - inside.min())
    return float(moocore.hypervolume(inside, ref=point))

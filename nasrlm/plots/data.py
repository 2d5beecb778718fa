"""What the plots show, as DataFrames: to look at, to test, to draw with something else."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from nasrlm.datasets.metric_names import CONFIRMED
from nasrlm.errors import UsageError

KINDS = ("infeasible", "dominated", "front", "confirmed")


@dataclass(frozen=True, eq=False)
class FrontPlot:
    """A front plot, ready to be drawn.

    Attributes:
        data: Of :func:`pareto_data`.
        panels: (x, y) of each panel; x is "number" (of the trial) for a single objective.
        directions: "maximize" or "minimize" by metric.
        view: Lowest and highest value shown, by metric and for "number".
        title: Of the whole.
        measured: Whether confirmed points have places of their own.
    """

    data: pd.DataFrame
    panels: tuple[tuple[str, str], ...]
    directions: Mapping[str, str]
    view: Mapping[str, tuple[float, float]]
    title: str
    measured: bool

    @property
    def has_steps(self) -> bool:
        """Whether the front is a line: with two objectives only."""
        return len(self.directions) == 2 and bool((self.data["kind"] == "front").any())

    def limits(self, x: str, y: str) -> npt.NDArray[np.float64]:
        """Return [[lowest x, highest x], [lowest y, highest y]]."""
        return np.array([self.view[x], self.view[y]], dtype=float)


class Goal(Protocol):
    """An objective: a metric and "maximize" or "minimize"."""

    @property
    def metric(self) -> str: ...
    @property
    def direction(self) -> str: ...


class Result(Protocol):
    """What is drawn: a search's result, or anything with its fields."""

    @property
    def trials(self) -> pd.DataFrame: ...
    @property
    def front(self) -> pd.DataFrame: ...
    @property
    def objectives(self) -> Sequence[Goal]: ...
    @property
    def hypervolume(self) -> float: ...
    @property
    def reference_point(self) -> Sequence[float]: ...
    @property
    def history(self) -> pd.DataFrame: ...
    @property
    def confirmed(self) -> pd.DataFrame | None: ...


def pareto_data(result: Result) -> pd.DataFrame:
    """Return the points of a front plot.

    Args:
        result: A search's result.

    Returns:
        One row a point, those on top last: kind ("infeasible", "dominated", "front", "confirmed"), number,
        architecture_id, arch, one column an objective, ``metric:low`` and ``metric:high`` (outermost
        predicted quantiles, NaN without), knee. A candidate seen in several trials is one point. Confirmed
        points lie at the measured values where an objective was measured, else at the predicted ones; one whose
        measurement failed is no confirmed point.
    """
    trials = result.trials[result.trials["state"] == "complete"].drop_duplicates("architecture_id")
    front = result.front
    kind = np.where(trials["feasible"].astype(bool), "dominated", "infeasible")
    behind = trials.assign(kind=kind, knee=False)[~trials["architecture_id"].isin(front["architecture_id"])]
    parts = [behind.sort_values("kind", ascending=False, kind="stable"), front.assign(kind="front")]
    if result.confirmed is not None and len(result.confirmed):
        parts.append(_at_measured_values(result.confirmed, result.objectives))
    metrics = [str(objective.metric) for objective in result.objectives]
    columns = ["kind", "number", "architecture_id", "arch", *metrics]
    bounds = [f"{metric}:{side}" for metric in metrics for side in ("low", "high")]
    tables = [_with_bounds(part, metrics)[[*columns, *bounds, "knee"]] for part in parts if len(part)]
    if not tables:
        return pd.DataFrame(columns=[*columns, *bounds, "knee"])
    return pd.concat(tables, ignore_index=True)


def front_plot(result: Result) -> FrontPlot:
    """Work out all that a front plot shows.

    The view ends at the reference point, since candidates beyond it count for nothing; the title says how many of the
    front lie there.
    """
    data = pareto_data(result)
    metrics = [str(objective.metric) for objective in result.objectives]
    directions = {str(objective.metric): objective.direction for objective in result.objectives}
    outside = _beyond(data, directions, result.reference_point)
    shown = data[~outside] if not outside.all() else data
    panels = [(right, up) for up, right in itertools.combinations(metrics, 2)] or [("number", metrics[0])]
    hidden = int((data["kind"].eq("front") & outside).sum()) if not outside.all() else 0
    title = (
        f"Front: {len(result.front):,} of {result.trials['architecture_id'].nunique():,} candidates, "
        f"hypervolume {result.hypervolume:,.4g}"
        + (f" ({hidden} beyond the reference point not shown)" if hidden else "")
    )
    view = {metric: _view(shown, metric) for metric in ("number", *metrics)}
    return FrontPlot(data, tuple(panels), directions, view, title, is_measured(result))


def history_data(result: Result) -> pd.DataFrame:
    """Return number (of finished trials) and hypervolume after them."""
    history = result.history
    return pd.DataFrame({"trials": np.arange(1, len(history) + 1), "hypervolume": history["hypervolume"].to_numpy()})


def prediction_data(true: npt.ArrayLike, predicted: npt.ArrayLike) -> pd.DataFrame:
    """Return the pairs of a predicted-against-true plot; pairs with a missing value are left out.

    Raises:
        UsageError: Different lengths, or fewer than two pairs.

    >>> prediction_data([1.0, 2.0, 3.0], [1.5, float("nan"), 2.5])["predicted"].tolist()
    [1.5, 2.5]
    """
    first, second = np.asarray(true, dtype=float).ravel(), np.asarray(predicted, dtype=float).ravel()
    if len(first) != len(second):
        raise UsageError(f"{len(first)} true values and {len(second)} predicted ones. Give as many of each.")
    pairs = pd.DataFrame({"true": first, "predicted": second})
    pairs = pairs.loc[np.isfinite(first) & np.isfinite(second)].reset_index(drop=True)
    if len(pairs) < 2:
        raise UsageError(f"only {len(pairs)} pairs of true and predicted values. At least 2 are needed.")
    return pairs


def is_measured(result: Result) -> bool:
    """Return whether an objective was measured afterwards, so that confirmed points have places of their own."""
    confirmed = result.confirmed
    return confirmed is not None and any(CONFIRMED + goal.metric in confirmed for goal in result.objectives)


def _at_measured_values(confirmed: pd.DataFrame, objectives: Sequence[Goal]) -> pd.DataFrame:
    rows = confirmed.assign(kind="confirmed")
    for objective in objectives:
        measured = CONFIRMED + objective.metric
        if measured in confirmed:
            # Its quantiles belong to the prediction, not to what was measured.
            rows[objective.metric] = confirmed[measured]
            rows = rows.drop(columns=_quantile_columns(rows, objective.metric))
    return rows.dropna(subset=[goal.metric for goal in objectives])


def _beyond(data: pd.DataFrame, directions: Mapping[str, str], point: Sequence[float]) -> pd.Series:
    """Mark points beyond the reference point; confirmed ones always stay in view."""
    outside = pd.Series(False, index=data.index)
    for (metric, direction), limit in zip(directions.items(), point, strict=True):
        if np.isfinite(limit):
            outside |= data[metric] < limit if direction == "maximize" else data[metric] > limit
    return outside & data["kind"].ne("confirmed")


def _view(data: pd.DataFrame, metric: str) -> tuple[float, float]:
    bars = data.loc[data["kind"] == "front", data.columns.intersection([f"{metric}:low", f"{metric}:high"])]
    values = np.concatenate([data[metric].to_numpy(dtype=float), bars.to_numpy(dtype=float).ravel()])
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _with_bounds(rows: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    bounds: dict[str, pd.Series] = {}
    for metric in metrics:
        # With the value itself among them: a bar never starts on the wrong side of its point.
        around = rows[[*_quantile_columns(rows, metric), metric]]
        known = around.shape[1] > 1
        bounds[f"{metric}:low"] = around.min(axis=1) if known else pd.Series(np.nan, index=rows.index)
        bounds[f"{metric}:high"] = around.max(axis=1) if known else pd.Series(np.nan, index=rows.index)
    return rows.assign(**bounds)


def _quantile_columns(rows: pd.DataFrame, metric: str) -> list[str]:
    return [str(column) for column in rows.columns if str(column).startswith(f"{metric}@")]

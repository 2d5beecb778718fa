"""What a search gives: its trials, the front, and how good the front is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from optuna.trial import FrozenTrial, TrialState

from nasrlm.errors import MetricError, UsageError, unknown_name
from nasrlm.search.front import (
    default_reference_point,
    hypervolume,
    hypervolume_history,
    knee_index,
    pareto_front,
    within_reference,
)
from nasrlm.search.objective import (
    Constraint,
    Objective,
    is_finite_number,
    parse_constraints,
    parse_objectives,
)

# User attributes of a trial that are no metric.
ARCHITECTURE_ID, ARCH, BATCH, WORKER, FAILURE = "architecture_id", "arch", "batch", "worker", "failure"
_NOT_METRICS = (ARCHITECTURE_ID, ARCH, BATCH, WORKER, FAILURE)
# Columns of the trials that the front leaves out.
_TRIAL_ONLY = ("state", "feasible", "on_front", BATCH, FAILURE)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The outcome of a search.

    Attributes:
        trials: One row a trial: number, state ("complete" or "failed"), architecture_id, arch, one column a
            metric, quantile columns such as ``latency_ms/pixel3@0.1``, feasible, on_front, batch, failure
            (why, or "").
        front: The non-dominated feasible candidates, best in the first objective first: number,
            architecture_id, arch, metrics, quantiles, knee. Candidates with equal objective values are listed
            once, the first found.
        objectives: What was searched for.
        constraints: The limits.
        reference_point: One value an objective, in its unit; it bounds the hypervolume.
        hypervolume: Of the front.
        history: number (of the trial) and hypervolume after it.
        confirmed: The candidates that were measured after the search, or None.
    """

    trials: pd.DataFrame
    front: pd.DataFrame
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    reference_point: tuple[float, ...]
    hypervolume: float
    history: pd.DataFrame
    confirmed: pd.DataFrame | None = None

    def knee(self) -> pd.Series | None:
        """Return the row of the front with the best bargain (`knee_index`); None when the front is empty.

        Only candidates better than the reference point are looked at, if there are any.
        """
        rows = self.front[self.front["knee"]]
        return None if rows.empty else rows.iloc[0]


def make_result(
    trials: pd.DataFrame,
    objectives: Iterable[Objective | Mapping[str, Any] | str],
    constraints: Iterable[Constraint | Mapping[str, Any] | str] = (),
    *,
    reference_point: Mapping[str, float] | Sequence[float] | None = None,
    confirmed: pd.DataFrame | None = None,
) -> SearchResult:
    """Find the front among trials, also among those read back from a run folder's trials.csv.

    Args:
        trials: Columns number, state, architecture_id, arch and one a metric; feasible and on_front are
            worked out.
        objectives: What was searched for.
        constraints: The limits.
        reference_point: By metric, or one value an objective; a metric left out gets the worst feasible value
            and 10 % of the range beyond it.
        confirmed: Passed through.

    Raises:
        MetricError: A column is missing.
        UsageError: The reference point does not fit the objectives.
    """
    goals, limits = parse_objectives(objectives), parse_constraints(constraints)
    metrics = [goal.metric for goal in goals]
    for metric in [*metrics, *(limit.metric for limit in limits)]:
        if metric not in trials.columns:
            error = unknown_name("metric", metric, map(str, trials.columns), where="the trials")
            raise MetricError(str(error))
    trials = trials.copy()
    trials["feasible"] = _feasible(trials, limits)
    values = trials[metrics].where(trials["feasible"])
    # NaN rows (failed or infeasible) are never on the front.
    trials["on_front"] = pareto_front(values, goals, distinct=True)
    last = [column for column in (BATCH, FAILURE) if column in trials.columns]
    trials = trials[[*trials.columns.drop(last), *last]]
    finite = trials.loc[np.isfinite(trials[metrics].to_numpy(dtype=float)).all(axis=1), metrics]
    basis = values.dropna() if trials["feasible"].any() else finite
    point = fill_reference(reference_point, goals, default_reference_point(basis, goals))
    known = all(map(math.isfinite, point))
    history = hypervolume_history(values, goals, point) if known else np.zeros(len(trials))
    return SearchResult(
        trials=trials,
        front=_front(trials, goals, point),
        objectives=goals,
        constraints=limits,
        reference_point=point,
        hypervolume=hypervolume(values, goals, point) if known else 0.0,
        history=pd.DataFrame({"number": trials["number"].to_numpy(), "hypervolume": history}),
        confirmed=confirmed,
    )


def trials_frame(trials: Sequence[FrozenTrial], metrics: Sequence[str]) -> pd.DataFrame:
    """Return finished Optuna trials as a DataFrame; ``metrics`` come first among the metric columns."""
    rows = [
        {
            "number": trial.number,
            "state": "complete" if trial.state == TrialState.COMPLETE else "failed",
            ARCHITECTURE_ID: trial.user_attrs[ARCHITECTURE_ID],
            ARCH: trial.user_attrs[ARCH],
            **dict.fromkeys(metrics, math.nan),
            **metric_values(trial),
            BATCH: trial.user_attrs.get(BATCH, 0),
            FAILURE: trial.user_attrs.get(FAILURE, ""),
        }
        for trial in trials
        if trial.state.is_finished() and ARCHITECTURE_ID in trial.user_attrs
    ]
    columns = ["number", "state", ARCHITECTURE_ID, ARCH, *metrics]
    if not rows:
        return pd.DataFrame(columns=[*columns, BATCH, FAILURE]).astype(dict.fromkeys(metrics, "float64"))
    extra = sorted({key for row in rows for key in row}.difference([*columns, BATCH, FAILURE]))
    return pd.DataFrame(rows, columns=[*columns, *extra, BATCH, FAILURE])


def metric_values(trial: FrozenTrial) -> dict[str, float]:
    """Return the metric and quantile values that a trial holds."""
    return {str(key): value for key, value in trial.user_attrs.items() if key not in _NOT_METRICS}


def _feasible(trials: pd.DataFrame, constraints: Sequence[Constraint]) -> pd.Series:
    feasible = trials["state"] == "complete"
    for constraint in constraints:
        feasible &= constraint.holds(trials[constraint.metric])
    return feasible.astype(bool)


def _front(trials: pd.DataFrame, objectives: Sequence[Objective], point: Sequence[float]) -> pd.DataFrame:
    columns = [column for column in trials.columns if column not in _TRIAL_ONLY]
    metrics = [objective.metric for objective in objectives]
    front = trials.loc[trials["on_front"], columns].sort_values(
        metrics, ascending=[not objective.maximize for objective in objectives], ignore_index=True
    )
    knee = np.zeros(len(front), dtype=bool)
    if len(front):
        rows = np.flatnonzero(within_reference(front, objectives, point))
        knee[rows[knee_index(front.iloc[rows], objectives)]] = True
    front["knee"] = knee
    return front


def fill_reference(
    given: Mapping[str, float] | Sequence[float] | None,
    objectives: Sequence[Objective],
    default: tuple[float, ...],
) -> tuple[float, ...]:
    """Return one value an objective: the given one, else the default.

    Raises:
        UsageError: A metric that is no objective, or a value that is not a finite number.
    """
    metrics = [objective.metric for objective in objectives]
    if given is None:
        return default
    if not isinstance(given, Mapping):
        if len(given) != len(metrics):
            raise UsageError(f"reference point {given!r} needs one value for each of: {', '.join(metrics)}.")
        given = dict(zip(metrics, given, strict=True))
    for metric, value in given.items():
        if metric not in metrics:
            raise unknown_name("objective", metric, metrics, where="the reference point")
        if not is_finite_number(value):
            raise UsageError(f"reference point: {metric} is {value!r}. It must be a finite number.")
    return tuple(float(given.get(metric, value)) for metric, value in zip(metrics, default, strict=True))

"""What gives metric values, and how several evaluators share the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from nasrlm.errors import MetricError, RunError, unknown_name
from nasrlm.spaces import Architecture


@runtime_checkable
class Evaluator(Protocol):
    """Something that gives metric values of architectures. Its class is `EVALUATOR` in a file of its own.

    The class is called with the search space and the evaluator's options. A class attribute `predicts = True`
    says that its values are estimates; an evaluator without it computes or measures, and goes first where two
    give the same metric. An attribute `failures` (architecture id -> reason) says why a value is missing.

    Attributes:
        name: the evaluator's name, such as "rlm".
        metrics: the metrics it can give.
    """

    name: str
    metrics: tuple[str, ...]

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Values of the metrics, one row an architecture in the order given.

        Returns:
            DataFrame with the index `architecture_id`, the metrics as float columns (NaN where there is no
            value), and possibly quantile columns such as "latency_ms/pixel3@0.1".

        Raises:
            MetricError: a metric this evaluator does not give.
        """
        ...


def check_metrics(evaluator: Evaluator, metrics: Sequence[str]) -> None:
    """Sees that an evaluator gives all these metrics.

    Raises:
        MetricError: the first that it does not give, with the nearest that it does.
    """
    for metric in metrics:
        if metric not in evaluator.metrics:
            raise MetricError(
                str(unknown_name("metric", metric, evaluator.metrics, where=f"evaluator {evaluator.name}"))
            )


def value_frame(
    architectures: Sequence[Architecture], columns: Mapping[str, Sequence[float] | np.ndarray]
) -> pd.DataFrame:
    """The DataFrame an evaluator returns: float columns over the index `architecture_id`."""
    index = pd.Index([a.id for a in architectures], name="architecture_id", dtype=object)
    return pd.DataFrame(dict(columns), index=index, dtype="float64")


def assign_metrics(evaluators: Sequence[Evaluator], wanted: Sequence[str]) -> dict[str, Evaluator]:
    """Which evaluator gives which metric.

    An evaluator that computes or measures goes before one that predicts; among equals, the first listed.

    Args:
        evaluators: in the user's order.
        wanted: metric names; repeated ones count once.

    Returns:
        metric -> evaluator, in the order of `wanted`.

    Raises:
        MetricError: no evaluator gives a metric; all metrics that are given are listed, the nearest first.
    """
    ordered = sorted(evaluators, key=lambda evaluator: bool(getattr(evaluator, "predicts", False)))
    assigned: dict[str, Evaluator] = {}
    for metric in wanted:
        giver = next((evaluator for evaluator in ordered if metric in evaluator.metrics), None)
        if giver is None:
            given = dict.fromkeys(name for evaluator in evaluators for name in evaluator.metrics)
            names = ", ".join(evaluator.name for evaluator in evaluators) or "none"
            error = unknown_name(
                "metric",
                metric,
                given,
                where=f"the evaluators ({names})",
                hint="Correct it, or add an evaluator that gives it.",
            )
            raise MetricError(str(error))
        assigned[metric] = giver
    return assigned


def evaluate_all(
    evaluators: Sequence[Evaluator], architectures: Sequence[Architecture], wanted: Sequence[str]
) -> pd.DataFrame:
    """The wanted metrics from the evaluators that give them (see `assign_metrics`), side by side.

    Each evaluator is asked once, for all its metrics together.

    Returns:
        DataFrame with the index `architecture_id`, one row an architecture in the order given; the wanted
        metrics first, then quantile columns.

    Raises:
        MetricError: no evaluator gives a metric.
        RunError: an evaluator broke the protocol (another index, or a metric left out).
    """
    assigned = assign_metrics(evaluators, wanted)
    ids = [architecture.id for architecture in architectures]
    frames = []
    for evaluator in dict.fromkeys(assigned.values()):
        mine = [metric for metric, giver in assigned.items() if giver is evaluator]
        frame = evaluator.evaluate(architectures, mine)
        if list(frame.index) != ids or any(metric not in frame.columns for metric in mine):
            raise RunError(
                f"the evaluator {evaluator.name} was asked for {', '.join(mine)} of {len(ids)} "
                "architectures and gave "
                ""
                f"{', '.join(map(str, frame.columns))} in {len(frame)} rows. It must give one row an "
                "architecture, in order, "
                "with the index architecture_id (see nasrlm.testing.check_evaluator)."
            )
        frames.append(frame)
    joined = pd.concat(frames, axis=1) if frames else value_frame(architectures, {})
    extra = [column for column in joined.columns if column not in assigned]
    return joined[[*assigned, *extra]]

"""Exact costs, counted in the network's graph: parameters, MACs, activation bytes, depth."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from nasrlm.evaluators.protocol import check_metrics, value_frame
from nasrlm.graph import COST_METRICS, costs
from nasrlm.spaces import Architecture, SearchSpace


class CostEvaluator:
    """Counts what needs no device and no training: "params", "macs", "activation_bytes" (peak), "depth".

    Args:
        space: where the architectures come from.

    Example:
        >>> from nasrlm.spaces import get_space
        >>> space = get_space("tiny")
        >>> list(CostEvaluator(space).evaluate(space.sample(2, seed=0), ["params", "macs"]).columns)
        ['params', 'macs']
    """

    name = "cost"
    metrics: tuple[str, ...] = tuple(COST_METRICS)

    def __init__(self, space: SearchSpace) -> None:
        self.space = space

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Exact values, see `Evaluator.evaluate`."""
        check_metrics(self, metrics)
        counted = [costs(architecture).metrics() for architecture in architectures]
        return value_frame(architectures, {metric: [float(c[metric]) for c in counted] for metric in metrics})


EVALUATOR = CostEvaluator

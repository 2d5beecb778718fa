"""My evaluator MY_NAME. Use it in an experiment: evaluators: [{path: FILE}]"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from nasrlm.evaluators import check_metrics, value_frame
from nasrlm.graph import costs
from nasrlm.spaces import Architecture, SearchSpace


class MyEvaluator:
    """Gives my_metric/MY_NAME: here, MACs a parameter.

    Args:
        space: where the architectures come from.
        scale: what the value is multiplied by.
    """

    name = "MY_NAME"
    metrics: tuple[str, ...] = ("my_metric/MY_NAME",)
    # predicts = True   # for estimates: an evaluator that computes or measures then goes first

    def __init__(self, space: SearchSpace, scale: float = 1.0) -> None:
        self.space, self.scale = space, scale

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Values of the metrics, one row an architecture, in the order given."""
        check_metrics(self, metrics)
        counted = [costs(architecture) for architecture in architectures]
        values = [self.scale * c.macs / max(c.params, 1) for c in counted]
        return value_frame(architectures, {metric: values for metric in metrics})


EVALUATOR = MyEvaluator

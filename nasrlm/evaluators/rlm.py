"""Predicts metrics with a Regression Language Model that reads the network's canonical text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nasrlm.errors import ConfigError
from nasrlm.evaluators.protocol import check_metrics, value_frame
from nasrlm.spaces import Architecture, SearchSpace


class RlmEvaluator:
    """Predicts any metric that the model was trained on: a point estimate and quantiles.

    Args:
        space: where the architectures come from.
        checkpoint: a shipped checkpoint's name (`nasrlm list checkpoints`) or a checkpoint folder.
        quantiles: levels in (0, 1) for the columns "METRIC@LEVEL"; empty for none.
        point: the point estimate, as for `RegressionLM.predict` ("median" by default).
        batch_size: texts a forward pass.

    Raises:
        CheckpointError: no such checkpoint, or one that cannot be used.
        ConfigError: a quantile outside (0, 1).

    Example:
        >>> evaluator = RlmEvaluator(space, checkpoint="nasbench201", quantiles=(0.1, 0.9))  # doctest: +SKIP
    """

    name = "rlm"
    predicts = True

    def __init__(
        self,
        space: SearchSpace,
        checkpoint: str | Path,
        quantiles: Sequence[float] = (0.1, 0.9),
        point: str = "median",
        batch_size: int = 256,
    ) -> None:
        for level in quantiles:
            if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
                raise ConfigError(
                    f"evaluator rlm: quantiles has {level!r}. Allowed: numbers above 0 and below 1, such as 0.1."
                )
        from nasrlm.rlm import RegressionLM  # torch takes a second to load

        self.space, self.quantiles, self.point, self.batch_size = space, tuple(quantiles), point, batch_size
        self.model = RegressionLM.from_pretrained(checkpoint)
        self.metrics: tuple[str, ...] = tuple(self.model.metrics)

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Predictions, see `Evaluator.evaluate`.

        Raises:
            MetricError: a metric the model does not know.
            TextTooLongError: a network whose text is longer than the model reads.
        """
        check_metrics(self, metrics)
        if not architectures or not metrics:
            return value_frame(architectures, {metric: [] for metric in metrics} if not architectures else {})
        return self.model.predict(
            list(architectures),
            list(metrics),
            quantiles=self.quantiles,
            point=self.point,
            batch_size=self.batch_size,
        )


EVALUATOR = RlmEvaluator

"""What a network is trained to say: the loop of `nasrlm.rlm.training` serves any task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.rlm.batches import Examples, draw_targets, grammar_mask
from nasrlm.rlm.config import RLMConfig, TrainConfig
from nasrlm.rlm.decoding import number_loss
from nasrlm.rlm.predicting import predict_quantiles, validation_loss
from nasrlm.tokens import NumberTokens

Text = tuple[Tensor, Tensor]  # ids (B, L) padded with 0, and lengths (B,)


@dataclass(frozen=True)
class Draws:
    """Where the chance of one step comes from.

    Attributes:
        labels: for targets.
        drop: for dropout.
    """

    labels: np.random.Generator
    drop: torch.Generator


class Task(Protocol):
    """Gives the loss of a batch, and what a validation needs."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the columns of the labels."""
        ...

    @property
    def identity(self) -> list[dict[str, Any]]:
        """Plain values that tell this task from others."""
        ...

    def loss(self, network: Any, text: Text, labels: NDArray[np.float64], draws: Draws) -> Tensor:
        """Loss of a batch with labels (B, M), NaN = blank."""
        ...

    def validation_loss(self, network: Any, examples: Examples) -> float:
        """Mean loss of held-out rows."""
        ...

    def points(self, network: Any, examples: Examples) -> NDArray[np.float64]:
        """Predictions (N, M) for held-out rows."""
        ...


@dataclass(frozen=True)
class NumberTask:
    """The RLM's own task: numbers, written token by token."""

    config: RLMConfig
    numbers: NumberTokens
    train: TrainConfig

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those of the model."""
        return self.config.metrics

    @property
    def identity(self) -> list[dict[str, Any]]:
        """The model's shape and its number tokens."""
        return [self.config.to_dict(), self.numbers.to_dict()]

    def loss(self, network: Any, text: Text, labels: NDArray[np.float64], draws: Draws) -> Tensor:
        """See `nasrlm.rlm.decoding.number_loss`."""
        targets = draw_targets(labels, self.numbers, self.train, draws.labels)
        return number_loss(network, *text, targets, grammar_mask(self.numbers), draws.drop)

    def validation_loss(self, network: Any, examples: Examples) -> float:
        """See `nasrlm.rlm.predicting.validation_loss`."""
        return validation_loss(network, self.numbers, examples)

    def points(self, network: Any, examples: Examples) -> NDArray[np.float64]:
        """Exact medians."""
        return predict_quantiles(network, self.numbers, examples.ids, levels=(0.5,))[:, :, 0]

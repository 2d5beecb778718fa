"""A regression head on the RLM's own encoder: what the digits of the RLM are measured against.

The encoder reads the same canonical text with the same tokenizer; the mean over the text's tokens goes through one
linear layer with one output a metric. Labels are standardised (of latencies the logarithm), the loss is the mean
squared error. Loop, schedule, averaging and batches are the RLM's (`nasrlm.rlm.training`).

Legend of the letters: see `nasrlm.rlm.network`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nasrlm.errors import UsageError
from nasrlm.rlm.batches import Examples
from nasrlm.rlm.checkpoint import build_network, number_tokens
from nasrlm.rlm.config import RLMConfig, TrainConfig
from nasrlm.rlm.fitting import check_labels, hold_out, make_examples
from nasrlm.rlm.inputs import as_frame, read_inputs, read_labels
from nasrlm.rlm.model import RegressionLM
from nasrlm.rlm.predicting import text_batches
from nasrlm.rlm.tasks import Draws, Text
from nasrlm.rlm.training import Job, Progress, train_network
from nasrlm.rlm.work import plan_work
from nasrlm.tokens import TextTokenizer

_DECODER = ("number", "metric", "slot", "decoder", "decoder_norm", "head")


@dataclass(frozen=True)
class Scale:
    """How labels (N, M) become numbers of mean 0 and deviation 1, and back.

    Attributes:
        log: (M,) metrics whose logarithm is learnt: latencies, all above zero.
        mean: (M,) of the (logarithms of the) training labels.
        deviation: (M,) likewise, 1 where all labels are equal.
    """

    log: NDArray[np.bool_]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, labels: NDArray[np.float64], metrics: Sequence[str]) -> Scale:
        """The scale of training labels in which every metric has a value; NaN = blank."""
        latency = np.array([metric.startswith("latency") for metric in metrics])
        log = latency & (np.nan_to_num(labels, nan=1.0) > 0).all(0)
        moved = np.log(labels, where=log & ~np.isnan(labels), out=labels.copy())
        deviation = np.nanstd(moved, axis=0)
        return cls(log, np.nanmean(moved, axis=0), np.where(deviation > 0, deviation, 1.0))

    def shrink(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels in their unit to numbers of the head; a label without a logarithm becomes NaN."""
        moved = np.log(labels, where=self.log & (labels > 0), out=np.where(self.log & (labels <= 0), np.nan, labels))
        return (moved - self.mean) / self.deviation

    def grow(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers of the head to labels in their unit."""
        moved = found * self.deviation + self.mean
        return np.exp(moved, where=self.log, out=moved.copy())


class HeadNetwork(nn.Module):
    """The encoder of an RLM, and a linear layer on the mean of what it makes of a text."""

    def __init__(self, config: RLMConfig, tokenizer: TextTokenizer) -> None:
        super().__init__()
        self.reader = build_network(config, tokenizer)
        for part in _DECODER:
            delattr(self.reader, part)
        self.out = nn.Linear(config.width, len(config.metrics))
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, ids: Tensor, lengths: Tensor, rng: torch.Generator | None = None) -> Tensor:
        """Texts (B, L) with their lengths (B,) to (B, M) in float32."""
        x, _ = self.reader.read(ids, lengths, rng)
        inside = (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None])[..., None]
        mean = (x * inside).sum(1) / lengths[:, None].to(x)
        return self.out(mean).float()


@dataclass(frozen=True)
class HeadTask:
    """Mean squared error of standardised labels; blanks do not count."""

    config: RLMConfig
    scale: Scale

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those of the model."""
        return self.config.metrics

    @property
    def identity(self) -> list[dict[str, Any]]:
        """The model's shape and the scale."""
        scale = {field.name: getattr(self.scale, field.name).tolist() for field in dataclasses.fields(Scale)}
        return [self.config.to_dict(), scale]

    def loss(self, network: Any, text: Text, labels: NDArray[np.float64], draws: Draws) -> Tensor:
        """Mean over the labels of the batch that are not blank."""
        wanted = torch.from_numpy(self.scale.shrink(labels)).float()
        known = ~wanted.isnan()
        miss = torch.where(known, network(*text, draws.drop) - wanted.nan_to_num(), 0.0)
        return miss.square().sum() / known.sum().clamp(min=1)

    def validation_loss(self, network: Any, examples: Examples) -> float:
        """Mean squared error of standardised labels."""
        wanted = self.scale.shrink(examples.labels)
        miss = read_points(network, examples.ids) - wanted
        return float(np.nanmean(miss**2)) if (~np.isnan(wanted)).any() else 0.0

    def points(self, network: Any, examples: Examples) -> NDArray[np.float64]:
        """Predictions in the unit of each metric."""
        return self.scale.grow(read_points(network, examples.ids))


class RegressionHead:
    """A baseline beside `RegressionLM`: same text, tokenizer, encoder and training, but a linear layer for a decoder.

    Of `TrainConfig`, what is about writing numbers (chain, label_noise, metrics_per_example) has no meaning here.

    Args:
        config: shape of the model; the decoder's part is not used. Without metrics `fit` takes the columns.

    Example:
        >>> from nasrlm import get_space
        >>> networks = get_space("tiny").sample(8, seed=0)
        >>> values = {"depth": [n.params["depth"] for n in networks]}  # doctest: +SKIP
        >>> RegressionHead().fit(networks, values).predict(networks)  # doctest: +SKIP
    """

    def __init__(self, config: RLMConfig | None = None) -> None:
        self.config = config or RLMConfig()
        self._network: HeadNetwork | None = None
        self._tokenizer: TextTokenizer | None = None
        self._scale: Scale | None = None

    def fit(
        self,
        inputs: Sequence[Any],
        values: Any,
        *,
        init: RegressionLM | None = None,
        train: TrainConfig | None = None,
        progress: Progress | None = None,
    ) -> RegressionHead:
        """Trains from scratch, tokenizer included, or from the tokenizer and encoder of a trained model.

        Args:
            inputs: networks, as for `RegressionLM.fit`.
            values: DataFrame (or dict of columns), one row a network, one column a metric; NaN = blank.
            init: a trained model to start from; its shape then counts, not the configuration's.
            train: how to train.
            progress: called with a dict: step, steps, epoch, loss or validation scores, seconds.

        Returns:
            The head itself.

        Raises:
            TableError, MetricError, TextTooLongError, RunError: as for `RegressionLM.fit`.
        """
        train = train or TrainConfig()
        metrics = self.config.metrics or tuple(str(column) for column in as_frame(values).columns)
        self.config = dataclasses.replace(self.config if init is None else init.config, metrics=metrics)
        texts = read_inputs(inputs, self.config.dead_work).texts
        labels = read_labels(values, len(texts), metrics, number_tokens(self.config))
        check_labels(labels, metrics)
        self._tokenizer = init.tokenizer if init else TextTokenizer.train(texts, self.config.vocab_size)
        examples, held = hold_out(make_examples(texts, labels, self._tokenizer, self.config), train)
        self._scale = Scale.of(labels, metrics)
        self._network = HeadNetwork(self.config, self._tokenizer)
        if init is not None:
            known = init.network.state_dict()
            self._network.reader.load_state_dict({name: known[name] for name in self._network.reader.state_dict()})
        task = HeadTask(self.config, self._scale)
        train_network(Job(self._network, self._tokenizer, task, examples, held, train, None, progress))
        return self

    def predict(self, inputs: Sequence[Any]) -> pd.DataFrame:
        """Predicts all metrics.

        Returns:
            One row a network, indexed by architecture id (position for other inputs); one column a metric. Texts over
            the limit that are dropped give NaN.

        Raises:
            UsageError: it is not trained yet.
        """
        if self._network is None or self._tokenizer is None or self._scale is None:
            raise UsageError("the regression head is not trained. Call fit first.")
        read = read_inputs(inputs, self.config.dead_work)
        work = plan_work(read.texts, None, self._tokenizer, self.config, number_tokens(self.config))
        found = self._scale.grow(read_points(self._network, work.ids))
        index = pd.Index(read.names, name="architecture_id")
        return pd.DataFrame(work.spread(found), index=index, columns=list(self.config.metrics))


@torch.inference_mode()
def read_points(network: HeadNetwork, ids: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """What the network says of texts (N, M), standardised."""
    found = np.empty((len(ids), network.out.out_features))
    for rows, text, lengths in text_batches(ids, 256):
        found[rows] = network(text, lengths).double().numpy()
    return found

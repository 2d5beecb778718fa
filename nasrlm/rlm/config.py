"""Settings of the model and of its training: frozen values, checked when they are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from nasrlm.errors import ConfigError, nearest

_T = TypeVar("_T", "RLMConfig", "TrainConfig")

TOO_LONG = ("error", "drop", "cut")
OPTIMIZERS = ("adamw", "adafactor")
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class RLMConfig:
    """Shape of the model and what it reads and writes.

    Attributes:
        width: width of the residual stream; a multiple of `heads`, width / heads even (rotary positions).
        heads: attention heads.
        encoder_layers: layers that read the text.
        decoder_layers: layers that write the numbers.
        feed_forward: hidden width of the feed-forward parts; 0 means 2 x width.
        dropout: share of channels silenced in training, one draw a text and layer.
        max_text_tokens: longest text the model reads.
        too_long: what to do with longer ones: "error", "drop" (leave out of training, NaN in predictions) or "cut".
        metrics: names of the metrics, in declared order; "" lets `fit` take the columns of the values.
        mantissa_digits: decimal digits of a number.
        min_exponent: smallest decimal exponent of a number.
        max_exponent: largest decimal exponent of a number.
        vocab_size: upper limit of the text vocabulary.
        dead_work: whether texts list the operations that run but cannot change the output.
        text_version: version of the canonical text; 0 means the one of this nasrlm.
        seed: seed of the first weights.
    """

    width: int = 128
    heads: int = 4
    encoder_layers: int = 3
    decoder_layers: int = 2
    feed_forward: int = 0
    dropout: float = 0.0
    max_text_tokens: int = 2048
    too_long: str = "error"
    metrics: tuple[str, ...] = ()
    mantissa_digits: int = 4
    min_exponent: int = -12
    max_exponent: int = 15
    vocab_size: int = 8192
    dead_work: bool = True
    text_version: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", tuple(self.metrics))
        for key in ("width", "heads", "encoder_layers", "decoder_layers", "max_text_tokens"):
            _at_least(key, getattr(self, key), 1)
        _at_least("feed_forward", self.feed_forward, 0)
        if self.width % self.heads or self.width // self.heads % 2:
            raise ConfigError(
                f"width {self.width} does not split into {self.heads} heads of even width. "
                f"Allowed: multiples of {2 * self.heads}.",
                key="width",
            )
        _between("dropout", self.dropout, 0.0, 0.9)
        _one_of("too_long", self.too_long, TOO_LONG)
        if len(set(self.metrics)) != len(self.metrics):
            raise ConfigError(f"metrics {self.metrics} name one twice.", key="metrics")

    @property
    def hidden(self) -> int:
        """Hidden width of the feed-forward parts."""
        return self.feed_forward or 2 * self.width

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> RLMConfig:
        """Builds the configuration; an unknown key or a wrong type is a ConfigError."""
        return _from_dict(cls, settings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and YAML."""
        return {**dataclasses.asdict(self), "metrics": list(self.metrics)}


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Attributes:
        epochs: passes over the training rows; the learning rate falls to zero at their end.
        steps: number of optimiser steps in place of `epochs`; 0 means epochs count.
        batch_size: texts a step.
        batch_tokens: at most this many text tokens a step, padding included; long texts give smaller batches.
        learning_rate: highest learning rate.
        optimizer: "adamw" or "adafactor".
        warm_up: share of the steps in which the learning rate rises.
        clip: largest norm of the gradient; 0 means no limit.
        weight_decay: decoupled weight decay of the matrices.
        validation_fraction: share of the rows held out for early stopping (if no validation is given); 0 = none.
        patience: stop after this many validations without a better one; 0 = never stop early.
        validate_every: epochs between two validations.
        metrics_per_example: metrics of a row that are trained in one step; 0 means all of them.
        chain: share of the steps in which metrics are written in chains, each conditioned on those before it; in the
            others each metric stands alone.
        label_noise: relative standard deviation of the noise added to labels in each step; smooths the digits.
        segmentation_sampling: share of the texts that are cut into pieces in another way.
        average: decay of the running mean of the weights that is validated and kept; 0 = keep the weights themselves.
        precision: "float32", "bfloat16", or "auto" (the faster one here, measured once).
        checkpoint_seconds: seconds between two saves of the state (when a folder is given).
        seed: seed of order, chains, noise, dropout.
    """

    epochs: float = 30
    steps: int = 0
    batch_size: int = 32
    batch_tokens: int = 65536
    learning_rate: float = 1.5e-3
    optimizer: str = "adamw"
    warm_up: float = 0.05
    clip: float = 1.0
    weight_decay: float = 0.05
    validation_fraction: float = 0.05
    patience: int = 0
    validate_every: float = 2
    metrics_per_example: int = 0
    chain: float = 0.25
    label_noise: float = 0.0
    segmentation_sampling: float = 0.0
    average: float = 0.995
    precision: str = "auto"
    checkpoint_seconds: float = 60
    seed: int = 0

    def __post_init__(self) -> None:
        for key in ("batch_size", "batch_tokens"):
            _at_least(key, getattr(self, key), 1)
        for key in ("steps", "patience", "metrics_per_example", "clip", "weight_decay", "checkpoint_seconds"):
            _at_least(key, getattr(self, key), 0)
        for key in ("epochs", "learning_rate", "validate_every"):
            if not getattr(self, key) > 0:
                raise ConfigError(f"{key} is {getattr(self, key)!r}. Allowed: larger than 0.", key=key)
        for key in ("warm_up", "chain", "segmentation_sampling", "label_noise"):
            _between(key, getattr(self, key), 0.0, 1.0)
        _between("validation_fraction", self.validation_fraction, 0.0, 0.9)
        _between("average", self.average, 0.0, 0.99999)
        _one_of("optimizer", self.optimizer, OPTIMIZERS)
        _one_of("precision", self.precision, PRECISIONS)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> TrainConfig:
        """Builds the configuration; an unknown key or a wrong type is a ConfigError."""
        return _from_dict(cls, settings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and YAML."""
        return dataclasses.asdict(self)


def _from_dict(cls: type[_T], settings: Mapping[str, Any]) -> _T:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in fields:
            close = nearest(str(key), list(fields))
            hint = f" Nearest: {', '.join(close)}." if close else ""
            raise ConfigError(
                f"unknown key {key!r} of {cls.__name__}.{hint} Allowed: {', '.join(fields)}.", key=str(key)
            )
        values[key] = _typed(key, value, str(fields[key].type))
    return cls(**values)


def _typed(key: str, value: Any, kind: str) -> Any:
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind.startswith("tuple"):
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise ConfigError(f"{key} is {value!r}. Allowed: a list of names.", key=key)
    wanted = {"int": int, "float": float, "bool": bool, "str": str}[kind]
    if isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool)):
        return value
    raise ConfigError(f"{key} is {value!r}. Allowed: {kind}.", key=key)


def _at_least(key: str, value: float, low: float) -> None:
    if not value >= low:
        raise ConfigError(f"{key} is {value!r}. Allowed: at least {low}.", key=key)


def _between(key: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{key} is {value!r}. Allowed: {low} to {high}.", key=key)


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        close = nearest(value, allowed) or allowed
        rest = [name for name in allowed if name not in close]
        raise ConfigError(f"{key} is {value!r}. Allowed: {', '.join([*close, *rest])}.", key=key)

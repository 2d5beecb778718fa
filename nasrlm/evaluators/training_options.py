"""How candidates are trained: the settings of the training evaluator, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nasrlm.errors import ConfigError, nearest

OPTIMIZERS = {"adamw": 0.01, "sgd": 0.1}
"""Optimisers and the learning rate each takes when none is given."""
AUGMENTATIONS = ("flip", "shift")
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
PROCESSORS = ("auto", "cpu", "cuda")
PARTS = ("validation", "test")
USUAL_EPOCHS = 10.0


def wrong(option: str, message: str) -> ConfigError:
    """The error for an option of the training evaluator; a YAML loader finds the line by its key."""
    error = ConfigError(f"evaluator training: {message}")
    error.key = option
    return error


@dataclass(frozen=True)
class TrainingOptions:
    """A fidelity: everything that decides what a training of one network gives, but for the data.

    Attributes:
        steps: optimiser steps; None = by epochs.
        epochs: passes over the training part; None with no steps = 10.
        batch_size: samples a step; of fewer training samples, all.
        learning_rate: the highest; None = 0.01 for adamw, 0.1 for sgd.
        optimizer: "adamw" or "sgd" (Nesterov momentum 0.9).
        weight_decay: on matrices and kernels alone; decoupled with adamw.
        warm_up: share of the steps in which the learning rate rises; then it falls to zero as a cosine
            (Loshchilov & Hutter, "SGDR", ICLR 2017).
        augmentation: of "flip" (left and right) and "shift" (by up to an eighth of the size), on training images.
        precision: "float32", "bfloat16" or "float16" (CUDA alone) arithmetic with float32 weights; "auto" =
            float32 on a CPU, the half precision that is there on a GPU.
        device: "cpu" or "cuda"; "auto" = cuda where there is one.
        seed: of initial weights, batches and augmentation.
        seeds: trainings a network, with the seeds from `seed` on.
        threads: of torch on the CPU while it trains.
        normalize: BatchNorm behind each convolution that has a bias; folding is its inverse.
        score_on: the part that is scored: "validation" or "test".
    """

    steps: int | None = None
    epochs: float | None = None
    batch_size: int = 128
    learning_rate: float | None = None
    optimizer: str = "adamw"
    weight_decay: float = 5e-4
    warm_up: float = 0.1
    augmentation: tuple[str, ...] = ()
    precision: str = "auto"
    device: str = "auto"
    seed: int = 0
    seeds: int = 1
    threads: int = 1
    normalize: bool = False
    score_on: str = "validation"

    def __post_init__(self) -> None:
        self._check_words()
        for option in ("steps", "batch_size", "seeds", "threads"):
            _whole(option, getattr(self, option), 1, optional=option == "steps")
        _whole("seed", self.seed, 0)
        for option in ("epochs", "learning_rate"):
            value = getattr(self, option)
            if value is not None and not (_number(value) and value > 0):
                raise wrong(option, f"{option} is {value!r}. Allowed: a number above 0, or leave it out.")
        if not (_number(self.weight_decay) and self.weight_decay >= 0):
            raise wrong("weight_decay", f"weight_decay is {self.weight_decay!r}. Allowed: a number from 0 up.")
        if not (_number(self.warm_up) and 0 <= self.warm_up < 1):
            raise wrong("warm_up", f"warm_up is {self.warm_up!r}. Allowed: a share of the steps, 0 to below 1.")
        if self.steps is not None and self.epochs is not None:
            raise wrong("steps", f"both steps ({self.steps}) and epochs ({self.epochs}) are given. Give one of them.")

    def _check_words(self) -> None:
        allowed: dict[str, Sequence[str]] = {
            "optimizer": tuple(OPTIMIZERS),
            "precision": PRECISIONS,
            "device": PROCESSORS,
            "score_on": PARTS,
        }
        for option, words in allowed.items():
            check_word(option, getattr(self, option), words)
        for word in self.augmentation:
            check_word("augmentation", word, AUGMENTATIONS)
        check_flag("normalize", self.normalize)

    @property
    def rate(self) -> float:
        """The highest learning rate."""
        return OPTIMIZERS[self.optimizer] if self.learning_rate is None else self.learning_rate

    def length(self, samples: int) -> int:
        """Optimiser steps for a training part of so many samples.

        >>> TrainingOptions(epochs=2).length(1000)
        16
        """
        if self.steps is not None:
            return self.steps
        epochs = USUAL_EPOCHS if self.epochs is None else self.epochs
        return max(1, round(epochs * samples / min(self.batch_size, samples)))


@dataclass(frozen=True)
class ReadingOptions:
    """How a data set is read.

    Attributes:
        resize: bring images to the size and number of channels that the networks take.
        standardize: mean 0 and deviation 1 a channel, by the training part.
        held_out: share of the samples for each part that the data does not have.
        workers: processes that read a data set too large for memory.
    """

    resize: bool = False
    standardize: bool = True
    held_out: float = 0.2
    workers: int = 0

    def __post_init__(self) -> None:
        check_flag("resize", self.resize)
        check_flag("standardize", self.standardize)
        _whole("workers", self.workers, 0)
        if not (_number(self.held_out) and 0 < self.held_out < 0.5):
            raise wrong("held_out", f"held_out is {self.held_out!r}. Allowed: a share above 0 and below 0.5.")


def as_augmentation(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """The option `augmentation` as a tuple: "none", one word, or several.

    >>> as_augmentation("none"), as_augmentation(["flip", "shift"])
    ((), ('flip', 'shift'))
    """
    if given is None or given == "none":
        return ()
    return tuple(given) if isinstance(given, list | tuple) else (str(given),)


def check_word(option: str, value: Any, words: Sequence[str]) -> None:
    """Sees that an option is one of some words.

    Raises:
        ConfigError: it is not; the nearest comes first.
    """
    if value not in words:
        near = nearest(str(value), words)
        first = f"Nearest: {near[0]}. " if near else ""
        also = ", or none" if option == "augmentation" else ""
        raise wrong(option, f"{option} is {value!r}. {first}Allowed: {', '.join(words)}{also}.")


def check_flag(option: str, value: Any) -> None:
    """Sees that an option is true or false.

    Raises:
        ConfigError: it is neither.
    """
    if not isinstance(value, bool):
        raise wrong(option, f"{option} is {value!r}. Allowed: true or false.")


def _whole(option: str, value: Any, least: int, *, optional: bool = False) -> None:
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise wrong(option, f"{option} is {value!r}. Allowed: a whole number from {least} up.")


def _number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)

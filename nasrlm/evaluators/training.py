"""Trains candidates on a data set; their accuracy is what the training gives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from nasrlm.evaluators.protocol import check_metrics, value_frame
from nasrlm.evaluators.training_options import ReadingOptions, TrainingOptions, as_augmentation, check_flag, wrong
from nasrlm.spaces import Architecture, SearchSpace

if TYPE_CHECKING:
    from nasrlm.evaluators.training_data import Data

_REASON = 300  # characters of a failure's reason
_NO_MEMORY = re.compile("allocat\\w* memory|(out of|not enough) memory", re.I)  # torch's words on a CPU


class TrainingEvaluator:
    """Trains each candidate from scratch on a data set and gives its accuracy in percent, `accuracy/NAME`.

    A candidate whose training fails or diverges has no value (NaN); `failures` has the reason. Each is trained once
    and remembered by its architecture's id. Initial weights, batches and augmentation depend on the seed alone, and
    torch's own random state is left as it was: the same architecture and options give the same accuracy on the same
    machine.

    Args:
        space: where the architectures come from: its graphs as torch modules (`to_torch`), or its `build_module`.
        data: "digits" (scikit-learn's, 8x8 pixels), a .npz file, a folder of class folders of images,
            "package.module:function" or "file.py:function" that gives a torch Dataset, (train, test) or
            (train, validation, test).
        data_options: arguments of that function.
        label: NAME of the metric; None = the data's own.
        steps: optimiser steps a training. Give steps or epochs.
        epochs: passes over the training part; 10 if neither is given.
        batch_size: samples a step.
        learning_rate: the highest, reached after warm-up; None = 0.01 for adamw, 0.1 for sgd.
        optimizer: "adamw" or "sgd".
        weight_decay: on kernels and matrices.
        warm_up: share of steps in which the learning rate rises.
        augmentation: "none", "flip", "shift", or a list of them.
        precision: "auto", "float32", "bfloat16", "float16" (CUDA alone).
        device: "auto", "cpu" or "cuda".
        seed: of the first training.
        seeds: trainings a candidate, with the seeds from `seed` on; the metric is their mean.
        per_seed: also give each one's accuracy, `accuracy/NAME_seed0` ...
        threads: of torch while it trains on the CPU; the accuracy may differ in its last digits with another number.
        normalize: BatchNorm behind convolutions with a bias, whose inverse is folding. For networks in which it was
            folded away.
        score_on: "validation" for a search, which leaves the test part untouched; "test" to make labels.
        held_out: share of the samples for each part that the data does not have.
        resize: bring images to the size and number of channels that the networks take.
        standardize: mean 0 and deviation 1 a channel, by the training part.
        workers: processes that read a data set too large for memory.

    Attributes:
        logs: architecture id -> entries of its trainings: seed, step, loss; the last has accuracy and seconds.
        failures: architecture id -> why it has no value.

    Raises:
        ConfigError: an option outside its range, data that cannot be read, or that does not fit the networks.

    Example:
        >>> from nasrlm.spaces import get_space
        >>> evaluator = TrainingEvaluator(get_space("tiny"), steps=20, resize=True)
        >>> evaluator.metrics
        ('accuracy/digits',)
    """

    name = "training"

    def __init__(
        self,
        space: SearchSpace,
        data: Any = "digits",
        data_options: Mapping[str, Any] | None = None,
        label: str | None = None,
        steps: int | None = None,
        epochs: float | None = None,
        batch_size: int = 128,
        learning_rate: float | None = None,
        optimizer: str = "adamw",
        weight_decay: float = 5e-4,
        warm_up: float = 0.1,
        augmentation: str | Sequence[str] = "none",
        precision: str = "auto",
        device: str = "auto",
        seed: int = 0,
        seeds: int = 1,
        per_seed: bool = False,
        threads: int = 1,
        normalize: bool = False,
        score_on: str = "validation",
        held_out: float = 0.2,
        resize: bool = False,
        standardize: bool = True,
        workers: int = 0,
    ) -> None:
        self.options = TrainingOptions(
            steps=steps,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            optimizer=optimizer,
            weight_decay=weight_decay,
            warm_up=warm_up,
            augmentation=as_augmentation(augmentation),
            precision=precision,
            device=device,
            seed=seed,
            seeds=seeds,
            threads=threads,
            normalize=normalize,
            score_on=score_on,
        )
        self._reading = ReadingOptions(resize=resize, standardize=standardize, held_out=held_out, workers=workers)
        check_flag("per_seed", per_seed)
        self.space = space
        if not isinstance(data_options, Mapping | None):
            raise wrong("data_options", f"data_options is {data_options!r}. Allowed: a mapping of arguments.")
        self._open(data, data_options or {})
        self.label = _checked_label(self._source.name if label is None else label)
        runs = [f"accuracy/{self.label}_seed{s}" for s in self._seeds] if per_seed else []
        self.metrics: tuple[str, ...] = (f"accuracy/{self.label}", *runs)
        self.accuracies: dict[str, list[float]] = {}
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.failures: dict[str, str] = {}

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Accuracies in percent, see `Evaluator.evaluate`; NaN for a candidate in `failures`.

        Raises:
            MetricError: a metric other than those in `metrics`.
            ConfigError: data that turns out to be damaged when it is read.
        """
        check_metrics(self, metrics)
        if metrics:
            for architecture in dict.fromkeys(architectures):
                if architecture.id not in self.accuracies and architecture.id not in self.failures:
                    self._train(architecture)
        found = [self.accuracies.get(a.id, [math.nan] * self.options.seeds) for a in architectures]
        columns = {self.metrics[0]: [sum(runs) / len(runs) for runs in found]}
        columns |= {metric: [runs[i] for runs in found] for i, metric in enumerate(self.metrics[1:])}
        return value_frame(architectures, {metric: columns[metric] for metric in metrics})

    @property
    def _seeds(self) -> range:
        return range(self.options.seed, self.options.seed + self.options.seeds)

    def _open(self, data: Any, data_options: Mapping[str, Any]) -> None:
        """Finds the data and the processor, and sees that all fit."""
        from nasrlm.evaluators.training_data import check_fit, open_data  # torch takes a second to load
        from nasrlm.evaluators.training_loop import place_of
        from nasrlm.evaluators.training_network import form_of_space

        self._place = place_of(self.options)
        self._form = form_of_space(self.space)
        self._source = open_data(data, self._form.shape, resize=self._reading.resize, options=data_options)
        check_fit(self.space.name, self._form, self._source)
        if self.options.augmentation and len(self._source.shape) != 3:
            raise wrong("augmentation", f"augmentation is for images, and samples have the shape {self._source.shape}.")

    @cached_property
    def _data(self) -> Data:
        from nasrlm.evaluators.training_data import check_classes, load_data

        data = load_data(self._source, self._form.shape, self._reading)
        check_classes(self.space.name, self._form, self._source.name, data)
        return data.at(self._place.device)

    def _train(self, architecture: Architecture) -> None:
        """Trains a candidate with every seed, and remembers what came out."""
        data = self._data  # what is wrong with the data is no fault of a candidate
        log: list[dict[str, Any]] = []
        runs = []
        try:
            for seed in self._seeds:
                outcome = self._run(architecture, seed, data)
                runs.append(outcome.accuracy)
                log += outcome.log
        except Exception as error:  # any code may run here, the user's and torch's; the study goes on
            self.failures[architecture.id] = self._reason(error, seed)
        else:
            self.accuracies[architecture.id] = runs
        self.logs[architecture.id] = log

    def _run(self, architecture: Architecture, seed: int, data: Data) -> Any:
        import torch

        from nasrlm.evaluators.training_loop import train
        from nasrlm.evaluators.training_network import make_network

        scored = data.test if self.options.score_on == "test" else data.validation
        with (
            torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True),
            _threads(self.options.threads),
        ):
            network = make_network(architecture, seed, self.options.normalize)
            return train(network, data.train, scored, self.options, seed, self._place)

    def _reason(self, error: Exception, seed: int) -> str:
        import torch

        from nasrlm.errors import NasrlmError

        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) or _NO_MEMORY.search(text):
            text = f"out of memory; lower batch_size ({self.options.batch_size}). {text}"
        elif not isinstance(error, NasrlmError):
            text = f"{type(error).__name__}: {text}"
        return f"training with seed {seed}: {text}"[:_REASON]


def _checked_label(label: Any) -> str:
    if not isinstance(label, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.\-]*", label):
        raise wrong("label", f"label is {label!r}. It names the metric accuracy/LABEL: letters, digits, _ . -")
    return label


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Torch's number of threads, for a while."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


EVALUATOR = TrainingEvaluator

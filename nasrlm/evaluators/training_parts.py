"""Samples and labels for training: in memory, or read batch by batch from a data set that is too large for that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nasrlm.evaluators.training_options import wrong

SPLIT_SEED = 0  # the held-out rows are the same for every seed of training
IN_MEMORY_BYTES = 1 << 30  # a data set that takes more as float32 is read batch by batch
_FOR_STATISTICS = 2048  # samples of a data set read batch by batch that give mean and deviation
_AT_ONCE = 1024


class Part(Protocol):
    """Training, validation or test part of a data set."""

    def __len__(self) -> int: ...

    def batches(self, rows: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Samples (float32, or int64 ids) and labels (int64) of each tensor of positions."""
        ...

    def at(self, device: torch.device) -> Part:
        """This part where the network is, so far as it lies in memory."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Samples and labels as two tensors; a batch is one selection."""

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def batches(self, rows: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """See `Part.batches`."""
        for chosen in rows:
            chosen = chosen.to(self.y.device)
            yield self.x.index_select(0, chosen), self.y.index_select(0, chosen)

    def at(self, device: torch.device) -> InMemory:
        """See `Part.at`."""
        return InMemory(self.x.to(device), self.y.to(device))

    def rows(self, chosen: Tensor) -> InMemory:
        """Some samples."""
        return InMemory(self.x[chosen], self.y[chosen])


@dataclass(frozen=True)
class Streamed:
    """Rows of a torch Dataset, read by a DataLoader when they are needed."""

    dataset: Any
    chosen: Tensor
    workers: int
    ready: Callable[[Tensor], Tensor] = lambda x: x

    def __len__(self) -> int:
        return len(self.chosen)

    def batches(self, rows: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """See `Part.batches`."""
        from torch.utils.data import DataLoader

        positions = (self.chosen[some].tolist() for some in rows)
        for x, y in DataLoader(self.dataset, batch_sampler=positions, num_workers=self.workers):
            yield self.ready(x), y.long()

    def at(self, device: torch.device) -> Streamed:
        """See `Part.at`."""
        return self

    def rows(self, chosen: Tensor) -> Streamed:
        """Some samples."""
        return replace(self, chosen=self.chosen[chosen])


@dataclass(frozen=True)
class Ready:
    """What is done to raw samples: numbers of the right kind, the network's image shape, standardised."""

    shape: tuple[Any, ...]
    resize: bool
    mean: Tensor | None = None
    deviation: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """A batch made ready."""
        x = fitted(x, self.shape, self.resize)
        if self.mean is None or self.deviation is None or not x.is_floating_point():
            return x
        return (x - self.mean) / self.deviation

    def all(self, x: Tensor) -> Tensor:
        """All samples made ready, some at a time: resizing needs room."""
        return torch.cat([self(some) for some in x.split(_AT_ONCE)])


def fitted(x: Tensor, shape: tuple[Any, ...], resize: bool) -> Tensor:
    """A batch as float32 (ids of 32 and 64 bits stay whole numbers), with the channel that grey images lack.

    Args:
        x: samples, batch first.
        shape: of the network's input without the batch.
        resize: whether images of another size or number of channels (1 or 3) are brought to that shape.
    """
    if x.dtype in (torch.int32, torch.int64):
        return x.long()
    x = x.float()
    if x.dim() == 3 and len(shape) == 3:
        x = x.unsqueeze(1)
    if not resize or x.shape[1:] == shape:
        return x
    channels, height, width = shape
    if x.shape[1] != channels:
        x = x.mean(1, keepdim=True) if channels == 1 else x.expand(-1, channels, -1, -1)
    if x.shape[2:] == (height, width):
        return x
    return F.interpolate(x, (height, width), mode="bilinear", align_corners=False, antialias=True)


def held_out(labels: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Positions that stay and positions held out, every class in its share (all labels alike: at random).

    >>> labels = torch.tensor([0, 1] * 10)
    >>> rest, held = held_out(labels, 4)
    >>> len(rest), sorted(labels[held].tolist())
    (16, [0, 0, 1, 1])
    """
    n = len(labels)
    shuffled = np.random.default_rng(SPLIT_SEED).permutation(n)
    by_class = shuffled[np.argsort(labels.numpy()[shuffled], kind="stable")]
    picks = ((np.arange(count) + 0.5) * n / count).astype(np.int64) if count else np.arange(0)
    mask = np.zeros(n, dtype=bool)
    mask[by_class[picks]] = True
    return torch.from_numpy(np.flatnonzero(~mask)), torch.from_numpy(np.flatnonzero(mask))


def completed(parts: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Training, validation and test part; those that are missing are held out of the training part.

    Raises:
        ConfigError: nothing is left.
    """
    found = dict(parts)
    count = round(share * len(found["train"]))
    for name in ("test", "validation"):
        if name in found:
            continue
        if not 0 < count < len(found["train"]):
            raise wrong(
                "held_out",
                f"held_out is {share}: of {len(found['train'])} samples that gives {count} for {name}. "
                "Give more data, or another share.",
            )
        train = found["train"]
        labels = train.y if isinstance(train, InMemory) else torch.zeros(len(train))
        rest, held = held_out(labels, count)
        found["train"], found[name] = train.rows(rest), train.rows(held)
    return found


def prepared(parts: Mapping[str, Any], ready: Ready, standardize: bool) -> dict[str, Any]:
    """Parts whose samples are ready for the network, standardised by the training part's mean and deviation."""
    if standardize:
        ready = _with_statistics(parts["train"], ready)
    return {
        name: InMemory(ready.all(part.x), part.y) if isinstance(part, InMemory) else replace(part, ready=ready)
        for name, part in parts.items()
    }


def _with_statistics(train: Any, ready: Ready) -> Ready:
    """One mean and deviation a channel (feature), over samples and positions."""
    step = 1 if isinstance(train, InMemory) else max(1, len(train) // _FOR_STATISTICS)
    count, total, squares = 0.0, torch.zeros(()), torch.zeros(())
    for x, _ in train.batches(torch.arange(0, len(train), step).split(_AT_ONCE)):
        x = ready(x)
        if not x.is_floating_point():
            return ready
        axes = [axis for axis in range(x.dim()) if axis != 1]
        count += x.numel() / x.shape[1]
        total, squares = total + x.double().sum(axes), squares + x.double().square().sum(axes)
    mean = total / count
    deviation = (squares / count - mean.square()).clamp_min(0).sqrt()
    deviation = torch.where(deviation < 1e-6, 1.0, deviation)  # a constant channel becomes zero
    form = [-1, *[1] * (x.dim() - 2)]
    return replace(ready, mean=mean.float().view(form), deviation=deviation.float().view(form))


def bytes_as_float(count: int, shape: tuple[int, ...]) -> int:
    """What so many samples of a shape take as float32."""
    return 4 * count * math.prod(shape)

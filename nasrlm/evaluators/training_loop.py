"""Trains one network once, and scores it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nasrlm.errors import RunError
from nasrlm.evaluators.training_options import TrainingOptions, wrong
from nasrlm.evaluators.training_parts import Part

_LOGGED = 10  # entries of a training's log
_SHIFT = 8  # images move by up to this part of their size
_BATCH_NORM = nn.modules.batchnorm._BatchNorm
_RECALIBRATION = 8  # batches


class Diverged(RunError):
    """A training whose loss or outputs are no finite numbers any more."""


@dataclass(frozen=True)
class Outcome:
    """What a training gave.

    Attributes:
        accuracy: percent of the scored part that is classified correctly.
        log: entries of a step's number and the mean loss since the one before; the last one has the accuracy.
    """

    accuracy: float
    log: list[dict[str, Any]]


@dataclass(frozen=True)
class Place:
    """Where to compute, and in which precision."""

    device: torch.device
    half: torch.dtype | None

    def casting(self) -> AbstractContextManager[Any]:
        """Mixed precision, where it is wanted."""
        return nullcontext() if self.half is None else torch.autocast(self.device.type, self.half)


def place_of(options: TrainingOptions) -> Place:
    """Where these options train.

    Raises:
        ConfigError: a GPU, or a precision, that is not there.
    """
    cuda = torch.cuda.is_available()
    if options.device == "cuda" and not cuda:
        raise wrong("device", "device is 'cuda', and torch finds no CUDA GPU here. Use auto or cpu.")
    device = torch.device("cuda" if cuda and options.device != "cpu" else "cpu")
    precision = options.precision
    if precision == "float16" and device.type == "cpu":
        raise wrong("precision", "precision is 'float16', which needs a CUDA GPU. Use float32, bfloat16 or auto.")
    if precision == "auto" and device.type == "cuda":
        precision = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return Place(device, None if precision in ("auto", "float32") else getattr(torch, precision))


def train(network: nn.Module, part: Part, scored: Part, options: TrainingOptions, seed: int, place: Place) -> Outcome:
    """Trains a network in place and scores it.

    Batches and augmentation depend on the seed alone, so every architecture sees the same.

    Args:
        network: with its initial weights.
        part: what it learns from.
        scored: what gives the accuracy.
        options: how.
        seed: of batches and augmentation.
        place: where.

    Raises:
        Diverged: loss or outputs are no finite numbers.
        RunError: outputs that are no (batch, classes).
        RuntimeError: torch's own, such as out of memory.
    """
    began = time.perf_counter()
    network.to(place.device).train()
    rng = torch.Generator().manual_seed(seed)
    steps = options.length(len(part))
    rows = _batches(len(part), min(options.batch_size, len(part)), steps, rng)
    log = _learn(network, part.batches(rows), options, steps, rng, place)
    _recalibrate(network, part, options, place)
    accuracy = _accuracy(network, scored, options.batch_size, place)
    seconds = round(time.perf_counter() - began, 3)
    log.append({"step": steps, "steps": steps, f"{options.score_on}_accuracy": accuracy, "seconds": seconds})
    return Outcome(accuracy, [{"seed": seed, **entry} for entry in log])


def _learn(
    network: nn.Module, batches: Any, options: TrainingOptions, steps: int, rng: torch.Generator, place: Place
) -> list[dict[str, Any]]:
    optimizer = _optimizer(network, options)
    scaler = torch.amp.GradScaler(place.device.type, enabled=place.half == torch.float16)
    log: list[dict[str, Any]] = []
    losses: list[Tensor] = []
    every = max(1, steps // _LOGGED)
    for step, (x, y) in enumerate(batches, 1):
        x = augmented(x, options.augmentation, rng).to(place.device)
        with place.casting():
            loss = F.cross_entropy(_logits(network, x).float(), y.to(place.device))
        scaler.scale(loss).backward()
        for group in optimizer.param_groups:
            group["lr"] = options.rate * _schedule(step - 1, steps, options.warm_up)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        if step % every == 0 or step == steps:
            log.append({"step": step, "steps": steps, "loss": _mean(losses, step, steps, options)})
            losses = []
    return log


def _mean(losses: list[Tensor], step: int, steps: int, options: TrainingOptions) -> float:
    """The mean of the last losses; reading them waits for a GPU, so it is done seldom."""
    values: list[float] = torch.stack(losses).tolist()
    for i, value in enumerate(values):
        if not math.isfinite(value):
            raise Diverged(
                f"diverged: the loss is {value} at step {step - len(values) + i + 1} of {steps}. Lower learning_rate "
                f"({options.rate:g})" + ("." if options.normalize else " or set normalize: true.")
            )
    return sum(values) / len(values)


def _logits(network: nn.Module, x: Tensor) -> Tensor:
    found = network(x)
    if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != len(x):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise RunError(f"the network gives {shape} for {len(x)} samples. A classifier gives (batch, classes).")
    return found


def _batches(n: int, size: int, steps: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Positions of each step: shuffled passes one after another, so that every batch is full."""
    pool = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        while len(pool) < size:
            pool = torch.cat([pool, torch.randperm(n, generator=rng)])
        yield pool[:size]
        pool = pool[size:]


def augmented(x: Tensor, kinds: tuple[str, ...], rng: torch.Generator) -> Tensor:
    """Images (batch, channels, height, width), each flipped by a coin and moved by some pixels (zeros come in)."""
    if "flip" in kinds:
        coins = torch.rand(len(x), generator=rng).to(x.device) < 0.5
        x = torch.where(coins.view(-1, 1, 1, 1), x.flip(-1), x)
    if "shift" in kinds:
        n, channels, height, width = x.shape
        most = (max(1, height // _SHIFT), max(1, width // _SHIFT))
        down, right = (torch.randint(0, 2 * m + 1, (n, 1), generator=rng).to(x.device) for m in most)
        rows = (torch.arange(height, device=x.device) + down)[:, None, :, None]
        columns = (torch.arange(width, device=x.device) + right)[:, None, None, :]
        padded = F.pad(x, (most[1], most[1], most[0], most[0]))
        every = torch.arange(n, device=x.device).view(-1, 1, 1, 1)
        x = padded[every, torch.arange(channels, device=x.device).view(1, -1, 1, 1), rows, columns]
    return x


def _optimizer(network: nn.Module, options: TrainingOptions) -> torch.optim.Optimizer:
    weights = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in weights if p.dim() > 1], "weight_decay": options.weight_decay},
        {"params": [p for p in weights if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if options.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=options.rate, momentum=0.9, nesterov=True, fused=True)
    return torch.optim.AdamW(groups, lr=options.rate, fused=True)  # a step of small tensors takes half of foreach's


def _schedule(step: int, steps: int, warm_up: float) -> float:
    """Share of the highest learning rate: a line up, then a cosine down to almost zero."""
    warm = round(warm_up * steps)
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


@torch.no_grad()
def _recalibrate(network: nn.Module, part: Part, options: TrainingOptions, place: Place) -> None:
    """BatchNorm's running means after few steps remember the first weights: take them anew from the last ones."""
    norms = [m for m in network.modules() if isinstance(m, _BATCH_NORM) and m.track_running_stats]
    if not norms:
        return
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean
    size = min(options.batch_size, len(part))
    count = min(_RECALIBRATION, len(part) // size)
    for x, _ in part.batches(torch.arange(count * size).split(size)):
        with place.casting():
            network(x.to(place.device))
    for norm, momentum in zip(norms, before, strict=True):
        norm.momentum = momentum


@torch.no_grad()
def _accuracy(network: nn.Module, part: Part, size: int, place: Place) -> float:
    network.eval()
    right = torch.zeros((), device=place.device)
    finite = torch.ones((), device=place.device, dtype=torch.bool)
    for x, y in part.batches(torch.arange(len(part)).split(size)):
        with place.casting():
            logits = _logits(network, x.to(place.device))
        finite &= logits.isfinite().all()
        right += (logits.argmax(1) == y.to(place.device)).sum()
    if not bool(finite):
        raise Diverged("diverged: the trained network gives numbers that are not finite. Lower learning_rate.")
    return 100.0 * float(right) / len(part)

"""The training loop: batches, learning rate, running mean, early stop, and a state that survives a kill.

All draws of a step are seeded by (seed, step), so the state is weights, optimiser and the step's number; a run that
is killed and started again equals one that was not.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nasrlm.errors import RunError
from nasrlm.files import whole_file
from nasrlm.rlm.batches import Examples, draw_texts, epoch_batches, pad
from nasrlm.rlm.config import TrainConfig
from nasrlm.rlm.precision import resolve
from nasrlm.rlm.scores import score_table
from nasrlm.rlm.state import fingerprint, load_state, save_state
from nasrlm.rlm.tasks import Draws, Task
from nasrlm.tokens import TextTokenizer

Progress = Callable[[dict[str, Any]], None]

_LOG_EVERY = 20  # steps
_RANK_FROM = 20  # validation rows from which rank correlation, not loss, picks the best weights


@dataclass
class Run:
    """Everything that changes while a model is trained.

    Attributes:
        master: float32 network that the optimiser moves.
        worker: network that reads and writes; a bfloat16 copy of `master`, or `master` itself.
        optimizer: AdamW or Adafactor.
        mean: running mean of the weights; empty when not wanted.
        best: weights of the best validation; empty before the first.
        fingerprint: identity of the training, see `nasrlm.rlm.state.fingerprint`.
        step: optimiser steps done.
        best_score: score of the best validation.
        stale: validations since then.
    """

    master: nn.Module
    worker: nn.Module
    optimizer: torch.optim.Optimizer
    mean: list[Tensor]
    best: list[Tensor] = field(default_factory=list)
    fingerprint: str = ""
    step: int = 0
    best_score: float = -math.inf
    stale: int = 0


@dataclass(frozen=True)
class Job:
    """What is trained, on what, and how."""

    network: nn.Module
    tokenizer: TextTokenizer
    task: Task
    examples: Examples
    validation: Examples | None
    train: TrainConfig
    folder: Path | None = None
    progress: Progress | None = None


def train_network(job: Job) -> list[dict[str, Any]]:
    """Trains `job.network` in place; gives the log of all validations.

    Raises:
        RunError: the loss is no number any more.
    """
    run = _start(job)
    steps, per_epoch = _length(job)
    log = _Log(job, run.step)
    clock, loss_sum, since = time.monotonic(), 0.0, 0
    validate_every = max(1, round(job.train.validate_every * per_epoch))
    for rows in _batches(job, run.step, steps, per_epoch):
        loss_sum += _step(job, run, rows, steps)
        since += 1
        last = run.step == steps
        if run.step % _LOG_EVERY == 0 or last:
            log.write({"step": run.step, "steps": steps, "epoch": run.step / per_epoch, "loss": loss_sum / since})
            loss_sum, since = 0.0, 0
        if job.validation is not None and (run.step % validate_every == 0 or last):
            log.write({"step": run.step, "steps": steps, "epoch": run.step / per_epoch, **_validate(job, run)})
            if job.train.patience and run.stale >= job.train.patience:
                break
        if job.folder is not None and (time.monotonic() - clock > job.train.checkpoint_seconds or last):
            save_state(job.folder, run)
            clock = time.monotonic()
    _finish(run)
    return log.validations


def _length(job: Job) -> tuple[int, int]:
    lengths = np.array([len(ids) for ids in job.examples.ids])
    per_epoch = len(epoch_batches(lengths, job.train, 0))
    return job.train.steps or max(1, round(job.train.epochs * per_epoch)), per_epoch


def _batches(job: Job, start: int, steps: int, per_epoch: int) -> Iterator[np.ndarray]:
    """Rows of each step from `start` on. Epochs may differ by a batch; steps count epochs by the first one."""
    lengths = np.array([len(ids) for ids in job.examples.ids])
    for epoch in range(start // per_epoch, math.ceil(steps / per_epoch)):
        batches = epoch_batches(lengths, job.train, epoch)
        first, last = epoch * per_epoch, min(steps, (epoch + 1) * per_epoch)
        for step in range(max(start, first), last):
            yield batches[(step - first) % len(batches)]


def _start(job: Job) -> Run:
    dtype = resolve(job.train.precision)
    identity = "" if job.folder is None else fingerprint(job)
    state = None if job.folder is None else load_state(job.folder, identity)
    if state is not None:
        dtype = getattr(torch, state.precision)
    master = job.network
    worker = master if dtype == torch.float32 else copy.deepcopy(master).to(dtype)
    parameters = [p.detach() for p in master.parameters()]
    mean = [p.clone() for p in parameters] if job.train.average else []
    run = Run(master, worker, _optimizer(master, job.train), mean, fingerprint=identity)
    if state is not None:
        state.restore(run)
        _publish(run)
    return run


def _optimizer(network: nn.Module, train: TrainConfig) -> torch.optim.Optimizer:
    matrices = [p for n, p in network.named_parameters() if p.dim() > 1 and n.split(".")[-2] not in ("text", "metric")]
    chosen = {id(p) for p in matrices}
    others = [p for p in network.parameters() if id(p) not in chosen]
    groups = [{"params": matrices, "weight_decay": train.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if train.optimizer == "adafactor":
        return torch.optim.Adafactor(groups, lr=train.learning_rate)
    return torch.optim.AdamW(groups, lr=train.learning_rate, betas=(0.9, 0.98))


def _step(job: Job, run: Run, rows: np.ndarray, steps: int) -> float:
    train, examples = job.train, job.examples
    rng = np.random.default_rng([train.seed, 2, run.step])
    drop_rng = torch.Generator().manual_seed(int(rng.integers(2**62)))
    text = pad(draw_texts(examples, rows, job.tokenizer, train.segmentation_sampling, rng))
    loss = job.task.loss(run.worker, text, examples.labels[rows], Draws(rng, drop_rng))
    value = float(loss.detach())
    if not math.isfinite(value):
        raise RunError(
            f"the loss is {value} at step {run.step + 1}. Lower learning_rate ({train.learning_rate}) or raise clip."
        )
    loss.backward()
    _move(run, train, _learning_rate(train, run.step, steps))
    run.step += 1
    return value


def _move(run: Run, train: TrainConfig, rate: float) -> None:
    """One step of the optimiser, from the worker's gradients to master, mean and worker."""
    if run.worker is not run.master:
        for master, worker in zip(run.master.parameters(), run.worker.parameters(), strict=True):
            master.grad = None if worker.grad is None else worker.grad.float()
            worker.grad = None
    if train.clip:
        torch.nn.utils.clip_grad_norm_(run.master.parameters(), train.clip)
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    if run.mean:
        # early on the mean follows faster, or it would remember the first weights
        weight = max(1 - train.average, 1 / (run.step + 1))
        torch._foreach_lerp_(run.mean, [p.detach() for p in run.master.parameters()], weight)
    _publish(run)


@torch.no_grad()
def _publish(run: Run) -> None:
    if run.worker is not run.master:
        for master, worker in zip(run.master.parameters(), run.worker.parameters(), strict=True):
            worker.copy_(master)


def _learning_rate(train: TrainConfig, step: int, steps: int) -> float:
    warm = max(1, round(train.warm_up * steps))
    if step < warm:
        return train.learning_rate * (step + 1) / warm
    return train.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


@torch.no_grad()
def _validate(job: Job, run: Run) -> dict[str, float]:
    """Scores the weights that would be kept, and keeps them if they are the best so far."""
    assert job.validation is not None
    weights = run.mean or [p.detach() for p in run.master.parameters()]
    network = copy.deepcopy(run.worker)
    for into, weight in zip(network.parameters(), weights, strict=True):
        into.copy_(weight)
    loss = job.task.validation_loss(network, job.validation)
    found = {"validation_loss": loss}
    score = -loss
    if len(job.validation) >= _RANK_FROM:
        points = job.task.points(network, job.validation)
        rhos = score_table(job.validation.labels, points, job.task.metrics)["rho"].to_dict()
        found |= {f"validation_rho/{m}": rho for m, rho in rhos.items() if not math.isnan(rho)}
        known = [rho for rho in rhos.values() if not math.isnan(rho)]
        score = float(np.mean(known)) if known else score
    found["validation_score"] = score
    if score > run.best_score:
        run.best_score, run.stale = score, 0
        run.best = [w.clone() for w in weights]
    else:
        run.stale += 1
    return found


@torch.no_grad()
def _finish(run: Run) -> None:
    kept = run.best or run.mean
    if kept:
        for parameter, weight in zip(run.master.parameters(), kept, strict=True):
            parameter.copy_(weight)


class _Log:
    """log.jsonl in the folder, the caller's progress, and the validations for the caller."""

    def __init__(self, job: Job, step: int) -> None:
        self.progress = job.progress
        self.validations: list[dict[str, Any]] = []
        self.path = None if job.folder is None else job.folder / "log.jsonl"
        self.began = time.monotonic()
        if self.path is not None:
            self._forget_after(self.path, step)

    def write(self, entry: dict[str, Any]) -> None:
        entry = {**entry, "seconds": round(time.monotonic() - self.began, 3)}
        if "validation_score" in entry:
            self.validations.append(entry)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        if self.progress is not None:
            self.progress(entry)

    def _forget_after(self, path: Path, step: int) -> None:
        """Drops what a killed run logged after its last saved state, and a line it did not finish."""
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry.get("step", 0) <= step:
                kept.append(entry)
        with whole_file(path) as part:
            part.write_text("".join(json.dumps(entry) + "\n" for entry in kept), encoding="utf-8")
        self.validations = [entry for entry in kept if "validation_score" in entry]

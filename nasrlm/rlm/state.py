"""The state of an unfinished training: one safetensors file, replaced at once, never a pickle."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nasrlm.errors import RunFolderError
from nasrlm.files import whole_file

if TYPE_CHECKING:
    from nasrlm.rlm.training import Job, Run

STATE_FILE = "training_state.safetensors"


@dataclass(frozen=True)
class State:
    """What `save_state` wrote."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    @property
    def precision(self) -> str:
        """Name of the float type the run works in."""
        return str(self.facts["precision"])

    @torch.no_grad()
    def restore(self, run: Run) -> None:
        """Puts the state into a fresh run."""
        for parameter, tensor in zip(run.master.parameters(), self._list("master"), strict=True):
            parameter.copy_(tensor)
        run.mean[:] = self._list("mean")
        run.best = self._list("best")
        run.step, run.stale = self.facts["step"], self.facts["stale"]
        run.best_score = float(self.facts["best_score"])
        inner: dict[int, dict[str, Tensor]] = {}
        for key, tensor in self.tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".", 2)
                inner.setdefault(int(index), {})[name] = tensor
        run.optimizer.load_state_dict({**run.optimizer.state_dict(), "state": inner})

    def _list(self, group: str) -> list[Tensor]:
        count = sum(key.startswith(f"{group}.") for key in self.tensors)
        return [self.tensors[f"{group}.{i}"] for i in range(count)]


def save_state(folder: Path, run: Run) -> None:
    """Writes the state; a kill at any moment leaves the former or the new file."""
    tensors = {f"master.{i}": p.detach() for i, p in enumerate(run.master.parameters())}
    tensors |= {f"mean.{i}": t for i, t in enumerate(run.mean)}
    tensors |= {f"best.{i}": t for i, t in enumerate(run.best)}
    for index, inner in run.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in inner.items()}
    facts = {
        "step": run.step,
        "stale": run.stale,
        "best_score": repr(run.best_score),
        "precision": str(next(run.worker.parameters()).dtype).removeprefix("torch."),
        "fingerprint": run.fingerprint,
    }
    with whole_file(folder / STATE_FILE) as part:
        save_file({key: t.contiguous() for key, t in tensors.items()}, part, metadata={"facts": json.dumps(facts)})


def load_state(folder: Path, identity: str) -> State | None:
    """The state in the folder, None when there is none.

    Raises:
        RunFolderError: the state belongs to another training, or cannot be read.
    """
    path = folder / STATE_FILE
    if not path.exists():
        return None
    facts, tensors = _read(path)
    if facts["fingerprint"] != identity:
        raise RunFolderError(
            f"{path} belongs to another training (other data, model or settings). Allowed: the same training, to go "
            "on with it. Choose another folder, or delete the file."
        )
    return State(tensors, facts)


def fingerprint(job: Job) -> str:
    """SHA-256 of all that decides the result, first weights included."""
    digest = hashlib.sha256()
    settings = {**job.train.to_dict(), "checkpoint_seconds": 0}
    digest.update(json.dumps([settings, *job.task.identity]).encode())
    digest.update(job.tokenizer.to_bytes())
    for weight in job.network.parameters():
        digest.update(weight.detach().numpy().tobytes())
    for part in (job.examples, job.validation):
        if part is not None:
            digest.update("\x00".join(part.texts).encode())
            digest.update(part.labels.tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["facts"])
            return facts, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{path} cannot be read as the state of a training ({error}). Delete it to start anew."
        ) from error

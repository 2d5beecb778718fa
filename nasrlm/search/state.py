"""The sampler's state on disk, so that a stopped study goes on exactly where it was.

Seeding a sampler again would repeat its trials, so its state itself is kept: pickled after each batch,
replaced atomically. Only a file that this user wrote is read.
"""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from nasrlm.errors import RunFolderError
from nasrlm.files import whole_file
from nasrlm.search.storage import storage_file

STATE_FILE = "sampler.pkl"
_SLOTS = 1000  # workers in one folder


@dataclass(frozen=True)
class SamplerState:
    """What a worker needs to ask its next batch again, bit for bit.

    Attributes:
        key: The settings that make a state useless when they change (sampler, options, seed, batch size).
        worker: Name of the worker in the trials that it wrote.
        batch: Number of the next batch.
        told: Trials this worker had written when the state was saved.
        sampler: The sampler before that batch.
        attributes: The study's system attributes, where samplers keep caches (such as NSGA-II's parents).
        alone: No other worker had been seen; beside others, a batch cannot be asked again bit for bit.
        dropped: Numbers of the proposals that repeated an architecture, and so became no trial: samplers refer to
            trials by number.
    """

    key: str
    worker: str
    batch: int
    told: int
    sampler: BaseSampler
    attributes: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = True
    dropped: tuple[int, ...] = ()


def state_path(storage: str | BaseStorage | None, folder: str | Path | None) -> Path | None:
    """Return where the state is kept: in the run folder, else beside the storage's file, else nowhere."""
    file = storage_file(storage)
    if folder is not None and storage is not None:
        return Path(folder) / STATE_FILE
    return None if file is None else file.with_name(f"{file.name}.{STATE_FILE}")


def claim_state(path: Path | None) -> tuple[Path | None, BinaryIO | None]:
    """Take a state for this process alone, until the returned file is closed or the process ends, however it ends.

    The workers of one folder have a state each (``sampler.pkl``, ``sampler.1.pkl`` ...): each takes the first that is
    free, so one that is started again after a kill -9 goes on as the one that was killed.

    Returns:
        The state's path and the file to close; (None, None) where there is none to keep, or no lock to be had.

    Raises:
        RunFolderError: The folder cannot be written.
    """
    if path is None:
        return None, None
    for slot in range(_SLOTS):
        mine = path.with_name(f"{path.stem}.{slot}{path.suffix}") if slot else path
        try:
            mine.parent.mkdir(parents=True, exist_ok=True)
            file = mine.with_name(f".{mine.name}.lock").open("ab")
        except OSError as error:
            raise RunFolderError(f"cannot write the sampler's state {mine} ({error.strerror}).") from error
        if _locked(file):
            return mine, file
        file.close()
    return None, None


def _locked(file: BinaryIO) -> bool:
    """Lock a file unless another process has it; the lock ends with the process."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def save_state(path: Path, state: SamplerState) -> bool:
    """Write the state: all of it or nothing. Returns False, with a warning, for a sampler that cannot be
    pickled.

    Raises:
        RunFolderError: The file cannot be written.
    """
    try:
        data = pickle.dumps(state)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        warnings.warn(
            f"sampler {type(state.sampler).__name__} cannot be saved ({error}): if this study is stopped, "
            "it goes on with a newly seeded sampler.",
            stacklevel=2,
        )
        return False
    try:
        with whole_file(path) as part:
            part.write_bytes(data)
    except OSError as error:
        raise RunFolderError(f"cannot write the sampler's state {path} ({error.strerror}).") from error
    return True


def load_state(path: Path | None) -> SamplerState | None:
    """Read the state, or None where there is none.

    Raises:
        RunFolderError: The file is damaged, of another version, or was written by another user.
    """
    if path is None or not path.exists():
        return None
    remedy = "Delete it to go on with a newly seeded sampler; the trials are kept."
    try:
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            # Reading a pickle runs what is in it, so a stranger's is not read.
            raise RunFolderError(f"the sampler's state {path} is another user's and is not read. {remedy}")
        state = pickle.loads(path.read_bytes())
    except RunFolderError:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise RunFolderError(f"the sampler's state {path} cannot be read ({error!r}). {remedy}") from error
    if not isinstance(state, SamplerState):
        raise RunFolderError(f"{path} is not a sampler's state of nasrlm. {remedy}")
    return state

"""Where a study is kept: memory, a journal file, SQLite or PostgreSQL, all by Optuna's own storages.

A search runs on a study in memory and adds each finished batch to the storage. So a storage only ever holds
finished
trials: a worker that is killed leaves nothing behind that others must clean up, and the batch it lost is
    asked again.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from nasrlm.errors import RunError, RunFolderError, UsageError, nearest
from nasrlm.search.objective import Objective

SETTINGS = "nasrlm"  # the user attribute of a study that says what it searches for
_FORMS = ("memory", "journal:FILE", "sqlite:///FILE", "postgresql+psycopg://USER:PASSWORD@HOST/DATABASE")
_STALE_LOCK_S = 5  # a journal's lock is held for milliseconds; one this old was left by a killed process
_TRIES = 6


def open_storage(storage: str | BaseStorage | None) -> BaseStorage | None:
    """Open a storage, creating its file, folder and tables when they are missing.

    Args:
        storage: ``None`` or ``"memory"``, ``"journal:study.log"``, ``"sqlite:///study.db"``,
            ``"postgresql+psycopg://user:password@host/database"`` or an Optuna storage.

    Returns:
        The storage, or None for memory.

    Raises:
        UsageError: Another kind of storage, or a file that is something else.
        RunFolderError: A file that cannot be read or written.
        RunError: A database that does not answer.
    """
    if storage is None or isinstance(storage, BaseStorage):
        return storage
    kind, _, rest = str(storage).partition(":")
    if storage in ("", "memory", "none"):
        return None
    path = storage_file(storage)
    if path is not None:
        _make_writable(path, storage)
    if kind == "journal" and rest:
        return _open_journal(Path(rest))
    if kind == "sqlite" and path is not None:
        return _open_database(storage, {"connect_args": {"timeout": 60}})
    if kind in ("postgresql", "postgresql+psycopg") and rest.startswith("//"):
        return _open_database("postgresql+psycopg:" + rest, {"pool_pre_ping": True})
    close = nearest(kind, ["memory", "journal", "sqlite", "postgresql"])
    raise UsageError(
        f"unknown storage {describe_storage(storage)!r}."
        + (f" Nearest: {', '.join(close)}." if close else "")
        + f" Allowed: {', '.join(_FORMS)}."
    )


def storage_file(storage: str | BaseStorage | None) -> Path | None:
    """Return the file of a journal or SQLite storage, None for others.

    >>> storage_file("journal:runs/study.log").as_posix()
    'runs/study.log'
    """
    if isinstance(storage, str):
        for start in ("journal:", "sqlite:///"):
            if storage.startswith(start) and storage != start:
                return Path(storage[len(start) :])
    return None


def describe_storage(storage: str | BaseStorage | None) -> str:
    """Return the storage in words for messages, without a password.

    >>> describe_storage("postgresql+psycopg://me:secret@host/db")
    'postgresql+psycopg://me:***@host/db'
    """
    if storage is None:
        return "memory"
    if not isinstance(storage, str):
        return type(storage).__name__
    head, at, tail = storage.rpartition("@")
    if at and ":" in head.partition("//")[2]:
        return f"{head.rpartition(':')[0]}:***@{tail}"
    return storage


def open_study(
    storage: BaseStorage,
    study_name: str,
    objectives: Sequence[Objective],
    settings: Mapping[str, Any],
    place: str,
) -> optuna.Study:
    """Open the study in a storage, or make it.

    Raises:
        RunFolderError: A study of that name searches for something else; the message says what differs.
    """
    study = optuna.create_study(
        storage=storage,
        study_name=study_name,
        directions=[objective.direction for objective in objectives],
        load_if_exists=True,
    )
    found = study.user_attrs.get(SETTINGS)
    if found is None:
        if len(study.get_trials(deepcopy=False)):
            raise RunFolderError(
                f"{place} holds a study {study_name!r} that nasrlm did not make. Give another study name or storage."
            )
        study.set_user_attr(SETTINGS, dict(settings))
        set_metric_names(study, objectives)
    elif found != settings:
        wrong = "; ".join(
            f"{key} is {found.get(key)!r} there, {settings.get(key)!r} here"
            for key in sorted({*found, *settings})
            if found.get(key) != settings.get(key)
        )
        raise RunFolderError(
            f"study {study_name!r} in {place} belongs to another experiment: {wrong}. "
            "Give another study name or storage, or the settings it was started with."
        )
    return study


def set_metric_names(study: optuna.Study, objectives: Sequence[Objective]) -> None:
    """Name the study's values after their metrics, for Optuna's own plots and dashboard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        study.set_metric_names([objective.metric for objective in objectives])


def flush_storage(storage: str | BaseStorage | None) -> None:
    """Wait until what was added to a journal is on the disk; databases see to that themselves."""
    path = storage_file(storage)
    if path is not None and str(storage).startswith("journal:"):
        with path.open("r+b") as file:
            os.fsync(file.fileno())


class _BatchedFile(JournalFileBackend):
    """A journal that is flushed to disk once a batch (:func:`flush_storage`) instead of once a record.

    On a busy disk 2,000 flushes take longer than a search. A killed process loses nothing by it; a power cut
    may take the batch that was being stored, which is then asked again.
    """

    def __init__(self, path: Path, lock: JournalFileSymlinkLock) -> None:
        super().__init__(str(path), lock_obj=lock)
        self._path, self._own_lock = path, lock

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        self._own_lock.acquire()
        try:
            with self._path.open("ab") as file:
                file.write(lines.encode())
        finally:
            self._own_lock.release()


def _make_writable(path: Path, storage: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise RunFolderError(
            f"storage {storage!r}: cannot write {path} ({error.strerror}). Give a file in a folder you can write to."
        ) from error


def _open_journal(path: Path) -> BaseStorage:
    lock = JournalFileSymlinkLock(str(path), grace_period=_STALE_LOCK_S)
    try:
        _drop_torn_line(path, lock)
        return JournalStorage(_BatchedFile(path, lock))
    except OSError as error:
        raise RunFolderError(f"storage journal:{path}: {error}. Give a file in a folder you can write to.") from error
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise UsageError(
            f"storage journal:{path}: the file is not an Optuna journal, or it is damaged ({error}). "
            "Give another file, or a new name."
        ) from error


def _drop_torn_line(path: Path, lock: JournalFileSymlinkLock) -> None:
    """Cut a last line that a full disk or a power cut left half written; nobody could read past it."""
    with path.open("rb") as file:
        first = file.readline()
        file.seek(0, 2)
        if not file.tell() or not _is_record(first):
            return
        file.seek(-1, 2)
        if file.read(1) == b"\n":
            return
    lock.acquire()
    try:
        data = path.read_bytes()
        with path.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)
    finally:
        lock.release()


def _is_record(line: bytes) -> bool:
    try:
        return "op_code" in json.loads(line)
    except (ValueError, TypeError):
        return False


def _open_database(url: str, engine: dict[str, Any]) -> BaseStorage:
    from sqlalchemy.exc import SQLAlchemyError

    place = describe_storage(url)
    for attempt in range(_TRIES):
        try:
            return RDBStorage(url, engine_kwargs=engine)
        except ImportError as error:
            raise UsageError(
                f"storage {place!r} needs a driver that is not installed ({error}). "
                "Install it with: pip install 'nasrlm[postgres]'"
            ) from error
        except (SQLAlchemyError, RuntimeError) as error:
            # Two workers that start at once both create the tables; the one that loses finds them at its next
            # try.
            if attempt + 1 == _TRIES:
                first_line = str(error).partition("\n")[0]
                raise RunError(
                    f"cannot open storage {place!r}: {first_line}. Check that it is an Optuna database."
                ) from error
            time.sleep(0.05 * 2**attempt)
    raise RunError(f"cannot open storage {place!r}.")  # pragma: no cover (the loop returns or raises)

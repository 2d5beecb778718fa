"""Where a study is kept: memory, a journal file, SQLite, PostgreSQL or a gRPC proxy, all by Optuna's own storages.

A search runs on a study in memory and adds each finished batch to the storage. So a study only ever holds finished
trials; what workers are at stands beside it (:mod:`nasrlm.search.claims`).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import sys
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from nasrlm.errors import RunError, RunFolderError, UsageError, nearest
from nasrlm.search.interrupts import finish_first
from nasrlm.search.objective import Objective

SETTINGS = "nasrlm"  # the user attribute of a study that says what it searches for
_FORMS = (
    "memory",
    "journal:FILE",
    "sqlite:///FILE",
    "postgresql+psycopg://USER:PASSWORD@HOST/DATABASE",
    "grpc://HOST:PORT",
)
_STALE_LOCK_S = 5  # a journal's lock is held for milliseconds; one this old was left by a killed process
_TRIES = 6
_ANSWER_S = 10  # how long a server may take to answer
_CREATING = 5_672_931_408  # the key of PostgreSQL's lock for making the tables; any number that only we use


def open_storage(storage: str | BaseStorage | None) -> BaseStorage | None:
    """Open a storage, creating its file, folder and tables when they are missing.

    Args:
        storage: ``None`` or ``"memory"``, ``"journal:study.log"``, ``"sqlite:///study.db"``,
            ``"postgresql+psycopg://user:password@host/database"``, ``"grpc://host:port"`` (Optuna's proxy) or an
            Optuna storage.

    Returns:
        The storage, or None for memory.

    Raises:
        UsageError: Another kind of storage, or a file that is something else.
        RunFolderError: A file that cannot be read or written.
        RunError: A database or proxy that does not answer.
    """
    if storage is None or in_memory(storage):
        return None
    if isinstance(storage, BaseStorage):
        return storage
    kind, _, rest = storage.partition(":")
    path = storage_file(storage)
    if path is not None:
        _make_writable(path, storage)
    if kind == "journal" and rest:
        return _open_journal(Path(rest).absolute())
    if kind == "sqlite" and path is not None:
        return _open_database(storage, {"connect_args": {"timeout": 60}})
    if kind in ("postgresql", "postgresql+psycopg") and rest.startswith("//"):
        engine = {"pool_pre_ping": True, "connect_args": {"connect_timeout": _ANSWER_S}}
        return _open_database("postgresql+psycopg:" + rest, engine)
    if kind == "grpc" and rest.startswith("//"):
        return _open_proxy(storage)
    close = nearest(kind, ["memory", "journal", "sqlite", "postgresql", "grpc"])
    raise UsageError(
        f"unknown storage {describe_storage(storage)!r}."
        + (f" Nearest: {', '.join(close)}." if close else "")
        + f" Allowed: {', '.join(_FORMS)}."
    )


def in_memory(storage: str | BaseStorage | None) -> bool:
    """Whether this means that a study is kept nowhere."""
    return storage is None or (isinstance(storage, str) and storage in ("", "memory", "none"))


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
    if found is None and len(study.get_trials(deepcopy=False)):
        found = study.user_attrs.get(SETTINGS)  # another worker may just have made the study
        if found is None:
            raise RunFolderError(
                f"{place} holds a study {study_name!r} that nasrlm did not make. Give another study name or storage."
            )
    if found is None:
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


@contextmanager
def storage_errors(storage: str | BaseStorage | None) -> Iterator[None]:
    """Say in words that a storage failed: a full disk, a database that is gone.

    Raises:
        RunError: In place of what the storage raised.
    """
    try:
        yield
    except _failures() as error:
        # Optuna's own message is about what could be; the cause says what is.
        cause = error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ else error
        raise RunError(
            f"storage {describe_storage(storage)!r} failed: {_first_line(cause)}. What was stored before is kept; "
            "when the storage can be written again, run the same again to go on."
        ) from error


def _failures() -> tuple[type[Exception], ...]:
    """What storages raise; asked when something was raised, so that nothing is imported for it."""
    kinds: list[type[Exception]] = [OSError, StorageInternalError]
    for module, name in (("sqlalchemy.exc", "SQLAlchemyError"), ("grpc", "RpcError")):
        if module in sys.modules:
            kinds.append(getattr(sys.modules[module], name))
    return tuple(kinds)


def _first_line(error: BaseException) -> str:
    text = error.details() if hasattr(error, "details") else str(error)  # gRPC's str is a page long
    return str(text).strip().partition("\n")[0].rstrip(".")


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
        with finish_first():  # Optuna's lock fails where Ctrl-C comes while it is given back
            self._own_lock.acquire()
            try:
                with self._path.open("r+b", buffering=0) as file:
                    _append_whole(file, lines.encode())
            finally:
                # Who was held for dead after the grace period has written all the same, and has no lock to give back.
                with contextlib.suppress(RuntimeError):
                    self._own_lock.release()


def _append_whole(file: Any, data: bytes) -> None:
    """Write behind the last whole line: a killed worker or a full disk may have left half a one."""
    end = _end_of_lines(file)
    try:
        while data:
            data = data[file.write(data) :]
    except OSError:
        file.truncate(end)
        raise


def _end_of_lines(file: Any) -> int:
    """Go to the end of the last whole line, and cut off what is behind it."""
    end = at = file.seek(0, 2)
    while at:
        start = max(0, at - 65536)
        file.seek(start)
        block = file.read(at - start)
        if b"\n" in block:
            at = start + block.rfind(b"\n") + 1
            break
        at = start
    if at < end:
        file.truncate(at)
    return int(file.seek(at))


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
        with path.open("r+b") as file:
            _end_of_lines(file)
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
            with _one_at_a_time(url, engine):
                storage = RDBStorage(url, engine_kwargs=engine)
            weakref.finalize(storage, storage.engine.dispose)  # close connections when nobody needs them any more
            return storage
        except ImportError as error:
            raise UsageError(
                f"storage {place!r} needs a driver that is not installed ({error}). "
                "Install it with: pip install 'nasrlm[postgres]'"
            ) from error
        except (SQLAlchemyError, RuntimeError) as error:
            # Two workers that start at once on SQLite both create the tables; the one that loses finds them at its
            # next try.
            if attempt + 1 == _TRIES:
                raise RunError(
                    f"cannot open storage {place!r}: {_first_line(error)}. Check that the database runs, that it can "
                    "be reached from here, and that it is one of Optuna's or empty."
                ) from error
            time.sleep(0.05 * 2**attempt * random.uniform(1, 2))
    raise RunError(f"cannot open storage {place!r}.")  # pragma: no cover (the loop returns or raises)


@contextmanager
def _one_at_a_time(url: str, engine: dict[str, Any]) -> Iterator[None]:
    """Make PostgreSQL's tables in one worker while others wait; the lock ends with its connection."""
    if not url.startswith("postgresql"):
        yield
        return
    from sqlalchemy import NullPool, create_engine, text

    with create_engine(url, poolclass=NullPool, connect_args=engine["connect_args"]).connect() as connection:
        connection.execute(text(f"SELECT pg_advisory_lock({_CREATING})"))
        yield


def _open_proxy(storage: str) -> BaseStorage:
    try:
        host, port = urlsplit(storage).hostname, urlsplit(storage).port
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise UsageError(f"storage {storage!r} needs a host and a port. Give it as grpc://HOST:PORT.")
    try:
        importlib.import_module("grpc")
    except ImportError as error:
        raise UsageError(
            f"storage {storage!r} needs a package that is not installed ({error}). "
            "Install it with: pip install 'nasrlm[grpc]'"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        proxy = optuna.storages.GrpcStorageProxy(host=host, port=port)
    try:
        proxy.wait_server_ready(timeout=_ANSWER_S)
    except ConnectionError as error:
        proxy.close()
        raise RunError(
            f"cannot open storage {storage!r}: nobody answers. Start the proxy there "
            "(optuna.storages.run_grpc_proxy_server), or check host, port and firewall."
        ) from error
    return proxy

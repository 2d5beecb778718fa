"""Several worker processes of one study on one machine: started, watched, started again when they die, stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from optuna.storages import BaseStorage, get_storage

from nasrlm.errors import RunError, UsageError

_RESTARTS = 3  # so often a worker is started again without a new trial in between
_POLL_S, _COUNT_S = 0.1, 1.0
_STOPPING_S = 20.0  # for a batch to be stored after Ctrl-C
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_WRONG_USE = 2


def run_workers(
    command: Sequence[str],
    n: int,
    *,
    logs: Path,
    count: Callable[[], int],
    progress: Callable[[int], None],
    say: Callable[[str], None],
) -> None:
    """Run a command in `n` processes until each has ended well.

    A process that dies is started again, unless that happens a few times without a new trial. The processes share the
    cores. They end with this process, however that ends.

    Args:
        command: of one worker; it must call `end_with_parent`.
        n: processes.
        logs: a folder for what they write on standard error.
        count: the study's finished trials.
        progress: told that number now and then.
        say: told what happened, in a sentence.

    Raises:
        RunError, UsageError: A worker keeps failing; the message has its last words.
        KeyboardInterrupt: Ctrl-C; the workers have been stopped, what they had finished is kept.
    """
    logs.mkdir(parents=True, exist_ok=True)
    workers = [_Worker(command, n, logs / f"{socket.gethostname()}.{i}.log") for i in range(n)]
    next_count = 0.0
    try:
        for worker in workers:
            worker.start(0)
        while any(worker.process.poll() != 0 for worker in workers):
            for i, worker in enumerate(workers):
                if worker.process.poll() not in (None, 0):
                    say(f"worker {i} {worker.again(count())} Started again.")
            if time.monotonic() >= next_count:
                progress(count())
                next_count = time.monotonic() + _COUNT_S
            time.sleep(_POLL_S)
        progress(count())
    finally:
        _stop(workers)


class _Worker:
    """One worker process, and those that were started in its place."""

    process: subprocess.Popen[bytes]

    def __init__(self, command: Sequence[str], n: int, log: Path) -> None:
        self._command, self._n, self._log = list(command), n, log
        self._trials, self._restarts = 0, 0
        log.write_bytes(b"")

    def start(self, trials: int) -> None:
        """Start the process; `trials` are finished by now."""
        self._trials = trials
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**dict.fromkeys(_THREADS, str(_cores_each(self._n))), **os.environ},
                start_new_session=True,  # Ctrl-C comes to this process alone, which stops the workers
            )

    def again(self, trials: int) -> str:
        """Start the dead worker again. Returns how it ended."""
        code, words = self.process.returncode, _last_words(self._log)
        how = f"was killed by signal {-code}." if code < 0 else f"ended with exit code {code}. {words}".rstrip()
        if code == _WRONG_USE:
            raise UsageError(words.removeprefix("error: "))
        self._restarts = 0 if trials > self._trials else self._restarts + 1
        if self._restarts > _RESTARTS:
            raise RunError(
                f"a worker ended {self._restarts} times without a new trial. The last time it {how} Its log: "
                f"{self._log}. The {trials:,} finished trials are kept; run the same again to go on."
            )
        self.close()
        self.start(trials)
        return how

    def close(self) -> None:
        """Close the pipe by which the worker sees that this process lives; it stops then."""
        with contextlib.suppress(OSError):
            if self.process.stdin:
                self.process.stdin.close()


def _stop(workers: Sequence[_Worker]) -> None:
    started = [worker for worker in workers if hasattr(worker, "process")]
    for worker in started:
        worker.close()
    until = time.monotonic() + _STOPPING_S
    for worker in started:
        try:
            worker.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()  # loses nothing: the batch is run again
            worker.process.wait()


def end_with_parent(pipe: int) -> None:
    """Interrupt this process, as Ctrl-C does, when the other end of a pipe closes: its parent has ended."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(pipe, 1):
                pass
        if sys.platform != "win32" and callable(signal.getsignal(signal.SIGINT)):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(_STOPPING_S / 2)
        os._exit(130)  # a main thread that is in foreign code does not see signals

    threading.Thread(target=watch, daemon=True, name="end with parent").start()


def counter(storage: BaseStorage, study_name: str) -> Callable[[], int]:
    """Return a function that counts a study's finished trials; 0 before there is a study."""
    cached = get_storage(storage)  # asks a database only for what is new

    def count() -> int:
        try:
            study = cached.get_study_id_from_name(study_name)
        except KeyError:
            return 0
        return sum(trial.state.is_finished() for trial in cached.get_all_trials(study, deepcopy=False))

    return count


def _cores_each(n: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // n)


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [i for i, line in enumerate(lines) if line.startswith("error: ")]
    return "\n".join(lines[errors[-1] :] if errors else lines[-1:])

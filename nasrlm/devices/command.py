"""Runs a command that may hang, die or print without end."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO

from nasrlm.errors import DeviceError

_LIMIT = 1_000_000  # bytes of output: times need far less, and a command that prints for ever would fill the disk
_POLL_S = 0.01


def run_command(words: Sequence[str], timeout_s: float, where: str) -> str:
    """Runs a command without a shell and without input; what it printed on standard output.

    Output goes through files, not pipes: a pipe stays open as long as any process that the command left behind.

    Args:
        words: the command and its arguments.
        timeout_s: seconds after which it is ended, with what it started.
        where: words for messages, such as "device remote".

    Raises:
        DeviceError: the command is missing, runs too long, prints too much, or ends with another code than 0.
    """
    shown = f"{where}: the command {shlex.join(words)!r}"
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = _start(words, output, errors, shown)
        try:
            code = _wait(process, output, timeout_s, shown)
        except BaseException:  # also when the user interrupts: nothing is left running
            _end(process)
            raise
        if code != 0:
            raise DeviceError(f"{shown} ended with {_meaning(code)}{_last_line(errors)}. Run it by hand to see why.")
        output.seek(0)
        return output.read(_LIMIT).decode("utf-8", errors="replace")


def _start(words: Sequence[str], output: IO[bytes], errors: IO[bytes], shown: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=os.name == "posix"
        )
    except (OSError, ValueError) as error:
        why = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be started: {error}"
        raise DeviceError(
            f"{shown} {why}. Give a program on the PATH or the full path of one that may be executed."
        ) from error


def _wait(process: subprocess.Popen[bytes], output: IO[bytes], timeout_s: float, shown: str) -> int:
    end = time.monotonic() + timeout_s
    while True:
        try:
            return process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            if os.fstat(output.fileno()).st_size > _LIMIT:
                raise DeviceError(
                    f"{shown} printed more than {_LIMIT} bytes and was ended. Print times only."
                ) from None
            if time.monotonic() > end:
                raise DeviceError(
                    f"{shown} had not ended after {timeout_s:g} s, and was ended. "
                    "See whether the device answers, or raise timeout_s."
                ) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and all that it started."""
    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)  # its session's group: see start_new_session
        else:
            process.kill()
    except ProcessLookupError:
        pass
    process.wait()


def _meaning(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"code {code}"


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 2000))
    lines = [line.strip() for line in errors.read().decode("utf-8", errors="replace").splitlines() if line.strip()]
    return f" and said {lines[-1][:200]!r}" if lines else ""

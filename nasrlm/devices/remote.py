"""Any command that takes an .onnx file and prints milliseconds: a phone behind adb, a board behind ssh."""

from __future__ import annotations

import math
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nasrlm.devices.command import run_command
from nasrlm.devices.measurement import Measurement, summarise
from nasrlm.devices.options import check_choice, check_label, check_positive, check_whole
from nasrlm.devices.timing import steadiest
from nasrlm.errors import ConfigError, DeviceError

UNITS = {"ms": 1.0, "us": 1e-3, "s": 1e3}
_MODEL = "{model}"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf(?:inity)?"
_NUMBERS = re.compile(rf"\s*(?:{_NUMBER})(?:[\s,;]+(?:{_NUMBER}))*[\s,;]*", re.I)


class Remote:
    """Runs a command of yours on each network's .onnx file and reads milliseconds from what it prints.

    Of standard output, the lines that hold nothing but numbers count (blanks or commas between them); every number
    is the time of one run. With `pattern`, every match counts instead. The command runs without a shell and without
    input; what needs pipes goes into a script, or into `sh -c '...'`.

    Args:
        command: the command, as one text or as a list of words. `{model}` stands for the path of the .onnx file; a
            command without it gets the path as its last word.
        label: what stands behind "latency_ms/" in the metric, such as "pixel_8".
        unit: of the numbers: "ms", "us" or "s".
        pattern: regular expression with one group around the number, such as "avg=([0-9.]+)".
        timeout_s: seconds after which the command, and what it started, is ended.
        repeats: how often the command is run for one measurement; the times of all runs count together.
        tries: how often it is all done until the times are stable.
        max_spread: distance of the quartiles divided by the median, up to which times are stable.

    Raises:
        ConfigError: an option outside its range.

    Example:
        >>> Remote("ssh board ./time_onnx.sh", label="board").metric
        'latency_ms/board'
    """

    name = "remote"

    def __init__(
        self,
        command: str | Sequence[str],
        label: str = "remote",
        unit: str = "ms",
        pattern: str | None = None,
        timeout_s: float = 120.0,
        repeats: int = 1,
        tries: int = 1,
        max_spread: float = 0.1,
    ) -> None:
        self.where = f"device {self.name}"
        self.command = _words(command, self.where)
        self.metric = f"latency_ms/{check_label(self.where, label)}"
        check_choice(self.where, "unit", unit, tuple(UNITS))
        check_positive(self.where, "timeout_s", timeout_s)
        check_whole(self.where, "repeats", repeats)
        check_whole(self.where, "tries", tries)
        check_positive(self.where, "max_spread", max_spread)
        self.unit, self.pattern = unit, _pattern(pattern, self.where)
        self.timeout_s, self.repeats, self.tries, self.max_spread = timeout_s, repeats, tries, max_spread

    def measure(self, model: bytes) -> Measurement:
        """Times a serialized ONNX model, in milliseconds a run.

        Raises:
            DeviceError: bytes that are no network; a command that is missing, hangs, fails, or prints no times.
        """
        _check_network(model, self.where)
        with tempfile.TemporaryDirectory(prefix="nasrlm_remote_") as folder:
            file = Path(folder, "model.onnx")
            file.write_bytes(model)
            return steadiest(lambda: self._series(file), self.tries)

    def _series(self, file: Path) -> Measurement:
        words = [word.replace(_MODEL, str(file)) for word in self.command]
        times = [time for _ in range(self.repeats) for time in self._times(words)]
        return summarise(times, threads=1, max_spread=self.max_spread)

    def _times(self, words: Sequence[str]) -> list[float]:
        output = run_command(words, self.timeout_s, self.where)
        found = _numbers(output) if self.pattern is None else self.pattern.findall(output)
        shown = f"{self.where}: the command {shlex.join(words)!r}"
        wanted = "a line with nothing but numbers" if self.pattern is None else f"a match of {self.pattern.pattern!r}"
        if not found:
            raise DeviceError(
                f"{shown} printed no time: no {wanted} in {_shortened(output)!r}. Let it print the {self.unit} of each "
                "run on a line of its own, or set pattern."
            )
        return [self._milliseconds(text, shown) for text in found]

    def _milliseconds(self, text: str, shown: str) -> float:
        try:
            value = float(text) * UNITS[self.unit]
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise DeviceError(f"{shown} printed {text!r}, which is no time. Times are numbers above 0, in {self.unit}.")
        return value


def _words(command: object, where: str) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)  # type: ignore[call-overload]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: command {command!r} cannot be read: {error}. Close its quotes.") from error
    if not words or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{where}: command is {command!r}. Give a command, such as 'ssh board ./time_onnx.sh'.")
    return words if any(_MODEL in word for word in words) else [*words, _MODEL]


def _pattern(pattern: str | None, where: str) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        compiled = re.compile(pattern, re.M)
    except (re.error, TypeError) as error:
        raise ConfigError(f"{where}: pattern {pattern!r} is no regular expression: {error}.") from error
    if compiled.groups != 1:
        raise ConfigError(
            f"{where}: pattern {pattern!r} has {compiled.groups} groups. Put one pair of brackets, around the number."
        )
    return compiled


def _numbers(output: str) -> list[str]:
    lines = [line for line in output.splitlines() if _NUMBERS.fullmatch(line)]
    return [number for line in lines for number in re.split(r"[\s,;]+", line.strip()) if number]


def _shortened(text: str, length: int = 120) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= length else f"{shown[:length]} ..."


def _check_network(model: bytes, where: str) -> None:
    """A phone should not be asked about bytes that are no network."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        empty = not onnx.load_model_from_string(model).graph.output
    except DecodeError:
        empty = True
    if empty:
        raise DeviceError(f"{where}: these {len(model)} bytes are no ONNX model.")


DEVICE = Remote

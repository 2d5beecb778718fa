"""Whether times repeat on this machine: a reference network that every process times beside the user's.

Quartiles and pace (see `timing`, `pace`) tell what disturbs a process while it measures. A clock rate that drifts, or a
cache that a neighbour fills for minutes, slows all that a process can see; it shows only in the same network's time in
other processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

from nasrlm.devices.measurement import Device
from nasrlm.errors import DeviceError
from nasrlm.files import whole_file

TOLERANCE = 0.03
"""Two minima of one network that differ by no more agree."""
APART = 0.1  # of the pairs of looks: more that do not agree, and times do not repeat on this machine
_OTHERS, _DAYS = 50, 7  # the latest looks of other processes, none older
_LARGEST = 200_000  # bytes of the record, after which its older half goes
_PROCESS = f"{platform.node()}:{os.getpid()}:{time.time():.3f}"


class Look(NamedTuple):
    """One time of the reference network: when (seconds since 1970), by which process, its minimum."""

    at: float
    process: str
    minimum_ms: float


class ReferenceTimes:
    """Times of the reference network on a device, in this process and, from a small file, in others.

    Looks are compared where device, its settings, its runtime's version and the processor are the same. The file is
    `reference_times.jsonl` in the folder that the environment variable NASRLM_CACHE names, by default
    `~/.cache/nasrlm`. Where it cannot be written, this process knows only its own looks.

    Args:
        device: has an attribute `runtime`, the name of the package that runs its networks.

    Attributes:
        own: looks of this process, oldest first.
        others: the latest looks of other processes, of at most a week, oldest first.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.own: list[Look] = []
        runtime = str(getattr(device, "runtime", ""))
        self._what = f"{getattr(device, 'settings', device.metric)}; {runtime} {_version(runtime)}; {processor()}"
        self._file = _record_file()
        self.others = [look for look in self._recorded() if look.process != _PROCESS][-_OTHERS:]

    def look(self) -> None:
        """Times the reference network once more, as the device times any other; nothing where it cannot run it."""
        try:
            minimum_ms = self.device.measure(reference_model()).minimum_ms
        except DeviceError:
            return
        self.own.append(Look(time.time(), _PROCESS, minimum_ms))
        with contextlib.suppress(OSError):  # a home that cannot be written stops no measurement
            self._record(self.own[-1])

    def repeat(self) -> bool:
        """Whether times repeat: at most a tenth of the looks of this process differ by over 3 % from any other look."""
        return share_apart(self.own, self.others) <= APART

    def __str__(self) -> str:
        looks = [*self.others, *self.own]
        times = [look.minimum_ms for look in looks]
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(look.at for look in looks)))
        return (
            f"a reference network took {min(times):.4g} to {max(times):.4g} ms at best, timed {len(self.own)} x in "
            f"this process and {len(self.others)} x in others since {since}"
        )

    def _record(self, look: Look) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"what": self._what, **look._asdict()}) + "\n"
        with self._file.open("a", encoding="utf-8") as file:
            file.write(line)  # short enough to stay whole beside other processes
        if self._file.stat().st_size > _LARGEST:
            lines = self._file.read_text(encoding="utf-8").splitlines(keepends=True)
            with whole_file(self._file) as part:
                part.write_text("".join(lines[len(lines) // 2 :]), encoding="utf-8")

    def _recorded(self) -> list[Look]:
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError):  # half a line of a process that was killed
                entry: dict[str, Any] = json.loads(line)
                if entry["what"] == self._what:
                    found.append(Look(float(entry["at"]), str(entry["process"]), float(entry["minimum_ms"])))
        return [look for look in found if time.time() - look.at < _DAYS * 86_400]


def share_apart(own: Sequence[Look], others: Sequence[Look]) -> float:
    """Of the pairs of one look in `own` and another in either, the share that does not agree; 0 without a pair.

    Example:
        >>> share_apart([Look(0, "a", 1.0), Look(9, "a", 1.1)], [Look(5, "b", 1.01)])
        0.6666666666666666
    """
    pairs = [*combinations(own, 2), *product(own, others)]
    apart = [abs(a.minimum_ms - b.minimum_ms) > TOLERANCE * min(a.minimum_ms, b.minimum_ms) for a, b in pairs]
    return sum(apart) / len(apart) if apart else 0.0


@lru_cache(maxsize=1)
def reference_model() -> bytes:
    """The reference network as serialized ONNX: four residual blocks, 72 million MACs."""
    from nasrlm.graph import GraphBuilder, to_onnx  # onnx loads when something is measured, not before

    b = GraphBuilder()
    x = b.relu(b.conv(b.input((3, 32, 32)), 32, kernel=3, bias=True))
    for width, stride in ((32, 1), (32, 1), (64, 2), (64, 1)):
        y = b.relu(b.conv(x, width, kernel=3, stride=stride, bias=True))
        y = b.conv(y, width, kernel=3, bias=True)
        x = b.relu(b.add(y, x if b.shape(x) == b.shape(y) else b.conv(x, width, kernel=1, stride=stride, bias=True)))
    b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
    return to_onnx(b.build(), weights="random").SerializeToString()


def _record_file() -> Path:
    try:
        return Path(os.environ.get("NASRLM_CACHE") or "~/.cache/nasrlm").expanduser() / "reference_times.jsonl"
    except RuntimeError:  # a user without a home: nothing is kept
        return Path(os.devnull) / "nowhere"


@lru_cache(maxsize=1)
def processor() -> str:
    """The model name of this machine's processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return ""

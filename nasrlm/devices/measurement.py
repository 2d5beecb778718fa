"""What a device must be able to do, and what a measurement is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class Measurement:
    """The times of one network on one device, in milliseconds a run (one run = one batch).

    Attributes:
        minimum_ms, lower_quartile_ms, median_ms, upper_quartile_ms: over the repeats.
        repeats: timed runs.
        threads: processor threads the network could use (1 where the notion has no meaning).
        stable: whether the quartiles lie close enough together, and the processor ran at full speed, to trust the
            median.
        thread_ms: median processor time that the calling thread spent in a run; NaN where it is not known, or says
            nothing (a graphics processor, another machine).
        energy_mj: millijoule a run, as the processor counts them; NaN where nothing is counted.
        slowdown: how many times longer a fixed calculation took beside it than at this processor's full speed; 1 where
            it is not known.
    """

    minimum_ms: float
    lower_quartile_ms: float
    median_ms: float
    upper_quartile_ms: float
    repeats: int
    threads: int
    stable: bool
    thread_ms: float = math.nan
    energy_mj: float = math.nan
    slowdown: float = 1.0

    @property
    def spread(self) -> float:
        """Distance of the quartiles divided by the median."""
        return (self.upper_quartile_ms - self.lower_quartile_ms) / self.median_ms


def summarise(
    times_ms: Sequence[float] | np.ndarray,
    threads: int,
    max_spread: float,
    *,
    thread_ms: float = math.nan,
    energy_mj: float = math.nan,
) -> Measurement:
    """The Measurement of a series of times.

    Args:
        times_ms: milliseconds, one a repeat, at least one.
        threads: as in Measurement.
        max_spread: the largest spread that still counts as stable.
        thread_ms, energy_mj: as in Measurement.

    Example:
        >>> summarise([3.0, 1.0, 2.0, 2.0, 2.0], threads=1, max_spread=0.1).median_ms
        2.0
    """
    minimum, lower, median, upper = (float(q) for q in np.quantile(times_ms, (0.0, 0.25, 0.5, 0.75)))
    stable = upper - lower <= max_spread * median
    return Measurement(minimum, lower, median, upper, len(times_ms), threads, stable, thread_ms, energy_mj)


@runtime_checkable
class Device(Protocol):
    """Something that times networks. Its class is `DEVICE` in a file of its own.

    An attribute `counts_energy = True` says that its measurements hold `energy_mj`. An attribute `runtime` names the
    package that runs the networks on this machine's processor; a reference network is then timed beside them, since
    what else the machine does changes their times (see `nasrlm.devices.reference`).

    Attributes:
        name: the device's name, such as "onnxruntime_cpu".
        metric: the name of what it measures, "latency_ms/" and what makes values comparable.
    """

    name: str
    metric: str

    def measure(self, model: bytes) -> Measurement:
        """Times a serialized ONNX model.

        Raises:
            DeviceError: the device is not there, or cannot run this model.
        """
        ...

"""Times networks for real, on a device chosen by name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nasrlm.devices import Device, Measurement, check_choice, get_device
from nasrlm.devices.reference import TOLERANCE, ReferenceTimes
from nasrlm.errors import DeviceError
from nasrlm.evaluators.protocol import check_metrics, value_frame
from nasrlm.spaces import Architecture, SearchSpace

STATISTICS = ("median", "minimum")
NOISY_FROM = 6  # measurements; fewer say nothing of the machine
NOISY_PART = 1 / 3  # of them unstable
LOOK_EVERY = 20  # measurements, before and after which a reference network is timed

_log = logging.getLogger("nasrlm.evaluators")


class DeviceEvaluator:
    """Builds each network with random weights and times it; the value is the median in milliseconds.

    With the median, the quartiles come along as the quantile columns `METRIC@0.25` and `METRIC@0.75`. Where the
    machine counts energy, `energy_mj/DEVICE` is a second metric: millijoule a run. A network is timed once and
    remembered by its architecture's id; one that the device cannot run has no value (NaN) and is not tried again.

    Beside them a reference network is timed on this machine's processor, first and after every 20 networks. A log says
    when its times, here or in earlier processes, do not repeat within 3 % (see `nasrlm.devices.reference`).

    Args:
        space: where the architectures come from.
        device: a device's name, or the path of a .py file with a `DEVICE`.
        statistic: "median", or "minimum", which other programs disturb less.
        options: the device's options, such as `threads`.

    Attributes:
        measurements: what was measured, by architecture id.
        failures: why an architecture has no value, by its id.
        unstable: ids of the architectures whose times spread too far, or beside which the processor was slowed, also
            after the device's last try.

    Raises:
        UnknownNameError: no such device.
        ConfigError: an option the device does not take.
        DeviceError: the device cannot measure on this machine.

    Example:
        >>> from nasrlm.spaces import get_space
        >>> DeviceEvaluator(get_space("tiny"), device="onnxruntime_cpu").metrics[0]
        'latency_ms/onnxruntime_cpu'
    """

    name = "device"

    def __init__(self, space: SearchSpace, device: str, statistic: str = "median", **options: Any) -> None:
        check_choice(f"evaluator {self.name}", "statistic", statistic, STATISTICS)
        self.space, self.statistic = space, statistic
        self.device: Device = get_device(device, **options)
        latency = self.device.metric
        energy = [latency.replace("latency_ms/", "energy_mj/")] if getattr(self.device, "counts_energy", False) else []
        self.metrics: tuple[str, ...] = (latency, *energy)
        self.measurements: dict[str, Measurement] = {}
        self.failures: dict[str, str] = {}
        self.unstable: set[str] = set()
        self.reference = ReferenceTimes(self.device) if hasattr(self.device, "runtime") else None
        self._warned: set[str] = set()

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Measured values, see `Evaluator.evaluate`; `failures` says why one is missing.

        Raises:
            MetricError: a metric other than the device's.
            DeviceError: several architectures were asked for, and the device has never measured any; the reason of
                the first.
        """
        check_metrics(self, metrics)
        if not metrics:
            return value_frame(architectures, {})
        distinct = list(dict.fromkeys(architectures))
        for architecture in distinct:
            self._measure(architecture)
        if len(distinct) > 1 and not self.measurements:
            raise DeviceError(self.failures[distinct[0].id])
        self._warn_of_noise()
        self._warn_of_drift()
        return value_frame(architectures, self._columns(architectures, metrics))

    def _measure(self, architecture: Architecture) -> None:
        from nasrlm.graph import to_onnx  # onnx loads when something is measured, not before

        if architecture.id in self.measurements or architecture.id in self.failures:
            return
        if self.reference and len(self.measurements) >= LOOK_EVERY * len(self.reference.own):
            self.reference.look()
        try:
            measured = self.device.measure(to_onnx(architecture, weights="random").SerializeToString())
        except DeviceError as error:
            self.failures[architecture.id] = str(error)
            return
        self.measurements[architecture.id] = measured
        if not measured.stable:
            self.unstable.add(architecture.id)

    def _columns(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> dict[str, list[float]]:
        latency = self.device.metric
        fields = {f"{latency}@0.25": "lower_quartile_ms", f"{latency}@0.75": "upper_quartile_ms"}
        wanted = {metric: f"{self.statistic}_ms" if metric == latency else "energy_mj" for metric in metrics}
        if latency in metrics and self.statistic == "median":
            wanted |= fields
        found = [self.measurements.get(architecture.id) for architecture in architectures]
        return {column: [getattr(m, field, np.nan) for m in found] for column, field in wanted.items()}

    def _warn_of_noise(self) -> None:
        """Says once, in words, that the machine is too noisy. A log, since it depends on what else runs."""
        measured, unstable = len(self.measurements), len(self.unstable)
        if "noise" in self._warned or measured < NOISY_FROM or unstable <= NOISY_PART * measured:
            return
        self._warned.add("noise")
        _log.warning(
            "device %s: the machine it measures on is too noisy: the times of %d of %d networks spread too far, or the "
            "processor was slowed, after every try. End other programs, use fewer workers, fix the clock rate, or "
            "raise `repeats` and `tries`; `statistic: minimum` suffers least.",
            self.device.name,
            unstable,
            measured,
        )

    def _warn_of_drift(self) -> None:
        """Says once, in words, that times of one network differ from process to process, or from hour to hour."""
        if "drift" in self._warned or self.reference is None or self.reference.repeat():
            return
        self._warned.add("drift")
        _log.warning(
            "device %s: times on this machine do not repeat within %.0f %%: %s. Its clock rate drifts, or neighbours "
            "share its cores. Differences so small between two processes say nothing: compare what one run measured, "
            "or fix the clock rate.",
            self.device.name,
            100 * TOLERANCE,
            self.reference,
        )


EVALUATOR = DeviceEvaluator

"""Times networks for real, on a device chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from nasrlm.devices import Device, Measurement, get_device
from nasrlm.errors import DeviceError
from nasrlm.evaluators.protocol import check_metrics, value_frame
from nasrlm.spaces import Architecture, SearchSpace


class DeviceEvaluator:
    """Builds each network with random weights and times it; the value is the median in milliseconds.

    The quartiles come along as the quantile columns `METRIC@0.25` and `METRIC@0.75`. A network is timed once
    and remembered by its architecture's id. One that the device cannot run has no value (NaN).

    Args:
        space: where the architectures come from.
        device: a device's name, or the path of a .py file with a `DEVICE`.
        options: the device's options, such as `threads`.

    Raises:
        UnknownNameError: no such device.
        ConfigError: an option the device does not take.

    Example:
        >>> from nasrlm.spaces import get_space
        >>> DeviceEvaluator(get_space("tiny"), device="onnxruntime_cpu").metrics
        ('latency_ms/onnxruntime_cpu',)
    """

    name = "device"

    def __init__(self, space: SearchSpace, device: str, **options: Any) -> None:
        self.space = space
        self.device: Device = get_device(device, **options)
        self.metrics: tuple[str, ...] = (self.device.metric,)
        self.measurements: dict[str, Measurement] = {}

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Measured values, see `Evaluator.evaluate`.

        Raises:
            MetricError: a metric other than the device's.
            DeviceError: none of the architectures can be measured; the reason of the first.
        """
        check_metrics(self, metrics)
        if not metrics:
            return value_frame(architectures, {})
        self._measure_new(architectures)
        found = [self.measurements.get(architecture.id) for architecture in architectures]
        times = {"": "median_ms", "@0.25": "lower_quartile_ms", "@0.75": "upper_quartile_ms"}
        columns = {
            f"{self.device.metric}{suffix}": [float("nan") if m is None else getattr(m, field) for m in found]
            for suffix, field in times.items()
        }
        return value_frame(architectures, columns)

    def _measure_new(self, architectures: Sequence[Architecture]) -> None:
        from nasrlm.graph import to_onnx  # onnx loads when something is measured, not before

        failures: list[DeviceError] = []
        for architecture in dict.fromkeys(architectures):
            if architecture.id in self.measurements:
                continue
            try:
                model = to_onnx(architecture, weights="random").SerializeToString()
                self.measurements[architecture.id] = self.device.measure(model)
            except DeviceError as error:
                failures.append(error)
        if failures and not any(architecture.id in self.measurements for architecture in architectures):
            raise failures[0]


EVALUATOR = DeviceEvaluator

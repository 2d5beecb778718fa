"""The kit for a device."""

from __future__ import annotations

import math

from nasrlm.devices import Device, Measurement
from nasrlm.errors import DeviceError
from nasrlm.graph import GraphBuilder, to_onnx
from nasrlm.testing.common import ConformanceError, require, step


def small_model() -> bytes:
    """A small convolutional network with random weights, as serialized ONNX."""
    b = GraphBuilder()
    x = b.relu(b.conv(b.input((3, 16, 16)), 8, 3))
    b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
    return to_onnx(b.build(), weights="random").SerializeToString()


def check_device(device: Device, model: bytes | None = None) -> None:
    """Checks a device by measuring a network with it; returns when all is well.

    Args:
        device: the device to check.
        model: serialized ONNX to measure; default a small convolutional network.

    Raises:
        ConformanceError: the first promise that is not kept.

    Example:
        >>> from nasrlm.devices import get_device
        >>> check_device(get_device("onnxruntime_cpu", repeats=5))
    """
    require(isinstance(device, Device), f"{device!r} lacks name, metric or measure(model).")
    require(isinstance(device.name, str) and device.name != "", "the device has no name.")
    require(
        isinstance(device.metric, str) and device.metric.startswith("latency_ms/") and "@" not in device.metric,
        f"the metric {device.metric!r} should be 'latency_ms/' and a name, without '@'.",
    )
    with step(f"{device.name}: measuring a small network"):
        measured = device.measure(small_model() if model is None else model)
    check_measurement(measured)
    if getattr(device, "counts_energy", False):
        require(not math.isnan(measured.energy_mj), f"{device.name} counts energy, but energy_mj is NaN.")
    for broken in (b"", b"this is no network"):
        try:
            device.measure(broken)
        except DeviceError as error:
            require(str(error).strip() != "", "the DeviceError for bytes that are no network says nothing.")
        except Exception as error:  # whatever else it raises is the finding
            raise ConformanceError(
                f"{device.name}: bytes that are no network raise {type(error).__name__}; it must be a DeviceError."
            ) from error
        else:
            raise ConformanceError(f"{device.name}: it measured {broken!r}, which is no network.")


def check_measurement(measured: Measurement) -> None:
    """Checks that times are positive, in order, and come from at least one repeat, and that nothing is negative.

    Raises:
        ConformanceError: what does not hold.
    """
    require(isinstance(measured, Measurement), f"measure gave {measured!r}, not a nasrlm.devices.Measurement.")
    times = [measured.minimum_ms, measured.lower_quartile_ms, measured.median_ms, measured.upper_quartile_ms]
    require(all(math.isfinite(t) and t > 0 for t in times), f"the times {times} ms are not all above zero.")
    require(times == sorted(times), f"minimum, quartiles and median are not in order: {times} ms.")
    require(measured.repeats >= 1 and measured.threads >= 1, "repeats and threads must be at least 1.")
    require(isinstance(measured.stable, bool), f"stable is {measured.stable!r}, not True or False.")
    for name in ("thread_ms", "energy_mj"):
        value = getattr(measured, name)
        require(math.isnan(value) or 0 <= value < math.inf, f"{name} is {value!r}; NaN where it is not known.")

"""Devices time networks for real. One file a device; `get_device` finds them by name.

A file with a class `DEVICE` (see the protocol `Device`) is a device: in this package, in another installed
package with an entry point in the group `nasrlm.devices`, or a user's own .py file.
"""

from __future__ import annotations

from typing import Any

from nasrlm import registry
from nasrlm.devices.measurement import Device, Measurement, summarise
from nasrlm.devices.options import check_choice, check_options, option_names

__all__ = [
    "Device",
    "Measurement",
    "check_choice",
    "check_options",
    "device_class",
    "get_device",
    "option_names",
    "summarise",
]


def device_class(name: str) -> Any:
    """The class of a device, by registered name or by the path of a .py file that defines `DEVICE`."""
    return registry.load_file("devices", name) if name.endswith(".py") else registry.get("devices", name)


def get_device(name: str, **options: Any) -> Device:
    """A device, ready to measure.

    Args:
        name: a registered name (`nasrlm list devices`), or the path of a .py file that defines `DEVICE`.
        options: the device's own, such as `threads`.

    Raises:
        UnknownNameError: no such device; the nearest names come with it.
        ConfigError: an option the device does not take, or a value outside its range.
        DeviceError: what the device needs (a package, a GPU) is not here.

    Example:
        >>> get_device("onnxruntime_cpu", threads=2).metric
        'latency_ms/onnxruntime_cpu_t2'
    """
    device = device_class(name)
    check_options(device, options, f"device {name}")
    return device(**options)

"""My device MY_NAME. Use it: {name: device, options: {device: FILE}}"""

from __future__ import annotations

import tempfile
from pathlib import Path

from nasrlm.devices import Measurement, summarise
from nasrlm.errors import DeviceError


class MyDevice:
    """Times networks on MY_NAME.

    Args:
        repeats: timed runs a network.
    """

    name = "MY_NAME"
    metric = "latency_ms/MY_NAME"  # "latency_ms/" and what makes values comparable

    def __init__(self, repeats: int = 20) -> None:
        self.repeats = repeats

    def measure(self, model: bytes) -> Measurement:
        """Time a serialized ONNX model, in milliseconds a run."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.onnx")
            file.write_bytes(model)
            times_ms = self.run(file)
        return summarise(times_ms, threads=1, max_spread=0.1)

    def run(self, file: Path) -> list[float]:
        """Run the model `self.repeats` times on the device and return the times in milliseconds."""
        raise DeviceError(f"device {self.name}: {file.name} cannot be timed yet. Write MyDevice.run.")


DEVICE = MyDevice

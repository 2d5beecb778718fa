"""This machine's processor through onnxruntime, the network quantised to int8."""

from __future__ import annotations

import numpy as np

from nasrlm.devices.calibration import CalibrationData
from nasrlm.devices.energy import EnergyCounter
from nasrlm.devices.measurement import Measurement
from nasrlm.devices.onnxruntime_session import OnnxRuntimeSession
from nasrlm.devices.options import check_whole
from nasrlm.devices.quantise import quantised
from nasrlm.devices.settings import Settings
from nasrlm.devices.timing import timed


class OnnxRuntimeInt8:
    """Times int8 networks on this machine's processor with onnxruntime (static quantisation, QDQ).

    Each network is quantised first, which takes about a second and is not timed: int8 weights with a scale a
    channel, uint8 activations. Operators that onnxruntime has no int8 kernel for run in float between
    conversions, so a network may well be slower than in float32; that is what is measured.

    Args:
        calibration: .npy or .npz file with examples that the ranges are measured on; default random numbers, which
            give the same operators and thus the same time.
        calibration_samples: examples that are used.
        threads, batch_size, warm_up, repeats, seconds, tries, max_spread, seed: as for onnxruntime_cpu.

    Raises:
        ConfigError: an option outside its range, or a file that cannot be read.

    Example:
        >>> OnnxRuntimeInt8(threads=2).metric
        'latency_ms/onnxruntime_int8_t2'
    """

    name, runtime = "onnxruntime_int8", "onnxruntime"

    def __init__(
        self,
        calibration: str | None = None,
        calibration_samples: int = 2,
        threads: int = 1,
        batch_size: int = 1,
        warm_up: int = 3,
        repeats: int = 100,
        seconds: float = 2.0,
        tries: int = 3,
        max_spread: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.settings = Settings(self.name, threads, batch_size, warm_up, repeats, seconds, tries, max_spread, seed)
        check_whole(self.settings.where, "calibration_samples", calibration_samples)
        self.calibration = CalibrationData(calibration, calibration_samples, self.settings.where)
        self.metric = self.settings.metric
        self.counts_energy = EnergyCounter().readable

    def measure(self, model: bytes) -> Measurement:
        """Quantises a serialized ONNX model and times it, in milliseconds a batch.

        Raises:
            DeviceError: onnxruntime cannot load, quantise or run the model, or its input has no fixed size.
        """
        session = self._session(model)
        session.check()
        return timed(session.run, self.settings)

    def run(self, model: bytes) -> dict[str, np.ndarray]:
        """The outputs of the quantised network for the random input, by name.

        Raises:
            DeviceError: as for `measure`.
        """
        return self._session(model).check()

    def _session(self, model: bytes) -> OnnxRuntimeSession:
        return OnnxRuntimeSession(quantised(model, self.settings, self.calibration), self.settings)


DEVICE = OnnxRuntimeInt8

"""This machine's processor through onnxruntime, with a pinned number of threads."""

from __future__ import annotations

import numpy as np

from nasrlm.devices.energy import EnergyCounter
from nasrlm.devices.measurement import Measurement
from nasrlm.devices.onnxruntime_session import OnnxRuntimeSession
from nasrlm.devices.settings import Settings
from nasrlm.devices.timing import timed


class OnnxRuntimeCpu:
    """Times networks on this machine's processor with onnxruntime.

    Weights are those in the model; the input is random, the same for the same seed. After a warm-up, runs are
    timed one by one until `repeats` or `seconds` are reached. A series whose quartiles lie too far apart
    (other programs were running) is measured again, `tries` times at most, and the steadiest series counts.
    With one thread, runs in which the processor went to another program are left out.

    Args:
        threads: threads inside an operator; operators run one after another.
        batch_size: examples a run; networks for one example, or with a free batch dimension, are widened to it.
        warm_up: runs before the clock starts.
        repeats: timed runs.
        seconds: limit of one series; at least five runs are timed.
        tries: how often a series is measured until it is stable.
        max_spread: distance of the quartiles divided by the median, up to which a series is stable.
        seed: of the random input.

    Raises:
        ConfigError: an option outside its range.

    Example:
        >>> from nasrlm.graph import to_onnx  # doctest: +SKIP
        >>> model = to_onnx(x, weights="random").SerializeToString()  # doctest: +SKIP
        >>> OnnxRuntimeCpu().measure(model).median_ms  # doctest: +SKIP
        1.8
    """

    name, runtime = "onnxruntime_cpu", "onnxruntime"

    def __init__(
        self,
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
        self.metric = self.settings.metric
        self.counts_energy = EnergyCounter().readable

    def measure(self, model: bytes) -> Measurement:
        """Times a serialized ONNX model, in milliseconds a batch.

        Raises:
            DeviceError: onnxruntime cannot load or run the model, or its input has no fixed size.
        """
        session = OnnxRuntimeSession(model, self.settings)
        session.check()
        return timed(session.run, self.settings)

    def run(self, model: bytes) -> dict[str, np.ndarray]:
        """The outputs of a serialized ONNX model for the random input, by name.

        Raises:
            DeviceError: as for `measure`.
        """
        return OnnxRuntimeSession(model, self.settings).check()


DEVICE = OnnxRuntimeCpu

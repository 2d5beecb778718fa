"""This machine's processor through onnxruntime, with a pinned number of threads."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from nasrlm.devices.batching import with_batch_size
from nasrlm.devices.measurement import Measurement, summarise
from nasrlm.errors import ConfigError, DeviceError

_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
FEWEST = 5  # repeats, however slow the network is: quartiles need some


class OnnxRuntimeCpu:
    """Times networks on this machine's processor with onnxruntime.

    Weights are those in the model; the input is random, the same for the same seed. After a warm-up, runs are
    timed one by one until `repeats` or `seconds` are reached. A series whose quartiles lie too far apart
    (other programs were running) is measured again, `tries` times at most, and the steadiest series counts.

    Args:
        threads: threads inside an operator; operators run one after another.
        batch_size: examples a run; networks for one example, or with a free batch dimension, are widened to it.
        warm_up: runs before the clock starts.
        repeats: timed runs.
        seconds: limit of one series; at least five runs are timed.
        tries: how often a series is measured until it is stable.
        max_spread: distance of the quartiles divided by the median, below which a series is stable.
        seed: of the random input.

    Raises:
        ConfigError: an option outside its range.

    Example:
        >>> from nasrlm.graph import to_onnx  # doctest: +SKIP
        >>> model = to_onnx(x, weights="random").SerializeToString()  # doctest: +SKIP
        >>> OnnxRuntimeCpu().measure(model).median_ms  # doctest: +SKIP
        1.8
    """

    name = "onnxruntime_cpu"

    def __init__(
        self,
        threads: int = 1,
        batch_size: int = 1,
        warm_up: int = 3,
        repeats: int = 50,
        seconds: float = 2.0,
        tries: int = 3,
        max_spread: float = 0.1,
        seed: int = 0,
    ) -> None:
        counts = {"threads": threads, "batch_size": batch_size, "repeats": repeats, "tries": tries}
        for option, value in [
            *counts.items(),
            ("warm_up", warm_up + 1 if isinstance(warm_up, int) else warm_up),
        ]:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                shown, least = (warm_up, 0) if option == "warm_up" else (value, 1)
                raise ConfigError(
                    f"device {self.name}: {option} is {shown!r}. Allowed: a whole number from {least} up."
                )
        for option, limit in (("seconds", seconds), ("max_spread", max_spread)):
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
                raise ConfigError(f"device {self.name}: {option} is {limit!r}. Allowed: a number above 0.")
        self.threads, self.batch_size, self.warm_up, self.repeats = threads, batch_size, warm_up, repeats
        self.seconds, self.tries, self.max_spread, self.seed = seconds, tries, max_spread, seed
        # Values measured with other settings are not comparable, so they are another metric.
        batch, pool = (f"_b{batch_size}" if batch_size > 1 else ""), (f"_t{threads}" if threads > 1 else "")
        self.metric = f"latency_ms/{self.name}{batch}{pool}"

    def measure(self, model: bytes) -> Measurement:
        """Times a serialized ONNX model, in milliseconds a batch.

        Raises:
            DeviceError: onnxruntime cannot load or run the model, or its input has no fixed size.
        """
        session = self._session(model)
        feeds = self._feeds(session)
        for _ in range(max(1, self.warm_up)):  # the first run also shows that the model runs at all
            self._call(session, feeds)
        best = self._series(session, feeds)
        for _ in range(self.tries - 1):
            if best.stable:
                break
            best = min(best, self._series(session, feeds), key=lambda measured: measured.spread)
        return best

    def run(self, model: bytes) -> dict[str, np.ndarray]:
        """The outputs of a serialized ONNX model for the random input, by name.

        Raises:
            DeviceError: as for `measure`.
        """
        session = self._session(model)
        outputs = self._call(session, self._feeds(session))
        return {value.name: np.asarray(output) for value, output in zip(session.get_outputs(), outputs, strict=True)}

    def _session(self, model: bytes) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 4
        if self.batch_size > 1:
            model = with_batch_size(model, self.batch_size)
        try:
            return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's classes share no base but Exception
            raise DeviceError(
                f"device {self.name}: onnxruntime {onnxruntime.__version__} cannot load this network: "
                f"{_first_line(error)} Export it with an operator set that this version knows."
            ) from error

    def _call(self, session: Any, feeds: dict[str, np.ndarray]) -> list[Any]:
        try:
            return session.run(None, feeds)
        except Exception as error:
            raise DeviceError(
                f"device {self.name}: onnxruntime cannot run this network: {_first_line(error)}"
            ) from error

    def _feeds(self, session: Any) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return {value.name: self._random(value, rng) for value in session.get_inputs()}

    def _random(self, value: Any, rng: np.random.Generator) -> np.ndarray:
        shape = list(value.shape)
        if shape and not isinstance(shape[0], int):
            shape[0] = self.batch_size
        elif shape and shape[0] != self.batch_size:
            raise DeviceError(
                f"device {self.name}: the network's input {value.name!r} has the fixed batch size {shape[0]}, but "
                f"batch_size is {self.batch_size}. Set batch_size: {shape[0]}, or export with a free batch size; "
                "if that input is a weight, export the network with its weights."
            )
        if not all(isinstance(size, int) for size in shape):
            raise DeviceError(
                f"device {self.name}: the network's input {value.name!r} has the shape {value.shape}, which "
                "leaves sizes open. Export it with fixed sizes (only the batch may stay open)."
            )
        if value.type not in _NUMPY:
            raise DeviceError(
                f"device {self.name}: the network's input {value.name!r} is a {value.type}. "
                f"Inputs that can be made up: {', '.join(_NUMPY)}."
            )
        dtype = np.dtype(_NUMPY[value.type])
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        return rng.integers(0, 2, shape).astype(dtype)  # 0 and 1 are valid wherever whole numbers are indices

    def _series(self, session: Any, feeds: dict[str, np.ndarray]) -> Measurement:
        clock = time.perf_counter
        run = session.run
        times: list[float] = []
        end = clock() + self.seconds
        while len(times) < self.repeats and (len(times) < FEWEST or clock() < end):
            start = clock()
            run(None, feeds)
            times.append(1e3 * (clock() - start))
        return summarise(times, self.threads, self.max_spread)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".") + "."


DEVICE = OnnxRuntimeCpu

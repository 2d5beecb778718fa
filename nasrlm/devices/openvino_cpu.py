"""This machine's processor through OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np

from nasrlm.devices.batching import with_batch_size
from nasrlm.devices.energy import EnergyCounter
from nasrlm.devices.inputs import Input, random_inputs
from nasrlm.devices.measurement import Measurement
from nasrlm.devices.settings import Settings
from nasrlm.devices.timing import timed
from nasrlm.errors import DeviceError


class OpenVinoCpu:
    """Times networks on this machine's processor with OpenVINO, one at a time and in float32.

    Args:
        threads, batch_size, warm_up, repeats, seconds, tries, max_spread, seed: as for onnxruntime_cpu.

    Raises:
        ConfigError: an option outside its range.
        DeviceError: the package openvino is missing.

    Example:
        >>> OpenVinoCpu(batch_size=8).metric  # doctest: +SKIP
        'latency_ms/openvino_cpu_b8'
    """

    name, runtime = "openvino_cpu", "openvino"

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
        self._core = _core(self.settings.where)

    def measure(self, model: bytes) -> Measurement:
        """Times a serialized ONNX model, in milliseconds a batch.

        Raises:
            DeviceError: OpenVINO cannot load or run the model, or its input has no fixed size.
        """
        request = self._request(model)
        return timed(request.infer, self.settings)

    def run(self, model: bytes) -> dict[str, np.ndarray]:
        """The outputs of a serialized ONNX model for the random input, by name (every name OpenVINO has for them).

        Raises:
            DeviceError: as for `measure`.
        """
        request = self._request(model)
        values = [(value.get_names(), np.array(request.get_tensor(value).data)) for value in request.model_outputs]
        return {name: array for names, array in values for name in names}

    def _request(self, model: bytes) -> Any:
        """A request with its input set, that has run once."""
        import openvino

        if self.settings.batch_size > 1:
            model = with_batch_size(model, self.settings.batch_size)
        network = self._read(model)
        inputs = [_input(value) for value in network.inputs]
        feeds = random_inputs(inputs, self.settings)
        try:
            network.reshape({name: list(array.shape) for name, array in feeds.items()})
            request = self._core.compile_model(network, "CPU", self._configuration()).create_infer_request()
            for name, array in feeds.items():
                request.set_tensor(name, openvino.Tensor(array))
            request.infer()
        except Exception as error:
            raise DeviceError(f"{self.settings.where}: OpenVINO cannot run this network: {_reason(error)}") from error
        return request

    def _read(self, model: bytes) -> Any:
        try:
            return self._core.read_model(model)
        except Exception as error:
            raise DeviceError(
                f"{self.settings.where}: OpenVINO cannot load this network: {_reason(error)} "
                "Export it with an operator set and operators that this version knows."
            ) from error

    def _configuration(self) -> dict[str, Any]:
        # Float32 is said, because processors with bfloat16 units would compute in that by default.
        return {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": self.settings.threads,
            "INFERENCE_PRECISION_HINT": "f32",
        }


def _core(where: str) -> Any:
    try:
        import openvino
    except ImportError as error:
        raise DeviceError(f"{where} needs the package openvino. Run `pip install 'nasrlm[openvino]'`.") from error
    return openvino.Core()


def _input(value: Any) -> Input:
    shape = tuple(d.get_length() if d.is_static else "?" for d in value.partial_shape)
    try:
        dtype = np.dtype(value.element_type.to_dtype()).name
    except RuntimeError:  # strings have none
        dtype = value.element_type.get_type_name()
    return Input(value.any_name, dtype, shape)


def _reason(error: Exception) -> str:
    """The last line of OpenVINO's message: those before it say where in its sources it was raised."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).rstrip(".") + "."


DEVICE = OpenVinoCpu

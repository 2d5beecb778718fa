"""A network loaded into onnxruntime, with random input: what the devices of onnxruntime share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nasrlm.devices.batching import with_batch_size
from nasrlm.devices.inputs import Input, random_inputs
from nasrlm.devices.settings import Settings
from nasrlm.errors import DeviceError

CPU = "CPUExecutionProvider"
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


class OnnxRuntimeSession:
    """A network in onnxruntime, ready to run on one random input.

    Args:
        model: serialized ONNX.
        settings: threads, batch size and seed.
        providers: onnxruntime's execution providers, in order of preference.

    Raises:
        DeviceError: onnxruntime cannot load the network, or its input has no fixed size.
    """

    def __init__(self, model: bytes, settings: Settings, providers: Sequence[Any] = (CPU,)) -> None:
        self.settings = settings
        if settings.batch_size > 1:
            model = with_batch_size(model, settings.batch_size)
        self.session = load(model, settings, providers)
        self.feeds = random_inputs(inputs_of(self.session), settings)
        self.run: Callable[[], Any] = lambda: self.session.run(None, self.feeds)

    def check(self) -> dict[str, np.ndarray]:
        """Runs once; the outputs by name.

        Raises:
            DeviceError: onnxruntime cannot run the network.
        """
        try:
            outputs = self.run()
        except Exception as error:  # onnxruntime's classes share no base but Exception
            raise DeviceError(
                f"{self.settings.where}: onnxruntime cannot run this network: {first_line(error)}"
            ) from error
        names = [value.name for value in self.session.get_outputs()]
        return {name: np.asarray(output) for name, output in zip(names, outputs, strict=True)}

    def bound(self, place: str) -> Callable[[], None]:
        """A function that runs the network with input and output staying where they are, and waits for the end.

        Args:
            place: "cpu" or "cuda".
        """
        import onnxruntime

        binding = self.session.io_binding()
        for name, array in self.feeds.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, place, 0))
        for value in self.session.get_outputs():
            binding.bind_output(value.name, place)

        def run() -> None:
            self.session.run_with_iobinding(binding)
            binding.synchronize_outputs()

        return run


def load(model: bytes, settings: Settings, providers: Sequence[Any] = (CPU,), **options: Any) -> Any:
    """An onnxruntime.InferenceSession whose operators run one after another.

    Args:
        model: serialized ONNX.
        settings: their threads count.
        providers: as for OnnxRuntimeSession.
        options: further attributes of onnxruntime.SessionOptions.

    Raises:
        DeviceError: onnxruntime cannot load the network.
    """
    import onnxruntime

    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = settings.threads
    chosen.inter_op_num_threads = 1
    chosen.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    chosen.log_severity_level = 4
    for name, value in options.items():
        setattr(chosen, name, value)
    try:
        return onnxruntime.InferenceSession(model, chosen, providers=list(providers))
    except Exception as error:  # onnxruntime's classes share no base but Exception
        advice = "Export it with an operator set that this version knows"
        advice += ", or with a free batch dimension." if settings.batch_size > 1 else "."
        raise DeviceError(
            f"{settings.where}: onnxruntime {onnxruntime.__version__} cannot load this network: "
            f"{first_line(error)} {advice}"
        ) from error


def inputs_of(session: Any) -> list[Input]:
    """The inputs of an onnxruntime.InferenceSession, in the words of numpy."""
    return [Input(i.name, _DTYPES.get(i.type, i.type), tuple(i.shape or ())) for i in session.get_inputs()]


def first_line(error: Exception) -> str:
    """The first line of an error, as a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".") + "."

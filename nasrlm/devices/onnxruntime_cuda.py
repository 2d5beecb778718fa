"""An NVIDIA graphics processor through onnxruntime."""

from __future__ import annotations

from nasrlm.devices.measurement import Measurement
from nasrlm.devices.nvidia import need_gpu
from nasrlm.devices.onnxruntime_session import CPU, OnnxRuntimeSession
from nasrlm.devices.settings import Settings
from nasrlm.devices.timing import timed
from nasrlm.errors import DeviceError

_CUDA = "CUDAExecutionProvider"


class OnnxRuntimeCuda:
    """Times networks on an NVIDIA GPU with onnxruntime.

    Input and output stay in the GPU's memory: a run is from its launch to the GPU's last operation, without
    copies. It needs the package onnxruntime-gpu in place of onnxruntime.

    Args:
        batch_size, warm_up, repeats, seconds, tries, max_spread, seed: as for onnxruntime_cpu.

    Raises:
        ConfigError: an option outside its range.
        DeviceError: no GPU, or an onnxruntime that cannot use it.
    """

    name = "onnxruntime_cuda"

    def __init__(
        self,
        batch_size: int = 1,
        warm_up: int = 10,
        repeats: int = 100,
        seconds: float = 2.0,
        tries: int = 3,
        max_spread: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.settings = Settings(self.name, 1, batch_size, warm_up, repeats, seconds, tries, max_spread, seed)
        self.metric = self.settings.metric
        need_gpu(self.settings.where)
        _need_provider(self.settings.where)

    def measure(self, model: bytes) -> Measurement:
        """Times a serialized ONNX model, in milliseconds a batch.

        Raises:
            DeviceError: onnxruntime cannot load or run the model on the GPU.
        """
        session = OnnxRuntimeSession(model, self.settings, (_CUDA, CPU))
        used = session.session.get_providers()
        if used[0] != _CUDA:  # it falls back to the processor without a word
            raise DeviceError(
                f"{self.settings.where}: onnxruntime could not start CUDA and took {used[0]}. Install the CUDA and "
                "cuDNN versions that this onnxruntime-gpu was built for."
            )
        session.check()
        return timed(session.bound("cuda"), self.settings, on_processor=False)


def _need_provider(where: str) -> None:
    import onnxruntime

    offered = onnxruntime.get_available_providers()
    if _CUDA not in offered:
        raise DeviceError(
            f"{where}: this onnxruntime {onnxruntime.__version__} has no {_CUDA}, only {', '.join(offered)}. "
            "Run `pip uninstall onnxruntime`, then `pip install onnxruntime-gpu`."
        )


DEVICE = OnnxRuntimeCuda

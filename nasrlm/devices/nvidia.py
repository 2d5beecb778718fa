"""Whether there is an NVIDIA graphics processor, asked of the driver itself."""

from __future__ import annotations

import ctypes
import sys

from nasrlm.errors import DeviceError

_DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def count_gpus() -> int:
    """How many NVIDIA graphics processors the driver shows; 0 without a driver.

    Source: CUDA driver API, cuInit and cuDeviceGetCount.
    """
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def need_gpu(where: str) -> None:
    """Sees that there is an NVIDIA graphics processor.

    Args:
        where: words for the message, such as "device triton_gpu".

    Raises:
        DeviceError: there is none.
    """
    if count_gpus() == 0:
        raise DeviceError(
            f"{where} needs an NVIDIA GPU and its driver, and this machine shows none (see nvidia-smi). "
            "Use onnxruntime_cpu or openvino_cpu here, or run this on a machine with a GPU."
        )

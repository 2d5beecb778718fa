"""What a result was made with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import nasrlm

_PACKAGES = (
    "numpy", "pandas", "scipy", "torch", "onnx", "onnxruntime", "openvino", "optuna", "moocore", "sentencepiece",
    "safetensors", "scikit-learn", "pydantic", "pyarrow", "ruamel.yaml", "matplotlib", "plotly",
)  # fmt: skip


def versions() -> dict[str, Any]:
    """Versions of nasrlm, of its text format, of Python and of the packages results depend on, and the machine.

    >>> sorted(versions())
    ['machine', 'nasrlm', 'packages', 'python', 'text']
    """
    from nasrlm.devices.reference import processor
    from nasrlm.graph import TEXT_VERSION

    return {
        "nasrlm": nasrlm.__version__,
        "text": TEXT_VERSION,
        "python": platform.python_version(),
        "machine": {"system": platform.platform(), "processor": processor(), "cores": os.cpu_count()},
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

"""Float to int8: static quantisation by onnxruntime, written as QuantizeLinear/DequantizeLinear pairs (QDQ)."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nasrlm.devices.calibration import CalibrationData
from nasrlm.devices.onnxruntime_session import first_line, inputs_of, load
from nasrlm.devices.settings import Settings
from nasrlm.errors import DeviceError


def quantised(model: bytes, settings: Settings, data: CalibrationData) -> bytes:
    """The network with int8 weights (a scale a channel) and uint8 activations, as serialized ONNX.

    BatchNorm is folded into convolutions first, since a pair of quantisers between them would keep them apart.
    Ranges are the least and largest values seen on the calibration data.

    Args:
        model: serialized ONNX with weights, for one example or with a free batch size.
        settings: for messages.
        data: the calibration data.

    Raises:
        DeviceError: onnxruntime cannot load or quantise the network; examples that do not fit it.
    """
    single = Settings(settings.device)
    with tempfile.TemporaryDirectory(prefix="nasrlm_int8_") as folder, _quiet():
        simple, small = Path(folder, "simple.onnx"), Path(folder, "int8.onnx")
        session = load(model, single, optimized_model_filepath=str(simple), graph_optimization_level=_basic())
        feeds = data.feeds(inputs_of(session))
        try:
            _quantise(simple, small, feeds)
        except Exception as error:  # onnxruntime's quantiser raises whatever it stumbles over
            raise DeviceError(
                f"{settings.where}: onnxruntime cannot quantise this network: {first_line(error)} "
                "Export it with float32 weights and operator set 13 or later."
            ) from error
        return small.read_bytes()


def _basic() -> Any:
    import onnxruntime

    return onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC


def _quantise(source: Path, target: Path, feeds: list[dict[str, np.ndarray]]) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = iter(feeds)

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.feeds, None)

    quantize_static(
        source,
        target,
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the quantiser's advice to itself: it goes to the root logger, and would set one up if there were none."""
    root, handler = logging.getLogger(), logging.NullHandler()

    def nothing(record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING

    root.addHandler(handler)
    root.addFilter(nothing)
    try:
        yield
    finally:
        root.removeFilter(nothing)
        root.removeHandler(handler)

"""The graph of a serialized ONNX model, for devices that look at the network instead of running it."""

from __future__ import annotations

from nasrlm.errors import DeviceError, ExportError
from nasrlm.graph import Graph, as_graph


def graph_of(model: bytes, where: str) -> Graph:
    """The graph of a serialized ONNX model.

    Args:
        model: the bytes of an .onnx file.
        where: words for messages, such as "device roofline".

    Raises:
        DeviceError: no ONNX model, or one that cannot be read.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return as_graph(onnx.load_model_from_string(model))
    except DecodeError as error:
        raise DeviceError(f"{where}: these {len(model)} bytes are no ONNX model: {error}.") from error
    except ExportError as error:
        raise DeviceError(f"{where}: {error}") from error

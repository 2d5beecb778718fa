"""Opening ONNX files."""

from __future__ import annotations

from os import PathLike, fspath

import onnx
from google.protobuf.message import DecodeError

from nasrlm.errors import ExportError


def open_model(source: onnx.ModelProto | str | PathLike[str]) -> onnx.ModelProto:
    """The model."""
    if isinstance(source, onnx.ModelProto):
        return source
    path = fspath(source)
    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise ExportError(f"cannot read {path!r}: {error.strerror}. Give the path of an .onnx file.") from error
    except (DecodeError, ValueError) as error:
        raise ExportError(f"{path!r} is no ONNX model ({error}); it may be cut short. Export it again.") from error
    if not model.graph.node and not model.graph.input:
        raise ExportError(f"{path!r} holds no network; it may be cut short or not be an ONNX file.")
    return model

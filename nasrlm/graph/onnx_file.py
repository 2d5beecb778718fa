"""Opening ONNX files of any size and origin: the network comes out, or an ExportError that says what is wrong."""

from __future__ import annotations

import mmap
import os
import zipfile
from os import PathLike
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, TensorProto

from nasrlm.errors import ExportError, nearest
from nasrlm.graph.onnx_check import Order, check_model
from nasrlm.graph.onnx_functions import inlined
from nasrlm.graph.onnx_tensors import LEFT_OUT, is_read
from nasrlm.graph.onnx_wire import SHORT, without_weights

_TORCH = "Load it in PyTorch and give the pair (module, example input), or export it with torch.onnx.export."
_STARTS = {
    b"PK\x03\x04": "a zip archive. Unpack it and give the .onnx file in it.",
    b"\x80": f"a Python pickle, as torch.save writes it. {_TORCH}",
    b"\x1f\x8b": "compressed with gzip. Unpack it.",
    b"BZh": "compressed with bzip2. Unpack it.",
    b"\xfd7zXZ": "compressed with xz. Unpack it.",
    b"\x28\xb5\x2f\xfd": "compressed with zstd. Unpack it.",
    b"7z\xbc\xaf": "a 7z archive. Unpack it.",
    b"\x89HDF": "an HDF5 file, as Keras writes it. Export it with tf2onnx.",
    b"GGUF": "a GGUF file, which has weights and no graph. Export the network to ONNX.",
    b"\x7fELF": "a program.",
    b"MZ": "a program.",
    b"\x89PNG": "an image.",
    b"\xff\xd8\xff": "an image.",
    b"%PDF": "a PDF document.",
}
_TEXTS = {
    "version https://git-lfs": "a pointer of Git LFS, not the file itself. Fetch it with: git lfs pull.",
    "<!doctype html": "a web page; the download has failed. Download the raw file.",
    "<html": "a web page; the download has failed. Download the raw file.",
    "nasrlm": "a canonical text of nasrlm. Give its content, not its path.",
    "<": "XML or ONNX in words. Give the binary .onnx file (onnx.parser reads the words of ONNX).",
    "{": "JSON. Give the binary .onnx file.",
}


def open_model(source: ModelProto | str | PathLike[str]) -> ModelProto:
    """A checked model without large weights, its functions written out, its nodes in an order of computation.

    Files may be larger than memory and than protobuf's 2 GiB: entries of weights are skipped. Files beside the model
    that hold external data must be there and long enough, and are not opened.

    Args:
        source: the path of an .onnx file of any IR version, opset 9 or later; or a ModelProto, which is not changed
            and whose external data are not looked for.

    Returns:
        The model. A tensor from the file whose entries were left out has `data_location` EXTERNAL and the one external
        entry "nasrlm": "left out". Sparse initializers are dense ones without entries.

    Raises:
        ExportError: whatever is wrong with the file or the model; it says what and where.
    """
    if isinstance(source, ModelProto):
        return _checked(source, None)
    try:
        path = Path(os.fsdecode(source))
        return _checked(_load(path), path.parent)
    except ExportError as error:
        raise ExportError(f"{short_path(source)}: {error}") from None
    except OSError as error:
        raise ExportError(f"cannot read {short_path(source)}: {error.strerror or error}{_near(path)}") from error
    except (ValueError, TypeError) as error:  # a path with a zero byte, or no path
        raise ExportError(f"cannot read {short_path(source)}: it is no path ({error})") from error


def short_path(path: object) -> str:
    """A path as it stands in messages; the end tells most."""
    text = os.fsdecode(path) if isinstance(path, (str, bytes, PathLike)) else str(path)
    return repr(text if len(text) <= 200 else "..." + text[-197:])


def _near(path: Path) -> str:
    if not os.path.isdir(path.parent):  # unlike Path.is_dir it does not fail on what is no path
        return f". The folder {short_path(path.parent)} does not exist."
    if os.path.exists(path):
        return ". Give the path of an .onnx file that you may read."
    try:
        names = sorted(entry.name for entry, _ in zip(os.scandir(path.parent), range(2000), strict=False))
    except OSError:
        names = []
    close = nearest(path.name, names) or [n for n in names if n.endswith(".onnx")][:3]
    return f". Nearest in its folder: {', '.join(close)}." if close else ". Give the path of an .onnx file."


# --- reading --------------------------------------------------------------------------------------------------


def _load(path: Path) -> ModelProto:
    if os.path.isdir(path):
        found = sorted(path.glob("*.onnx"))[:3]
        raise ExportError(f"it is a folder. {_files(found)}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ExportError("it is no regular file. Give the path of an .onnx file.")
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise ExportError("the file is empty. Export or download it again.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            model = _parsed(path, data)
            if not model.graph.ByteSize():
                raise ExportError(_looks(path, data[:4096]) or "the file holds no graph; it is no ONNX model.")
    return model


def _files(found: list[Path]) -> str:
    return f"Give a file in it: {', '.join(f.name for f in found)}." if found else "Give the path of an .onnx file."


def _parsed(path: Path, data: mmap.mmap) -> ModelProto:
    try:
        return ModelProto.FromString(without_weights(data))
    except (ExportError, DecodeError) as error:
        looks = _looks(path, data[:4096])
        if looks is not None:
            raise ExportError(looks) from error
        if isinstance(error, ExportError):
            raise ExportError(f"{error}. The file is damaged, cut short or no ONNX model.") from None
    try:
        without_weights(data, short=0)  # looks at every field
    except ExportError as error:
        raise ExportError(f"{error}. The file is damaged, cut short or no ONNX model.") from None
    raise ExportError("it is damaged or no ONNX model: protobuf cannot parse it. Export or download it again.")


def _looks(path: Path, head: bytes) -> str | None:
    """What a file is that is no ONNX model, by its first bytes."""
    if zipfile.is_zipfile(path) and head.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if any(name.endswith("data.pkl") for name in names):
            return f"it looks like a PyTorch file (.pt). {_TORCH}"
    for start, what in _STARTS.items():
        if head.startswith(start):
            return f"it looks like {what}"
    if head[4:8] in (b"TFL3", b"ORTM"):
        other = "TensorFlow Lite" if head[4:8] == b"TFL3" else "onnxruntime's own format (.ort)"
        return f"it looks like {other}. Give the .onnx file that it was made from."
    if head[8:9] == b"{" and b'"dtype"' in head:
        return "it looks like safetensors, which has weights and no graph. Export the network to ONNX."
    try:
        text = head.decode("utf-8", "strict" if len(head) < 4096 else "ignore")
    except UnicodeDecodeError:
        return None
    if any(ord(c) < 32 and c not in "\t\r\n\f" for c in text):
        return None
    found = (what for start, what in _TEXTS.items() if text.lstrip().lower().startswith(start))
    return f"it looks like {next(found, 'a text file. Give the binary .onnx file.')}"


# --- putting in order -----------------------------------------------------------------------------------------


def _checked(model: ModelProto, folder: Path | None) -> ModelProto:
    ours = folder is not None
    try:
        if model.functions:
            model, ours = inlined(model if ours else _copy(model)), True
        unordered = check_model(model, folder)
        if not ours and (unordered or model.graph.sparse_initializer):
            model = _copy(model)
            unordered = check_model(model)
    except RecursionError as error:  # a model in memory can be nested deeper than a file
        raise ExportError("sub-graphs are nested too deeply; no network needs that") from error
    _sort(unordered)
    _make_dense(model.graph)
    return model


def _copy(model: ModelProto) -> ModelProto:
    """A copy without large weights, which would take their memory again."""
    new = ModelProto(ir_version=model.ir_version)
    for name in ("opset_import", "metadata_props", "functions"):
        getattr(new, name).extend(getattr(model, name))
    new.graph.name = model.graph.name
    for name in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(new.graph, name).extend(getattr(model.graph, name))
    for tensor in model.graph.initializer:
        if tensor.ByteSize() <= SHORT or is_read(tensor.dims, tensor.data_type) or not isinstance(tensor.name, str):
            new.graph.initializer.append(tensor)
        else:
            _empty(new.graph, tensor.name, tensor.dims, tensor.data_type)
    return new


def _sort(unordered: list[Order]) -> None:
    for graph, order in unordered:
        nodes = list(graph.node)
        del graph.node[:]
        graph.node.extend(nodes[i] for i in order)


def _make_dense(graph: GraphProto) -> None:
    for sparse in graph.sparse_initializer:
        _empty(graph, sparse.values.name, sparse.dims, sparse.values.data_type)
    del graph.sparse_initializer[:]


def _empty(graph: GraphProto, name: str, dims: list[int], type_: int) -> None:
    tensor = TensorProto(name=name, dims=dims, data_type=type_)
    tensor.MergeFrom(LEFT_OUT)
    graph.initializer.append(tensor)

"""Tensors of an ONNX model: which entries are read, whether they fit their dimensions, where external ones lie."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath

from onnx import StringStringEntryProto, TensorProto

from nasrlm.errors import ExportError
from nasrlm.graph.onnx_read.constants import MOST_ENTRIES, MOST_FLOATS, _may_mask

LEFT_OUT = TensorProto(
    data_location=TensorProto.EXTERNAL, external_data=[StringStringEntryProto(key="nasrlm", value="left out")]
)
"""What a tensor says whose entries were in the file and are not in the model: they are external, in no file."""
LARGEST = 2**53
"""Entries that a tensor may have at most: beyond it products of sizes are no longer exact in many tools."""
_BITS = {
    **dict.fromkeys(("COMPLEX128",), 128),
    **dict.fromkeys(("DOUBLE", "INT64", "UINT64", "COMPLEX64"), 64),
    **dict.fromkeys(("FLOAT", "INT32", "UINT32"), 32),
    **dict.fromkeys(("FLOAT16", "BFLOAT16", "INT16", "UINT16"), 16),
    **dict.fromkeys(("INT8", "UINT8", "BOOL"), 8),
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"), 8),
    **dict.fromkeys(("FLOAT6E2M3", "FLOAT6E3M2"), 6),
    **dict.fromkeys(("INT4", "UINT4", "FLOAT4E2M1"), 4),
    **dict.fromkeys(("INT2", "UINT2"), 2),
}
_LISTS = {
    **dict.fromkeys(("FLOAT", "COMPLEX64"), "float_data"),
    **dict.fromkeys(("DOUBLE", "COMPLEX128"), "double_data"),
    **dict.fromkeys(("UINT32", "UINT64"), "uint64_data"),
    **{"INT64": "int64_data", "STRING": "string_data"},
}
"""Field of the entries that are not raw bytes; int32_data for all other types."""


def type_name(number: int) -> str:
    """ONNX's name of an element type, "" for a number that is none.

    >>> type_name(1), type_name(0), type_name(99)
    ('FLOAT', '', '')
    """
    return TensorProto.DataType.Name(number) if number and number in TensorProto.DataType.values() else ""


def bits_of(number: int) -> int:
    """Bits an entry, 0 where that is not fixed."""
    return _BITS.get(type_name(number), 0)


def is_read(dims: Sequence[int], number: int) -> bool:
    """Whether the reader looks at the entries of a tensor of these dimensions and this element type."""
    name = type_name(number)
    is_weight = ("FLOAT" in name or name == "DOUBLE") and not _may_mask(tuple(dims))
    return prod(dims) <= (MOST_FLOATS if is_weight else MOST_ENTRIES)


def short(name: object) -> str:
    """A name from a file as it stands in a message, however long.

    >>> short("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
    """
    text = str(name)
    return repr(text if len(text) <= 60 else text[:56] + "...")


def check_dims(dims: Sequence[int], where: str) -> None:
    """Refuse negative dimensions, and tensors larger than any machine."""
    shown = str(tuple(dims[:8])) + ("..." if len(dims) > 8 else "")
    if any(n < 0 for n in dims):
        raise ExportError(f"{where} has a negative dimension: {shown}. A dynamic one has a name in place of a number.")
    if len(dims) > 32 or prod(max(n, 1) for n in dims) > LARGEST:
        raise ExportError(f"{where} has the absurd shape {shown}: at most 32 dimensions and 2**53 entries are read")


def check_tensor(tensor: TensorProto, where: str, folder: Path | None, seen: dict[str, int]) -> None:
    """Refuse a tensor whose type, dimensions, entries or external file are wrong.

    Args:
        tensor: of the model.
        where: for messages.
        folder: of the model file, for external entries; None for a model in memory.
        seen: sizes of external files so far, by location; added to.
    """
    where = f"tensor {short(tensor.name)}{where}"
    name = type_name(tensor.data_type)
    if not name:
        raise ExportError(f"{where} has the element type {tensor.data_type}, which ONNX does not know")
    check_dims(tensor.dims, where)
    total = prod(tensor.dims) * _BITS.get(name, 0)
    if tensor.data_location == TensorProto.EXTERNAL:
        if folder is not None and tensor.external_data != LEFT_OUT.external_data:
            _check_external(tensor, where, -(-total // 8), folder, seen)
        return
    if tensor.HasField("segment"):
        raise ExportError(f"{where} is stored in segments, which ONNX has given up; export it again")
    raw = tensor.HasField("raw_data")
    if raw and total:
        found, expected = len(tensor.raw_data), -(-total // 8)
        wrong = found != expected
    else:
        found, expected = len(getattr(tensor, _LISTS.get(name, "int32_data"))), _count(tensor, name)
        wrong = found != expected and not (raw and not prod(tensor.dims))
    if wrong:
        unit = "bytes" if raw else "numbers"
        raise ExportError(f"{where} of {name} {tuple(tensor.dims)} holds {found} {unit}, {expected} are expected")


def _count(tensor: TensorProto, name: str) -> int:
    """Numbers in the field of the entries: two a complex number, several small ones in a byte."""
    entries = prod(tensor.dims)
    return 2 * entries if name.startswith("COMPLEX") else -(-entries * min(_BITS.get(name, 8), 8) // 8)


def _check_external(tensor: TensorProto, where: str, expected: int, folder: Path, seen: dict[str, int]) -> None:
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    if location not in seen:
        seen[location] = _external_size(location, where, folder)
    size = seen[location]
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", expected))
    except ValueError:
        raise ExportError(f"{where}: offset and length of its external data must be whole numbers") from None
    if offset < 0 or length < 0 or (expected and length != expected):
        raise ExportError(
            f"{where}: external data from byte {offset} of {length} bytes do not fit {tuple(tensor.dims)}, "
            f"which needs {expected}"
        )
    if offset + length > size:
        raise ExportError(
            f"{where}: its external file {short(location)} has {size} bytes, {offset + length} are needed; it is cut "
            "short: copy or download it again"
        )


def _external_size(location: str, where: str, folder: Path) -> int:
    parts = (*PurePosixPath(location).parts, *PureWindowsPath(location).parts)
    absolute = location.startswith(("/", "\\")) or bool(PureWindowsPath(location).drive)
    if not location or "\0" in location or absolute or ".." in parts:
        raise ExportError(
            f"{where} lies in {short(location)}: external data must lie in a file beside the model, its path relative "
            "and without '..'"
        )
    try:
        file = (folder / location).resolve()
        if not file.is_relative_to(folder.resolve()):
            raise ExportError(
                f"{where} lies in {short(location)}, a link that leaves the folder {folder}; put the file itself there"
            )
        if not file.is_file():
            raise ExportError(
                f"{where} lies in the file {short(location)}, which is not in {folder}; put it beside the model"
            )
        return file.stat().st_size
    except (OSError, ValueError, RuntimeError) as error:  # too long a name, a circle of links, forbidden
        raise ExportError(f"{where} lies in the file {short(location)}, which cannot be found: {error}") from error

"""ONNX files field by field, so that a file of many gigabytes is read without its weights.

Protobuf's wire format (https://protobuf.dev/programming-guides/encoding/) is a list of fields; a message is a field
that holds fields. Whatever is short is taken as it stands. Only in long messages is it worth to look for tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from mmap import mmap

from nasrlm.errors import ExportError
from nasrlm.graph.onnx_tensors import LEFT_OUT, bits_of, check_dims, is_read, short, type_name

SHORT = 2**16
"""Messages of at most this many bytes stay as they are, tensors with their entries too."""
MOST_BYTES = 2**29
"""Bytes of a model without its weights; more is no network."""
DEEPEST = 16
"""Sub-graphs within sub-graphs."""
Data = bytes | mmap

_PAYLOAD = {4: "float_data", 5: "int32_data", 6: "string_data", 7: "int64_data", 9: "raw_data", 10: "double_data"}
_PAYLOAD[11] = "uint64_data"
_DIMS, _TYPE, _NAME, _EXTERNAL, _LOCATION = 1, 2, 8, 13, 14
_KINDS = {0: "number", 1: "8 bytes", 2: "message", 5: "4 bytes"}


@dataclass(frozen=True)
class _Message:
    """What a message may hold: messages by field number, and long fields that nobody needs (words of explanation)."""

    name: str
    inner: dict[int, _Message] = field(default_factory=dict)
    spare: frozenset[int] = frozenset()


_TENSOR = _Message("TensorProto", spare=frozenset([12]))
_SPARSE = _Message("SparseTensorProto", {1: _TENSOR, 2: _TENSOR})
_ATTRIBUTE = _Message("AttributeProto", {5: _TENSOR, 10: _TENSOR, 22: _SPARSE, 23: _SPARSE}, frozenset([13]))
_NODE = _Message("NodeProto", {5: _ATTRIBUTE}, frozenset([6, 9, 10]))
_GRAPH = _Message("GraphProto", {1: _NODE, 5: _TENSOR, 15: _SPARSE}, frozenset([10, 14, 16]))
_ATTRIBUTE.inner.update({6: _GRAPH, 11: _GRAPH})
_FUNCTION = _Message("FunctionProto", {7: _NODE, 11: _ATTRIBUTE}, frozenset([8, 12, 14]))
_MODEL = _Message("ModelProto", {7: _GRAPH, 25: _FUNCTION}, frozenset([6, 20, 26]))


def without_weights(data: Data, *, short: int = SHORT) -> bytes:
    """The same ModelProto, serialized, without the entries of large tensors.

    Time is linear in the number of fields, of which even a long tensor has few; memory is what is kept.

    Args:
        data: a serialized ModelProto.
        short: messages up to this many bytes are not looked into, and stay as they are; 0 looks at every field.

    Raises:
        ExportError: a field that goes beyond its message, with its place; sub-graphs nested too deeply; a tensor whose
            entries do not fit its dimensions.
    """
    return _Copy(data, short).message(_MODEL, 0, len(data), -1)


class _Copy:
    def __init__(self, data: Data, short: int) -> None:
        self.data, self.short, self.kept = data, short, 0

    def message(self, kind: _Message, start: int, end: int, depth: int) -> bytes:
        """A message without weights."""
        depth += kind is _GRAPH
        if depth > DEEPEST:
            raise ExportError(f"sub-graphs are nested more than {DEEPEST} deep (byte {start}); no network needs that")
        if kind is _TENSOR:
            return self._tensor(start, end)
        parts = []
        for number, wire, tag, body, stop in _fields(self.data, start, end, kind.name):
            if wire != 2 or stop - body <= self.short:
                continue
            inner = kind.inner.get(number)
            if inner is not None:
                made = self.message(inner, body, stop, depth)
                parts += [self._take(start, body - _size(stop - body)), _varint(len(made)), made]
                start = stop
            elif number in kind.spare:
                parts.append(self._take(start, tag))
                start = stop
        return b"".join([*parts, self._take(start, end)])

    def _take(self, start: int, end: int) -> bytes:
        self.kept += end - start
        if self.kept > MOST_BYTES:
            raise ExportError(
                f"the model holds more than {MOST_BYTES >> 20} MiB beside its weights, which no network does; "
                "remove embedded documents and training graphs, and save it again"
            )
        return self.data[start:end]

    def _tensor(self, start: int, end: int) -> bytes:
        """A tensor; without entries that nobody reads it is marked so."""
        dims: list[int] = []
        type_, name, payload, raw = 0, "", 0, False
        parts, begin = [], start
        for number, wire, tag, body, stop in _fields(self.data, start, end, "TensorProto"):
            if number in _PAYLOAD:
                if begin < tag:  # entries can be a field each, millions of them
                    parts.append(self._take(begin, tag))
                begin, payload, raw = stop, payload + stop - (body if wire == 2 else tag), raw or number == 9
            elif number == _DIMS:
                dims += _numbers(self.data, body, stop, wire)
            elif number == _TYPE and wire == 0:
                type_ = _number(self.data, body, stop)
            elif number == _NAME and wire == 2:
                name = self.data[body : min(stop, body + 200)].decode("utf-8", "replace")
        if payload <= self.short:
            return self._take(start, end)
        _check_payload(name, dims, type_, payload, raw)
        if is_read(dims, type_):
            return self._take(start, end)
        rest = b"".join([*parts, self._take(begin, end)])
        return rest + LEFT_OUT.SerializeToString()


def _check_payload(name: str, dims: list[int], type_: int, payload: int, raw: bool) -> None:
    check_dims(dims, f"tensor {short(name)}")
    bits = bits_of(type_)
    if not bits:
        return
    total = prod(dims) * bits
    right = payload == -(-total // 8) if raw else total * min(8, bits) // bits <= payload * 8 <= 128 * (total + 1)
    if not right:
        raise ExportError(
            f"tensor {short(name)} of {type_name(type_)} {tuple(dims[:16])} holds {payload} bytes, "
            f"{-(-total // 8)} are expected"
        )


def _fields(data: Data, start: int, end: int, where: str) -> Iterator[tuple[int, int, int, int, int]]:
    """Fields of a message: number, wire type, where its tag begins, where its value begins and ends."""
    at = start
    while at < end:
        tag = at
        key, at = _read(data, at, end, where)
        number, wire = key >> 3, key & 7
        if wire not in _KINDS or not number:
            raise ExportError(f"{where} has a field of an unknown kind at byte {tag}")
        if wire == 0:
            body = at
            _, at = _read(data, at, end, where)
        elif wire == 2:
            length, body = _read(data, at, end, where)
            at = body + length
        else:
            body, at = at, at + (4 if wire == 5 else 8)
        if at > end:
            raise ExportError(
                f"field {number} of {where} at byte {tag} needs {at - body} bytes, of which {end - body} are left"
            )
        yield number, wire, tag, body, at


def _read(data: Data, at: int, end: int, where: str) -> tuple[int, int]:
    """A number of 7 bits a byte, and where it ends."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ExportError(f"{where} breaks off within a number at byte {at}")


def _number(data: Data, at: int, end: int) -> int:
    value = _read(data, at, end, "TensorProto")[0] & (2**64 - 1)
    return value - 2**64 if value >= 2**63 else value


def _numbers(data: Data, at: int, end: int, wire: int) -> list[int]:
    if wire not in (0, 2):
        return []
    found = []
    while at < end:
        found.append(_number(data, at, end))
        _, at = _read(data, at, end, "TensorProto")
    return found


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _size(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))

"""Nodes of an ONNX model beside what ONNX says of their operator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from onnx import AttributeProto, NodeProto, TensorProto, defs

from nasrlm.errors import ExportError, nearest
from nasrlm.graph.onnx_tensors import short

_FIELDS = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_TYPES = {getattr(defs.OpSchema.AttrType, AttributeProto.AttributeType.Name(number)): number for number in _FIELDS}
_VALUES = frozenset(_FIELDS.values())
_MESSAGES = frozenset(("t", "g", "sparse_tensor", "tp"))
_AXES = frozenset(
    ("axis", "axes", "batch_axis", "batch_dims", "new_axis", "perm", "scan_input_axes", "scan_output_axes", "time_axis")
)
_ANY_NUMBER = frozenset(("starts", "ends", "start", "end", "value_int", "value_ints", "pool_int64s", "ignore_index"))
_EQUATION = re.compile(rb"[A-Za-z.,> -]{0,1000}")


@dataclass(frozen=True)
class _Rules:
    """What ONNX says of an operator: how many inputs and outputs, which inputs must be given, types of attributes."""

    inputs: range
    outputs: range
    needed: tuple[int, ...]
    attributes: dict[str, int]
    required: tuple[str, ...]


@lru_cache(maxsize=4096)
def _rules(kind: str, opset: int) -> _Rules | None:
    """None for an operator that is given up: older versions of it may stand in newer files."""
    if not defs.has(kind, opset, ""):
        raise ExportError(_unknown(kind, opset))
    schema = defs.get_schema(kind, opset, "")
    if schema.deprecated:
        return None
    single = defs.OpSchema.FormalParameterOption.Single
    return _Rules(
        range(schema.min_input, schema.max_input + 1),
        range(schema.min_output, schema.max_output + 1),
        tuple(i for i, x in enumerate(schema.inputs) if x.option == single),
        {name: _TYPES[a.type] for name, a in schema.attributes.items()},
        tuple(name for name, a in schema.attributes.items() if a.required),
    )


def _unknown(kind: str, opset: int) -> str:
    known = {s.name: s.since_version for s in defs.get_all_schemas() if s.domain == ""}
    if kind in known:
        return f"operator {kind} does not exist in opset {opset} of ONNX"
    close = nearest(kind[:100], known)
    return (
        f"ONNX has no operator {short(kind)} in opset {opset}"
        f"{'. Nearest: ' + ', '.join(close) if close else ''}. Operators of other makers need their domain."
    )


def check_node(node: NodeProto, where: str, opset: int) -> Iterator[TensorProto]:
    """Refuse inputs, outputs and attributes that the operator cannot have; gives the tensors among the attributes."""
    if not node.op_type:
        raise ExportError(f"{where} has no operator")
    if not any(node.output):
        raise ExportError(f"{where} has no output")
    try:
        rules = _rules(node.op_type, opset) if node.domain in ("", "ai.onnx") else None
    except ExportError as error:
        raise ExportError(f"{where}: {error}") from None
    if rules is not None:
        _check_slots(node, where, rules)
    names = set()
    for a in node.attribute:
        if not isinstance(a.name, str) or not a.name or a.name in names:
            raise ExportError(f"{where}: attribute {short(a.name)} has no name or is given twice")
        names.add(a.name)
        if a.name == "num_outputs" and rules is not None and a.i != len(node.output):
            raise ExportError(f"{where}: attribute 'num_outputs' is {a.i}, the node has {len(node.output)} outputs")
        _check_attribute(a, f"{where}: attribute {short(a.name)}", rules)
        yield from _tensors(a)
    missing = [name for name in (rules.required if rules else ()) if name not in names]
    if missing:
        raise ExportError(f"{where}: attribute {missing[0]!r} is missing")


def _check_slots(node: NodeProto, where: str, rules: _Rules) -> None:
    for what, names, allowed in (("inputs", node.input, rules.inputs), ("outputs", node.output, rules.outputs)):
        given = len(names)
        while given > allowed.start and not names[given - 1]:
            given -= 1
        if given not in allowed:
            most = f"to {allowed[-1]}" if allowed[-1] < 2**31 - 1 else "or more"
            raise ExportError(f"{where} has {given} {what}; allowed: {allowed.start} {most}")
    absent = [i for i in rules.needed if i < len(node.input) and not node.input[i]]
    if absent:
        raise ExportError(f"{where}: input {absent[0]} is left empty and must be given")


def _check_attribute(a: AttributeProto, where: str, rules: _Rules | None) -> None:
    if a.type not in _FIELDS:
        raise ExportError(f"{where} has no type (or type {a.type}, which ONNX does not know); it is damaged")
    if a.ref_attr_name:
        raise ExportError(f"{where} refers to {short(a.ref_attr_name)} of a function, but stands in none")
    kind, field = AttributeProto.AttributeType.Name(a.type), _FIELDS[a.type]
    given = {found.name for found, _ in a.ListFields()} & _VALUES
    if given - {field}:
        raise ExportError(f"{where} says that it is {kind} and holds {', '.join(sorted(given - {field}))}")
    if not given and field in _MESSAGES:
        raise ExportError(f"{where} of type {kind} has no value")
    if rules is None:
        return
    if a.name not in rules.attributes:
        close = nearest(a.name[:100], rules.attributes)
        raise ExportError(
            f"{where} is unknown. {'Nearest: ' + ', '.join(close) + '. ' if close else ''}"
            f"Allowed: {', '.join(sorted(rules.attributes)) or 'none'}."
        )
    if rules.attributes[a.name] != a.type:
        right = AttributeProto.AttributeType.Name(rules.attributes[a.name])
        raise ExportError(f"{where} is {kind} and must be {right}")
    _check_numbers(a, where)


def _check_numbers(a: AttributeProto, where: str) -> None:
    """Numbers on which onnx's shape inference, in C++, crashes or counts for ever."""
    given = [a.i] if a.type == AttributeProto.INT else a.ints
    least, most = (-64, 64) if a.name in _AXES else (-(2**31), 2**31 - 1)
    least = 0 if a.name == "batch_dims" else least
    if a.name not in _ANY_NUMBER and any(not least <= n <= most for n in given):
        wrong = next(n for n in given if not least <= n <= most)
        raise ExportError(f"{where} is {wrong}; allowed: {least} to {most}")
    if a.name == "equation" and not _EQUATION.fullmatch(a.s):
        raise ExportError(
            f"{where} is {short(a.s.decode('utf-8', 'replace'))}; allowed: letters, commas, '...' and '->'"
        )


def _tensors(a: AttributeProto) -> Iterator[TensorProto]:
    if a.type == AttributeProto.TENSOR:
        yield a.t
    elif a.type == AttributeProto.TENSORS:
        yield from a.tensors
    elif a.type == AttributeProto.SPARSE_TENSOR:
        yield a.sparse_tensor.values

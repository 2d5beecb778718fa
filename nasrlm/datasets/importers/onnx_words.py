"""ONNX in words: what ``onnx.helper.printable_graph`` or ``onnx.printer`` wrote, read back as a model.

Words of ``printable_graph`` hold no weights and no values of most constants, and not the opset. Weights are taken as
declared - behind the first input, or as initializers -; the opset is the first of a few in which every operator has
the attributes that were printed. Values of constants that were not printed are supplied by `onnx_supplied`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, helper, parser

from nasrlm.datasets.importers.onnx_supplied import supply
from nasrlm.datasets.importers.protocol import STRUCTURE
from nasrlm.errors import ExportError
from nasrlm.graph import as_graph, to_text
from nasrlm.graph.onnx_tensors import LEFT_OUT

_OPSETS = (17, 12, 20)
_INT = TensorProto.INT64
_HEADER = re.compile(r"\s*graph\s+(\S+)")
_VALUE = re.compile(r"%(?P<name>.+?)\[(?P<type>[A-Z0-9]+)(?:, (?P<dims>[^\]]*))?\]")
_NODE = re.compile(r"(?:(?P<outputs>%.+?) = )?(?P<op>[A-Za-z]\w*)(?P<rest>[\[(].*)")
_SCALAR = re.compile(r"<Scalar Tensor \[(.*)\]>")
_ATTRIBUTE = re.compile(r"(?:^|, )(\w+) = ")

AttributeType = Any


def canonical_text(words: str) -> str:
    """The canonical text of a network in words.

    Args:
        words: what ``onnx.helper.printable_graph`` or ``onnx.printer.to_text`` gives.

    Raises:
        ExportError: it cannot be read; the message says what is in the way.

    >>> print(canonical_text("graph g (\\n  %x[FLOAT, 1x3x8x8]\\n) {\\n  %y = Relu(%x)\\n  return %y\\n}"))
    nasrlm1
    in 1x3x8x8
    relu
    """
    if _HEADER.match(words) is None:
        return to_text(_parsed(words))
    first: ExportError | None = None
    for opset in _OPSETS:
        try:
            return to_text(as_graph(from_words(words, opset)))
        except ExportError as error:
            first = first or error
        except STRUCTURE as error:  # an operator without inputs, say
            first = first or ExportError(f"the words are those of no graph ({error})")
    raise first or ExportError("no opset fits")


def _parsed(words: str) -> ModelProto:
    try:
        return parser.parse_model(words)
    except (parser.ParseError, ValueError, TypeError) as error:
        raise ExportError(f"neither words of printable_graph nor of onnx.printer: {str(error)[:200]}") from error


def from_words(words: str, opset: int) -> ModelProto:
    """The model that ``printable_graph`` described, of an opset, its weights without values.

    Raises:
        ExportError: a line that is none of its forms, or an attribute that the opset's operator does not have.
    """
    lines = [line.strip() for line in words.strip().splitlines()]
    start = next((i for i, line in enumerate(lines) if line.endswith("{")), len(lines))
    values = [_value(line) for line in lines[1:start] if line.startswith("%")]
    end = next((i for i in range(start, len(lines)) if lines[i].startswith("return")), None)
    if end is None or not values:
        raise ExportError("the words of a graph end before its return, or have no input")
    nodes = [_node(line, opset) for line in lines[start + 1 : end] if line]
    graph = GraphProto(name="graph", node=nodes, input=[_data(values[0])])
    graph.initializer.extend(_weight(*value) for value in values[1:])
    graph.output.extend(ValueInfoProto(name=name) for name in _names(lines[end].removeprefix("return")))
    supply(graph)
    return ModelProto(ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", opset)])


Value = tuple[str, int, "list[int | str] | None"]
"""Name, element type, dimensions; None where they were not printed."""


def _value(line: str) -> Value:
    found = _VALUE.fullmatch(line)
    if found is None or found["type"] not in TensorProto.DataType.keys():  # noqa: SIM118
        raise ExportError(f"{line[:80]!r} declares no tensor")
    dims = found["dims"]
    sizes: list[int | str] = []
    if dims and dims != "scalar":
        sizes = [int(size) if size.isdigit() else size for size in dims.split("x")]
    return found["name"], TensorProto.DataType.Value(found["type"]), sizes if dims else None


def _data(value: Value) -> ValueInfoProto:
    return helper.make_tensor_value_info(*value)


def _weight(name: str, kind: int, dims: list[int | str] | None) -> TensorProto:
    sizes = [size for size in dims or () if isinstance(size, int)]
    if dims is None or len(sizes) < len(dims):
        raise ExportError(f"the weight {name!r} has no fixed dimensions")
    tensor = TensorProto(name=name, dims=sizes, data_type=kind)
    tensor.MergeFrom(LEFT_OUT)
    return tensor


def _node(line: str, opset: int) -> NodeProto:
    found = _NODE.fullmatch(line)
    if found is None:
        raise ExportError(f"{line[:80]!r} is no operator")
    attributes, inputs = _split(found["rest"])
    node = NodeProto(op_type=found["op"], input=_names(inputs), output=_names(found["outputs"] or ""))
    if not attributes:
        return node
    if not defs.has(node.op_type, opset):
        raise ExportError(f"no operator {node.op_type} in opset {opset}")
    schema = defs.get_schema(node.op_type, opset, "").attributes
    for name, text in _attributes(attributes):
        if name not in schema:
            raise ExportError(f"{node.op_type} of opset {opset} has no attribute {name!r}")
        node.attribute.append(helper.make_attribute(name, _typed(text, schema[name].type)))
    return node


def _split(rest: str) -> tuple[str, str]:
    """`[kernel = [3, 3]](%x, %w)` -> the insides of the two pairs of brackets."""
    if rest.startswith("("):
        return "", rest[1:-1]
    attributes, marker, inputs = rest[1:-1].rpartition("](")
    if not marker:
        raise ExportError(f"{rest[:80]!r} has no inputs")
    return attributes, inputs


def _names(text: str) -> list[str]:
    """`%a, %, %b` -> names; an input that is left out has an empty one."""
    return [part.strip().removeprefix("%") for part in text.split(", ")] if text.strip() else []


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    parts = _ATTRIBUTE.split(text)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _typed(text: str, kind: AttributeType) -> Any:
    """An attribute's value; floats are printed like integers, so the operator's definition decides."""
    if text.startswith("<"):
        scalar = _SCALAR.fullmatch(text)
        if scalar is None or scalar[1] in ("", "b''"):
            return _unknown(text)
        return _scalar(scalar[1])
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ExportError(f"{text[:60]!r} is no value of an attribute") from error
    if kind == defs.OpSchema.AttrType.FLOAT:
        return float(value)
    return [float(item) for item in value] if kind == defs.OpSchema.AttrType.FLOATS else value


def _scalar(text: str) -> TensorProto:
    value = ast.literal_eval(text)
    kind = TensorProto.FLOAT if isinstance(value, float) else TensorProto.INT64
    return helper.make_tensor("value", kind, (), [value])


def _unknown(text: str) -> TensorProto:
    if "Tensor" not in text:
        raise ExportError(f"{text[:60]} was not printed")
    scalar = "Scalar" in text
    tensor = TensorProto(name="value", dims=[] if scalar else [1], data_type=TensorProto.FLOAT if scalar else _INT)
    tensor.MergeFrom(LEFT_OUT)
    return tensor

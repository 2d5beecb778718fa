"""Sub-graphs of If, Loop and Scan, as texts of their own within the line of their operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from onnx import AttributeProto

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape
from nasrlm.graph.onnx_read.constants import Constant
from nasrlm.graph.onnx_read.node import Node
from nasrlm.graph.ops import Op

_KNOWN = ("If", "Loop", "Scan")
Type = tuple[str, Shape]


def read_bodies(n: Node) -> tuple[list[tuple[str, str]], list[int], set[str]]:
    """Sub-graphs of a node as attribute words, the values that they read from outside, and the attributes' names."""
    bodies = [a for a in n.proto.attribute if a.type == AttributeProto.GRAPH]
    if not bodies:
        return [], [], set()
    if n.proto.op_type not in _KNOWN:
        raise ExportError(f"sub-graphs of {n.proto.op_type} cannot be read, only those of {', '.join(_KNOWN)}")
    outside = list(dict.fromkeys(name for a in bodies for name in _free(a.g)))
    missing = [name for name in outside if name not in n.reader.values]
    if missing:
        raise ExportError(f"a sub-graph reads {missing[0]!r}, which is computed by no earlier node and is no input")
    values = {name: n.reader.values[name] for name in outside}
    constants = {name: v for name, v in values.items() if isinstance(v, Constant)}
    captured = {name: v for name, v in values.items() if not isinstance(v, Constant)}
    words = []
    for a in bodies:
        formal = _formal(n, a.g)
        types = [*formal, *((name, (n.b.dtype(v), n.b.shape(v))) for name, v in captured.items())]
        words.append((a.name, f"( {' '.join(n.reader.body_text(a.g, types, constants).split())} )"))
    return words, list(captured.values()), {a.name for a in bodies}


def _free(graph: onnx.GraphProto) -> Iterator[str]:
    """Names that a sub-graph reads and does not define, in order of use."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        inner = [name for a in node.attribute if a.type == AttributeProto.GRAPH for name in _free(a.g)]
        yield from (name for name in (*node.input, *inner) if name and name not in own)
        own.update(node.output)
    yield from (o.name for o in graph.output if o.name not in own)


def _formal(n: Node, graph: onnx.GraphProto) -> list[tuple[str, Type]]:
    """The declared inputs of a body, with types from the operands where those are."""
    types: list[Type] = []
    kind = n.proto.op_type
    if kind == "Loop":
        types = [("int64", ()), ("bool", ())]
        types += [(n.dtype(i), n.shape(i)) for i in range(2, len(n.proto.input))]
    elif kind == "Scan":
        scanned = n.attributes["num_scan_inputs"]
        states = len(n.proto.input) - scanned
        axes = list(n.attributes.get("scan_input_axes", [0] * scanned))
        types = [(n.dtype(i), n.shape(i)) for i in range(states)]
        for i, axis in zip(range(states, len(n.proto.input)), axes, strict=True):
            shape = list(n.shape(i))
            del shape[axis]
            types.append((n.dtype(i), tuple(shape)))
    if len(types) != len(graph.input):
        raise ExportError(f"the body of {kind} has {len(graph.input)} inputs, its operands give {len(types)}")
    return [(info.name, given) for info, given in zip(graph.input, types, strict=True)]


def _graph(word: str) -> Any:
    from nasrlm.graph.text import HEADER, parse_text

    return parse_text(f"{HEADER} {word[2:-2]}")


def body_results(op_: Op, shapes: Sequence[Shape] | None) -> list[tuple[str, Shape | None]]:
    """Types of the values of an operator with sub-graphs: what the bodies give."""
    from nasrlm.graph.onnx_generic import fresh

    bodies = [_graph(word) for _, word in op_["attributes"] if word.startswith("( ")]
    given = [[(b.dtypes[o], b.shapes[o]) for o in b.outputs] for b in bodies]
    first = given[0]
    if op_["kind"] == "If":
        if len(given) != 2 or [t for t, _ in given[0]] != [t for t, _ in given[1]]:
            raise ExportError("the two branches of an If must give values of the same types")
        return [
            (dtype, _common(shape, other, op_.text, i))
            for i, ((dtype, shape), (_, other)) in enumerate(zip(*given, strict=True))
        ]
    explicit = sum(word[:1] != "^" for word in op_["inputs"])
    if op_["kind"] == "Loop":
        carried, values = explicit - 2, first[1:]
        return [
            (dtype, shape if i < carried else (fresh(op_.text, i, 0), *shape))
            for i, (dtype, shape) in enumerate(values)
        ]
    scanned = int(dict(op_["attributes"])["num_scan_inputs"])
    states = explicit - scanned
    length = None if shapes is None else _scan_length(op_, shapes)
    return [
        (dtype, shape if i < states else (fresh(op_.text, i, 0) if length is None else length, *shape))
        for i, (dtype, shape) in enumerate(first)
    ]


def _scan_length(op_: Op, shapes: Sequence[Shape]) -> Any:
    values = iter(shapes)
    kinds = [next(values) if word[:1] == "@" else None for word in op_["inputs"] if word[:1] != "^"]
    last = kinds[-1]
    return None if last is None or not last else last[0]


def _common(a: Shape, b: Shape, text: str, output: int) -> Shape:
    from nasrlm.graph.onnx_generic import fresh

    if len(a) != len(b):
        raise ExportError(f"the branches of an If give {a} and {b}: the number of dimensions is not known beforehand")
    return tuple(x if x == y else fresh(text, output, i) for i, (x, y) in enumerate(zip(a, b, strict=True)))


def write_body(w: Any, key: str, word: str, name: str, captured: Sequence[str]) -> AttributeProto:
    """The attribute of a body; what it reads from outside are its last inputs in the text."""
    graph = _graph(word)
    attribute = AttributeProto(name=key, type=AttributeProto.GRAPH)
    attribute.g.CopyFrom(w.body(graph, f"{name}.{key}", list(captured)))
    return attribute

"""Sub-graphs of If, Loop and Scan, as texts of their own within the line of their operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from onnx import AttributeProto

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape, fresh
from nasrlm.graph.onnx_read.constants import Constant
from nasrlm.graph.onnx_read.node import Node
from nasrlm.graph.ops import Op

_KNOWN = ("If", "Loop", "Scan")
Type = tuple[str, Shape]


def read_bodies(n: Node) -> tuple[list[tuple[str, str]], list[int], set[str]]:
    """Sub-graphs of a node as attribute words, the values that they read from outside, and the attributes' names."""
    graphs = [a for a in n.proto.attribute if a.type == AttributeProto.GRAPH]
    bodies = sorted(graphs, key=lambda a: a.name)  # a file may list them in any order
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
    known = None if shapes is None else _explicit(op_, shapes)
    if op_["kind"] == "Loop":
        return _loop_results(op_, first[1:], explicit - 2, known)
    return _scan_results(op_, first, explicit, known)


def _explicit(op_: Op, shapes: Sequence[Shape]) -> list[Shape | None]:
    """Shape of each declared input; None for a constant."""
    given = iter(shapes)
    return [next(given) if word[:1] == "@" else None for word in op_["inputs"] if word[:1] != "^"]


def _loop_results(
    op_: Op, values: list[Type], carried: int, known: list[Shape | None] | None
) -> list[tuple[str, Shape | None]]:
    if carried < 0 or carried > len(values):
        raise ExportError(f"the body of a Loop gives {len(values)} values, but carries {carried}")
    for start, (_, shape) in zip((known or [])[2:], values, strict=False):
        if start is not None and start != shape:
            raise ExportError(f"a value of a Loop grows from {start} to {shape}; its size is not known beforehand")
    return [
        (dtype, shape if i < carried else (fresh(op_.text, i, 0), *shape)) for i, (dtype, shape) in enumerate(values)
    ]


def _scan_results(
    op_: Op, values: list[Type], explicit: int, known: list[Shape | None] | None
) -> list[tuple[str, Shape | None]]:
    attributes = dict(op_["attributes"])
    scanned = int(attributes.get("num_scan_inputs", "0"))
    states = explicit - scanned
    if not 1 <= scanned <= explicit or states > len(values):
        raise ExportError(f"a Scan of {scanned} inputs does not fit its {explicit} operands and {len(values)} values")
    axes = _integers(attributes.get("scan_input_axes"), scanned)
    ends = _integers(attributes.get("scan_output_axes"), len(values) - states)
    last = None if known is None else known[-1]
    found: list[tuple[str, Shape | None]] = []
    for i, (dtype, shape) in enumerate(values):
        if i >= states:
            length = fresh(op_.text, i, 0) if last is None else last[axes[-1]]
            whole, axis = list(shape), ends[i - states]
            whole.insert(axis + len(shape) + 1 if axis < 0 else axis, length)
            shape = tuple(whole)
        found.append((dtype, shape))
    return found


def _integers(word: str | None, count: int) -> list[int]:
    return [0] * count if word is None else [int(v) for v in word[1:-1].split(",")]


def _common(a: Shape, b: Shape, text: str, output: int) -> Shape:
    if len(a) != len(b):
        raise ExportError(f"the branches of an If give {a} and {b}: the number of dimensions is not known beforehand")
    return tuple(x if x == y else fresh(text, output, i) for i, (x, y) in enumerate(zip(a, b, strict=True)))


def write_body(w: Any, key: str, word: str, name: str, captured: Sequence[str]) -> AttributeProto:
    """The attribute of a body; what it reads from outside are its last inputs in the text."""
    graph = _graph(word)
    attribute = AttributeProto(name=key, type=AttributeProto.GRAPH)
    attribute.g.CopyFrom(w.body(graph, f"{name}.{key}", list(captured)))
    return attribute

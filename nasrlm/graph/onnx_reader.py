"""ONNX to Graph. Weight values are never loaded; constants are folded on the way."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from os import PathLike
from typing import Any

import onnx

from nasrlm.errors import ExportError
from nasrlm.graph.builder import GraphBuilder
from nasrlm.graph.dims import Shape, symbol
from nasrlm.graph.graph import Graph
from nasrlm.graph.onnx_file import open_model
from nasrlm.graph.onnx_generic import read as in_full
from nasrlm.graph.onnx_read.constants import Constant, element_type, leaf, read_tensor
from nasrlm.graph.onnx_read.folding import folded
from nasrlm.graph.onnx_read.image import READ_IMAGE, Read
from nasrlm.graph.onnx_read.node import Node, Result
from nasrlm.graph.onnx_read.sequence import READ_SEQUENCE
from nasrlm.graph.onnx_read.tensor import READ_TENSOR
from nasrlm.graph.ops import op
from nasrlm.graph.passes import simplified

READ: dict[str, Read] = {**READ_IMAGE, **READ_TENSOR, **READ_SEQUENCE}
"""How to read each ONNX operator; what is missing, or gives None, is written in full."""

_DOMAINS = ("", "ai.onnx")
_HOSTILE = (
    *(IndexError, KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, AttributeError),
    *(RecursionError, MemoryError, ArithmeticError),
)
"""What a hostile attribute can raise in a reader that expects a sane one."""


def from_onnx(source: onnx.ModelProto | str | PathLike[str]) -> Graph:
    """Graph of an ONNX model or file, with the idioms of exporters recognised.

    Args:
        source: a ModelProto or the path of an .onnx file; external weight files are not opened.

    Raises:
        ExportError: a file that is missing or no ONNX model, an operator or shape that cannot be read; says where.
    """
    return simplified(read_onnx(source))


def read_onnx(source: onnx.ModelProto | str | PathLike[str]) -> Graph:
    """Graph of an ONNX model as it is written there, but for constants, which are folded."""
    model = open_model(source)
    opset = max((o.version for o in model.opset_import if o.domain in _DOMAINS), default=1)
    marked = any(p.key == WEIGHTS_KEY and p.value == "inputs" for p in model.metadata_props)
    return Reader(model.graph, opset, marked=marked).graph()


WEIGHTS_KEY = "nasrlm.weights"
"""Metadata of a model whose weights are declared as inputs, with a dot in their names."""

_NORMS = ("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization")
_WEIGHT_SLOTS = {
    **{kind: (1, 2) for kind in ("Conv", "ConvTranspose", "Gemm", "MatMul", "PRelu")},
    **{kind: (1, 2, 3) for kind in ("LSTM", "GRU", "RNN")},
    **{kind: (1, 2, 3, 4) for kind in _NORMS},
}
"""Operands that are weights."""


@dataclass(frozen=True)
class Body:
    """What a sub-graph knows of the graph that it stands in: its inputs (name, element type and shape), constants by
    name, the dynamic dimensions so far, and how deep it is nested."""

    inputs: list[tuple[str, tuple[str, Shape]]]
    constants: dict[str, Constant]
    symbols: dict[str, int]
    depth: int


class Reader:
    """Reads a GraphProto node by node.

    Attributes:
        builder: where the operators go.
        values: every name that was given a value so far.
        opset: version of ONNX's own operators.
        read: how often each name is read.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        opset: int,
        *,
        marked: bool = False,
        within: Body | None = None,
    ) -> None:
        self.builder = GraphBuilder()
        self.values: dict[str, Result] = dict(within.constants) if within else {}
        self.opset = opset
        self.proto = graph
        self.read: dict[str, int] = defaultdict(int)
        self.infos = {info.name: info.type for info in (*graph.value_info, *graph.output)}
        self._readers: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        self._symbols: dict[str, int] = within.symbols if within else {}
        self._marked = marked
        self._depth = within.depth if within else 0
        self._count(graph)
        for tensor in graph.initializer:
            self.values[tensor.name] = read_tensor(tensor, learned=True)
        if within:
            for name, (dtype, shape) in within.inputs:
                self.values[name] = self.builder.apply(op("in", shape, dtype))
        else:
            for info in graph.input:
                self._input(info)
        for position, node in enumerate(graph.node):
            self._node(position, node)

    def _count(self, graph: onnx.GraphProto) -> None:
        """Note who reads each name, sub-graphs included."""
        for node in graph.node:
            for slot, name in enumerate(node.input):
                self._readers[name].append((node.op_type, slot))
                self.read[name] += 1
            for a in node.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    self._count(a.g)
        for info in graph.output:
            self.read[info.name] += 1

    def body_text(
        self, graph: onnx.GraphProto, inputs: list[tuple[str, tuple[str, Shape]]], constants: dict[str, Constant]
    ) -> str:
        """Canonical text of a sub-graph, without the version."""
        from nasrlm.graph.text import MAX_DEPTH, graph_text

        if self._depth >= MAX_DEPTH:
            raise ExportError(f"sub-graphs are nested more than {MAX_DEPTH} deep")
        inner = Reader(graph, self.opset, within=Body(inputs, constants, self._symbols, self._depth + 1))
        return graph_text(simplified(inner.graph())).partition("\n")[2]

    def graph(self) -> Graph:
        """The graph; an output that is a constant is a line of its own."""
        for info in self.proto.output:
            if info.name not in self.values:
                raise ExportError(f"output {info.name!r} is not computed by any node of the model")
            found = self.values[info.name]
            if isinstance(found, Constant):
                found = self.builder.apply(op("literal"), self.builder.apply(leaf(found)))
            self.builder.output(found)
        return self.builder.build()

    def _input(self, info: onnx.ValueInfoProto) -> None:
        if info.name in self.values:
            return
        where = f"input {info.name!r}"
        if not info.type.HasField("tensor_type") or not info.type.tensor_type.HasField("shape"):
            raise ExportError(f"{where} is no tensor with a known number of dimensions; export it with its shape")
        tensor = info.type.tensor_type
        dtype = element_type(tensor.elem_type, where)
        dims = tuple(self.dimension(info.name, i, d) for i, d in enumerate(tensor.shape.dim))
        if any(isinstance(d, int) and (d < 0 or d >= 2**53) for d in dims):
            raise ExportError(f"{where} has the shape {dims}, which is absurd")
        if self._is_weight(info.name, dims):
            self.values[info.name] = Constant(tuple(d if isinstance(d, int) else 1 for d in dims), dtype, None, True)
        elif any(d == 0 for d in dims):
            raise ExportError(f"{where} has the shape {dims}: it is empty")
        else:
            self.values[info.name] = self.builder.apply(op("in", dims, dtype))

    def dimension(self, name: str, axis: int, dim: onnx.TensorShapeProto.Dimension) -> Any:
        """A number, or the symbol of a dimension's name."""
        if dim.HasField("dim_value"):
            return dim.dim_value
        key = dim.dim_param or f"{name} {axis}"
        return symbol(self._symbols.setdefault(key, len(self._symbols)))

    def _is_weight(self, name: str, dims: tuple[Any, ...]) -> bool:
        """A weight that is declared as an input: it is marked, or stands in weight positions only."""
        if self._marked:
            return "." in name
        readers = self._readers[name]
        if len(dims) == 4 and all(kind not in ("Conv", "ConvTranspose") for kind, _ in readers):
            return False  # an image that only looks like a weight
        return bool(readers) and all(
            slot in _WEIGHT_SLOTS.get(kind, ()) or (kind == "Add" and len(dims) == 1) for kind, slot in readers
        )

    def _node(self, position: int, node: onnx.NodeProto) -> None:
        where = f"node {node.name or position!r} ({node.op_type})"
        missing = [n for n in node.input if n and n not in self.values]
        if missing:
            raise ExportError(f"{where}: {missing[0]!r} is computed by no earlier node, no input and no initializer")
        try:
            results = self._results(Node(self, node))
        except ExportError as error:
            raise ExportError(f"{where}: {error}") from None
        except _HOSTILE as error:
            raise ExportError(f"{where}: an operand or attribute is missing or malformed ({error!r})") from error
        for name, result in zip(node.output, results, strict=False):
            if name:
                self.values[name] = result

    def _results(self, n: Node) -> list[Result]:
        kind = n.proto.op_type
        read = READ.get(kind) if n.proto.domain in _DOMAINS else None
        constant = bool(n.proto.input) and all(n.is_constant(i) for i in range(len(n.proto.input)) if n.has(i))
        if constant and any(c is not None and c.is_dynamic for c in map(n.constant_at, _SHAPED.get(kind, ()))):
            constant = False  # its size is only known at run time
        if constant and read is not READ["Shape"] and n.proto.domain in _DOMAINS and kind not in _RANDOM:
            found = folded(n)
            return list(found) if found is not None else self._unknown(n, read)
        made = read(n) if read is not None else None
        if made is None:
            made = in_full(n)
        return made if isinstance(made, list) else [made]

    def _unknown(self, n: Node, read: Read | None) -> list[Result]:
        """Shapes of what a node makes of weights, by reading it on the side."""
        aside = Node(self, n.proto, GraphBuilder())
        made = read(aside) if read is not None else None
        if made is None:
            made = in_full(aside)
        results = made if isinstance(made, list) else [made]
        b = aside.b
        return [r if isinstance(r, Constant) else Constant(b.shape(r), b.dtype(r), None, True) for r in results]


_SHAPED = {"Expand": (1,), "ConstantOfShape": (0,), "Range": (0, 1, 2), "Tile": (1,), "Reshape": (1,)}
"""Operands that say a size."""
_RANDOM = frozenset(("RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli", "Loop", "If", "Scan"))
"""Never computed beforehand."""

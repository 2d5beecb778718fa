"""ONNX to Graph, for every operator that convolutional networks use. Weight values are never loaded."""

from __future__ import annotations

from collections import defaultdict
from os import PathLike, fspath

import onnx
from google.protobuf.message import DecodeError

from nasrlm.errors import ExportError
from nasrlm.graph.builder import GraphBuilder
from nasrlm.graph.graph import Graph
from nasrlm.graph.onnx_operators import READ, Constant, Node, content
from nasrlm.graph.ops import op

_DOMAINS = ("", "ai.onnx")


def from_onnx(source: onnx.ModelProto | str | PathLike[str]) -> Graph:
    """Graph of an ONNX model or file.

    Args:
        source: a ModelProto or the path of an .onnx file; external weight files are not opened.

    Raises:
        ExportError: a file that is missing or no ONNX model, an operator or shape that cannot be read; says where.
    """
    model = source if isinstance(source, onnx.ModelProto) else _load(fspath(source))
    return _Reader(model.graph).graph()


def _load(path: str) -> onnx.ModelProto:
    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise ExportError(f"cannot read {path!r}: {error.strerror}. Give the path of an .onnx file.") from error
    except (DecodeError, ValueError) as error:
        raise ExportError(f"{path!r} is no ONNX model ({error}); it may be cut short. Export it again.") from error
    if not model.graph.node and not model.graph.input:
        raise ExportError(f"{path!r} holds no network; it may be cut short or not be an ONNX file.")
    return model


_WEIGHT_SLOTS = {
    "Conv": 1,
    "Gemm": 1,
    "MatMul": 1,
    "BatchNormalization": 1,
    "PRelu": 1,
}
"""First operand that is a weight; every later one is, too."""


class _Reader:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self.builder = GraphBuilder()
        self.values: dict[str, int] = {}
        self.constants: dict[str, Constant] = {}
        self.marks: dict[str, tuple[str, int, int]] = {}
        self.proto = graph
        self.readers: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for node in graph.node:
            for slot, name in enumerate(node.input):
                self.readers[name].append((node.op_type, slot))
        for tensor in graph.initializer:
            self.constants[tensor.name] = content(tensor)
        for info in graph.input:
            self._input(info)
        for position, node in enumerate(graph.node):
            self._node(position, node)

    def graph(self) -> Graph:
        for info in self.proto.output:
            if info.name not in self.values:
                raise ExportError(f"output {info.name!r} is not computed by any node of the model")
            self.builder.output(self.values[info.name])
        return self.builder.build()

    def _input(self, info: onnx.ValueInfoProto) -> None:
        if info.name in self.constants:
            return
        dims = [d.dim_value if d.dim_value > 0 else None for d in info.type.tensor_type.shape.dim]
        if self._is_weight(info.name, dims):
            self.constants[info.name] = tuple(d or 1 for d in dims)
            return
        if not dims or any(d is None for d in dims[1:]):
            raise ExportError(
                f"input {info.name!r} has the shape {dims}; all dimensions but the batch must be known numbers"
            )
        self.values[info.name] = self.builder.apply(op("in", tuple(d or 1 for d in dims)))

    def _is_weight(self, name: str, dims: list[int | None]) -> bool:
        """A weight that is declared as an input: it stands in weight positions only."""
        readers = self.readers[name]
        if len(dims) == 4 and all(kind != "Conv" for kind, _ in readers):
            return False  # an image that only looks like a weight
        bias = 1 if len(dims) == 1 else 0
        firsts = [(slot, bias if kind == "Add" else _WEIGHT_SLOTS.get(kind, 0)) for kind, slot in readers]
        return bool(readers) and all(slot >= first > 0 for slot, first in firsts)

    def _node(self, position: int, node: onnx.NodeProto) -> None:
        where = f"node {node.name or position!r} ({node.op_type})"
        read = READ.get(node.op_type) if node.domain in _DOMAINS else None
        if read is None:
            raise ExportError(
                f"{where}: operator {node.domain + '.' if node.domain else ''}{node.op_type} cannot be read yet. "
                f"Known: {', '.join(sorted(READ))}."
            )
        missing = [n for n in node.input if n and n not in self.values and n not in self.constants]
        if missing:
            raise ExportError(f"{where}: {missing[0]!r} is computed by no earlier node, no input and no initializer")
        try:
            result = read(Node(self, node))
        except ExportError as error:
            raise ExportError(f"{where}: {error}") from None
        except (IndexError, KeyError, TypeError) as error:
            raise ExportError(f"{where}: an operand or attribute is missing or malformed ({error!r})") from error
        if isinstance(result, int):
            self.values[node.output[0]] = result
        else:
            self.constants[node.output[0]] = result

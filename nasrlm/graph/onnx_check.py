"""What must hold in an ONNX model before it is read: everything that a damaged or hostile file can get wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto, defs

from nasrlm.errors import ExportError, nearest
from nasrlm.graph.onnx_nodes import check_node
from nasrlm.graph.onnx_tensors import check_dims, check_tensor, short, type_name
from nasrlm.graph.onnx_wire import DEEPEST

OLDEST_OPSET = 9
_ONNX = ("", "ai.onnx")
_GIVEN = -1
"""In place of a node's position, for a value that is an input or an initializer."""
Order = tuple[GraphProto, list[int]]


def check_model(model: ModelProto, folder: Path | None = None) -> list[Order]:
    """Refuse a model that is no network; time is linear in its size.

    Args:
        model: with or without the entries of its weights, its functions written out.
        folder: of the model's file, where external data must lie; None leaves them unchecked.

    Returns:
        Graphs, inner ones first, whose nodes are not in the order of computation, each with the positions of its nodes
        in that order.

    Raises:
        ExportError: says what is wrong and where.
    """
    if not model.graph.node:
        raise ExportError("the model has no nodes: it computes nothing. Export it again.")
    if not model.graph.output:
        raise ExportError("the model has no output. Declare what it gives as graph outputs.")
    checker = _Checker(_opset(model), folder)
    _text(*(t for p in model.metadata_props for t in (p.key, p.value)), where="metadata")
    free = checker.graph(model.graph, 0, "")
    for name, where in free.items():
        raise ExportError(
            f"{where} reads {short(name)}, which is computed by no node and is no input and no initializer"
            f"{_nearest(name, checker.names)}"
        )
    return checker.unordered


def _opset(model: ModelProto) -> int:
    found: dict[str, int] = {}
    for o in model.opset_import:
        domain = "" if o.domain in _ONNX else o.domain
        if found.setdefault(domain, o.version) != o.version:
            raise ExportError(f"operators of {o.domain or 'ai.onnx'!r} are imported in two versions")
    newest = defs.onnx_opset_version()
    if "" not in found:
        if any(node.domain in _ONNX for node in model.graph.node):
            raise ExportError("the model does not say which opset of ONNX it needs (opset_import is missing)")
        return int(newest)
    if not OLDEST_OPSET <= found[""] <= newest:
        way = "install a newer onnx" if found[""] > newest else "convert it with onnx.version_converter"
        raise ExportError(
            f"the model needs opset {found['']} of ONNX; allowed: {OLDEST_OPSET} to {newest}. Export it with one of "
            f"these, or {way}."
        )
    return found[""]


def _text(*words: object, where: str) -> None:
    """Protobuf lets any bytes be a text; what is not UTF-8 comes as bytes."""
    for word in words:
        if not isinstance(word, str):
            raise ExportError(f"{where}: {short(word)} is no text (UTF-8); the file is damaged")


def _nearest(name: str, names: Sequence[str]) -> str:
    close = nearest(name, [n for n in names[-500:] if len(n) <= 100]) if len(name) <= 100 else []
    return f". Nearest: {', '.join(map(short, close))}" if close else ""


class _Checker:
    def __init__(self, opset: int, folder: Path | None) -> None:
        self.opset, self.folder = opset, folder
        self.files: dict[str, int] = {}
        self.unordered: list[Order] = []
        self.names: list[str] = []

    def graph(self, graph: GraphProto, depth: int, where: str) -> dict[str, str]:
        """Check a graph; names that it reads and does not define, each with the node that reads it."""
        if depth > DEEPEST:
            raise ExportError(f"sub-graphs are nested more than {DEEPEST} deep{where}; no network needs that")
        definer = self._given(graph, where)
        reads = []
        for position, node in enumerate(graph.node):
            place = _place(position, node) + where
            reads.append(self._node(node, place, depth))
            for name in node.output:
                if name in definer:
                    raise ExportError(f"{place} writes {short(name)}, which {_writer(graph, definer[name])} gives, too")
                if name:
                    definer[name] = position
        free: dict[str, str] = {}
        for names in reads:
            for name, place in names.items():
                if name not in definer:
                    free.setdefault(name, place)
        for info in graph.output:
            self._value(info, f"output {short(info.name)}{where}")
            if info.name not in definer:
                free.setdefault(info.name, f"output {short(info.name)}{where}")
        for info in graph.value_info:
            self._value(info, f"value {short(info.name)}{where}")
        order = _order(graph, reads, definer)
        if order is not None:
            self.unordered.append((graph, order))
        if not depth:
            self.names = list(definer)
        return free

    def _given(self, graph: GraphProto, where: str) -> dict[str, int]:
        """Inputs and initializers; old files list initializers as inputs, too."""
        inputs: dict[str, int] = {}
        for info in graph.input:
            self._value(info, f"input {short(info.name)}{where}")
            if info.name in inputs:
                raise ExportError(f"input {short(info.name)}{where} is declared twice")
            inputs[info.name] = _GIVEN
        stored: dict[str, int] = {}
        dense = [*graph.initializer, *(s.values for s in graph.sparse_initializer)]
        for tensor in dense:
            _text(tensor.name, where=f"initializer{where}")
            if tensor.name in stored:
                raise ExportError(f"initializer {short(tensor.name)}{where} is given twice")
            stored[tensor.name] = _GIVEN
        for tensor in graph.initializer:
            check_tensor(tensor, where, self.folder, self.files)
        for sparse in graph.sparse_initializer:
            check_dims(sparse.dims, f"sparse tensor {short(sparse.values.name)}{where}")
            check_tensor(sparse.values, where, self.folder, self.files)
        return {**inputs, **stored}

    def _value(self, info: ValueInfoProto, where: str) -> None:
        _text(info.name, where=where)
        if not info.name:
            raise ExportError(f"{where} has no name")
        _check_type(info.type, where)

    def _node(self, node: NodeProto, place: str, depth: int) -> dict[str, str]:
        """Check a node and its sub-graphs; the names that it reads, each with the node or inner node that does."""
        _text(node.name, node.op_type, node.domain, *node.input, *node.output, where=place)
        names = {name: place for name in node.input if name}
        for tensor in check_node(node, place, self.opset):
            check_tensor(tensor, f" of {place}", self.folder, self.files)
        for a in node.attribute:
            inner = [a.g] if a.type == AttributeProto.GRAPH else a.graphs if a.type == AttributeProto.GRAPHS else []
            for graph in inner:
                names |= self.graph(graph, depth + 1, f" in {short(a.name)} of {place}"[:300])
        return names


def _place(position: int, node: NodeProto) -> str:
    name = short(node.name) if node.name else str(position)
    return f"node {name} ({str(node.op_type)[:60]})"


def _writer(graph: GraphProto, position: int) -> str:
    return "an input or initializer" if position == _GIVEN else _place(position, graph.node[position])


def _check_type(type_: TypeProto, where: str) -> None:
    kind = type_.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return  # sequences and the like: refused where they are used
    tensor = getattr(type_, kind)
    if tensor.elem_type and not type_name(tensor.elem_type):
        raise ExportError(f"{where} has the element type {tensor.elem_type}, which ONNX does not know")
    dims = tensor.shape.dim
    check_dims([d.dim_value if d.HasField("dim_value") else 1 for d in dims], where)
    _text(*(d.dim_param for d in dims), where=where)


def _order(graph: GraphProto, reads: Sequence[Mapping[str, str]], definer: Mapping[str, int]) -> list[int] | None:
    """Positions of the nodes in an order of computation; None if they stand in one already."""
    if all(definer.get(name, _GIVEN) < i for i, names in enumerate(reads) for name in names):
        return None
    needs: list[int] = []
    readers: list[list[int]] = [[] for _ in reads]
    for i, names in enumerate(reads):
        sources = {definer[name] for name in names if definer.get(name, _GIVEN) != _GIVEN}
        needs.append(len(sources))
        for source in sources:
            readers[source].append(i)
    ready = deque(i for i, n in enumerate(needs) if not n)
    order = []
    while ready:
        i = ready.popleft()
        order.append(i)
        for reader in readers[i]:
            needs[reader] -= 1
            if not needs[reader]:
                ready.append(reader)
    if len(order) < len(reads):
        raise ExportError(_circle(graph, reads, definer, {i for i, n in enumerate(needs) if n}))
    return order


def _circle(graph: GraphProto, reads: Sequence[Mapping[str, str]], definer: Mapping[str, int], left: set[int]) -> str:
    """Walk back from any node that waits for others until one comes again."""
    path: dict[int, None] = {}
    at = min(left)
    while at not in path:
        path[at] = None
        at = next(source for source in _sources(reads[at], definer) if source in left)
    walked = list(path)
    circle = [*walked[walked.index(at) :], at][::-1]
    shown = " -> ".join(_place(i, graph.node[i]) for i in circle[:6])
    return f"nodes wait for each other in a circle: {shown}{' ...' if len(circle) > 6 else ''}; no order computes them"


def _sources(names: Iterable[str], definer: Mapping[str, int]) -> Iterator[int]:
    for name in names:
        if definer.get(name, _GIVEN) != _GIVEN:
            yield definer[name]

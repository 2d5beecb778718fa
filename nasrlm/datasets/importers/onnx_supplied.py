"""Values of constants that words of ``printable_graph`` leave out, where published networks leave no doubt.

What is supplied is what the networks of the published benchmarks have there: Clip is from 0 to 6; an addition in front
of it adds 3 and a division divides by 6 (the hard sigmoid); a multiplication by a scalar is by 0 (an operation
``none``); a reshape that only a linear layer reads flattens; reshape, transposition and reshape behind a grouped
convolution shuffle its groups' channels; two slices in front of a convolution take a pixel off rows and columns (the
second half of a factorized reduction), and before a multiplication by 0 every second of both. Another constant stays
unknown, and the network that needs it cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto, helper

_INT = TensorProto.INT64
_NUMBERS = (0.0, 3.0, 6.0)
_TURNED = [0, 2, 1, 3, 4]
_END = 2**31 - 1
_THROUGH = ("BatchNormalization", "Relu", "Identity")
_SHIFTED, _STRIDED = (1, 1), (0, 2)
"""First position and step of a slice."""


def supply(graph: GraphProto) -> None:
    """Write the values into the graph; see the top of this file."""
    constants = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    constants |= {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == _INT or not tensor.dims}
    unknown = {name: list(tensor.dims) for name, tensor in constants.items() if tensor.external_data}
    links = _Links(graph)
    for node in list(graph.node):
        if node.op_type == "Reshape" and node.input[1] in unknown and links.operators(node.output[0]) == {"Gemm"}:
            node.CopyFrom(helper.make_node("Flatten", [node.input[0]], list(node.output), axis=1))
        elif node.op_type == "Slice" and len(node.input) > 1 and node.input[1] in unknown:
            _supply_slice(graph, links, node)
        for place, name in enumerate(node.input):
            value = _value_of(node.op_type, place, links.operators(node.output[0]))
            if value is not None and unknown.get(name) == []:
                node.input[place] = f"supplied {value}"
    for value in _NUMBERS:
        graph.initializer.append(helper.make_tensor(f"supplied {value}", TensorProto.FLOAT, (), [value]))
    _supply_shuffles(graph, links, unknown)
    _drop_unused(graph, unknown)


class _Links:
    """Who makes a value, and who reads it."""

    def __init__(self, graph: GraphProto) -> None:
        self.maker = {name: node for node in graph.node for name in node.output}
        self.readers: dict[str, list[NodeProto]] = {name: [] for name in self.maker}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def operators(self, value: str) -> set[str]:
        return {node.op_type for node in self.readers[value]}

    def reader(self, value: str, operator: str) -> NodeProto | None:
        """The only reader, if it is that operator."""
        found = self.readers[value]
        return found[0] if len(found) == 1 and found[0].op_type == operator else None


def _value_of(operator: str, place: int, readers: set[str]) -> float | None:
    if operator == "Clip" and place:
        return 0.0 if place == 1 else 6.0
    if operator == "Add" and readers == {"Clip"}:
        return 3.0
    return {"Div": 6.0, "Mul": 0.0}.get(operator)


def _supply_slice(graph: GraphProto, links: _Links, node: NodeProto) -> None:
    """One of a pair: the first is of rows, the second of columns."""
    before = links.maker.get(node.input[0])
    second = before is not None and before.op_type == "Slice"
    after = node if second else links.reader(node.output[0], "Slice")
    if after is None:
        return
    operators = links.operators(after.output[0])
    begin = {frozenset({"Conv"}): _SHIFTED, frozenset({"Mul"}): _STRIDED}.get(frozenset(operators))
    if begin is not None:
        start, step = begin
        parts = [_ints(graph, value) for value in (start, _END, 3 if second else 2, step)]
        node.CopyFrom(helper.make_node("Slice", [node.input[0], *parts], list(node.output)))


def _supply_shuffles(graph: GraphProto, links: _Links, unknown: Mapping[str, object]) -> None:
    """The two shapes of a channel shuffle, from the shape of what is shuffled and the groups in front of it."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        turn = links.reader(node.output[0], "Transpose") if node.op_type == "Reshape" else None
        merge = links.reader(turn.output[0], "Reshape") if turn is not None else None
        groups = _groups_before(links, node.input[0]) if merge is not None else 1
        if turn is None or merge is None or groups < 2 or not {node.input[1], merge.input[1]} <= set(unknown):
            nodes.append(node)
            continue
        if [list(a.ints) for a in turn.attribute if a.name == "perm"] == [_TURNED]:
            split = [_sizes_of(graph, nodes, node, 0, 1), _ints(graph, groups), _ints(graph, -1)]
            nodes.append(_shape(node, [*split, _sizes_of(graph, nodes, node, 2, 4)]))
            # Both shapes come from here, where the value in front of the shuffle is known.
            nodes.append(_shape(merge, [split[0], split[2], f"{node.input[0]} sizes 2"]))
            node.input[1], merge.input[1] = f"{node.output[0]} shape", f"{merge.output[0]} shape"
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _shape(node: NodeProto, parts: list[str]) -> NodeProto:
    return helper.make_node("Concat", parts, [f"{node.output[0]} shape"], axis=0)


def _sizes_of(graph: GraphProto, nodes: list[NodeProto], node: NodeProto, first: int, end: int) -> str:
    """The sizes of a node's first input from one axis to another, as a value."""
    name, sizes = node.input[0], f"{node.input[0]} sizes {first}"
    nodes.append(helper.make_node("Shape", [name], [f"{sizes} of all"]))
    parts = [_ints(graph, value) for value in (first, end, 0)]
    nodes.append(helper.make_node("Slice", [f"{sizes} of all", *parts], [sizes]))
    return sizes


def _groups_before(links: _Links, value: str) -> int:
    maker = links.maker.get(value)
    while maker is not None and maker.op_type in _THROUGH:
        maker = links.maker.get(maker.input[0])
    if maker is None or maker.op_type != "Conv":
        return 1
    return next((attribute.i for attribute in maker.attribute if attribute.name == "group"), 1)


def _ints(graph: GraphProto, value: int) -> str:
    name = f"supplied int {value}"
    if all(tensor.name != name for tensor in graph.initializer):
        graph.initializer.append(helper.make_tensor(name, _INT, (1,), [value]))
    return name


def _drop_unused(graph: GraphProto, unknown: Mapping[str, object]) -> None:
    used = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    nodes = [node for node in graph.node if not set(unknown) & set(node.output) or used & set(node.output)]
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(tensors)

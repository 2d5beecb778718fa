"""Two networks that differ in one thing have different texts; equal ones never do."""

from __future__ import annotations

import random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nasrlm.errors import ExportError
from nasrlm.graph import Graph, GraphBuilder, as_graph, parse_text, to_onnx, to_text
from nasrlm.graph.ops import Op, op, op_with
from nasrlm.graph.text import graph_text

seeds = st.integers(0, 2**32 - 1)
WIDTH = 8


def random_network(seed: int, steps: int = 10) -> Graph:
    """A random network without no-ops, dead ends or constants: images or sequences, every kind of operator."""
    rng = random.Random(seed)
    b = GraphBuilder()
    image = rng.random() < 0.5
    values = [b.input((WIDTH, 6, 6) if image else (5, WIDTH))]
    unread = set(values)
    for _ in range(rng.randint(2, steps)):
        x = rng.choice(sorted(unread)) if rng.random() < 0.6 else rng.choice(values)
        y = rng.choice(values)
        made = _image_step(b, rng, x, y) if image else _sequence_step(b, rng, x, y)
        unread -= {x, *(b.node(made)[1])}
        values.append(made)
        unread.add(made)
    b.output(*sorted(unread))
    return b.build()


def _image_step(b: GraphBuilder, rng: random.Random, x: int, y: int) -> int:
    step = rng.choice(["conv", "conv", "grouped", "norm", "act", "pool", "add", "mul", "weight", "pad", "scalar"])
    if step == "conv":
        return b.conv(x, WIDTH, rng.choice([1, 3, 5]), dilation=rng.choice([1, 1, 2]), bias=rng.random() < 0.5)
    if step == "grouped":
        return b.conv(x, WIDTH, 3, groups=rng.choice([2, 4, WIDTH]), bias=True)
    if step == "norm":
        return b.group_norm(b.relu(x), rng.choice([1, 2, 4]), rng.choice([1e-5, 1e-3]))
    if step == "act":
        return b.unary(rng.choice(["relu", "relu6", "tanh", "hardswish", "gelu", "mish"]), x)
    if step == "pool":
        return b.avg_pool(x, rng.choice([3, 5])) if rng.random() < 0.5 else b.max_pool(x, rng.choice([3, 5]))
    if step == "pad":
        return b.conv(b.conv(x, WIDTH, 3, padding=(0, 1, 2, 1)), WIDTH, 3, padding=(2, 1, 0, 1))
    if step == "weight":
        return b.mul(b.tanh(x) if hasattr(b, "tanh") else b.unary("tanh", x), b.weight(WIDTH, 1, 1))
    if step == "scalar" and b.node(x)[0].name != "sub":  # 1 - (1 - x) is x, whoever reads which of the two
        return b.mul(b.unary("tanh", x), b.constant(rng.choice([0.5, 0.25, 3.0])))
    return b.add(x, y) if step == "add" else b.mul(b.unary("tanh", x), y)


def _sequence_step(b: GraphBuilder, rng: random.Random, x: int, y: int) -> int:
    step = rng.choice(["linear", "norm", "attention", "act", "add", "weight", "turn", "slice", "scalar", "clip"])
    if step == "linear":
        return b.linear(b.linear(x, rng.choice([4, 8, 16])), WIDTH, bias=rng.random() < 0.5)
    if step == "norm":
        return b.layer_norm(x, 1, rng.choice([1e-5, 1e-6])) if rng.random() < 0.5 else b.rms_norm(x)
    if step == "attention":
        q, k, v = (b.split_heads(b.linear(z, WIDTH), rng.choice([2])) for z in (x, y, x))
        return b.merge_heads(b.attention(q, k, v, causal=rng.random() < 0.3))
    if step == "act":
        return b.unary(rng.choice(["gelu", "silu", "softplus"]), x)
    if step == "weight":
        return b.add(b.unary("tanh", x), b.weight(5, WIDTH))
    if step == "turn":
        turned = b.linear(b.transpose(x, (0, 2, 1)), rng.choice([5, 10]))
        return b.transpose(b.linear(turned, 5), (0, 2, 1))
    if step == "slice":
        cut = rng.choice([2, 4, 6])
        return b.concat([b.slice(x, 0, cut, 2), b.slice(b.unary("tanh", y), cut, WIDTH, 2)], 2)
    if step == "clip":
        return b.apply(op("clip", rng.choice([-1.0, -2.0]), rng.choice([1.0, 4.0])), b.linear(x, WIDTH))
    if step == "scalar" and b.node(x)[0].name != "sub":  # 1 - (1 - x) is x, whoever reads which of the two
        return b.apply(op("sub"), b.constant(rng.choice([1.0, 2.0])), x)
    return b.add(x, y)


def mutated(graph: Graph, seed: int) -> Graph:
    """The graph with one operator, attribute, shape or wire changed."""
    rng = random.Random(seed)
    kind = rng.choice(["operator", "attribute", "wire", "shape"])
    b = GraphBuilder()
    target = rng.choice([i for i in range(len(graph)) if not graph.ops[i].inline])
    if kind == "shape":
        target = graph.inputs[0]
    new: list[int] = []
    for i, made, operands in graph.nodes():
        row = [new[x] for x in operands]
        if i == target:
            made, row = _changed(rng, kind, made, row, [new[k] for k in range(i)], b)
        new.append(b.apply(made, *row))
    b.output(*(new[o] for o in graph.outputs))
    return b.build()


_SWAPS = {
    **{"relu": "relu6", "relu6": "relu", "tanh": "softsign", "hardswish": "silu", "gelu": "relu", "mish": "gelu"},
    **{"maxpool": "avgpool", "silu": "mish", "softplus": "gelu", "sub": "div", "add": "min", "mul": "max"},
}


def _changed(
    rng: random.Random, kind: str, made: Op, row: list[int], earlier: list[int], b: GraphBuilder
) -> tuple[Op, list[int]]:
    if kind == "shape":
        shape = list(made["shape"])
        shape[rng.randrange(2, len(shape)) if len(shape) > 3 else 1] += 1
        return op("in", tuple(shape)), row
    if kind == "operator" and made.name in _SWAPS:
        name = _SWAPS[made.name]
        if name == "avgpool":
            return op_with("avgpool", kernel=made["kernel"], stride=made["stride"], padding=made["padding"]), row
        return op(name), row
    if kind == "wire" and row:
        slot = rng.randrange(len(row))
        others = [x for x in earlier if b.shape(x) == b.shape(row[slot]) and x != row[slot] and not b.node(x)[0].inline]
        if others and not b.node(row[slot])[0].inline:
            return made, [rng.choice(others) if k == slot else x for k, x in enumerate(row)]
    changes = {
        "conv": ("bias", "dilation"),
        "linear": ("bias",),
        "groupnorm": ("epsilon",),
        "layernorm": ("epsilon",),
        "attention": ("causal",),
        "clip": ("high",),
        "avgpool": ("include_padding",),
    }.get(made.name)
    if kind == "attribute" and changes:
        name = rng.choice(changes)
        value = made[name]
        if name == "dilation":
            grown = tuple(d + 1 for d in value)
            return op_with(
                "conv",
                width=made["width"],
                kernel=made["kernel"],
                stride=made["stride"],
                dilation=grown,
                padding=tuple(p + (k - 1) // 2 for p, k in zip(made["padding"], made["kernel"] * 2, strict=True)),
                groups=made["groups"],
                bias=made["bias"],
            ), row
        return made.replace(**{name: not value if isinstance(value, bool) else value * 3}), row
    return made, row


def isomorphic_by_hand(a: Graph, b: Graph) -> bool:
    """Whether two graphs are node for node the same."""
    return (a.ops, a.refs, a.shapes, a.outputs) == (b.ops, b.refs, b.shapes, b.outputs)


@given(seeds, seeds)
@settings(max_examples=500, deadline=None)
def test_one_change_changes_the_text(seed: int, other: int) -> None:
    graph = random_network(seed)
    try:
        changed = mutated(graph, other)
    except ExportError:
        return  # it fits no more
    assume(not isomorphic_by_hand(graph, changed))
    assume(signature(graph) != signature(changed))
    assert graph_text(changed) != graph_text(graph)


def signature(graph: Graph) -> object:
    """What a network computes, up to the order of nodes and of commutative operands, independent of the text: nested
    tuples from the outputs up. Weights are told apart by the place where they are used."""
    values: list[object] = []
    for i, made, operands in graph.nodes():
        row = [values[x] for x in operands]
        if made.spec.commutative:
            flat = [y for x in row for y in (x[2] if isinstance(x, tuple) and x[0] is made else [x])]
            row = sorted(flat, key=repr)
        inner = graph.ops[operands[0]] if operands else made
        if made.name == inner.name == "transpose":  # there is only one order here, so that two are none
            values.append(values[operands[0] - graph.refs[operands[0]][0]])
            continue
        trained = made.spec.parameters is not None
        values.append((made, graph.shapes[i] if not operands else None, tuple(row), "trained" if trained else None))
    return tuple(values[o] for o in graph.outputs)


@given(seeds)
@settings(max_examples=200, deadline=None)
def test_texts_parse_back_and_through_onnx(seed: int) -> None:
    graph = random_network(seed)
    text = to_text(graph)
    assert to_text(parse_text(text)) == text
    for weights in (None, "random"):
        assert to_text(as_graph(to_onnx(graph, weights=weights))) == text

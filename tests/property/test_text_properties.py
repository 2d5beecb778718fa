"""The canonical text under everything that must not change it, and everything that must."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from nasrlm.graph import Graph, GraphBuilder, as_graph, costs, parse_text, to_onnx, to_text
from nasrlm.graph import canonical as canonical_module
from nasrlm.graph.text import graph_text

SIZE = (4, 8, 8)


def random_graph(seed: int, steps: int = 14) -> Graph:
    """A random network of one size of feature maps, with constants, no-ops, joins and dead ends."""
    rng = random.Random(seed)
    b = GraphBuilder()
    values = [b.input(SIZE)]
    for _ in range(rng.randint(1, steps)):
        x, y = rng.choice(values[-5:]), rng.choice(values[-5:])
        step = rng.choice(
            ["conv1", "conv3", "normed", "normed", "relu", "pool", "add", "add", "mul", "id", "zeros", "max"]
        )
        if step.startswith("conv"):
            made = b.conv(x, 4, int(step[-1]), bias=rng.random() < 0.3)
        elif step == "normed":
            made = b.batch_norm(b.conv(b.relu(x), 4, rng.choice([1, 3])))
        elif step in ("add", "mul"):
            made = b.add(x, y) if step == "add" else b.mul(x, y)
        elif step == "pool":
            made = b.avg_pool(x, 3)
        elif step == "max":
            made = b.max_pool(x, 3)
        else:
            made = {"relu": b.relu, "id": b.identity, "zeros": b.zeros_like}[step](x)
        values.append(made)
    x = values[-1]
    if rng.random() < 0.5:
        x = b.linear(b.flatten(b.global_avg_pool(x)), 10)
    b.output(x)
    return b.build()


def reordered(graph: Graph, seed: int) -> Graph:
    """The same graph in another order of computation, operands of commutative operations swapped."""
    rng = random.Random(seed)
    operands = {i: list(xs) for i, _, xs in graph.nodes()}
    placed: dict[int, int] = {}
    order = []
    while len(order) < len(graph):
        ready = [i for i in operands if i not in placed and all(x in placed for x in operands[i])]
        chosen = rng.choice(ready)
        placed[chosen] = len(order)
        order.append(chosen)
    refs = []
    for i in order:
        row = [placed[i] - placed[x] for x in operands[i]]
        if graph.ops[i].spec.commutative:
            rng.shuffle(row)
        refs.append(tuple(row))
    ops, shapes = tuple(graph.ops[i] for i in order), tuple(graph.shapes[i] for i in order)
    return Graph(ops, tuple(refs), shapes, tuple(placed[o] for o in graph.outputs))


seeds = st.integers(0, 2**32 - 1)


@given(seeds, seeds)
@settings(max_examples=300, deadline=None)
def test_order_of_nodes_changes_nothing(seed: int, other: int) -> None:
    graph = random_graph(seed)
    for dead_work in (False, True):
        assert graph_text(reordered(graph, other), dead_work=dead_work) == graph_text(graph, dead_work=dead_work)


@given(seeds, st.booleans())
@settings(max_examples=300, deadline=None)
def test_text_parses_to_a_network_of_the_same_text(seed: int, dead_work: bool) -> None:
    text = graph_text(random_graph(seed), dead_work=dead_work)
    assert to_text(parse_text(text), dead_work=dead_work) == text
    assert to_text(parse_text(" ".join(text.split())), dead_work=dead_work) == text


@given(seeds, st.booleans())
@settings(max_examples=40, deadline=None)
def test_onnx_reads_back_to_the_same_text(seed: int, dead_work: bool) -> None:
    graph = random_graph(seed)
    for weights in (None, "random"):
        back = as_graph(to_onnx(graph, weights=weights))
        assert to_text(back, dead_work=dead_work) == to_text(graph, dead_work=dead_work)
        assert costs(back).macs == costs(graph).macs and costs(back).params == costs(graph).params


@given(seeds)
@settings(max_examples=300, deadline=None)
def test_cutting_a_graph_into_stretches_changes_nothing(seed: int) -> None:
    graph = random_graph(seed, steps=30)
    cut = {dead: graph_text(graph, dead_work=dead) for dead in (False, True)}
    original = canonical_module._cuts
    canonical_module._cuts = lambda _: [0]
    try:
        assert {dead: graph_text(graph, dead_work=dead) for dead in (False, True)} == cut
    finally:
        canonical_module._cuts = original


@given(seeds, seeds)
@settings(max_examples=200, deadline=None)
def test_dead_paths_and_no_operations_change_nothing(seed: int, other: int) -> None:
    graph = random_graph(seed)
    rng = random.Random(other)
    b = GraphBuilder()
    new: list[int] = []
    for _, op, operands in graph.nodes():
        row = [b.identity(new[x]) if rng.random() < 0.2 else new[x] for x in operands]
        new.append(b.apply(op, *row))
        if rng.random() < 0.2 and op.name not in ("gap", "flatten", "linear", "conv"):
            b.batch_norm(b.conv(new[-1], 4, 3))
    b.output(new[graph.outputs[0]])
    assert graph_text(b.build()) == graph_text(graph)

"""Statistics of paths, against counting every path."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nasrlm.graph import Graph, GraphBuilder, parse_text, to_text
from nasrlm.graph.paths import path_statistics
from nasrlm.spaces import get_space


def every_path(graph: Graph, node: int) -> list[list[int]]:
    operands = [node - r for r in graph.refs[node]]
    if graph.ops[node].name == "zeros":
        return []
    if not operands:
        return [[node]]
    return [[*path, node] for x in operands for path in every_path(graph, x)]


@pytest.mark.parametrize("seed", range(6))
def test_against_every_path_of_a_small_network(seed: int) -> None:
    space = get_space("nasbench201", cells=1)
    graph = parse_text(to_text(space.sample(1, seed)[0]))
    paths = [p for o in graph.outputs for p in every_path(graph, o) if graph.ops[p[0]].name == "in"]
    found = path_statistics(graph)
    if not paths:
        assert set(found.values().values()) == {0.0}
        return
    layers = np.array([sum(graph.ops[i].spec.macs is not None for i in p) for p in paths])
    kernel = [dict(zip(op.spec.index, op.attrs, strict=True)).get("kernel") for op in graph.ops]
    reach = np.array([sum(max(kernel[i]) - 1 for i in p if kernel[i]) for p in paths])
    assert found.log_paths == pytest.approx(math.log(len(paths)))
    assert found.mean_layers == pytest.approx(layers.mean())
    assert found.deviation_layers == pytest.approx(layers.std(), abs=1e-6)
    assert (found.fewest_layers, found.most_layers) == (layers.min(), layers.max())
    assert (found.least_reach, found.most_reach) == (reach.min(), reach.max())


def test_more_paths_than_a_float_can_count() -> None:
    b = GraphBuilder()
    x = b.input((2, 4, 4))
    for _ in range(3000):
        x = b.add(x, b.relu(x))
    b.output(x)
    found = path_statistics(b.build())
    assert found.log_paths == pytest.approx(3000 * math.log(2))
    assert found.most_layers == 0

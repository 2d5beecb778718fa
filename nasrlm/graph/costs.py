"""Costs of a network: exact, free, and objectives like any other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nasrlm.graph.dims import Shape, size
from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import NO_OPERATION, Op

COST_METRICS = ("params", "macs", "activation_bytes", "depth")
_BYTES = 4
"""Activations are counted as float32."""


@dataclass(frozen=True)
class Costs:
    """Costs of a graph as described, dead paths and BatchNorm included. A dynamic dimension counts as 1.

    Attributes:
        params: trainable parameters (weights, biases, BatchNorm scale and shift).
        macs: multiply-accumulates of convolutions, linear layers, products of matrices, attention and recurrence for
            the given batch (FLOPs = 2 MACs); bias, norm, activation, pooling and additions are not counted.
        activation_bytes: peak bytes of float32 values alive at once when nodes run in the order described, each
            value freed after its last use; inputs count, weights do not.
        depth: most operations on a path from an input to an output, no-ops left out.
        operators: how often each operator stands in the graph.
    """

    params: int
    macs: int
    activation_bytes: int
    depth: int
    operators: dict[str, int]

    def metrics(self) -> dict[str, float]:
        """The metrics of COST_METRICS by name."""
        return {name: float(getattr(self, name)) for name in COST_METRICS}


def graph_costs(graph: Graph) -> Costs:
    """Costs of a graph.

    Example:
        >>> from nasrlm.graph import GraphBuilder
        >>> b = GraphBuilder()
        >>> b.output(b.conv(b.input((3, 8, 8)), 4, kernel=3))
        >>> graph_costs(b.build()).params
        108
    """
    params = macs = 0
    shapes = graph.shapes
    depths: list[int] = []
    last_use = list(range(len(graph)))
    for i, (op, back) in enumerate(zip(graph.ops, graph.refs, strict=True)):
        operands = [i - r for r in back]
        if op.spec.parameters is not None or op.spec.macs is not None:
            weights, products = _own(op, shapes[i], *[shapes[x] for x in operands])
            params += weights
            macs += products
        deepest = 0
        for x in operands:
            last_use[x] = i
            deepest = max(deepest, depths[x])
        depths.append(deepest + (1 if operands and op.name not in NO_OPERATION else 0))
    depth = max(depths[o] for o in graph.outputs)
    for o in graph.outputs:
        last_use[o] = len(graph)
    return Costs(params, macs, _peak_bytes(graph, last_use), depth, dict(Counter(_names(graph))))


@lru_cache(maxsize=65_536)
def _own(op: Op, shape: Shape, *operands: Shape) -> tuple[int, int]:
    """Parameters and MACs of one node; cells repeat, so most are known."""
    spec = op.spec
    params = spec.parameters(op, *operands) if spec.parameters else 0
    return params, spec.macs(op, shape, *operands) if spec.macs else 0


def _names(graph: Graph) -> list[str]:
    return [op.text.split()[0] if op.name == "onnx" else op.name for op in graph.ops if not op.inline]


def _peak_bytes(graph: Graph, last_use: list[int]) -> int:
    sizes = [_held(op, shape) for op, shape in zip(graph.ops, graph.shapes, strict=True)]
    freed = [0] * (len(graph) + 1)
    for x, last in enumerate(last_use):
        freed[last] += sizes[x]
    alive = peak = 0
    for held, gone in zip(sizes, freed, strict=False):
        alive += held
        peak = max(peak, alive)
        alive -= gone
    return peak * _BYTES


@lru_cache(maxsize=65_536)
def _held(op: Op, shape: Any) -> int:
    """Entries that a node's value holds; weights and what `item` takes from a value are held elsewhere."""
    return 0 if op.inline or op.name == "item" else _entries(shape)


def _entries(shape: Any) -> int:
    return sum(map(size, shape)) if shape and isinstance(shape[0], tuple) else size(shape)

"""Costs of a network: exact, free, and objectives like any other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nasrlm.graph.dims import size
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
    depths: list[int] = []
    for i, op, operands in graph.nodes():
        spec = op.spec
        if spec.parameters is not None or spec.macs is not None:
            shapes = [graph.shapes[x] for x in operands]
            params += spec.parameters(op, *shapes) if spec.parameters else 0
            macs += spec.macs(op, graph.shapes[i], *shapes) if spec.macs else 0
        step = 0 if op.name in NO_OPERATION or not operands else 1
        depths.append(step + max((depths[x] for x in operands), default=0))
    depth = max(depths[o] for o in graph.outputs)
    return Costs(params, macs, _peak_bytes(graph), depth, dict(Counter(_names(graph))))


def _names(graph: Graph) -> list[str]:
    return [op.text.split()[0] if op.name == "onnx" else op.name for op in graph.ops if not op.inline]


def _peak_bytes(graph: Graph) -> int:
    last_use = list(range(len(graph)))
    for i, _, operands in graph.nodes():
        for x in operands:
            last_use[x] = i
    for o in graph.outputs:
        last_use[o] = len(graph)
    sizes = [_held(op, shape) for op, shape in zip(graph.ops, graph.shapes, strict=True)]
    freed: dict[int, int] = {}
    for x, last in enumerate(last_use):
        freed[last] = freed.get(last, 0) + sizes[x]
    alive = peak = 0
    for i in range(len(graph)):
        alive += sizes[i]
        peak = max(peak, alive)
        alive -= freed.get(i, 0)
    return peak * _BYTES


def _held(op: Op, shape: Any) -> int:
    """Entries that a node's value holds; weights and what `item` takes from a value are held elsewhere."""
    return 0 if op.inline or op.name == "item" else _entries(shape)


@lru_cache(maxsize=4096)
def _entries(shape: Any) -> int:
    return sum(map(size, shape)) if shape and isinstance(shape[0], tuple) else size(shape)

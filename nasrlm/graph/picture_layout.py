"""Where the boxes of a picture stand: layers from top to bottom, wires around the boxes (Sugiyama's method).

Sugiyama, Tagawa & Toda, "Methods for visual understanding of hierarchical system structures", IEEE SMC 1981: layers by
longest path; a long wire takes a place of its own in every layer between; the order in a layer by barycentres. Places
in a layer are the least squares solution for given order and distances, by pooling neighbours that would overlap.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

GAP = 24.0
"""Points between layers."""
_SIDE = 14.0
"""Points between neighbours in a layer."""
_LANE = 4.0
"""Width that a passing wire takes."""
_SWEEPS = 12
_STRAIGHT = 8.0
"""How much stronger long wires pull towards a straight line than others."""

Point = tuple[float, float]
Span = tuple[float, float, float]
"""A vertical piece of a wire: x, from y, to y. Pieces are joined by curves between layers."""


@dataclass(frozen=True)
class Edge:
    """A wire between two nodes; `out` and `into` are distances from the nodes' centres."""

    source: int
    target: int
    out: float = 0.0
    into: float = 0.0


@dataclass(frozen=True)
class Arrangement:
    """Sizes in points, y downwards, (0, 0) at the top left.

    Attributes:
        width: of everything.
        height: of everything.
        centres: of the nodes.
        routes: of the edges.
    """

    width: float
    height: float
    centres: list[Point]
    routes: list[list[Span]]


def arrange(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[Edge],
    top: Sequence[int] = (),
    bottom: Sequence[int] = (),
) -> Arrangement:
    """Places nodes in layers.

    Args:
        sizes: width and height of every node, in points.
        edges: from earlier to later nodes.
        top: nodes that lie on the upper edge of everything.
        bottom: nodes that lie on the lower edge.

    >>> found = arrange([(40, 20), (60, 20)], [Edge(0, 1)])
    >>> found.centres, found.height
    ([(30.0, 10.0), (30.0, 54.0)], 64.0)
    """
    rank = _ranks(len(sizes), edges, top, bottom)
    layers = _Layers(sizes, edges, rank)
    layers.order()
    layers.place()
    return layers.result(frozenset(top), frozenset(bottom))


def _ranks(count: int, edges: Sequence[Edge], top: Sequence[int], bottom: Sequence[int]) -> list[int]:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((e.source, e.target) for e in edges)
    rank = [0] * count
    for layer, nodes in enumerate(nx.topological_generations(graph)):
        for node in nodes:
            rank[node] = layer
    for node in range(count):  # what reads nothing stands right above its first reader
        after = [rank[n] for n in graph.successors(node)]
        if node not in top and not graph.in_degree(node) and after:
            rank[node] = min(after) - 1
    last = max((rank[n] for n in range(count) if n not in bottom), default=-1) + 1
    for node in bottom:
        rank[node] = last
    return rank


class _Layers:
    """Nodes and, behind them, the places of passing wires, by layer."""

    def __init__(self, sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], rank: list[int]) -> None:
        self.sizes = list(sizes)
        self.real = len(sizes)
        self.layers: list[list[int]] = [[] for _ in range(max(rank, default=0) + 1)]
        for node, layer in enumerate(rank):
            self.layers[layer].append(node)
        self.edges = edges
        self.paths: list[list[int]] = []
        self.above: list[list[tuple[int, float, float]]] = [[] for _ in sizes]
        """For every node its neighbours above, how far right of them it wants to stand, and how much."""
        self.below: list[list[tuple[int, float, float]]] = [[] for _ in sizes]
        self.x: list[float] = []
        lanes: dict[tuple[int, float, int], int] = {}
        joined: set[tuple[int, int, float, float]] = set()
        for edge in edges:
            path = [edge.source]
            for layer in range(rank[edge.source] + 1, rank[edge.target]):
                path.append(self._lane(lanes, (edge.source, edge.out, layer)))
            path.append(edge.target)
            self.paths.append(path)
            for upper, lower in itertools.pairwise(path):
                out = edge.out if upper == edge.source else 0.0
                into = edge.into if lower == edge.target else 0.0
                if (upper, lower, out, into) not in joined:
                    joined.add((upper, lower, out, into))
                    self._join(upper, lower, out - into)

    def _lane(self, lanes: dict[tuple[int, float, int], int], key: tuple[int, float, int]) -> int:
        """The place of a passing wire; wires that leave together pass together."""
        if key not in lanes:
            lanes[key] = len(self.sizes)
            self.layers[key[2]].append(len(self.sizes))
            self.sizes.append((_LANE, 0.0))
            self.above.append([])
            self.below.append([])
        return lanes[key]

    def _join(self, upper: int, lower: int, shift: float) -> None:
        weight = _STRAIGHT if upper >= self.real and lower >= self.real else 1.0
        self.above[lower].append((upper, shift, weight))
        self.below[upper].append((lower, -shift, weight))

    def order(self) -> None:
        """Orders every layer by the barycentres of the layer before it; keeps the order with the fewest crossings."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for layer in self.layers if down else reversed(self.layers):
                self._sort(layer, self.above if down else self.below)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
        self.layers = best

    def _positions(self) -> dict[int, float]:
        return {node: (i + 0.5) / len(layer) for layer in self.layers for i, node in enumerate(layer)}

    def _sort(self, layer: list[int], neighbours: list[list[tuple[int, float, float]]]) -> None:
        at = self._positions()

        def barycentre(node: int) -> float:
            near = neighbours[node]
            return sum(at[n] + shift * 1e-6 for n, shift, _ in near) / len(near) if near else at[node]

        layer.sort(key=barycentre)

    def _crossings(self) -> int:
        at = self._positions()
        crossings = 0
        for layer in self.layers:
            ends = sorted((at[n], at[node]) for node in layer for n, *_ in self.above[node])
            crossings += sum(a[0] < b[0] and a[1] > b[1] for i, a in enumerate(ends) for b in ends[i + 1 :])
        return crossings

    def place(self) -> None:
        """Moves every layer in turn to where its neighbours pull it, as far as the order and the widths allow."""
        self.x = [0.0] * len(self.sizes)
        for layer in self.layers:
            self._settle(layer, [0.0] * len(layer), [1.0] * len(layer))
        for sweep in range(2 * _SWEEPS):
            last = sweep >= 2 * _SWEEPS - 2
            down = sweep % 2 == 0
            for layer in self.layers if down else reversed(self.layers):
                pulls = [self._pull(node, down, both=last) for node in layer]
                self._settle(layer, [x for x, _ in pulls], [w for _, w in pulls])

    def _pull(self, node: int, down: bool, both: bool) -> tuple[float, float]:
        near = self.above[node] + self.below[node] if both else (self.above if down else self.below)[node]
        if not near:
            return self.x[node], 0.1
        weight = sum(w for *_, w in near)
        return sum((self.x[n] + shift) * w for n, shift, w in near) / weight, weight

    def _settle(self, layer: list[int], wanted: list[float], weights: list[float]) -> None:
        offsets, end = [], 0.0
        for node in layer:
            half = self.sizes[node][0] / 2
            offsets.append(end + half)
            end += 2 * half + _SIDE
        free = pooled([w - o for w, o in zip(wanted, offsets, strict=True)], weights)
        for node, x, offset in zip(layer, free, offsets, strict=True):
            self.x[node] = x + offset

    def result(self, top: frozenset[int], bottom: frozenset[int]) -> Arrangement:
        """Everything at its place."""
        half = [w / 2 for w, _ in self.sizes]
        left = min((x - h for x, h in zip(self.x, half, strict=True)), default=0.0)
        right = max((x + h for x, h in zip(self.x, half, strict=True)), default=0.0)
        self.x = [x - left for x in self.x]
        y, band = 0.0, [(0.0, 0.0)] * len(self.sizes)
        for layer in self.layers:
            height = max((self.sizes[node][1] for node in layer), default=0.0)
            for node in layer:
                band[node] = (y, y + height)
            y += height + GAP
        for node in top:
            band[node] = (band[node][0],) * 2
        for node in bottom:
            band[node] = (band[node][1],) * 2
        centres = [(self.x[node], sum(band[node]) / 2) for node in range(self.real)]
        routes = [self._route(edge, path, band) for edge, path in zip(self.edges, self.paths, strict=True)]
        return Arrangement(right - left, y - GAP, centres, routes)

    def _route(self, edge: Edge, path: list[int], band: list[Point]) -> list[Span]:
        source, target = edge.source, edge.target
        start = sum(band[source]) / 2 + self.sizes[source][1] / 2
        end = sum(band[target]) / 2 - self.sizes[target][1] / 2
        return [
            (self.x[source] + edge.out, start, band[source][1]),
            *((self.x[lane], *band[lane]) for lane in path[1:-1]),
            (self.x[target] + edge.into, band[target][0], end),
        ]


def pooled(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The rising numbers nearest to `wanted` in weighted squares (pool adjacent violators).

    >>> pooled([1.0, 4.0, 2.0, 5.0], [1.0, 1.0, 1.0, 1.0])
    [1.0, 3.0, 3.0, 5.0]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, count
    for value, weight in zip(wanted, weights, strict=True):
        count = 1
        while blocks and blocks[-1][0] > value:
            mean, more, members = blocks.pop()
            value = (value * weight + mean * more) / (weight + more)
            weight, count = weight + more, count + members
        blocks.append((value, weight, count))
    return [mean for mean, _, count in blocks for _ in range(count)]

"""The cells of NAS-Bench-101 as graphs: pruning, repair, channels, the published hash, and all of them.

Facts from google-research/nasbench, ``nasbench/lib/{model_spec,graph_util,model_builder}.py``; see `nasbench101`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

OPERATIONS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
VERTICES = 7
MOST_EDGES = 9

Edge = tuple[int, int]


@dataclass(frozen=True)
class Cell:
    """A directed graph whose edges go from lower to higher vertices: 0 is the input, the last vertex the output.

    Args:
        vertices: Their number, V.
        edges: Pairs (from, to).
        operations: Of vertices 1 to V - 2.
    """

    vertices: int
    edges: frozenset[Edge]
    operations: tuple[str, ...]

    @property
    def output(self) -> int:
        """The last vertex."""
        return self.vertices - 1

    def sources(self, vertex: int) -> list[int]:
        """Vertices with an edge to this one, in order."""
        return [i for i in range(vertex) if (i, vertex) in self.edges]

    def targets(self, vertex: int) -> list[int]:
        """Vertices that this one has an edge to, in order."""
        return [j for j in range(vertex + 1, self.vertices) if (vertex, j) in self.edges]

    def reached(self) -> set[int]:
        """Vertices that a path leads to from the input."""
        found = {0}
        for vertex in range(1, self.vertices):
            if any((i, vertex) in self.edges for i in found):
                found.add(vertex)
        return found

    def leading(self) -> set[int]:
        """Vertices from which a path leads to the output."""
        found = {self.output}
        for vertex in reversed(range(self.output)):
            if any((vertex, j) in self.edges for j in found):
                found.add(vertex)
        return found

    def living(self) -> list[int]:
        """Vertices on a path from the input to the output, in order; none without such a path."""
        return sorted(self.reached() & self.leading())


def prune(cell: Cell) -> Cell:
    """Keep the vertices on a path from input to output, numbered anew in their order; the cell must have a path."""
    living = cell.living()
    if len(living) == cell.vertices:
        return cell
    number = {vertex: i for i, vertex in enumerate(living)}
    edges = frozenset((number[i], number[j]) for i, j in cell.edges if i in number and j in number)
    return Cell(len(living), edges, tuple(cell.operations[vertex - 1] for vertex in living[1:-1]))


def repair(cell: Cell) -> Cell:
    """Return the valid cell that stands for this one, which it is itself if it is valid.

    Without a path to the output, vertices that are reached and lead nowhere get an edge to it. Then vertices on no path
    go. While there are more than nine edges, the last one (row by row) goes that no vertex needs; if every edge is
    needed, the last one goes with the vertices that needed it.
    """
    if not cell.living():
        dead_ends = {i for i in cell.reached() if not any(j in cell.reached() for j in cell.targets(i))}
        cell = Cell(cell.vertices, cell.edges | {(i, cell.output) for i in dead_ends}, cell.operations)
    cell = prune(cell)
    while len(cell.edges) > MOST_EDGES:
        edges = sorted(cell.edges, reverse=True)
        spare = [(i, j) for i, j in edges if len(cell.targets(i)) > 1 and len(cell.sources(j)) > 1]
        cell = prune(Cell(cell.vertices, cell.edges - {(spare or edges)[0]}, cell.operations))
    return cell


def problem(cell: Cell) -> str | None:
    """Say what makes a cell invalid and where; None if it is valid."""
    output = f"the output (vertex {cell.output})"
    if not cell.living():
        return (
            f"no path leads from the input (vertex 0) to {output}; the input reaches vertices "
            f"{', '.join(map(str, sorted(cell.reached())))}. Add an edge to {output}"
        )
    for vertex in range(cell.vertices):
        if vertex not in cell.reached():
            return f"vertex {vertex} is on no path: no edge leads to it from the input. Leave it out, or add an edge"
        if vertex not in cell.leading():
            return f"vertex {vertex} is on no path: no edge leads from it to {output}. Leave it out, or add an edge"
    if len(cell.edges) > MOST_EDGES:
        shown = ", ".join(f"{i}-{j}" for i, j in sorted(cell.edges))
        return f"it has {len(cell.edges)} edges: {shown}. Allowed: at most {MOST_EDGES}. Leave some out"
    return None


def widths(cell: Cell, channels: int) -> list[int]:
    """Channels of the vertices 0 to V - 1 of a module with so many output channels; 0 for the input, which has its own.

    Interior vertices that feed the output share its channels, the first ones get one more where that leaves a
    remainder; any other has as many as the widest interior vertex it feeds.

    >>> widths(Cell(4, frozenset({(0, 1), (0, 2), (1, 3), (2, 3)}), OPERATIONS[:2]), 5)
    [0, 3, 2, 5]
    """
    found = [0] * cell.output + [channels]
    parts = [vertex for vertex in cell.sources(cell.output) if vertex > 0]
    for position, vertex in enumerate(parts):
        found[vertex] = channels // len(parts) + (position < channels % len(parts))
    for vertex in range(cell.vertices - 3, 0, -1):
        if vertex not in parts:
            found[vertex] = max(found[target] for target in cell.targets(vertex))
    return found


def reordered(cell: Cell) -> Iterator[Cell]:
    """Yield the other cells that differ from this one only by the order of their interior vertices, each once."""
    found = {cell}
    for inner in itertools.permutations(range(1, cell.output)):
        number = {0: 0, cell.output: cell.output, **{vertex: i for i, vertex in enumerate(inner, 1)}}
        edges = frozenset((number[i], number[j]) for i, j in cell.edges)
        other = Cell(cell.vertices, edges, tuple(cell.operations[vertex - 1] for vertex in inner))
        if other not in found and all(i < j for i, j in edges):
            found.add(other)
            yield other


def module_hash(cell: Cell) -> str:
    """Return the published hash: the same for two cells that differ by the order of their vertices."""
    labels = [-1, *(OPERATIONS.index(operation) for operation in cell.operations), -2]
    sources = [cell.sources(vertex) for vertex in range(cell.vertices)]
    targets = [cell.targets(vertex) for vertex in range(cell.vertices)]
    hashes = [_md5(str((len(targets[v]), len(sources[v]), labels[v]))) for v in range(cell.vertices)]
    for _ in range(cell.vertices):
        before = ["".join(sorted(hashes[i] for i in around)) for around in sources]
        behind = ["".join(sorted(hashes[j] for j in around)) for around in targets]
        hashes = [_md5(f"{before[v]}|{behind[v]}|{hashes[v]}") for v in range(cell.vertices)]
    return _md5(str(sorted(hashes)))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def all_cells() -> Iterator[Cell]:
    """Yield one cell of every class of cells that differ by the order of their vertices.

    It is the first of its class in the authors' order: by number of vertices, then by the matrix read as a binary
    number (columns from left to right, the first entry is the lowest bit), then by operations, the last fastest.
    """
    for vertices in range(2, VERTICES + 1):
        for edges, labels in _classes(vertices):
            for label in labels:
                yield Cell(vertices, edges, label)


def count() -> int:
    """Return how many `all_cells` yields, without making them."""
    return sum(len(labels) for vertices in range(2, VERTICES + 1) for _, labels in _classes(vertices))


def _classes(vertices: int) -> Iterator[tuple[frozenset[Edge], list[tuple[str, ...]]]]:
    """Yield the first matrix of every class without operations, and the first operations of every class of those.

    Two matrices are of one class if a permutation of interior vertices makes one of the other; such permutations of a
    matrix to itself are what makes different operations the same.
    """
    pairs = [(i, j) for j in range(vertices) for i in range(j)]
    orders = [(0, *inner, vertices - 1) for inner in itertools.permutations(range(1, vertices - 1))]
    # A matrix as a number of V x V bits, by each order of its vertices; below 2**49, which float64 holds exactly.
    weights = np.array([[2.0 ** (order[i] * vertices + order[j]) for order in orders] for i, j in pairs])
    valid = _valid_matrices(vertices, pairs)
    codes = valid @ weights
    _, first = np.unique(codes.min(axis=1), return_index=True)
    labelings = list(itertools.product(range(len(OPERATIONS)), repeat=vertices - 2))
    for row in sorted(first.tolist()):
        same = [orders[k][1:-1] for k in np.flatnonzero(codes[row] == codes[row, 0])]
        chosen = [x for x in labelings if all(x <= tuple(x[v - 1] for v in order) for order in same)]
        edges = frozenset(pair for pair, there in zip(pairs, valid[row], strict=True) if there)
        yield edges, [tuple(OPERATIONS[i] for i in labels) for labels in chosen]


def _valid_matrices(vertices: int, pairs: list[Edge]) -> NDArray[np.float64]:
    """(matrices, pairs) of 0 and 1: at most nine edges, and every vertex on a path from input to output."""
    numbers = np.arange(2 ** len(pairs), dtype=np.int32)
    bits = np.stack([(numbers >> k) & 1 for k in range(len(pairs))]).astype(np.int8)
    fine = bits.sum(axis=0) <= MOST_EDGES
    for vertex in range(vertices):
        into = [k for k, (_, j) in enumerate(pairs) if j == vertex]
        out_of = [k for k, (i, _) in enumerate(pairs) if i == vertex]
        # Edges go upwards, so a vertex with an edge to it and one from it lies on a path.
        for around in (into, out_of):
            if around:
                fine &= bits[around].any(axis=0)
    return bits[:, fine].T.astype(np.float64)

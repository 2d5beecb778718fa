"""What the two spaces of NATS-Bench share: the network of cells and residual blocks, operations, and indices.

TransNAS-Bench-101's micro space has the same nodes and edges in its cell, with other operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.spaces import SpaceError

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
NODES = 4
EDGES = tuple((source, target) for target in range(NODES) for source in range(target))
STAGES = 3


def network(operations: Sequence[str], widths: Sequence[int], cells: int, image_size: int, num_classes: int) -> Graph:
    """Describe a network of three stages.

    Args:
        operations: Of the edges of every cell, in the order of `EDGES`.
        widths: Channels of the stem and the first stage's cells, the first residual block, the second stage's cells,
            the second residual block, the third stage's cells.
        cells: Cells a stage.
        image_size: Height and width of the input in pixels.
        num_classes: Outputs.
    """
    edges = dict(zip(EDGES, operations, strict=True))
    b = GraphBuilder()
    x = b.batch_norm(b.conv(b.input((3, image_size, image_size)), widths[0], 3))
    for stage in range(STAGES):
        if stage:
            x = _reduce(b, x, widths[2 * stage - 1])
        x = b.repeat(cells, partial(_cell, b, edges, widths[2 * stage]), x)
    x = b.relu(b.batch_norm(x))
    b.output(b.linear(b.flatten(b.global_avg_pool(x)), num_classes))
    return b.build()


def dense_cell(b: GraphBuilder, x: int, edge: Callable[[int, int, int], int]) -> int:
    """A cell of `NODES` nodes: node 0 is ``x``, each later one the sum of ``edge(source, target, its value)``."""
    nodes = [x]
    for target in range(1, NODES):
        arriving = [edge(source, target, nodes[source]) for source in range(target)]
        nodes.append(b.add(*arriving) if len(arriving) > 1 else arriving[0])
    return nodes[-1]


def _cell(b: GraphBuilder, edges: dict[tuple[int, int], str], channels: int, x: int) -> int:
    return dense_cell(b, x, lambda source, target, value: _edge(b, value, channels, edges[source, target]))


def _edge(b: GraphBuilder, x: int, channels: int, operation: str) -> int:
    if operation == "skip_connect":
        return x if b.shape(x)[1] == channels else b.batch_norm(b.conv(x, channels, 1))
    if operation == "none":
        return b.zeros_like(x)
    if operation == "avg_pool_3x3":
        return b.avg_pool(x, 3, stride=1, padding=1, count_include_pad=False)
    return b.batch_norm(b.conv(b.relu(x), channels, 3 if operation == "nor_conv_3x3" else 1))


def _reduce(b: GraphBuilder, x: int, channels: int) -> int:
    y = b.batch_norm(b.conv(b.relu(x), channels, 3, stride=2))
    y = b.batch_norm(b.conv(b.relu(y), channels, 3))
    shortcut = b.conv(b.avg_pool(x, 2, stride=2, padding=0), channels, 1)  # the one without BatchNorm
    return b.add(y, shortcut)


def number(digits: Iterable[int], base: int) -> int:
    """The number of some digits, the first one leading.

    >>> number((1, 2), 5)
    7
    """
    total = 0
    for digit in digits:
        total = total * base + digit
    return total


def digits(index: int, base: int, length: int) -> list[int]:
    """The digits of an index, the first one leading.

    Raises:
        SpaceError: The index needs more digits, or is negative.

    >>> digits(7, 5, 2)
    [1, 2]
    """
    if not 0 <= index < base**length:
        raise SpaceError(f"index is {index}. Allowed: 0 to {base**length - 1}.")
    found = []
    for _ in range(length):
        index, digit = divmod(index, base)
        found.append(digit)
    return found[::-1]

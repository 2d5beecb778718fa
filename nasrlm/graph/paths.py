"""What the paths through a network look like: how many there are, and how much lies on them. Exact, and free."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache

from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import Op


@dataclass(frozen=True)
class PathStatistics:
    """All paths from inputs to outputs, each counted once. A layer is an operator that multiplies (has MACs).

    Attributes:
        log_paths: natural logarithm of their number.
        mean_layers: layers on a path, on average over the paths.
        deviation_layers: their standard deviation.
        fewest_layers: on the path with the fewest.
        most_layers: on the path with the most.
        least_reach: sum of (kernel - 1) of convolutions and pools, on the path where it is smallest.
        most_reach: on the path where it is largest.
    """

    log_paths: float
    mean_layers: float
    deviation_layers: float
    fewest_layers: float
    most_layers: float
    least_reach: float
    most_reach: float

    def values(self) -> dict[str, float]:
        """By name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


_NO_PATH = (-math.inf, 0.0, 0.0, math.inf, 0.0, math.inf, 0.0)


def path_statistics(graph: Graph) -> PathStatistics:
    """Statistics of a graph's paths, in one walk over its nodes.

    Example:
        >>> from nasrlm.graph import GraphBuilder
        >>> b = GraphBuilder()
        >>> x = b.input((4, 8, 8))
        >>> b.output(b.add(x, b.conv(b.conv(x, 4, 3), 4, 3)))
        >>> found = path_statistics(b.build())
        >>> round(math.exp(found.log_paths)), found.mean_layers, found.most_layers, found.most_reach
        (2, 1.0, 2.0, 4.0)
    """
    rows: list[tuple[float, ...]] = []
    for _, op, operands in graph.nodes():
        if op.name == "in":
            rows.append((0.0,) * 7)
            continue
        if op.name == "zeros":  # nothing comes through
            rows.append(_NO_PATH)
            continue
        joined = _joined([rows[x] for x in operands])
        layer = 1.0 if op.spec.macs is not None else 0.0
        count, mean, variance, fewest, most, least_reach, most_reach = joined
        reach = _reach(op)
        rows.append(
            (count, mean + layer, variance, fewest + layer, most + layer, least_reach + reach, most_reach + reach)
        )
    count, mean, variance, fewest, most, least_reach, most_reach = _joined([rows[o] for o in graph.outputs])
    if count == -math.inf:
        return PathStatistics(*(0.0,) * 7)
    return PathStatistics(count, mean, math.sqrt(max(variance, 0.0)), fewest, most, least_reach, most_reach)


def _joined(rows: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Paths that meet: their numbers add up, and means and variances are weighed by them."""
    if len(rows) == 1:
        return rows[0]
    rows = [row for row in rows if row[0] > -math.inf]
    if len(rows) < 2:
        return rows[0] if rows else _NO_PATH
    largest = max(row[0] for row in rows)
    shares = [math.exp(row[0] - largest) for row in rows]
    total = sum(shares)
    mean = sum(s * row[1] for s, row in zip(shares, rows, strict=True)) / total
    square = sum(s * (row[2] + row[1] ** 2) for s, row in zip(shares, rows, strict=True)) / total
    ends = (min(r[3] for r in rows), max(r[4] for r in rows), min(r[5] for r in rows), max(r[6] for r in rows))
    return (largest + math.log(total), mean, square - mean**2, *ends)


@lru_cache(maxsize=4096)
def _reach(op: Op) -> float:
    at = op.spec.index.get("kernel")
    kernel = op.attrs[at] if at is not None else None
    return float(max(kernel) - 1) if isinstance(kernel, tuple) and kernel else 0.0

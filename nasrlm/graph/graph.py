"""A network without weights: a list of operators in an order of computation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nasrlm.graph.ops import Op, Shape


@dataclass(frozen=True)
class Graph:
    """A network as described, before any simplification.

    Node i computes `ops[i]` on the nodes `i - r for r in refs[i]` and has shape `shapes[i]`. References are
    relative, so a repeated block is the same slice of both lists wherever it stands.

    Attributes:
        ops: the operators, inputs ("in") among them.
        refs: for each node how many nodes back its operands stand (all >= 1).
        shapes: output shapes, batch first.
        outputs: indices of the output nodes.
    """

    ops: tuple[Op, ...]
    refs: tuple[tuple[int, ...], ...]
    shapes: tuple[Shape, ...]
    outputs: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ops)

    def nodes(self) -> Iterator[tuple[int, Op, tuple[int, ...]]]:
        """Index, operator and absolute operand indices of every node."""
        for i, (op, refs) in enumerate(zip(self.ops, self.refs, strict=True)):
            yield i, op, tuple(i - r for r in refs)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Indices of the input nodes."""
        return tuple(i for i, op in enumerate(self.ops) if op.name == "in")

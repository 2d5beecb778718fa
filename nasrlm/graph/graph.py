"""A network without weights: a list of operators in an order of computation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nasrlm.graph.ops import Op, Shape


@dataclass(frozen=True)
class Graph:
    """A network as described, before any simplification.

    Node i computes `ops[i]` on the nodes `i - r for r in refs[i]` and has shape `shapes[i]`. References are
    relative, so a repeated block is the same slice of both lists wherever it stands.

    Attributes:
        ops: the operators, inputs ("in") among them.
        refs: for each node how many nodes back its operands stand (all >= 1).
        shapes: output shapes, batch first; a tuple of shapes where a node gives several values (`item` takes one).
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

    @cached_property
    def dtypes(self) -> tuple[Any, ...]:
        """Element type of every node; a tuple of types where a node gives several values."""
        types: list[Any] = []
        for _, op, operands in self.nodes():
            given = [types[x] for x in operands]
            types.append(op.spec.dtype(op, *given) if op.spec.dtype else given[0])
        return tuple(types)

"""A graph that passes can change: nodes are replaced in place, bypassed, or put in before others."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import Op, Shape


class Net:
    """Nodes by number. Nodes without work left to do vanish when a pass takes their last user away; what nothing
    used from the beginning (dead work) stays.

    Attributes:
        ops: operator of every node.
        operands: their operands.
        shapes: their shapes.
        users: how often each node reads a value.
        outputs: the nodes that are outputs.
    """

    def __init__(self, graph: Graph) -> None:
        self.ops: list[Op] = list(graph.ops)
        self.operands: list[list[int]] = [list(xs) for _, _, xs in graph.nodes()]
        self.shapes: list[Shape] = list(graph.shapes)
        self.outputs = list(graph.outputs)
        self.users: list[dict[int, int]] = [{} for _ in self.ops]
        for i, xs in enumerate(self.operands):
            for x in xs:
                self.users[x][i] = self.users[x].get(i, 0) + 1
        self._order: list[tuple[int, int]] = [(i, len(self.ops)) for i in range(len(self.ops))]
        self._gone: set[int] = set()
        self._dtypes = graph.dtypes

    def nodes(self) -> Iterator[int]:
        """Numbers of the nodes from the inputs to the outputs; those that a pass removes meanwhile are left out."""
        for i in self._sorted():
            if i not in self._gone:
                yield i

    def backwards(self) -> Iterator[int]:
        """The same from the outputs to the inputs."""
        for i in reversed(self._sorted()):
            if i not in self._gone:
                yield i

    def _sorted(self) -> list[int]:
        return sorted(range(len(self.ops)), key=self._order.__getitem__)

    def name(self, x: int) -> str:
        """Word of a node's operator."""
        return self.ops[x].name

    def is_float(self, x: int) -> bool:
        """Whether a node of the original graph has a floating-point value."""
        return x >= len(self._dtypes) or str(self._dtypes[x]).find("float") >= 0

    def dtype(self, x: int) -> Any:
        """Element type of a node of the original graph."""
        return self._dtypes[x] if x < len(self._dtypes) else "float32"

    def number(self, x: int) -> float | None:
        """The number that a value is known to be (every entry of it); None for anything else."""
        op = self.ops[x]
        if op.name != "value" or isinstance(op["numbers"][:1], str):
            return None
        numbers = set(op["numbers"])
        entry = numbers.pop() if len(numbers) == 1 else None
        return None if entry is None or isinstance(entry, str) else float(entry)

    def is_weight(self, x: int) -> bool:
        """Whether a value is a learned tensor."""
        return self.name(x) == "weight"

    def alone(self, x: int) -> bool:
        """Whether a value is read once and is no output, so that its operator may change."""
        return sum(self.users[x].values()) == 1 and x not in self.outputs

    def operand(self, i: int, name: str, slot: int = 0) -> int | None:
        """An operand of node i if it is made by that operator."""
        x = self.operands[i][slot]
        return x if self.name(x) == name else None

    def parted(self, i: int, name: str) -> Iterator[tuple[int, int]]:
        """For a node of two operands: each operand that this operator makes, with the other one."""
        if len(self.operands[i]) == 2:
            a, b = self.operands[i]
            if self.name(a) == name:
                yield a, b
            if self.name(b) == name:
                yield b, a

    def replace(self, i: int, op: Op, *operands: int) -> None:
        """Node i is now `op` on `operands`; its shape stays as it is."""
        for x in operands:
            self.users[x][i] = self.users[x].get(i, 0) + 1
        before, self.operands[i] = self.operands[i], list(operands)
        self.ops[i] = op
        for x in before:
            self._unlink(x, i)

    def bypass(self, i: int, x: int) -> None:
        """Whoever reads node i reads x."""
        for user, times in list(self.users[i].items()):
            self.operands[user] = [x if y == i else y for y in self.operands[user]]
            self.users[x][user] = self.users[x].get(user, 0) + times
        self.users[i] = {}
        self.outputs = [x if o == i else o for o in self.outputs]
        self._gone.add(i)
        for y in self.operands[i]:
            if y == x:  # it stands for node i now, even where nothing read that
                self.users[x].pop(i, None)
            else:
                self._unlink(y, i)

    def add(self, before: int, op: Op, *operands: int, shape: Shape | None = None) -> int:
        """A new node just before another one."""
        number = len(self.ops)
        self.ops.append(op)
        self.operands.append(list(operands))
        self.shapes.append(op.spec.shape(op, *(self.shapes[x] for x in operands)) if shape is None else shape)
        self.users.append({})
        self._order.append((self._order[before][0], number - len(self._dtypes)))
        for x in operands:
            self.users[x][number] = self.users[x].get(number, 0) + 1
        return number

    def _unlink(self, x: int, user: int) -> None:
        """One reading of x by `user` is gone; without any the node goes, and so on."""
        stack = [(x, user)]
        while stack:
            x, user = stack.pop()
            left = self.users[x][user] - 1
            if left:
                self.users[x][user] = left
            else:
                del self.users[x][user]
            if not self.users[x] and x not in self.outputs and self.name(x) != "in" and x not in self._gone:
                self._gone.add(x)
                stack += [(y, x) for y in self.operands[x]]

    def graph(self) -> Graph:
        """The result."""
        order = self._computable()
        place = {number: i for i, number in enumerate(order)}
        refs = tuple(tuple(i - place[x] for x in self.operands[number]) for i, number in enumerate(order))
        return Graph(
            tuple(self.ops[n] for n in order),
            refs,
            tuple(self.shapes[n] for n in order),
            tuple(place[o] for o in self.outputs),
        )

    def _computable(self) -> list[int]:
        """The nodes in an order of computation that is as near as possible to the original one."""
        alive = list(self.nodes())
        waiting = {n: len(set(self.operands[n])) for n in alive}
        ready = [(self._order[n], n) for n in alive if not waiting[n]]
        heapify(ready)
        order = []
        while ready:
            n = heappop(ready)[1]
            order.append(n)
            for user in self.users[n]:
                waiting[user] -= 1
                if not waiting[user]:
                    heappush(ready, (self._order[user], user))
        return order

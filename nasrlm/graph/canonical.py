"""Canonical form: the same network gives the same lines, however it was described.

Simplification works with value numbers. Constants are folded (an operation fed only by constants is a
constant, a constant summand belongs to the weights that follow), no-ops and dead paths go, BatchNorm
folds into the convolution before it, equal parameter-free operations merge, sums of sums become one sum.
The order is a depth-first walk from the outputs. Operands of commutative operations are ordered by the
shallowest structural difference, looking no further back than the last *cut*: a value through which
everything after it sees everything before it. So a cell reads the same at any depth, and each stretch
between cuts is canonical by itself, computed once and remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from nasrlm.graph.dead import DEAD, ZEROS, DeadWork, constant_network, placed, sorted_lines
from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import NO_OPERATION, Op, Shape
from nasrlm.graph.ops import op as make
from nasrlm.graph.order import CONSTANT, INPUT, LiveNode, emit

_CUTS = frozenset({"add", "concat", "in", "bn"})
"""Where a stretch may end: elsewhere, what belongs together (a convolution and its BatchNorm) would come apart."""


@dataclass(frozen=True)
class _Part:
    """A stretch: its lines, its dead operations that need a shape, and what its last value is."""

    lines: tuple[str, ...]
    displaced: tuple[int, ...]
    foldable: bool
    """The last value is a convolution's or linear's: a BatchNorm behind it folds."""
    identity: bool
    """The last value is the one that the stretch starts from."""


def canonical_lines(graph: Graph, *, dead_work: bool = False) -> list[str]:
    """The lines of the canonical text, unfolded, without the version line.

    Args:
        graph: any graph.
        dead_work: also list the operations that a framework runs although they cannot change the output, each
            behind the last living value it can see: with "-" if nothing waits for them, with "=" if their value is
            known beforehand (a constant, or the same as another).
    """
    graph = _inputs_first(graph)
    parts = _parts(graph)
    if parts is None:
        return _constant_network(graph, dead_work)
    lines = [line for _, part in parts for line in part.lines]
    if not dead_work:
        return [line for line in lines if line[0] not in DEAD]
    return sorted_lines(lines, placed(graph, [start + i for start, part in parts for i in part.displaced]))


def _parts(graph: Graph) -> list[tuple[int, _Part]] | None:
    """The stretches of a graph and their starts; None if its output does not depend on its input."""
    parts: list[tuple[int, _Part]] = []
    foldable = False  # the value that the next stretch starts from is a convolution's: a BatchNorm behind it folds
    cuts = _cuts(graph)
    for start, stop in zip(cuts, [*cuts[1:], len(graph)], strict=True):
        if foldable and _reads_normed(graph, start, stop):
            identity = True
            while identity:  # go back to the stretch of the convolution and take all up to here together
                start, earlier = parts.pop()
                identity = earlier.identity
        part = _part(graph, start, stop)
        if part is None:
            return None
        foldable = foldable if part.identity else part.foldable
        parts.append((start, part))
    return parts


def _reads_normed(graph: Graph, start: int, stop: int) -> bool:
    return any(graph.ops[i].name == "bn" and graph.refs[i][0] == i - start + 1 for i in range(start, stop))


def _part(graph: Graph, start: int, stop: int) -> _Part | None:
    last = stop == len(graph)
    outputs = tuple(o - start for o in graph.outputs) if last else (stop - start - 1,)
    key = (graph.ops[start:stop], graph.refs[start:stop], outputs, start > 0, last)
    return _segment(*key, None) or _segment(*key, graph.shapes[start:stop])  # a constant needs its shape


def _inputs_first(graph: Graph) -> Graph:
    """The graph with its inputs in front, in their order."""
    inputs = graph.inputs
    if not inputs or inputs[-1] == len(inputs) - 1:
        return graph
    order = [*inputs, *(i for i in range(len(graph)) if graph.ops[i].name != "in")]
    new = {old: i for i, old in enumerate(order)}
    refs = tuple(tuple(new[i] - new[i - r] for r in graph.refs[i]) for i in order)
    ops, shapes = (tuple(rows[i] for i in order) for rows in (graph.ops, graph.shapes))
    return Graph(ops, refs, shapes, tuple(new[o] for o in graph.outputs))  # type: ignore[arg-type]


def _cuts(graph: Graph) -> list[int]:
    """Starts of the stretches: 0 and every node after a join that alone is seen from behind it."""
    cuts = []
    lowest = min(graph.outputs)
    i = len(graph)
    for back, before in zip(reversed(graph.refs[1:]), reversed(graph.ops[:-1]), strict=True):
        i -= 1
        if back:
            first = i - (back[0] if len(back) == 1 else max(back))
            if first < lowest:
                lowest = first
        if lowest >= i - 1 and before.name in _CUTS:
            cuts.append(i)
    return [0, *reversed(cuts)]


def _constant_network(graph: Graph, dead_work: bool) -> list[str]:
    """A network whose output does not depend on its input."""
    inputs = [graph.ops[i].text for i in graph.inputs]
    dead = constant_network(graph) if dead_work else []
    constants = [f"const {'x'.join(map(str, graph.shapes[o]))}" for o in graph.outputs]
    out = [_outputs_line([len(constants) - i for i in range(len(constants))])] if len(constants) > 1 else []
    return [*inputs, *dead, *constants, *out]


def _outputs_line(distances: Sequence[int]) -> str:
    return "out " + " ".join(f"@{d}" for d in distances)


@lru_cache(maxsize=16_384)
def _segment(
    ops: tuple[Op, ...],
    refs: tuple[tuple[int, ...], ...],
    outputs: tuple[int, ...],
    has_input: bool,
    last: bool,
    shapes: tuple[Shape, ...] | None,
) -> _Part | None:
    """Lines of one stretch and its displaced dead operations; None when a constant comes out or needs a shape."""
    work = _Simplifier(ops, refs, shapes)
    values = [work.values[o] if o >= 0 else INPUT for o in outputs]
    if work.shapes_needed or (CONSTANT in values and (len(values) == 1 or shapes is None)):
        return None
    roots = [work.constant(o) if v == CONSTANT else v for o, v in zip(outputs, values, strict=True)]
    live = work.live([*roots, *(work.values[i] for i, op in enumerate(ops) if op.name == "in")])
    _fold(live, roots)
    dead = DeadWork(ops, refs, work.values, outputs)
    position, lines = emit(live, roots, lambda: dead.hanging(live))
    behind: dict[int, list[str]] = {}
    displaced = []
    for i, text, anchor, moved in dead.lines(position):
        if moved:
            displaced.append(i)
        else:
            behind.setdefault(anchor, []).append(text)
    merged = behind.pop(-1, [])
    for i, line in enumerate(lines):
        merged.append(line)
        merged.extend(behind.get(i, ()))
    if last and (len(roots) > 1 or position.get(roots[0], -1) != len(lines) - 1):
        merged.append(_outputs_line([len(lines) - position.get(r, -1) for r in roots]))
    root = live.get(roots[0])
    foldable = root is not None and "bias" in root.op.spec.index
    return _Part(tuple(merged), tuple(displaced), foldable, identity=roots == [INPUT])


class _Simplifier:
    """Value numbers of a stretch: `values[i]` is the canonical node of raw node i, INPUT or CONSTANT."""

    def __init__(
        self, ops: tuple[Op, ...], refs: tuple[tuple[int, ...], ...], shapes: tuple[Shape, ...] | None
    ) -> None:
        self.ops, self.refs, self.shapes = ops, refs, shapes
        self.shapes_needed = False
        self.values: list[int] = []
        self._nodes: list[LiveNode] = []
        self._known: dict[tuple[Op, tuple[int, ...]], int] = {}
        for i, op in enumerate(ops):
            operands = [self._value(i - r) for r in refs[i]]
            self.values.append(self._number(i, op, operands))

    def _value(self, i: int) -> int:
        return INPUT if i < 0 else self.values[i]

    def _number(self, i: int, op: Op, operands: list[int]) -> int:
        if op.name in ZEROS or op.name == "const" or (operands and all(x == CONSTANT for x in operands)):
            return CONSTANT
        if op.name in NO_OPERATION:  # also where it waits for constants
            return operands[0]
        if CONSTANT in operands:
            if op.name == "add":
                operands = [x for x in operands if x != CONSTANT]
                if len(operands) == 1:
                    return operands[0]
            else:
                operands = [
                    self.constant(i - r) if x == CONSTANT else x for x, r in zip(operands, self.refs[i], strict=True)
                ]
        return self._node(op, operands)

    def constant(self, i: int) -> int:
        """A node for the constant that raw node i is."""
        if self.shapes is None or i < 0:
            self.shapes_needed = True
            return INPUT
        return self._node(make("const", self.shapes[i]), [])

    def _node(self, op: Op, operands: list[int]) -> int:
        fresh = op.spec.parameters is not None or (op.spec.arity == 0 and op.name != "value")
        key = (op, tuple(sorted(operands)) if op.spec.commutative else tuple(operands))
        if not fresh and key in self._known:
            return self._known[key]
        self._nodes.append(LiveNode(op, operands))
        number = self._known[key] = len(self._nodes) - 1
        return number

    def live(self, roots: list[int]) -> dict[int, LiveNode]:
        """The nodes that reach a root, in an order of computation, as fresh copies."""
        seen = {r for r in roots if r >= 0}
        for number in range(len(self._nodes) - 1, -1, -1):
            if number in seen:
                seen.update(x for x in self._nodes[number].operands if x >= 0)
        return {n: LiveNode(node.op, list(node.operands)) for n, node in enumerate(self._nodes) if n in seen}


def _fold(live: dict[int, LiveNode], roots: list[int]) -> None:
    """BatchNorm into the convolution or linear before it; sums of sums into one; products likewise."""
    users = Counter(x for node in live.values() for x in node.operands)
    users.update(roots)
    alias: dict[int, int] = {}
    for number, node in list(live.items()):
        node.operands = [alias.get(x, x) for x in node.operands]
        below = node.operands[0] if node.operands else INPUT
        if node.op.name == "bn" and below >= 0 and users[below] == 1 and "bias" in live[below].op.spec.index:
            live[below].op = live[below].op.replace(bias=True)
            alias[number] = below
            users[below] = users[number]
            del live[number]
        elif node.op.spec.commutative:
            node.operands = [y for x in node.operands for y in _summands(live, users, node.op, x)]
    roots[:] = [alias.get(r, r) for r in roots]


def _summands(live: dict[int, LiveNode], users: Counter[int], op: Op, x: int) -> list[int]:
    if x >= 0 and live[x].op is op and users[x] == 1:
        return live.pop(x).operands
    return [x]

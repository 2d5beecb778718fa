"""Dead work: operations that a framework runs although they cannot change the output (docs/explain/text.md)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property

from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import NO_OPERATION, Op
from nasrlm.graph.order import CONSTANT, INPUT

DEAD = ("-", "=")
"""First characters of dead lines: nothing waits for the value; an output does, but the value is known beforehand."""

ZEROS = frozenset({"zeros", "blank"})
"""Operators whose value is known without their operand."""

_WITHOUT_WORK = NO_OPERATION | {
    *("in", "const", "blank", "add", "flatten", "bn"),
    *("mul", "relu", "relu6", "leakyrelu", "sigmoid", "tanh", "silu", "hardsigmoid", "hardswish"),
}
"""Never listed: a sum or an activation costs next to nothing, bn belongs to its convolution."""

_RESHAPING = frozenset({"gap", "gmp", "flatten", "concat", "slice", "pad", "const"})


class DeadWork:
    """Dead operations of a stretch.

    Args:
        ops, refs: the stretch.
        values: canonical node of each raw node, INPUT or CONSTANT.
        outputs: raw nodes that are seen from behind.
    """

    def __init__(
        self, ops: Sequence[Op], refs: Sequence[tuple[int, ...]], values: Sequence[int], outputs: Sequence[int]
    ) -> None:
        self._ops, self._refs, self._values, self._outputs = ops, refs, values, outputs

    @cached_property
    def _used(self) -> list[bool]:
        """Which raw nodes reach an output by way of values that are not constant."""
        return self._reach(constants=False)

    @cached_property
    def _words(self) -> list[str]:
        """Each operation as a dead line."""
        awaited, ops = self._reach(constants=True), _normed(self._ops, self._refs)
        return [DEAD[waits] + op.text for waits, op in zip(awaited, ops, strict=True)]

    def _reach(self, *, constants: bool) -> list[bool]:
        reached = [False] * len(self._ops)
        for o in self._outputs:
            if o >= 0:
                reached[o] = True
        for i in range(len(reached) - 1, -1, -1):
            if reached[i] and self._ops[i].name not in ZEROS:
                for r in self._refs[i]:
                    if i >= r and (constants or self._values[i - r] != CONSTANT):
                        reached[i - r] = True
        return reached

    def lines(self, position: dict[int, int]) -> list[tuple[int, str, int, bool]]:
        """Raw index, words, line of the last living value in sight, and whether the shape changed since.

        Args:
            position: line of each living node.
        """
        if all(self._used) and len(set(self._values)) == len(self._values):
            return []
        anchors: list[int] = []
        moved: list[bool] = []
        found = []
        met: set[int] = set()
        for i, (op, refs) in enumerate(zip(self._ops, self._refs, strict=True)):
            number, used = self._values[i], self._used[i]
            anchor, shifted, same = self._sight(i, refs, anchors, moved)
            # An operation merged with an equal one is work as well: a framework runs both.
            if refs and (not used or number in met) and op.name not in _WITHOUT_WORK and number != INPUT:
                found.append((i, self._words[i], anchor, shifted))
            if used and number in position:
                anchor, shifted = position[number], False
                met.add(number)
            elif number == CONSTANT or not same:
                shifted = shifted or _changes_shape(op)
            anchors.append(anchor)
            moved.append(shifted)
        return found

    def _sight(self, i: int, refs: tuple[int, ...], anchors: list[int], moved: list[bool]) -> tuple[int, bool, bool]:
        """The last living value before node i, whether the shape changed since, and whether i is but its operand."""
        number = self._values[i]
        sources = [i - r for r in refs]
        same = [s for s in sources if (self._values[s] if s >= 0 else INPUT) == number]
        if same and number != CONSTANT:
            best = same[0]
        elif len(sources) == 1:
            best = sources[0]
        else:
            best = max(sources, key=lambda s: (anchors[s], not moved[s]) if s >= 0 else (-1, True), default=-1)
        return (anchors[best], moved[best], bool(same)) if best >= 0 else (-1, False, bool(same))

    def hanging(self, live: Container[int]) -> dict[int, list[str]]:
        """Dead operations that read each living node, by way of dead ones or directly."""
        bases: list[set[int]] = []
        found: dict[int, list[str]] = {}
        for i, (op, refs) in enumerate(zip(self._ops, self._refs, strict=True)):
            below = set().union(*(bases[i - r] for r in refs if i >= r))
            for number in () if self._used[i] or op.name in _WITHOUT_WORK else below:
                found.setdefault(number, []).append(self._words[i])
            bases.append({self._values[i]} if self._used[i] and self._values[i] in live else below)
        return {number: sorted(words) for number, words in found.items()}


def placed(graph: Graph, places: Sequence[int]) -> list[str]:
    """Dead operations whose operand has another shape than the living value they hang on, with that shape."""
    if not places:
        return []
    # No node is constant here, as far as waiting is concerned: the whole graph is looked at as it was described.
    words = DeadWork(graph.ops, graph.refs, range(len(graph)), graph.outputs)._words
    shapes = (graph.shapes[i - graph.refs[i][0]] for i in places)
    return [f"{words[i]} at {'x'.join(map(str, shape))}" for i, shape in zip(places, shapes, strict=True)]


def constant_network(graph: Graph) -> list[str]:
    """Dead lines of a network whose output does not depend on its input: all its work."""
    works = [i for i, op in enumerate(graph.ops) if op.name not in _WITHOUT_WORK and graph.refs[i]]
    return _counted(placed(graph, works))


def sorted_lines(lines: Sequence[str], displaced: list[str]) -> list[str]:
    """Sort and count the dead lines that hang on one living line; displaced ones follow the inputs."""
    result: list[str] = []
    dead: list[str] = []
    for line in lines:
        if line[0] in DEAD:
            dead.append(line)
            continue
        if displaced and line[:3] != "in ":
            dead, displaced = dead + displaced, []
        if dead:
            result.extend(_counted(dead) if len(dead) > 1 else dead)
            dead = []
        result.append(line)
    return result + _counted(dead + displaced)


def _counted(dead: list[str]) -> list[str]:
    counts: dict[str, int] = {}
    for line in dead:
        counts[line] = counts.get(line, 0) + 1
    return [line if n == 1 else f"{line} x{n}" for line, n in sorted(counts.items())]


def _normed(ops: Sequence[Op], refs: Sequence[tuple[int, ...]]) -> list[Op]:
    """The operators, with the bias that a BatchNorm behind them folds into."""
    read = {i - refs[i][0] for i, op in enumerate(ops) if op.name == "bn"}
    return [op.replace(bias=True) if i in read and "bias" in op.spec.index else op for i, op in enumerate(ops)]


def _changes_shape(op: Op) -> bool:
    index = op.spec.index
    if "width" in index and op["width"]:
        return True
    if "stride" in index:
        return set(op["stride"]) != {1}
    return op.name in _RESHAPING

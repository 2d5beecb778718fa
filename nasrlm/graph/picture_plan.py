"""What a picture of a network shows: boxes, frames around repeated blocks, and wires, from the canonical text."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nasrlm.graph.dead import DEAD
from nasrlm.graph.fold import Block, Item, fold, names
from nasrlm.graph.graph import Graph
from nasrlm.graph.sources import to_text
from nasrlm.graph.text import HEADER, parse_text

MOST_BOXES = 200
"""Boxes of a picture; of a longer network the middle is one box."""
_MOST_IN_FRAME = 60
_WIDTH, _LINES = 30, 3
"""Letters and lines of a box; longer words of the text are cut."""

_WORDS = {
    "convolution": "conv deconv",
    "linear": "linear matmul embedding",
    "pooling": "maxpool avgpool gap gmp resize depth2space space2depth mean sum amax amin prod",
    "norm, activation": "bn instancenorm groupnorm layernorm rmsnorm prelu relu relu6 sigmoid tanh silu hardsigmoid"
    " hardswish mish leakyrelu elu selu gelu softplus softsign softmax logsoftmax clip erf",
    "join": "add mul sub div concat min max where",
    "input, output": "in out",
}
_KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}
OTHER, DEAD_WORK, BLOCK, LEFT_OUT = "attention, other", "no effect", "block", "left out"
KINDS = (*list(_WORDS)[:-1], OTHER, DEAD_WORK)
"""Kinds of boxes that the legend explains, in its order."""


@dataclass
class Box:
    """A rounded box.

    Attributes:
        text: what is written in it.
        kind: decides on the colour.
        shape: the shape of its value, where it is not that of what it reads; else "".
    """

    text: str
    kind: str
    shape: str = ""


@dataclass(frozen=True)
class Frame:
    """A frame around the boxes `start` to `stop`, with a title such as "A x5"."""

    title: str
    start: int
    stop: int


@dataclass(frozen=True)
class Wire:
    """From box to box; `port` in -1 ... 1 is where it enters, from left to right."""

    source: int
    target: int
    port: float = 0.0
    dashed: bool = False


@dataclass
class Plan:
    """Everything that a picture shows."""

    boxes: list[Box] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)


def plan(x: Any, *, dead_work: bool = False) -> Plan:
    """The boxes, frames and wires of a network.

    Args:
        x: see `nasrlm.graph.as_graph`.
        dead_work: also what has no effect.
    """
    lines = to_text(x, dead_work=dead_work, folded=False).split("\n")[1:]
    return _Planner(lines).plan


class _Planner:
    """Goes through the folded text; remembers which box shows each value."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.plan = Plan()
        live = [line for line in lines if line[0] not in DEAD]
        self._values = _values(live)
        self._done = 0
        """Living lines so far."""
        self._shown_by: list[int] = []
        items = fold(lines)
        self._names = _block_names(items)
        self._framed: set[tuple[str, ...]] = set()
        head, tail = _cut(items)
        for item in items[:head]:
            self._item(item)
        self._leave_out([line for item in items[head:tail] for line in _written_out(item)])
        for item in items[tail:]:
            self._item(item)

    def _item(self, item: Item) -> None:
        if isinstance(item, str):
            self._line(item)
            return
        title = _title(self._names.get(item.lines, ""), item.times)
        if item.lines in self._framed:
            self._together(_written_out(item), Box(title, BLOCK))
        else:
            self._frame(item, title)

    def _frame(self, block: Block, title: str) -> None:
        """The first of the repetitions; what the others give is shown by the same boxes."""
        self._framed.add(block.lines)
        start, before = len(self.plan.boxes), self._done
        head, tail = _cut(block.lines, _MOST_IN_FRAME)
        for line in block.lines[:head]:
            self._line(line)
        self._leave_out(block.lines[head:tail])
        for line in block.lines[tail:]:
            self._line(line)
        self.plan.frames.append(Frame(title, start, len(self.plan.boxes)))
        self._shown_by += self._shown_by[before:] * (block.times - 1)
        self._done = len(self._shown_by)

    def _line(self, line: str) -> None:
        here = len(self.plan.boxes)
        if line[0] in DEAD:
            self.plan.boxes.append(Box(_label(line), DEAD_WORK))
            if self._shown_by:
                self.plan.wires.append(Wire(self._shown_by[-1], here, dashed=True))
            return
        operands, shape, ordered = self._values[self._done]
        before = {self._values[x][1] for x in operands}
        self.plan.boxes.append(Box(_label(line), _KINDS.get(line.split()[0], OTHER), "" if shape in before else shape))
        self._connect(dict.fromkeys(self._shown_by[x] for x in operands), here, ordered)
        self._shown_by.append(here)
        self._done += 1

    def _together(self, lines: Sequence[str], box: Box) -> None:
        """Many lines as one box."""
        here, start = len(self.plan.boxes), self._done
        self._done += sum(line[0] not in DEAD for line in lines)
        inside = self._values[start : self._done]
        outside = dict.fromkeys(x for operands, *_ in inside for x in operands if x < start)
        if inside and inside[-1][1] not in {self._values[x][1] for x in outside}:
            box.shape = inside[-1][1]
        self.plan.boxes.append(box)
        self._connect(dict.fromkeys(self._shown_by[x] for x in outside), here, ordered=False)
        self._shown_by += [here] * len(inside)

    def _leave_out(self, lines: Sequence[str]) -> None:
        if lines:
            self._together(lines, Box(f"... {len(lines):,} lines left out ...", LEFT_OUT))

    def _connect(self, sources: dict[int, None], here: int, ordered: bool) -> None:
        last = len(sources) - 1
        for i, source in enumerate(sources):
            self.plan.wires.append(Wire(source, here, 2 * i / last - 1 if ordered and last else 0.0))


_Value = tuple[tuple[int, ...], str, bool]
"""The living lines that a line reads, its shape, and whether the order of what it reads matters."""


def _values(live: Sequence[str]) -> list[_Value]:
    """For every living line what it reads and gives."""
    graph = parse_text("\n".join([HEADER, *live]))
    kept = [i for i, op in enumerate(graph.ops) if not op.inline]
    line_of = {node: line for line, node in enumerate(kept)}
    batch = _batch(graph)
    found: list[_Value] = []
    for i in kept:
        operands = tuple(line_of[i - r] for r in graph.refs[i] if i - r in line_of)
        found.append((operands, _shape(graph.shapes[i], batch), not graph.ops[i].spec.commutative))
    if live[-1].split()[0] == "out":
        found.append((tuple(line_of[o] for o in graph.outputs), "", True))
    return found


def _batch(graph: Graph) -> Any:
    """The first dimension of the inputs, where all have the same."""
    first = {graph.shapes[i][0] for i in graph.inputs if graph.shapes[i]}
    return first.pop() if len(first) == 1 else None


def _shape(shape: Any, batch: Any) -> str:
    """Without the batch: "16 x 32 x 32"; "" where a line gives several values, which the next lines take apart."""
    if shape and isinstance(shape[0], tuple):
        return ""
    shown = shape[1:] if len(shape) > 1 and shape[0] == batch else shape
    return re.sub(r"\bd(\d+)", r"?\1", " x ".join(map(str, shown)))


def _label(line: str) -> str:
    """A line without its references, which are wires in a picture."""
    words, depth = [], 0
    for word in line.split():
        depth += word.endswith("=(") - (word == ")")
        if depth or not (word[0] == "@" or word == "of"):
            words.append(word)
    options: dict[str, Any] = {"max_lines": _LINES, "placeholder": " ...", "break_on_hyphens": False}
    return "\n".join(textwrap.wrap(" ".join(words), _WIDTH, **options))


def _title(name: str, times: int) -> str:
    return f"{name} x{times}".strip() if times > 1 else name


def _block_names(items: Sequence[Item]) -> dict[tuple[str, ...], str]:
    """The names of the text: blocks that stand in it more than once, in order."""
    count = Counter(item.lines for item in items if isinstance(item, Block))
    return dict(zip((lines for lines, n in count.items() if n > 1), names(), strict=False))


def _written_out(item: Item) -> list[str]:
    return [item] if isinstance(item, str) else list(item.lines * item.times)


def _cut(items: Sequence[Item], most: int = MOST_BOXES) -> tuple[int, int]:
    """Where to leave out: items up to the first number and from the second on are shown.

    >>> _cut(["relu"] * 4, 4), _cut(["relu"] * 10, 5)
    ((4, 4), (2, 8))
    """
    framed: set[tuple[str, ...]] = set()

    def boxes(item: Item) -> int:
        known = isinstance(item, str) or item.lines in framed
        return 1 if isinstance(item, str) or known else min(len(item.lines), _MOST_IN_FRAME)

    room, head, used = (most - 1) // 2, 0, 0
    for i, item in enumerate(items):
        used += boxes(item)
        if isinstance(item, Block):
            framed.add(item.lines)
        if used <= room:
            head = i + 1
        elif used > most:
            break
    else:
        return len(items), len(items)
    framed = {item.lines for item in items[:head] if isinstance(item, Block)}
    tail, used = len(items), 0
    while tail > head and used + boxes(items[tail - 1]) <= room:
        tail -= 1
        used += boxes(items[tail])
    return head, tail

"""The canonical text of a network, version 1 (grammar: docs/explain/text.md), and its parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from nasrlm.errors import ExportError, TextError, nearest
from nasrlm.graph.builder import GraphBuilder
from nasrlm.graph.canonical import canonical_lines
from nasrlm.graph.dead import DEAD
from nasrlm.graph.dims import Shape
from nasrlm.graph.fold import Block, fold, names
from nasrlm.graph.generic_text import is_generic, read_generic
from nasrlm.graph.graph import Graph
from nasrlm.graph.operators.tensor import inline_op
from nasrlm.graph.ops import NO_OPERATION, SPECS, Op, OpSpec, op
from nasrlm.graph.passes import simplified

TEXT_VERSION = 1
HEADER = f"nasrlm{TEXT_VERSION}"
MAX_LINES = 1_000_000
"""Lines a text may unfold to: a few words can ask for any number of them."""
MAX_DEPTH = 16
"""How deep sub-graphs (If, Loop, Scan) may be nested."""


def graph_text(graph: Graph, *, dead_work: bool = False, folded: bool = True) -> str:
    """The canonical text of a graph; without folding every repetition is written out."""
    lines = canonical_lines(simplified(graph, quickly=True), dead_work=dead_work)
    return "\n".join([HEADER, *(_folded(lines) if folded else lines)])


def _folded(lines: Sequence[str]) -> Iterator[str]:
    items = fold(lines)
    called = _called(items)
    free = names()
    defined: dict[tuple[str, ...], str] = {}
    for item in items:
        if isinstance(item, str):
            yield item
            continue
        times = f" x{item.times}" if item.times > 1 else ""
        if item.lines in defined:
            yield defined[item.lines] + times
            continue
        if item.lines in called:
            defined[item.lines] = next(free)
        yield defined.get(item.lines, "") + "{"
        yield from item.lines
        yield "}" + times


def _called(items: Sequence[str | Block]) -> set[tuple[str, ...]]:
    seen: set[tuple[str, ...]] = set()
    called: set[tuple[str, ...]] = set()
    for item in items:
        if isinstance(item, Block):
            (called if item.lines in seen else seen).add(item.lines)
    return called


def parse_text(text: str) -> Graph:
    """The network of a canonical text, up to weight values.

    Line breaks and other white space are the same; words that begin a line are known by themselves.

    Args:
        text: what `to_text` gave, with or without dead work.

    Raises:
        TextError: another version, an unknown word, or a line that does not fit; says which line.

    Example:
        >>> parse_text("nasrlm1 in 1x3x8x8 conv 4 k3 relu gap flatten linear 10").shapes[-1]
        (1, 10)
    """
    words = text.split()
    if not words or words[0] != HEADER:
        found = repr(words[0]) if words else "nothing"
        raise TextError(
            f"the text begins with {found}, not with {HEADER!r}, the version that this nasrlm reads and writes"
        )
    return _Reader(_unfold(words[1:])).graph()


def line_shapes(text: str) -> list[Shape]:
    """Shape of the value of each living line, blocks and calls written out; of several values the first.

    Example:
        >>> line_shapes("in 1x3x8x8 conv 4 k3 relu")
        [(1, 3, 8, 8), (1, 4, 8, 8), (1, 4, 8, 8)]
    """
    reader = _Reader(_unfold(text.split()))
    shapes: list[Any] = [reader.builder.shape(x) for x in reader.values]
    return [s[0] if s and isinstance(s[0], tuple) else s for s in shapes]


def _begins_line(word: str) -> bool:
    known = word.lstrip("-=") in SPECS or word in ("out", "}")
    return known or word.endswith("{") or _is_name(word) or is_generic(word)


def _is_name(word: str) -> bool:
    return word.isalpha() and word.isupper()


def _unfold(words: Sequence[str]) -> list[list[str]]:
    """Lines as lists of words, blocks and calls written out."""
    lines: list[list[str]] = []
    depth = 0  # within the bodies of If, Loop and Scan, which are attributes: body=( ... )
    for word in words:
        depth += word.endswith("=(") - (word == ")")
        if depth > MAX_DEPTH:
            raise TextError(f"sub-graphs are nested more than {MAX_DEPTH} deep")
        if lines and (depth or word == ")"):
            lines[-1].append(word)
        elif _begins_line(word):
            lines.append([word])
        elif lines:
            lines[-1].append(word)
        else:
            raise TextError(f"the text has {word!r} where an operator should stand. {_operators(word)}")
    return _Unfolding(lines).result


class _Unfolding:
    """Writes out blocks and calls, line by line."""

    def __init__(self, lines: list[list[str]]) -> None:
        self.result: list[list[str]] = []
        self._blocks: dict[str, list[list[str]]] = {}
        self._opened: tuple[str, int] | None = None
        for line in lines:
            head = line[0]
            if head.endswith("{"):
                self._open(head[:-1])
            elif head == "}":
                self._repeat(self._close(), line)
            elif _is_name(head):
                self._repeat(self._block(head), line)
            else:
                self.result.append(line)
        if self._opened is not None:
            raise TextError(f"block '{self._opened[0]}{{' is never closed; the text may be cut short")

    def _open(self, name: str) -> None:
        if self._opened is not None or name in self._blocks:
            raise TextError(f"block '{name}{{' opens inside another block, or a second time")
        self._opened = (name, len(self.result))

    def _close(self) -> list[list[str]]:
        if self._opened is None:
            raise TextError("'}' closes a block that was never opened")
        name, start = self._opened
        self._opened = None
        body = self.result[start:]
        del self.result[start:]
        if name:
            self._blocks[name] = body
        return body

    def _block(self, name: str) -> list[list[str]]:
        if name not in self._blocks:
            known = ", ".join(self._blocks) or "none"
            raise TextError(f"block {name!r} is called before it is written. Blocks so far: {known}")
        return self._blocks[name]

    def _repeat(self, body: list[list[str]], line: list[str]) -> None:
        times = _times(line)
        if len(self.result) + times * len(body) > MAX_LINES:
            raise TextError(f"the text unfolds to more than {MAX_LINES:,} lines at {' '.join(line)!r}")
        self.result.extend(body * times)


def _times(line: list[str]) -> int:
    if len(line) == 1:
        return 1
    if len(line) == 2 and line[1][0] == "x" and line[1][1:].isdecimal() and int(line[1][1:]) > 1:
        return int(line[1][1:])
    raise TextError(f"{' '.join(line)!r} should be a block and a count such as x5")


def _operators(word: str) -> str:
    close = nearest(word.lstrip("-="), SPECS)
    return f"Nearest operators: {', '.join(close)}." if close else f"Operators: {', '.join(SPECS)}."


class _Reader:
    """Builds the graph line by line; keeps the value of every living line."""

    def __init__(self, lines: list[list[str]]) -> None:
        self.builder = GraphBuilder()
        self.values: list[int] = []
        self.outputs: list[int] = []
        self.awaited: list[int] = []
        for number, words in enumerate(lines, 1):
            try:
                self._line(words)
            except (TextError, ExportError, ValueError) as error:
                raise TextError(f"line {number} of the unfolded text, {' '.join(words)!r}: {error}") from None

    def graph(self) -> Graph:
        if not self.values:
            raise TextError("the text has no operation; the shortest is an input: 'in 1x3x32x32'")
        first, *more = self.outputs or self.values[-1:]
        if self.awaited:
            first = self.builder.apply(op("after"), first, *self.awaited)
        for x in (first, *more):
            if isinstance((self.builder.shape(x) or (0,))[0], tuple):
                raise TextError("an output is an operator of several values; take one with 'item'")
        self.builder.output(first, *more)
        return self.builder.build()

    def _line(self, words: list[str]) -> None:
        if self.outputs:
            raise TextError("nothing may follow 'out'")
        if is_generic(words[0]):
            self._generic(words)
            return
        references = [w for w in words[1:] if w[0] in "@#%" or w == "of"]
        rest = [w for w in words[1:] if w not in references]
        if words[0] == "out":
            if rest or "of" in references or not references:
                raise TextError("'out' takes references such as @1 and nothing else")
            self.outputs = [self._value(r) for r in references]
        elif words[0][0] in DEAD:
            self._dead(words[0], rest, references)
        else:
            operands = self._operands(words[0], references)
            self.values.append(self._apply(words[0], rest, operands))

    def _generic(self, words: list[str]) -> None:
        made, references = read_generic(words)
        operands = [self._value(r) for r in references if r != "of"]
        if not references:
            operands.append(self._value("@1"))
        self.values.append(self.builder.apply(made, *operands))

    def _value(self, reference: str) -> int:
        if reference[0] in "#%":
            constant = inline_op(reference)
            if constant is None:
                raise TextError(f"{reference!r} is no constant; they look like #0.125, #int64:3 or %1x768")
            return self.builder.apply(op(constant[0], *constant[1]))
        back = int(reference[1:]) if reference[1:].isdecimal() else 0
        if not 1 <= back <= len(self.values):
            raise TextError(f"reference {reference!r} must lie between @1 and @{len(self.values)}")
        return self.values[-back]

    def _operands(self, name: str, references: list[str]) -> list[int]:
        if name not in SPECS:
            raise TextError(f"unknown operator {name!r}. {_operators(name)}")
        spec = SPECS[name]
        if spec.arity == 0:
            return []
        fewest = spec.arity if isinstance(spec.arity, int) else spec.arity[0]
        operands = [self._value(r) for r in references if r != "of"]
        if "of" not in references and not (fewest == 1 and references):
            constants = not spec.commutative and any(r[0] in "#%" for r in references)
            operands.insert(0 if constants else len(operands), self._value("@1"))
        if not spec.takes(len(operands)):
            raise TextError(f"{name!r} has {len(operands)} operand(s), it takes {_arity(spec)}")
        return operands

    def _apply(self, name: str, words: list[str], operands: list[int]) -> int:
        if name != "item" and any(isinstance((self.builder.shape(x) or (0,))[0], tuple) for x in operands):
            raise TextError(f"{name!r} reads an operator that gives several values; take one of them with 'item'")
        rank = len(self.builder.shape(operands[0])) - 2 if operands else 0
        return self.builder.apply(_read_op(name, tuple(words), rank), *operands)

    def _dead(self, word: str, words: list[str], references: list[str]) -> None:
        mark, name = word[0], word[1:]
        if references or name not in SPECS or name in NO_OPERATION or SPECS[name].inline:
            raise TextError(f"dead work is an operator with attributes and without references, not {name!r}")
        times = 1
        if words and words[-1][0] == "x" and words[-1][1:].isdecimal():
            times = int(words.pop()[1:])
        if times > MAX_LINES:
            raise TextError(f"x{times} is more dead work than the {MAX_LINES:,} lines that a text may have")
        source, elsewhere = self._value("@1"), "at" in words
        if elsewhere:
            where = words.index("at")
            source = self.builder.apply(_read_op("const", tuple(words[where + 1 :]), 0))
            words = words[:where]
        elif mark == "=":
            source = self.builder.unary("blank", source)
        count = 1 if SPECS[name].arity == 1 else 2
        made = [self._apply(name, words, [source] * count) for _ in range(times)]
        if mark == "=" and elsewhere:
            self.awaited.extend(made)
        elif mark == "=":
            self.values[-1] = self.builder.apply(op("after"), self.values[-1], *made)


@lru_cache(maxsize=65_536)
def _read_op(name: str, words: tuple[str, ...], rank: int) -> Op:
    attrs: dict[str, object] = {}
    waiting = list(words)
    for field in SPECS[name].fields:
        value = field.read(waiting[0], rank) if waiting else None
        if value is None:
            value = field.default(attrs, rank)
        else:
            waiting.pop(0)
        attrs[field.name] = value
    if waiting:
        raise TextError(f"{waiting[0]!r} is no attribute of {name!r} here, which takes {_fields(name)}")
    return op(name, *attrs.values())


def _arity(spec: OpSpec) -> str:
    if isinstance(spec.arity, int):
        return str(spec.arity)
    fewest, most = spec.arity
    return f"{fewest} to {most}" if most else f"{fewest} or more"


def _fields(name: str) -> str:
    fields = [f.name for f in SPECS[name].fields]
    return ", ".join(fields) + " in this order" if fields else "none"

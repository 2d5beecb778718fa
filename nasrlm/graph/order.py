"""Canonical order of the living nodes of a stretch, and their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

from nasrlm.graph.ops import Op

INPUT, CONSTANT = -1, -2
"""Stand for the value that a stretch starts from, and for a constant, where node numbers do."""


@dataclass
class LiveNode:
    """An operator and its operands (node numbers or INPUT)."""

    op: Op
    operands: list[int]


Nodes = dict[int, LiveNode]

_ROUNDS = 8
"""Rounds of refinement, each one operation further: differences as near as this decide first."""


def emit(
    live: Nodes, roots: list[int], hanging: Callable[[], dict[int, list[str]]]
) -> tuple[dict[int, int], list[str]]:
    """Line number of every node, and the lines. Inputs come first, in the declared order.

    `hanging` gives the dead work on each node; it decides between nodes that are exchangeable otherwise.
    """
    ordered = _ordered_operands(live, roots, hanging)
    position: dict[int, int] = {}
    for number, node in live.items():
        if node.op.name == "in":
            position[number] = len(position)
    for root in roots:
        _walk(root, live, ordered, position)
    lines = [""] * len(position)
    for number, line in position.items():
        node = live[number]
        lines[line] = _line(node.op, *_references(live, ordered[number], line, position))
    return position, lines


def _references(live: Nodes, operands: list[int], line: int, position: dict[int, int]) -> tuple[list[int], list[str]]:
    """How far back each operand stands, 0 for a constant, and the words of the constants."""
    distances, words = [], []
    for x in operands:
        constant = x >= 0 and live[x].op.inline
        distances.append(0 if constant else line - position.get(x, -1))
        if constant:
            words.append(live[x].op.text)
    return distances, words


def _walk(root: int, live: Nodes, ordered: dict[int, list[int]], position: dict[int, int]) -> None:
    """Depth-first, operands before their user, constants last."""
    stack = [root] if root >= 0 else []
    while stack:
        number = stack[-1]
        waiting = [x for x in ordered[number] if x >= 0 and x not in position and not live[x].op.inline]
        if number in position:
            stack.pop()
        elif waiting:
            stack.append(next((x for x in waiting if live[x].op.name != "const"), waiting[0]))
        else:
            position[number] = len(position)
            stack.pop()


def _line(op: Op, distances: list[int], constants: list[str]) -> str:
    """Words and references. The value of the line before is implied: as the only operand, as one operand of a
    commutative operation, as the last operand of any other, or as the first before constants; "of" says that it is no
    operand, or not in that place."""
    if len(distances) == 1 and not constants:
        return op.text if distances[0] == 1 else f"{op.text} @{distances[0]}"
    fewest = op.spec.arity if isinstance(op.spec.arity, int) else op.spec.arity[0]
    if not distances and fewest == 0 and isinstance(op.spec.arity, int):
        return op.text
    if op.spec.commutative:
        distances, constants = sorted(filter(None, distances)), sorted(constants)
        implied = distances[:1] == [1]
        words = [f"@{d}" for d in distances[implied:]] + constants
    else:
        filled = iter(constants)
        words = [f"@{d}" if d else next(filled) for d in distances]
        place = 0 if constants else -1
        implied = fewest > 1 and distances[place] == 1  # else their number would not be known
        if implied:
            words.pop(place)
    return " ".join([op.text, *words] if implied else [op.text, "of", *words])


def _ordered_operands(
    live: Nodes, roots: list[int], hanging: Callable[[], dict[int, list[str]]]
) -> dict[int, list[int]]:
    """Operands of every node, those of commutative operations by structure."""
    ordered = {number: node.operands for number, node in live.items()}
    for block, cut in _blocks(live, roots):
        joins = [n for n in block if live[n].op.spec.commutative]
        if not joins:
            continue
        colour: dict[int, Any] = {}
        for x in {x for n in joins for x in live[n].operands}:
            colour[x] = ("",) if x == cut else _near(live, x, cut)
        if any(_tied(live[n].operands, colour) for n in joins):
            colour = _refine(live, block, cut, joins, hanging())
        for n in joins:
            ordered[n] = sorted(live[n].operands, key=colour.__getitem__)
    return ordered


def _near(live: Nodes, n: int, cut: int) -> tuple[str, ...]:
    """A node's words and those of its operands: what `_refine` looks at first, and mostly enough."""
    words = ["" if x == cut else live[x].op.text for x in live[n].operands]
    return (live[n].op.text, *(sorted(words) if live[n].op.spec.commutative else words))


def _blocks(live: Nodes, roots: list[int]) -> Iterable[tuple[list[int], int]]:
    """The nodes between one cut and the next (that one included), with the cut they start from."""
    numbers = list(live)
    place = {n: i for i, n in enumerate(numbers)}
    lowest = min((place.get(r, -1) for r in roots), default=-1)
    ends = []
    for i in range(len(numbers) - 1, -1, -1):
        if lowest >= i:
            ends.append(i)
        for x in live[numbers[i]].operands:
            lowest = min(lowest, place.get(x, -1))
    start, cut = 0, INPUT
    for end in [*reversed(ends), len(numbers) - 1]:
        if end >= start:
            yield numbers[start : end + 1], cut
            start, cut = end + 1, numbers[end]


def _tied(operands: list[int], colour: dict[int, Any]) -> bool:
    distinct = set(operands)
    return len({colour[x] for x in distinct}) < len(distinct)


def _refine(live: Nodes, block: list[int], cut: int, joins: list[int], hanging: dict[int, list[str]]) -> dict[int, int]:
    """Colours that tell all operands of a commutative operation apart.

    By what lies above (operands), nearest first, then by users, then by dead work. A few rounds find any near
    difference; one digest of everything above, or below, finds the rest in linear time. What users or dead work tell
    apart may tell what stands on it apart, so it begins again. When nothing is found any more, nodes that remain equal
    are exchangeable: one is singled out and it begins again.
    """
    users: dict[int, list[tuple[int, int]]] = {n: [] for n in (*block, cut)}
    for n in block:
        for slot, x in enumerate(live[n].operands):
            users[x].append((n, -1 if live[n].op.spec.commutative else slot))
    users[cut], users[block[-1]] = [], []  # what lies outside of the block must not matter
    above, below = partial(_above, live, block), partial(_below, users)
    stages: list[Callable[[dict[int, int]], dict[int, Any]]] = [*[above] * _ROUNDS, partial(_digest_above, live, block)]
    stages += [*[below] * _ROUNDS, partial(_digest_below, users, block)]
    stages += [lambda colour: {n: tuple(hanging.get(n, ())) for n in colour}]
    colour = _numbered({n: live[n].op.text for n in block} | {cut: ""})
    while True:
        known = len(set(colour.values()))
        for stage in stages:
            keys = stage(colour)
            colour = _numbered({n: (c, keys.get(n, ())) for n, c in colour.items()})
            joins = [n for n in joins if _tied(live[n].operands, colour)]
            if not joins:
                return colour
        if len(set(colour.values())) == known:
            colour = _single_out(live[min(joins, key=colour.__getitem__)].operands, colour)


def _above(live: Nodes, block: list[int], colour: dict[int, int]) -> dict[int, Any]:
    keys: dict[int, Any] = {}
    for n in block:
        colours = [colour[x] for x in live[n].operands]
        keys[n] = tuple(sorted(colours) if live[n].op.spec.commutative else colours)
    return keys


def _below(users: dict[int, list[tuple[int, int]]], colour: dict[int, int]) -> dict[int, Any]:
    return {n: tuple(sorted((colour[u], slot) for u, slot in row)) for n, row in users.items()}


def _digest_above(live: Nodes, block: list[int], colour: dict[int, int]) -> dict[int, Any]:
    digests: dict[int, bytes] = {}
    for n in block:
        parts = [digests.get(x, b"") for x in live[n].operands]
        digests[n] = _digest(colour[n], sorted(parts) if live[n].op.spec.commutative else parts)
    return {n: (digest,) for n, digest in digests.items()}


def _digest_below(users: dict[int, list[tuple[int, int]]], block: list[int], colour: dict[int, int]) -> dict[int, Any]:
    digests: dict[int, bytes] = {}
    for n in reversed(block):
        digests[n] = _digest(colour[n], sorted(b"%d:%b" % (slot, digests[u]) for u, slot in users[n]))
    return {n: (digest,) for n, digest in digests.items()}


def _digest(colour: int, parts: list[bytes]) -> bytes:
    return blake2b(b"%d|" % colour + b"|".join(parts), digest_size=16).digest()


def _numbered(keys: dict[int, Any]) -> dict[int, int]:
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
    return {n: ranks[key] for n, key in keys.items()}


def _single_out(operands: list[int], colour: dict[int, int]) -> dict[int, int]:
    """Put the first of the tied operands with the smallest colour before its equals."""
    counts: dict[int, int] = {}
    for x in set(operands):
        counts[colour[x]] = counts.get(colour[x], 0) + 1
    tied = min(c for c, n in counts.items() if n > 1)
    chosen = min(x for x in operands if colour[x] == tied)
    return _numbered({n: (c, n != chosen) if c == tied else (c, False) for n, c in colour.items()})

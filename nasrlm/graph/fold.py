"""Repetition in a list of lines: runs written once with a count, repeated blocks named and called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product

# A run: five or more times the same one or two lines, or three and more times a block of three and more.
# Shortest block first. Shorter repetitions stay as they are: inside a cell they would hide that cells are equal.
_RUN = re.compile(r"(.{1,2})\1{4,}|(.{3,96}?)\2{2,}", re.DOTALL)
_BASE = 0x10000
"""Lines are compared as characters of a string from here on (behind the surrogates), so that `re` does the work."""
_LONGEST, _SHORTEST = 256, 3
_PASSES, _MOST_CANDIDATES = 3, 64
"""Bounds that keep the search linear; real networks stay far below them."""


@dataclass(frozen=True)
class Block:
    """Lines that stand here `times` times."""

    lines: tuple[str, ...]
    times: int = 1


Item = str | Block


def fold(lines: Sequence[str]) -> list[Item]:
    """Lines and blocks; depends on nothing but the lines."""
    known = list(dict.fromkeys(lines))
    chars = {line: chr(_BASE + i) for i, line in enumerate(known)}
    text = "".join(map(chars.__getitem__, lines))
    items, alphabet = _fold_runs(text)
    items = _fold_repeats(items, alphabet, [len(line.split()) for line in known])
    return [_item(c, alphabet, known) for c in items]


class _Alphabet:
    """Characters for blocks, beyond those of the lines; runs are unique, so that nothing matches across them."""

    def __init__(self) -> None:
        self.blocks: dict[str, tuple[str, int]] = {}
        self._free = map(chr, count(0x100))

    def add(self, content: str, times: int) -> str:
        char = next(self._free)
        self.blocks[char] = (content, times)
        return char


def _fold_runs(text: str) -> tuple[str, _Alphabet]:
    alphabet, seen = _Alphabet(), set[str]()
    parts, done = [], 0
    for match in _RUN.finditer(text):
        start, stop = match.span()
        period = len(match[1] or match[2])
        times = (stop - start) // period
        start += _rotation(text, start, stop, period, seen)
        content = text[start : start + period]
        seen.add(content)
        parts += [text[done:start], alphabet.add(content, times)]
        done = start + period * times
    return "".join([*parts, text[done:]]), alphabet


def _rotation(text: str, start: int, stop: int, period: int, seen: set[str]) -> int:
    """How far to shift a run that goes on for a part of its period, to make it one that was seen before."""
    shift = 0
    while True:
        if text[start + shift : start + shift + period] in seen:
            return shift
        end = stop + shift
        if shift + 1 >= period or end >= len(text) or text[end] != text[start + shift]:
            return 0
        shift += 1


def _fold_repeats(items: str, alphabet: _Alphabet, words: list[int]) -> str:
    """Name repeated blocks, those that save most words first; replacing one can make room for another."""

    def gain(content: str) -> int:
        return (items.count(content) - 1) * (sum(words[ord(c) - _BASE] for c in content) - 1) - 2

    for _ in range(_PASSES):
        before = items
        for content in sorted(_repeats(items), key=gain, reverse=True):
            if gain(content) > 0:
                items = items.replace(content, alphabet.add(content, 1))
        if items == before:
            break
    return items


def _repeats(items: str) -> list[str]:
    """Repeated stretches of lines, each extended to the right as far as it goes; of very many the longest."""
    first: dict[str, int] = {}
    reach = 0
    found: dict[str, None] = {}
    for i in range(len(items) - _SHORTEST + 1):
        key = items[i : i + _SHORTEST]
        earlier = first.setdefault(key, i)
        if earlier + _SHORTEST > i or i < reach or min(key) < chr(_BASE):
            continue
        length, most = _SHORTEST, min(i - earlier, _LONGEST, len(items) - i)
        while length < most and ord(items[i + length]) >= _BASE and items[i + length] == items[earlier + length]:
            length += 1
        reach = i + length - _SHORTEST
        found[items[i : i + length]] = None
    return sorted(found, key=len, reverse=True)[:_MOST_CANDIDATES]


def _item(char: str, alphabet: _Alphabet, known: list[str]) -> Item:
    if char not in alphabet.blocks:
        return known[ord(char) - _BASE]
    content, times = alphabet.blocks[char]
    return Block(tuple(known[ord(c) - _BASE] for c in content), times)


def names() -> Iterator[str]:
    """A, B, ... Z, AA, AB, ..."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for length in count(1):
        yield from map("".join, product(letters, repeat=length))

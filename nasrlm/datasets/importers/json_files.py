"""JSON files: whole, or one object of a long list at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from nasrlm.datasets.importers.protocol import damaged

_CHUNK = 1 << 20
_LARGEST = 1 << 26  # characters of one object
_DECODER = json.JSONDecoder()

Item = tuple[int, int, Any]
"""Number, counted from 1; the character it begins at; the object."""


def load_json(file: Path) -> Any:
    """The value in a JSON file.

    Raises:
        TableError: it cannot be read; with the place.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise damaged(file, "", error.strerror or error) from error
    except json.JSONDecodeError as error:
        raise damaged(file, f"line {error.lineno}, character {error.pos:,}", error.msg) from error
    except UnicodeDecodeError as error:
        raise damaged(file, f"byte {error.start:,}", "no UTF-8 text") from error


def stream_objects(file: Path) -> Iterator[Item]:
    """The objects of the list in a JSON file, or of the lists in its object, without reading it at once.

    Raises:
        TableError: it is cut short, or holds something else; with number and place.
    """
    try:
        with open(file, encoding="utf-8") as stream:
            yield from _Reader(file, stream).objects()
    except OSError as error:
        raise damaged(file, "", error.strerror or error) from error
    except UnicodeDecodeError as error:
        raise damaged(file, "", f"no UTF-8 text ({error.reason})") from error


class _Reader:
    """A window of the text: `text[at:]` is not yet read; `before` characters stand in front of `text`."""

    def __init__(self, file: Path, stream: IO[str]) -> None:
        self.file, self.stream = file, stream
        self.text, self.at, self.before, self.number = "", 0, 0, 0

    def objects(self) -> Iterator[Item]:
        if self.next() == "[":
            yield from self.items()
        elif self.skip("{"):
            while not self.skip("}"):
                self.value()
                self.expect(":")
                yield from self.items()
                self.skip(",")
        else:
            raise self.wrong("neither a list nor an object of lists")
        if self.next():
            raise self.wrong("something follows the end of the list")

    def items(self) -> Iterator[Item]:
        self.expect("[")
        while not self.skip("]"):
            if self.next() != "{":
                raise self.wrong("the file ends" if not self.next() else "no object begins where one should")
            self.number += 1
            start = self.before + self.at
            yield self.number, start, self.value()
            self.skip(",")

    def value(self) -> Any:
        """The object or text that begins here."""
        while True:
            try:
                value, self.at = _DECODER.raw_decode(self.text, self.at)
                return value
            except json.JSONDecodeError as error:
                if len(self.text) - self.at > _LARGEST or not self.more():
                    raise self.wrong(error.msg) from error

    def next(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def skip(self, mark: str) -> bool:
        found = self.next() == mark
        self.at += found
        return found

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise self.wrong(f"{mark!r} is missing")

    def more(self) -> bool:
        chunk = self.stream.read(max(_CHUNK, len(self.text) - self.at))
        self.before += self.at
        self.text, self.at = self.text[self.at :] + chunk, 0
        return bool(chunk)

    def wrong(self, reason: str) -> Exception:
        return damaged(self.file, f"object {self.number} at character {self.before + self.at:,}", reason)

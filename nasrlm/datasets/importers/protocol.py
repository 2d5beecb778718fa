"""What an importer is: paths go in, columns and a stream of rows come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nasrlm.errors import TableError, nearest

Row = dict[str, Any]
"""Column -> value; a metric that is not known is left out."""
QUOTED = 100
"""Reasons that are kept of rows that could not be read."""


class Skipped:
    """Rows that could not be read: how many, and the first reasons, one line each with its place.

    >>> skipped = Skipped()
    >>> skipped.add("row 2: no network")
    >>> skipped.count, skipped.reasons
    (1, ['row 2: no network'])
    """

    def __init__(self) -> None:
        self.count = 0
        self.reasons: list[str] = []

    def add(self, reason: str) -> None:
        """Count one more; its reason is kept if it is among the first hundred."""
        self.count += 1
        if len(self.reasons) < QUOTED:
            self.reasons.append(reason)


@dataclass(frozen=True, eq=False)
class Published:
    """A published file that was opened.

    Attributes:
        space: the search space whose official strings stand in the column ``arch``; "" where rows hold networks
            as text instead.
        metrics: columns of numbers, in our form (``accuracy/cifar10``).
        rows: pairs of units done so far and a row (None where there is nothing but progress); read once.
        total: units in all.
        unit: what is counted: "MB", "files", "architectures".
        texts: columns of text.
        skipped: rows that could not be read; grows while the rows are read.
    """

    space: str
    metrics: tuple[str, ...]
    rows: Iterator[tuple[float, Row | None]]
    total: float
    unit: str = "architectures"
    texts: tuple[str, ...] = ("arch",)
    skipped: Skipped = field(default_factory=Skipped)


@dataclass(frozen=True)
class Importer:
    """One published format; a module of :mod:`nasrlm.datasets.importers` defines it as ``IMPORTER``.

    Attributes:
        paths: what to give as PATH, in words.
        source: who published it, and where.
        open: opens the paths.
    """

    paths: str
    source: str
    open: Callable[[Sequence[Path]], Published]


def one_path(paths: Sequence[Path], expected: str) -> Path:
    """The only path given.

    Raises:
        TableError: none, or several.
    """
    if len(paths) != 1:
        given = ", ".join(map(str, paths)) or "none"
        raise TableError(f"expected one path, {expected}; given are {len(paths)}: {given}.")
    return existing(paths[0])


def existing(path: Path) -> Path:
    """The path, if there is something.

    Raises:
        TableError: there is not; the message names what is nearest.
    """
    if not path.exists():
        close = nearest(path.name, (p.name for p in path.parent.glob("*")))
        also = f" Nearest in {path.parent}: {', '.join(close)}." if close else ""
        raise TableError(f"there is no file or folder {path}.{also} Correct the path.")
    return path


def files_in(path: Path, patterns: Iterable[str]) -> list[Path]:
    """The files of a folder and those below it that fit one of the patterns, by name; a file stands for itself.

    Raises:
        TableError: nothing fits.
    """
    patterns = tuple(patterns)
    if existing(path).is_file():
        return [path]
    found = sorted({file for pattern in patterns for file in path.rglob(pattern) if file.is_file()})
    if not found:
        raise TableError(f"the folder {path} holds no file named {' or '.join(patterns)}. Give the published folder.")
    return found


def damaged(file: Path, place: str, reason: object) -> TableError:
    """The error for a published file that cannot be read; the caller raises it.

    Args:
        file: which.
        place: record and offset, where it is known.
        reason: what is wrong.

    >>> print(damaged(Path("a.json"), "record 3 at byte 120", "no number"))
    a.json, record 3 at byte 120: no number. Is the file complete, and of this format?
    """
    at = f", {place}" if place else ""
    return TableError(f"{file}{at}: {str(reason).rstrip('.')}. Is the file complete, and of this format?")


def not_published(file: Path, place: str, error: Exception) -> TableError:
    """The error for a file that can be read and has another structure than the published one.

    >>> print(not_published(Path("a.json"), "model 3", KeyError("net")))
    a.json, model 3: it has no 'net'. Is the file complete, and of this format?
    """
    if isinstance(error, KeyError):
        return damaged(file, place, f"it has no {error}")
    return damaged(file, place, f"it has another structure than the published file ({error})")


STRUCTURE = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What a value of another structure raises where it is taken apart."""

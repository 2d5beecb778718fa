"""What a run tells about itself while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """How far one part of a run is.

    Attributes:
        what: the part: "search", "train", "confirm" ...
        done: units done so far.
        total: units in all.
        detail: a few words on the state, such as "hypervolume 412.3".
    """

    what: str
    done: float
    total: float
    detail: str = ""


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """A Progress that says nothing."""

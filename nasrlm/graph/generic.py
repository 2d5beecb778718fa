"""Operators that have no word of their own: any ONNX operator, written in full (`onnx:TopK axis=1`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nasrlm.graph.spec import OpSpec

if TYPE_CHECKING:
    from nasrlm.graph.ops import Op

GENERIC: dict[str, OpSpec] = {}

_HEAD = re.compile(r"[a-z][\w.]*:[A-Za-z]\w*")


def is_generic(word: str) -> bool:
    """Whether a word begins a line of an operator that is written in full."""
    return _HEAD.fullmatch(word) is not None


def read_generic(words: Sequence[str]) -> tuple[Op, list[str]]:
    """The operator of a line and its references ("of" among them)."""
    raise NotImplementedError

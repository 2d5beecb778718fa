"""Dimensions: whole numbers, and symbols for sizes that are only known at run time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from math import prod
from typing import Any

from nasrlm.errors import ExportError

Shape = tuple[int, ...]
"""Dimensions with the batch first: (1, 3, 32, 32). A dynamic one is a sympy expression of `symbol`s."""

_WORD = re.compile(r"(\d*)\?(\d+)")


def symbol(number: int) -> Any:
    """The dynamic dimension of this number, a positive whole sympy symbol; text writes it `?0`, `?1` ..."""
    from sympy import Symbol  # takes half a second to load, and few networks need it

    return Symbol(f"d{number}", integer=True, positive=True)


def is_dynamic(shape: Iterable[Any]) -> bool:
    """Whether a dimension is not a number."""
    return any(not isinstance(d, int) for d in shape)


def dim_word(dim: Any) -> str:
    """A dimension as text: `32`, `?0`, or `8?0` for eight times the dynamic dimension 0.

    Raises:
        ExportError: a dimension that is another expression.
    """
    if isinstance(dim, int):
        return str(dim)
    factor, rest = dim.as_coeff_Mul()
    if rest.is_Symbol and factor.is_Integer and rest.name[1:].isdecimal():
        return f"{'' if factor == 1 else int(factor)}?{rest.name[1:]}"
    raise ExportError(
        f"the dynamic dimension {dim} has no place in the text. Allowed: a number, a dynamic input dimension, or a "
        "multiple of one. Export with fixed input sizes."
    )


def shape_word(shape: Iterable[Any]) -> str:
    """A shape as text: `1x3x32x32`; `-` has no dimension."""
    return "x".join(map(dim_word, shape)) or "-"


def read_shape(text: str) -> tuple[Any, ...] | None:
    """Inverse of `shape_word`; None for foreign text."""
    if text == "-":
        return ()
    dims = [read_dim(word) for word in text.split("x")]
    return None if None in dims else tuple(dims)


def read_dim(word: str) -> Any:
    """Inverse of `dim_word`; None for foreign text."""
    if word.isdecimal():
        return int(word)
    match = _WORD.fullmatch(word)
    return int(match[1] or 1) * symbol(int(match[2])) if match else None


def size(shape: Iterable[Any]) -> int:
    """Number of entries, each dynamic dimension counted as 1.

    Example:
        >>> size((2, 3, symbol(0)))
        6
    """
    return int(prod(d if isinstance(d, int) else fixed(d) for d in shape))


def fixed(dim: Any) -> int:
    """A dimension with every symbol set to 1."""
    return dim if isinstance(dim, int) else max(int(dim.subs({s: 1 for s in dim.free_symbols})), 1)


def tidy(dim: Any) -> Any:
    """A whole number as an int, whatever arithmetic made it."""
    return int(dim) if isinstance(dim, int) or getattr(dim, "is_Integer", False) else dim


def fresh(text: str, output: int, axis: int) -> Any:
    """The symbol of a size that depends on the data; the same operator always gives the same."""
    from sympy import Symbol

    digest = blake2b(f"{text} {output} {axis}".encode(), digest_size=6).hexdigest()
    return Symbol(f"u{digest}", integer=True, positive=True)

"""What the tables of operators are made of: attributes as words, and the facts of an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nasrlm.graph.dims import Shape, read_shape, shape_word

if TYPE_CHECKING:
    from nasrlm.graph.ops import Op

FLOAT = "float32"
DTYPES = (
    *("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "string"),
)
"""Element types, in the words of numpy and of the text."""


@dataclass(frozen=True)
class Field:
    """One attribute: `word(value, op)` is "" for the default, `read(word, rank)` is None for a foreign word."""

    name: str
    word: Callable[[Any, Op], str]
    read: Callable[[str, int], Any]
    default: Callable[[dict[str, Any], int], Any]
    """Value when no word is written, from the attributes read so far and the spatial rank."""


@dataclass(frozen=True)
class OpSpec:
    """Everything the rooms need to know of an operator.

    Attributes:
        shape: shape of the value from the operator and its operands' shapes; a tuple of shapes where the operator gives
            several values, which `item` takes apart.
        fields: the attributes, in the order in which they are written.
        arity: number of operands, or (fewest, most) of them; no most = any number.
        commutative: operands may stand in any order.
        parameters: trainable parameters, from the operator and its operands' shapes.
        macs: multiply-accumulates, from the operator, the value's shape and its operands' shapes.
        dtype: element type of the value from the operator and its operands' types; None = that of the first operand.
        inline: a constant that is written as an operand, not as a line of its own.
    """

    shape: Callable[..., Shape]
    fields: tuple[Field, ...] = ()
    arity: int | tuple[int, int | None] = 1
    commutative: bool = False
    parameters: Callable[..., int] | None = None
    macs: Callable[..., int] | None = None
    dtype: Callable[..., Any] | None = None
    inline: bool = False

    index: dict[str, int] = field(init=False, repr=False)
    """Position of each field by name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {f.name: i for i, f in enumerate(self.fields)})

    def takes(self, operands: int) -> bool:
        """Whether this many operands are allowed."""
        if isinstance(self.arity, int):
            return operands == self.arity
        fewest, most = self.arity
        return fewest <= operands and (most is None or operands <= most)


MANY = (2, None)
"""Two operands or more."""


def same(_: Op, x: Shape, *__: Shape) -> Shape:
    """The shape of the first operand."""
    return x


# --- kinds of attributes ---------------------------------------------------------------------------------------


def spatial_word(values: Shape) -> str:
    """(3, 3) -> "3"; (1, 7) -> "1x7"."""
    return str(values[0]) if len(set(values)) == 1 else "x".join(map(str, values))


def read_numbers(text: str) -> tuple[int, ...] | None:
    """ "1x7" -> (1, 7); None for foreign text."""
    parts = text.split("x")
    return tuple(map(int, parts)) if all(p.isdecimal() for p in parts) else None


def flag(name: str, word: str, *, when: bool) -> Field:
    """A yes/no attribute, written as `word` when its value is `when`."""
    return Field(
        name,
        lambda v, _: word if v is when else "",
        lambda w, _: when if w == word else None,
        lambda *_: not when,
    )


def spatial_field(name: str, prefix: str, default: int) -> Field:
    """One number for each dimension after the channels, written once where all are equal."""

    def word(value: Shape, _: Op) -> str:
        return "" if set(value) == {default} else prefix + spatial_word(value)

    def read(word: str, rank: int) -> Any:
        numbers = read_numbers(word[len(prefix) :]) if word.startswith(prefix) else None
        return numbers * rank if numbers and len(numbers) == 1 else numbers

    return Field(name, word, read, lambda _, rank: (default,) * rank)


def number_field(name: str, prefix: str, default: float | None) -> Field:
    """A float32 number; None stands for what the operator does by itself."""

    def read(word: str, _: int) -> Any:
        return read_number(word[len(prefix) :]) if word.startswith(prefix) else None

    def written(value: float | None, _: Op) -> str:
        word = "" if value is None else number_word(value)
        return "" if not word or (default is not None and word == number_word(default)) else prefix + word

    return Field(name, written, read, lambda *_: default)


def number_word(value: float) -> str:
    """The shortest digits that give the same float32: 0.1, 1e-05, -inf."""
    from numpy import float32

    word = str(float32(value))
    return word.removesuffix(".0")


def shortest(value: float) -> float:
    """The number with the fewest digits that is the same float32: 9.99999974e-06 -> 1e-05."""
    return float(number_word(value))


def read_number(text: str) -> float | None:
    """A number's text; None for foreign text."""
    try:
        return float(text)
    except ValueError:
        return None


def integer_field(name: str, prefix: str, default: int) -> Field:
    """A whole number."""

    def read(word: str, _: int) -> Any:
        digits = word[len(prefix) :].removeprefix("-")
        return int(word[len(prefix) :]) if word.startswith(prefix) and digits.isdecimal() else None

    return Field(name, lambda v, _: "" if v == default else f"{prefix}{v}", read, lambda *_: default)


def integers_field(name: str, prefix: str, default: tuple[int, ...] = ()) -> Field:
    """Whole numbers with commas between them, such as axes."""

    def read(word: str, _: int) -> Any:
        parts = word[len(prefix) :].split(",")
        fits = word.startswith(prefix) and all(p.removeprefix("-").isdecimal() for p in parts)
        return tuple(map(int, parts)) if fits else None

    return Field(name, lambda v, _: "" if v == default else prefix + ",".join(map(str, v)), read, lambda *_: default)


def shape_field(name: str, prefix: str = "", default: Shape | None = None) -> Field:
    """A shape."""

    def read(word: str, _: int) -> Any:
        return read_shape(word[len(prefix) :]) if word.startswith(prefix) else None

    def written(value: Shape, _: Op) -> str:
        return "" if value == default else prefix + shape_word(value)

    return Field(name, written, read, lambda *_: () if default is None else default)


def choice_field(name: str, default: str, *others: str) -> Field:
    """One of a few words."""
    return Field(
        name,
        lambda v, _: "" if v == default else v,
        lambda w, _: w if w in others else None,
        lambda *_: default,
    )


def dtype_field(default: str = FLOAT) -> Field:
    """An element type."""
    return choice_field("dtype", default, *(d for d in DTYPES if d != default))


AXIS = integer_field("axis", "a", 1)
EPSILON = number_field("epsilon", "e", 1e-5)

"""The operators of a graph: attributes, words, shapes, parameters and MACs, one table for all rooms.

An `Op` is interned and knows no absolute shape: the output channels of a convolution are kept relative
to its input ("" equal, "*2" twice, "/4" a quarter, "24" anything else) and a depthwise convolution says
"dw". The same cell at another width is therefore made of the very same objects, which lets canonical
form and text be computed once a distinct block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from nasrlm.errors import ExportError

Shape = tuple[int, ...]
"""Dimensions with the batch first: (1, 3, 32, 32)."""


class Op:
    """An operator with its attributes; make it with `op(...)`, compare it with `is`.

    Attributes:
        name: the operator's word, such as "conv".
        attrs: attribute values in the order of the operator's fields.
        text: the words of the canonical text, without references: "conv *2 k3 s2".
    """

    __slots__ = ("attrs", "name", "spec", "text")

    def __init__(self, name: str, attrs: tuple[Any, ...]) -> None:
        self.name = name
        self.attrs = attrs
        self.spec = SPECS[name]
        words = (f.word(value, self) for f, value in zip(self.spec.fields, attrs, strict=True))
        self.text = " ".join((name, *filter(None, words)))

    def __getitem__(self, name: str) -> Any:
        return self.attrs[self.spec.index[name]]

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def replace(self, **changes: Any) -> Op:
        """The same operator with some attributes changed."""
        values = dict(zip(self.spec.index, self.attrs, strict=True)) | changes
        return op(self.name, *values.values())


_INTERNED: dict[tuple[str, tuple[Any, ...]], Op] = {}


def op(name: str, *attrs: Any) -> Op:
    """The one `Op` object of this name and these attributes."""
    key = (name, attrs)
    found = _INTERNED.get(key)
    if found is None:
        found = _INTERNED[key] = Op(name, attrs)
    return found


# --- attributes: how each is written as a word and read back -------------------------------------------------


@dataclass(frozen=True)
class Field:
    """One attribute: `word(value, op)` is "" for the default, `read(word, rank)` is None for a foreign word."""

    name: str
    word: Callable[[Any, Op], str]
    read: Callable[[str, int], Any]
    default: Callable[[dict[str, Any], int], Any]
    """Value when no word is written, from the attributes read so far and the spatial rank."""


def _spatial(values: tuple[int, ...]) -> str:
    """(3, 3) -> "3"; (1, 7) -> "1x7"."""
    return str(values[0]) if len(set(values)) == 1 else "x".join(map(str, values))


def _read_numbers(text: str) -> tuple[int, ...] | None:
    parts = text.split("x")
    return tuple(map(int, parts)) if all(p.isdecimal() for p in parts) else None


def _read_spatial(prefix: str) -> Callable[[str, int], Any]:
    def read(word: str, rank: int) -> Any:
        numbers = _read_numbers(word[len(prefix) :]) if word.startswith(prefix) else None
        return numbers * rank if numbers and len(numbers) == 1 else numbers

    return read


def same_padding(kernel: Shape, dilation: Shape) -> Shape:
    """Begin and end padding that keeps the size at stride 1 for odd kernels: (top, left, bottom, right)."""
    return tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True)) * 2


def _padding_word(value: Shape, op_: Op) -> str:
    dilation = op_["dilation"] if "dilation" in op_.spec.index else (1,) * len(op_["kernel"])
    if value == same_padding(op_["kernel"], dilation):
        return ""
    half = len(value) // 2
    return "p" + (_spatial(value[:half]) if value[:half] == value[half:] else "x".join(map(str, value)))


def _read_padding(word: str, rank: int) -> Any:
    numbers = _read_numbers(word[1:]) if word.startswith("p") else None
    if numbers is None or len(numbers) == 2 * rank:
        return numbers
    return (numbers * rank if len(numbers) == 1 else numbers) * 2


def _default_padding(attrs: dict[str, Any], rank: int) -> Shape:
    return same_padding(attrs["kernel"], attrs.get("dilation", (1,) * rank))


def _flag(name: str, word: str, *, when: bool) -> Field:
    """A yes/no attribute, written as `word` when its value is `when`."""
    return Field(
        name,
        lambda v, _: word if v is when else "",
        lambda w, _: when if w == word else None,
        lambda *_: not when,
    )


def _spatial_field(name: str, prefix: str, default: int) -> Field:
    def word(value: Shape, _: Op) -> str:
        return "" if set(value) == {default} else prefix + _spatial(value)

    return Field(name, word, _read_spatial(prefix), lambda _, rank: (default,) * rank)


def _read_width(word: str, _: int) -> str | None:
    return word if word.lstrip("*/").isdecimal() else None


def _read_groups(word: str, _: int) -> Any:
    if word == "dw":
        return "dw"
    return int(word[1:]) if word[0] == "g" and word[1:].isdecimal() else None


def _number_field(name: str, prefix: str, default: float) -> Field:
    def read(word: str, _: int) -> Any:
        try:
            return float(word[len(prefix) :]) if word.startswith(prefix) else None
        except ValueError:
            return None

    return Field(name, lambda v, _: "" if v == default else f"{prefix}{v:.9g}", read, lambda *_: default)


def _integer_field(name: str, prefix: str, default: int) -> Field:
    def read(word: str, _: int) -> Any:
        digits = word[len(prefix) :].lstrip("-")
        return int(word[len(prefix) :]) if word.startswith(prefix) and digits.isdecimal() else None

    return Field(name, lambda v, _: "" if v == default else f"{prefix}{v}", read, lambda *_: default)


def _list_field(name: str, prefix: str, default: tuple[int, ...] = ()) -> Field:
    def read(word: str, _: int) -> Any:
        return _read_numbers(word[len(prefix) :]) if word.startswith(prefix) else None

    return Field(name, lambda v, _: "" if v == default else prefix + "x".join(map(str, v)), read, lambda *_: default)


WIDTH = Field("width", lambda v, _: v, _read_width, lambda *_: "")
KERNEL, POOL_KERNEL = _spatial_field("kernel", "k", 1), _spatial_field("kernel", "k", 3)
STRIDE, DILATION = _spatial_field("stride", "s", 1), _spatial_field("dilation", "d", 1)
PADDING = Field("padding", _padding_word, _read_padding, _default_padding)
GROUPS = Field("groups", lambda v, _: "dw" if v == "dw" else f"g{v}" if v != 1 else "", _read_groups, lambda *_: 1)
BIAS = _flag("bias", "nobias", when=False)
CEIL = _flag("ceil", "ceil", when=True)
INCLUDE_PADDING = _flag("include_padding", "padded", when=True)
AXIS = _integer_field("axis", "a", 1)


def relative_width(channels: int, out: int) -> str:
    """Output channels as a word relative to the input: 16, 16 -> ""; 16, 32 -> "*2"; 64, 16 -> "/4"; 16, 24 -> "24"."""
    if out == channels:
        return ""
    if out % channels == 0:
        return f"*{out // channels}"
    return f"/{channels // out}" if channels % out == 0 else str(out)


def absolute_width(channels: int, word: str) -> int:
    """Inverse of `relative_width`."""
    if not word:
        return channels
    if word[0] == "*":
        return channels * int(word[1:])
    return channels // int(word[1:]) if word[0] == "/" else int(word)


def group_count(op_: Op, channels: int) -> int:
    """Number of groups of a convolution for this many input channels."""
    return channels if op_["groups"] == "dw" else op_["groups"]


# --- shapes ------------------------------------------------------------------------------------------------------


def _window(size: int, kernel: int, stride: int, pad: int, dilation: int, ceil: bool) -> int:
    span = size + pad - dilation * (kernel - 1) - 1
    if span < 0:
        raise ExportError(
            f"a window of {kernel} (dilation {dilation}) does not fit a size of {size} with padding {pad}"
        )
    steps = -(-span // stride) if ceil else span // stride
    # ONNX and PyTorch: in ceil mode the last window must begin inside the input or its first padding.
    if ceil and steps * stride >= size + pad // 2:
        steps -= 1
    return steps + 1


def _slide(op_: Op, spatial: Shape, dilation: Shape, ceil: bool = False) -> Shape:
    rank = len(op_["kernel"])
    if len(spatial) != rank:
        raise ExportError(f"'{op_.text}' slides over {rank} dimensions, its input has {len(spatial)}")
    pads = op_["padding"]
    return tuple(
        _window(size, op_["kernel"][i], op_["stride"][i], pads[i] + pads[i + rank], dilation[i], ceil)
        for i, size in enumerate(spatial)
    )


def _conv_shape(op_: Op, x: Shape) -> Shape:
    groups, out = group_count(op_, x[1]), absolute_width(x[1], op_["width"])
    if x[1] % groups or out % groups:
        raise ExportError(f"'{op_.text}' cannot split {x[1]} input and {out} output channels into {groups} groups")
    return (x[0], out, *_slide(op_, x[2:], op_["dilation"]))


def _pool_shape(op_: Op, x: Shape) -> Shape:
    return (*x[:2], *_slide(op_, x[2:], (1,) * len(op_["kernel"]), op_["ceil"]))


def _broadcast(op_: Op, *shapes: Shape) -> Shape:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    out = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    if any(size not in (1, out[i]) for s in padded for i, size in enumerate(s)):
        raise ExportError(f"'{op_.name}' cannot broadcast the shapes {' and '.join(map(str, shapes))}")
    return out


def _concat_shape(op_: Op, *shapes: Shape) -> Shape:
    axis = op_["axis"]
    if len({s[:axis] + s[axis + 1 :] for s in shapes}) != 1:
        raise ExportError(
            f"'concat' along axis {axis} needs equal other dimensions, got {' and '.join(map(str, shapes))}"
        )
    return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])


def _slice_shape(op_: Op, x: Shape) -> Shape:
    axis, start, stop = op_["axis"], op_["start"], op_["stop"]
    if not 0 <= start < stop <= x[axis]:
        raise ExportError(f"'slice' from {start} to {stop} is outside axis {axis} of {x}")
    return (*x[:axis], stop - start, *x[axis + 1 :])


def _pad_shape(op_: Op, x: Shape) -> Shape:
    before, rank = op_["padding"], len(x) - 2
    return (*x[:2], *(size + before[i] + before[i + rank] for i, size in enumerate(x[2:])))


# --- parameters and MACs ---------------------------------------------------------------------------------------


def _conv_parameters(op_: Op, x: Shape) -> int:
    out = absolute_width(x[1], op_["width"])
    return out * (x[1] // group_count(op_, x[1])) * prod(op_["kernel"]) + out * op_["bias"]


def _conv_macs(op_: Op, x: Shape, y: Shape) -> int:
    return prod(y) * (x[1] // group_count(op_, x[1])) * prod(op_["kernel"])


def _linear_parameters(op_: Op, x: Shape) -> int:
    out = absolute_width(x[-1], op_["width"])
    return out * x[-1] + out * op_["bias"]


@dataclass(frozen=True)
class OpSpec:
    """Everything the rooms need to know of an operator."""

    shape: Callable[..., Shape]
    fields: tuple[Field, ...] = ()
    arity: int | None = 1
    """Number of operands; None = two or more."""
    commutative: bool = False
    parameters: Callable[[Op, Shape], int] | None = None
    macs: Callable[[Op, Shape, Shape], int] | None = None

    index: dict[str, int] = field(init=False, repr=False)
    """Position of each field by name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {f.name: i for i, f in enumerate(self.fields)})


def same(_: Op, x: Shape) -> Shape:
    """The shape of the operand."""
    return x


_POOL = (POOL_KERNEL, STRIDE, PADDING, CEIL)

SPECS: dict[str, OpSpec] = {
    "in": OpSpec(lambda o: o["shape"], (_list_field("shape", ""),), arity=0),
    "const": OpSpec(lambda o: o["shape"], (_list_field("shape", ""),), arity=0),
    "conv": OpSpec(
        _conv_shape,
        (WIDTH, KERNEL, STRIDE, DILATION, PADDING, GROUPS, BIAS),
        parameters=_conv_parameters,
        macs=_conv_macs,
    ),
    "linear": OpSpec(
        lambda o, x: (*x[:-1], absolute_width(x[-1], o["width"])),
        (WIDTH, BIAS),
        parameters=_linear_parameters,
        macs=lambda o, x, y: prod(y) * x[-1],
    ),
    "bn": OpSpec(same, parameters=lambda o, x: 2 * x[1]),
    "prelu": OpSpec(same, parameters=lambda o, x: x[1]),
    "maxpool": OpSpec(_pool_shape, _POOL),
    "avgpool": OpSpec(_pool_shape, (*_POOL, INCLUDE_PADDING)),
    "gap": OpSpec(lambda o, x: (*x[:2], *(1,) * (len(x) - 2))),
    "gmp": OpSpec(lambda o, x: (*x[:2], *(1,) * (len(x) - 2))),
    "flatten": OpSpec(lambda o, x: (x[0], prod(x[1:]))),
    "add": OpSpec(_broadcast, arity=None, commutative=True),
    "mul": OpSpec(_broadcast, arity=None, commutative=True),
    "concat": OpSpec(_concat_shape, (AXIS,), arity=None),
    "slice": OpSpec(_slice_shape, (AXIS, _integer_field("start", "from", 0), _integer_field("stop", "to", -1))),
    "pad": OpSpec(_pad_shape, (_list_field("padding", "p"),)),
    "shuffle": OpSpec(same, (_integer_field("groups", "g", 2),)),
    "softmax": OpSpec(same, (AXIS,)),
    "leakyrelu": OpSpec(same, (_number_field("slope", "n", 0.01),)),
    "zeros": OpSpec(same),
    "blank": OpSpec(same),
    "after": OpSpec(lambda o, x, *_: x, arity=None),
    **{
        name: OpSpec(same)
        for name in (
            "relu",
            "relu6",
            "sigmoid",
            "tanh",
            "silu",
            "hardsigmoid",
            "hardswish",
            "identity",
            "dropout",
        )
    },
}
"""Operators by their word. `zeros` multiplies by zero: a framework runs it, its value is constant. The parser makes
two that no text has, to hold dead work: `blank` is a constant of its operand's shape and no work, `after` is its first
operand and waits for the others."""

NO_OPERATION = frozenset({"identity", "dropout", "after"})
"""Operators whose value is their first operand."""

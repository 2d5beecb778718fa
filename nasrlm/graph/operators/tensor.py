"""Element-wise operators, shapes, reductions and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape, fixed, read_shape, shape_word, size, tidy
from nasrlm.graph.spec import (
    AXIS,
    DTYPES,
    FLOAT,
    MANY,
    Field,
    OpSpec,
    dtype_field,
    flag,
    integer_field,
    integers_field,
    number_field,
    number_word,
    read_number,
    same,
    shape_field,
)

if TYPE_CHECKING:
    from nasrlm.graph.ops import Op


TO_END = 2**63 - 1
"""Where a slice stops that takes all the rest."""


def broadcast(op_: Op, *shapes: Shape) -> Shape:
    """The shape that all operands are stretched to (numpy's rules)."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    out = tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))
    if any(n not in (1, out[i]) for s in padded for i, n in enumerate(s)):
        raise ExportError(f"'{op_.name}' cannot broadcast the shapes {' and '.join(map(str, shapes))}")
    return out


def _concat_shape(op_: Op, *shapes: Shape) -> Shape:
    axis = op_["axis"]
    if len({s[:axis] + s[axis + 1 :] for s in shapes}) != 1 or not 0 <= axis < len(shapes[0]):
        raise ExportError(
            f"'concat' along axis {axis} needs equal other dimensions, got {' and '.join(map(str, shapes))}"
        )
    return (*shapes[0][:axis], tidy(sum(s[axis] for s in shapes)), *shapes[0][axis + 1 :])


def _slice_shape(op_: Op, x: Shape) -> Shape:
    axis, start, stop, step = op_["axis"], op_["start"], op_["stop"], op_["step"]
    if not 0 <= axis < len(x):
        raise ExportError(f"'slice' has the axis {axis}, its operand the shape {x}")
    if stop == TO_END:
        stop = x[axis]
    if not isinstance(x[axis], int):  # bounds below zero count from the end
        start, stop = (v + x[axis] if isinstance(v, int) and v < 0 else v for v in (start, stop))
        return (*x[:axis], tidy((stop - start + step - 1) // step), *x[axis + 1 :])
    if not 0 <= start < stop <= x[axis] or step < 1:
        raise ExportError(f"'slice' from {start} to {stop} by {step} is outside axis {axis} of {x}")
    return (*x[:axis], -(-(stop - start) // step), *x[axis + 1 :])


def _reshape_shape(op_: Op, x: Shape) -> Shape:
    target = op_["shape"]
    if -1 in target:
        rest = size(target) if all(isinstance(n, int) for n in target) else None
        known: Any = 1
        for n in target:
            known = known * (1 if n == -1 else n)
        total: Any = 1
        for n in x:
            total = total * n
        missing = tidy(total / known) if rest is None or not isinstance(total, int) else total // known
        target = tuple(missing if n == -1 else n for n in target)
    if size(target) != size(x):
        raise ExportError(f"'{op_.text}' cannot reshape {x}: {size(x)} entries are not {size(target)}")
    return target


def _expand_shape(op_: Op, x: Shape) -> Shape:
    return broadcast(op_, x, op_["shape"])


def _transpose_shape(op_: Op, x: Shape) -> Shape:
    if sorted(op_["order"]) != list(range(len(x))):
        raise ExportError(f"'{op_.text}' is no order of the {len(x)} dimensions of {x}")
    return tuple(x[i] for i in op_["order"])


def _reduced_shape(op_: Op, x: Shape) -> Shape:
    axes = op_["axes"] or tuple(range(len(x)))
    if any(not 0 <= a < len(x) for a in axes):
        raise ExportError(f"'{op_.text}' reduces an axis that {x} has not")
    if op_["keep"]:
        return tuple(1 if i in axes else n for i, n in enumerate(x))
    return tuple(n for i, n in enumerate(x) if i not in axes)


def _matmul_shape(op_: Op, x: Shape, y: Shape) -> Shape:
    if len(x) < 2 or len(y) < 2 or x[-1] != y[-2]:
        raise ExportError(f"'matmul' cannot multiply {x} by {y}: the last of the first must be the last but one")
    return (*broadcast(op_, x[:-2], y[:-2]), x[-2], y[-1]) if len(x) > 2 or len(y) > 2 else (x[0], y[1])


def _gather_shape(op_: Op, x: Shape, indices: Shape) -> Shape:
    axis = op_["axis"]
    if not 0 <= axis < len(x):
        raise ExportError(f"'gather' has the axis {axis}, its operand the shape {x}")
    return (*x[:axis], *indices, *x[axis + 1 :])


# --- constants written as operands -----------------------------------------------------------------------------


def _weight_word(shape: Shape, op_: Op) -> str:
    return "%" + shape_word(shape) + ("" if op_["dtype"] == FLOAT else f":{op_['dtype']}")


def _read_weight(word: str, _: int) -> Any:
    return read_shape(word[1:].partition(":")[0]) if word.startswith("%") else None


def _silent(name: str, part: int, default: Any) -> Field:
    """An attribute that is written within the word of another one."""
    return Field(name, lambda *_: "", lambda *_: None, lambda attrs, _: default)


def _value_word(numbers: tuple[Any, ...], op_: Op) -> str:
    """#0.125, #int64:3, #1,2,3, #2x2:1,0,0,1 - type and shape where they are not plain."""
    dtype, shape = op_["dtype"], op_["shape"]
    head = "" if dtype == FLOAT else f"{dtype}:"
    plain = shape == () or (len(shape) == 1 and shape[0] == len(numbers) != 1)
    head += "" if plain else f"{shape_word(shape)}:"
    return f"#{head}{','.join(map(entry_word, numbers))}"


def entry_word(value: Any) -> str:
    """One entry of a constant; texts as hexadecimal bytes, so that no white space comes in."""
    if isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, (bool, int)) else number_word(value)


def inline_op(word: str) -> tuple[str, tuple[Any, ...]] | None:
    """Name and attributes of the constant that a word stands for; None for another word.

    Example:
        >>> inline_op("%1x8:float16"), inline_op("#int64:3")
        (('weight', ((1, 8), 'float16')), ('value', ((3,), 'int64', ())))
    """
    if word[0] == "%":
        text, _, dtype = word[1:].partition(":")
        shape = read_shape(text)
        return None if shape is None or dtype not in ("", *DTYPES) else ("weight", (shape, dtype or FLOAT))
    *head, entries = word[1:].split(":")
    dtype = head.pop(0) if head and head[0] in DTYPES else FLOAT
    shape = read_shape(head.pop(0)) if head else None
    numbers = tuple(_read_entry(e, dtype) for e in entries.split(",")) if entries else ()
    if head or None in numbers:
        return None
    if shape is None:
        shape = () if len(numbers) == 1 else (len(numbers),)
    return "value", (numbers, dtype, shape)


def _read_entry(text: str, dtype: str) -> Any:
    if dtype == "string" or text.startswith("h"):  # "h": the digest of a constant that is too long to be written
        return text
    if dtype.startswith(("int", "uint", "bool")):
        return int(text) if text.removeprefix("-").isdecimal() else None
    return read_number(text)


def _product(dims: Shape) -> Any:
    total: Any = 1
    for n in dims:
        total = total * n
    return tidy(total)


def _target_word(target: Shape, _: Op) -> str:
    return "x".join("?" if n == -1 else shape_word((n,)) for n in target) or "-"


def _read_target(word: str, _: int) -> Any:
    parts = [-1 if p == "?" else (read_shape(p) or (None,))[0] for p in word.split("x")]
    return () if word == "-" else None if None in parts else tuple(parts)


def _unary(*names: str) -> dict[str, OpSpec]:
    return {name: OpSpec(same) for name in names}


def _binary(*names: str, **more: Any) -> dict[str, OpSpec]:
    return {name: OpSpec(broadcast, arity=2, **more) for name in names}


def _reduction(*names: str) -> dict[str, OpSpec]:
    fields = (integers_field("axes", "a"), flag("keep", "nokeep", when=False))
    return {name: OpSpec(_reduced_shape, fields) for name in names}


def _boolean(*_: Any) -> str:
    return "bool"


TENSOR: dict[str, OpSpec] = {
    "in": OpSpec(lambda o: o["shape"], (shape_field("shape"), dtype_field()), arity=0, dtype=lambda o: o["dtype"]),
    "const": OpSpec(lambda o: o["shape"], (shape_field("shape"),), arity=0, dtype=lambda o: FLOAT),
    "weight": OpSpec(
        lambda o: o["shape"],
        (Field("shape", _weight_word, _read_weight, lambda *_: ()), _silent("dtype", 1, FLOAT)),
        arity=0,
        parameters=lambda o: size(o["shape"]),
        dtype=lambda o: o["dtype"],
        inline=True,
    ),
    "value": OpSpec(
        lambda o: o["shape"],
        (
            Field("numbers", _value_word, lambda *_: None, lambda *_: ()),
            _silent("dtype", 1, FLOAT),
            _silent("shape", 2, ()),
        ),
        arity=0,
        dtype=lambda o: o["dtype"],
        inline=True,
    ),
    "flatten": OpSpec(lambda o, x: (x[0], _product(x[1:]))),
    "add": OpSpec(broadcast, arity=MANY, commutative=True),
    "mul": OpSpec(broadcast, arity=MANY, commutative=True),
    "min": OpSpec(broadcast, arity=MANY, commutative=True),
    "max": OpSpec(broadcast, arity=MANY, commutative=True),
    **_binary("sub", "div", "pow", "mod"),
    **_binary("equal", commutative=True, dtype=_boolean),
    **_binary("greater", "less", "greaterequal", "lessequal", dtype=_boolean),
    **_binary("and", "or", "xor", commutative=True, dtype=_boolean),
    "where": OpSpec(broadcast, arity=3, dtype=lambda o, c, x, y: x),
    "matmul": OpSpec(_matmul_shape, arity=2, macs=lambda o, y, a, b: size(y) * fixed(a[-1])),
    "concat": OpSpec(_concat_shape, (AXIS,), arity=MANY),
    "slice": OpSpec(
        _slice_shape,
        (
            AXIS,
            integer_field("start", "from", 0),
            integer_field("stop", "to", TO_END),
            integer_field("step", "by", 1),
        ),
    ),
    "reshape": OpSpec(_reshape_shape, (Field("shape", _target_word, _read_target, lambda *_: ()),)),
    "expand": OpSpec(_expand_shape, (shape_field("shape"),)),
    "transpose": OpSpec(_transpose_shape, (integers_field("order", ""),)),
    "gather": OpSpec(_gather_shape, (AXIS,), arity=2),
    "embedding": OpSpec(
        lambda o, x: (*x, o["width"]),
        (integer_field("rows", "", 0), integer_field("width", "w", 0), dtype_field()),
        parameters=lambda o, x: o["rows"] * o["width"],
        dtype=lambda o, x: o["dtype"],
    ),
    "cast": OpSpec(same, (dtype_field("float32"),), dtype=lambda o, x: o["dtype"]),
    **_reduction("mean", "sum", "amax", "amin", "prod", "l1", "l2", "sumsquare", "logsum", "logsumexp"),
    "argmax": OpSpec(
        _reduced_shape, (integers_field("axes", "a"), flag("keep", "nokeep", when=False)), dtype=lambda o, x: "int64"
    ),
    "argmin": OpSpec(
        _reduced_shape, (integers_field("axes", "a"), flag("keep", "nokeep", when=False)), dtype=lambda o, x: "int64"
    ),
    "clip": OpSpec(same, (number_field("low", "lo", None), number_field("high", "hi", None))),
    "leakyrelu": OpSpec(same, (number_field("slope", "n", 0.01),)),
    "elu": OpSpec(same, (number_field("alpha", "n", 1.0),)),
    "gelu": OpSpec(same, (flag("approximate", "approx", when=True),)),
    "item": OpSpec(lambda o, x: x[o["index"]], (integer_field("index", "", 0),), dtype=lambda o, x: x[o["index"]]),
    "literal": OpSpec(same),
    "zeros": OpSpec(same),
    "blank": OpSpec(same),
    "after": OpSpec(same, arity=MANY),
    **_unary("relu", "relu6", "sigmoid", "tanh", "silu", "hardsigmoid", "hardswish", "mish", "softplus", "softsign"),
    **_unary("selu", "exp", "log", "sqrt", "reciprocal", "abs", "neg", "rounddown", "roundup", "round", "sign", "erf"),
    **_unary("sin", "cos", "identity", "dropout"),
    "not": OpSpec(same, dtype=_boolean),
}
"""Operators on any tensor. `zeros` multiplies by zero: a framework runs it, its value is constant. The parser makes
two that no text has, to hold dead work: `blank` is a constant of its operand's shape and no work, `after` is its first
operand and waits for the others. `item` is one of the values of an operator that gives several, `literal` an
output that is a constant. `weight` (learned) and
`value` (known) are written as operands: `%768`, `#0.125`."""

"""Element-wise operators, shapes and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape, is_dynamic, tidy
from nasrlm.graph.onnx_read.constants import Constant, element_type, known, leaf
from nasrlm.graph.onnx_read.image import Read
from nasrlm.graph.onnx_read.node import Node, Result, axis_of
from nasrlm.graph.operators.tensor import TO_END
from nasrlm.graph.ops import op
from nasrlm.graph.passes.reshaping import target

_HUGE = 3e38
"""Bounds beyond this are none."""


def _elementwise(name: str) -> Read:
    def read(n: Node) -> Result:
        operands = n.operands()
        return operands[0] if len(operands) == 1 else n.b.apply(op(name), *operands)

    return read


def _mul(n: Node) -> Result:
    for slot in (0, 1):
        if n.number(slot) == 0 and not n.is_constant(1 - slot) and "float" in n.dtype(1 - slot):
            return n.b.zeros_like(n.value(1 - slot))
    return n.b.apply(op("mul"), *n.operands())


def _mean(n: Node) -> Result:
    operands = n.operands()
    if len(operands) == 1:
        return operands[0]
    return n.b.mul(n.b.apply(op("add"), *operands), n.b.constant(1 / len(operands)))


def _mod(n: Node) -> Result | None:
    return None if n.attributes.get("fmod", 0) else n.b.apply(op("mod"), *n.operands())


def _clip(n: Node) -> Result | None:
    low, high = (n.attributes.get(k, n.number(i)) for i, k in ((1, "min"), (2, "max")))
    if (low is None and n.has(1)) or (high is None and n.has(2)):
        return None
    low = None if low is None or low < -_HUGE else float(low)
    high = None if high is None or high > _HUGE else float(high)
    return n.b.apply(op("clip", low, high), n.value(0))


def _hard_sigmoid(n: Node) -> Result | None:
    slope = (n.attributes.get("alpha", 0.2), n.attributes.get("beta", 0.5))
    return n.b.hard_sigmoid(n.value(0)) if np.allclose(slope, (1 / 6, 0.5), atol=1e-6) else None


def _cast(n: Node) -> Result:
    return n.b.apply(op("cast", element_type(n.attributes["to"], "a Cast")), n.value(0))


def _reshaped(n: Node, shape: Shape) -> Result:
    return n.b.apply(op("reshape", target(n.shape(0), shape)), n.value(0))


def _reshape(n: Node) -> Result | None:
    before = n.shape(0)
    if n.known(1) is None and "shape" not in n.attributes:
        return None
    wanted = n.integers(1, "shape")
    if not n.attributes.get("allowzero", 0):
        wanted = [before[i] if isinstance(t, int) and t == 0 else t for i, t in enumerate(wanted)]
    free = [i for i, t in enumerate(wanted) if isinstance(t, int) and t == -1]
    if len(free) > 1 or any(isinstance(t, int) and (t < -1 or t >= 2**53) for t in wanted):
        raise ExportError(f"{wanted} is no shape for a reshape")
    if free:
        rest: Any = 1
        for t in wanted:
            rest = rest * (1 if isinstance(t, int) and t == -1 else t)
        total: Any = 1
        for d in before:
            total = total * d
        if rest == 0:
            raise ExportError(f"{wanted} leaves no size for the free dimension")
        wanted[free[0]] = total // rest if isinstance(total, int) and isinstance(rest, int) else tidy(total / rest)
    return _reshaped(n, tuple(wanted))


def _squeeze(n: Node) -> Result | None:
    shape = n.shape(0)
    if n.has(1) and n.known(1) is None:
        return None
    if n.has(1) or "axes" in n.attributes:
        axes = {axis_of(a, len(shape)) for a in n.integers(1, "axes")}
    else:
        axes = {i for i, d in enumerate(shape) if d == 1}
    if any(shape[a] != 1 for a in axes):
        raise ExportError(f"the axes {sorted(axes)} of {shape} have more than one entry")
    return _reshaped(n, tuple(d for i, d in enumerate(shape) if i not in axes))


def _unsqueeze(n: Node) -> Result:
    shape, given = list(n.shape(0)), n.integers(1, "axes")
    rank = len(shape) + len(given)
    for axis in sorted(axis_of(a, rank) for a in given):
        shape.insert(axis, 1)
    return _reshaped(n, tuple(shape))


def _flatten(n: Node) -> Result:
    shape = n.shape(0)
    axis = n.attributes.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    first: Any = 1
    second: Any = 1
    for i, d in enumerate(shape):
        first, second = (first * d, second) if i < axis else (first, second * d)
    if axis == 1 and len(shape) > 2:
        return n.b.flatten(n.value(0))
    return _reshaped(n, (tidy(first), tidy(second)))


def _expand(n: Node) -> Result | None:
    data = n.known(1)
    if data is None:
        return None
    return n.b.apply(
        op("expand", tuple(int(d) if isinstance(d, np.integer) else d for d in data.reshape(-1))), n.value(0)
    )


def _constant_of_shape(n: Node) -> Result | None:
    """A constant of a dynamic shape."""
    data, fill = n.known(0), n.attributes.get("value")
    if data is None:
        return None
    number = 0.0 if fill is None else n.tensor(fill).uniform()
    value = n.b.constant(number, "float32" if fill is None else n.tensor(fill).dtype)
    return n.b.apply(op("expand", tuple(data.reshape(-1))), value)


def _transpose(n: Node) -> Result:
    rank = len(n.shape(0))
    order = tuple(n.attributes.get("perm", range(rank - 1, -1, -1)))
    return n.b.transpose(n.value(0), order)


def _concat(n: Node) -> Result:
    slots = [i for i in range(len(n.proto.input)) if n.has(i)]
    slots = [i for i in slots if n.shape(i) != (0,)] or slots[:1]
    axis = axis_of(n.attributes["axis"], len(n.shape(slots[0])))
    return n.b.concat([n.value(i) for i in slots], axis)


def _split(n: Node) -> Result | list[Result] | None:
    shape = n.shape(0)
    axis = axis_of(n.attributes.get("axis", 0), len(shape))
    if not isinstance(shape[axis], int):
        return None
    x, start, parts = n.value(0), 0, []
    lengths = n.split_sizes(shape[axis])
    if min(lengths) < 1:
        return None
    for length in lengths:
        parts.append(n.b.slice(x, start, start + length, axis))
        start += length
    if start != shape[axis]:
        raise ExportError(f"the parts of a Split end at {start}, the axis at {shape[axis]}")
    return list(parts)


def _slice(n: Node) -> Result | None:
    if any(n.has(i) and n.known(i) is None for i in range(1, 5)):
        return None
    starts, ends = n.integers(1, "starts"), n.integers(2, "ends")
    axes = n.integers(3, "axes") if n.has(3) or "axes" in n.attributes else list(range(len(starts)))
    steps = n.integers(4, "steps") if n.has(4) else [1] * len(starts)
    if any(s < 1 for s in steps):
        return None
    x = n.value(0)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = axis_of(axis, len(n.shape(0)))
        size = n.b.shape(x)[axis]
        if not isinstance(size, int):
            if not isinstance(start, int) or not isinstance(end, int):
                return None
            end = TO_END if end >= 2**31 else end
            if (start, end, step) != (0, TO_END, 1):
                x = n.b.apply(op("slice", axis, start, end, step), x)
            continue
        begin, stop = (max(0, min(v + size if v < 0 else v, size)) for v in (int(start), int(end)))
        if begin >= stop:
            return None  # it is empty
        if (begin, stop, step) != (0, size, 1):
            x = n.b.apply(op("slice", axis, begin, stop, step), x)
    return x


def _gather(n: Node) -> Result | None:
    shape, rank = n.shape(0), len(n.shape(0))
    axis = axis_of(n.attributes.get("axis", 0), rank)
    data, indices = n.constant_at(0), n.known(1)
    if data is not None and data.is_float and rank == 2 and axis == 0:
        return n.b.apply(op("embedding", *shape, data.dtype), n.value(1))
    if indices is not None and indices.dtype != object and isinstance(shape[axis], int):
        return _taken(n, indices, axis)
    if indices is not None and indices.size == 1 and indices.dtype != object and int(indices.reshape(-1)[0]) in (0, -1):
        return _one(n, n.value(0), axis, int(indices.reshape(-1)[0]), indices.shape)
    return n.b.apply(op("gather", axis), n.value(0), n.value(1))


def _taken(n: Node, indices: np.ndarray, axis: int) -> Result:
    """Gather with known indices: a slice where they are consecutive."""
    size = n.shape(0)[axis]
    flat = [int(i) + size if i < 0 else int(i) for i in indices.reshape(-1)]
    if any(not 0 <= i < size for i in flat):
        raise ExportError(f"an index of a Gather is outside of the {size} entries of axis {axis}")
    x = n.value(0)
    if flat and flat == list(range(flat[0], flat[0] + len(flat))):
        part = n.b.slice(x, flat[0], flat[-1] + 1, axis)
        shape = (*n.shape(0)[:axis], *indices.shape, *n.shape(0)[axis + 1 :])
        return part if n.b.shape(part) == shape else n.b.apply(op("reshape", target(n.b.shape(part), shape)), part)
    chosen = known(np.asarray(flat, np.int64).reshape(indices.shape))
    return n.b.apply(op("gather", axis), x, n.b.apply(leaf(chosen)))


def _gather_nd(n: Node) -> Result | None:
    """Known indices that name every entry in its order only reshape (dynamo's way to index with lists)."""
    indices, shape = n.known(1), n.shape(0)
    if indices is None or n.attributes.get("batch_dims", 0) or is_dynamic(shape) or indices.shape[-1] != len(shape):
        return None
    flat = np.ravel_multi_index(tuple(np.moveaxis(indices, -1, 0).astype(np.int64)), shape).reshape(-1)
    if len(flat) != int(np.prod(shape)) or bool((flat != np.arange(len(flat))).any()):
        return None
    return _reshaped(n, indices.shape[:-1])


def _one(n: Node, x: int, axis: int, index: int, shape: Shape) -> Result:
    """The first or last entry of a dynamic axis."""
    part = n.b.apply(op("slice", axis, index, TO_END if index == -1 else 1), x)
    before = n.b.shape(part)
    after = (*before[:axis], *shape, *before[axis + 1 :])
    return n.b.apply(op("reshape", target(before, after)), part)


def _reduce(name: str) -> Read:
    def read(n: Node) -> Result | None:
        rank = len(n.shape(0))
        if n.has(1) and n.known(1) is None:
            return None
        axes = n.integers(1, "axes") if n.has(1) or "axes" in n.attributes else []
        if not axes and n.attributes.get("noop_with_empty_axes", 0):
            return n.b.identity(n.value(0)) if name in ("mean", "sum", "amax", "amin", "prod") else None
        axes = sorted({axis_of(a, rank) for a in axes}) or list(range(rank))
        return n.b.apply(op(name, tuple(axes), bool(n.attributes.get("keepdims", 1))), n.value(0))

    return read


def _arg(name: str) -> Read:
    def read(n: Node) -> Result | None:
        if n.attributes.get("select_last_index", 0):
            return None
        axis = axis_of(n.attributes.get("axis", 0), len(n.shape(0)))
        return n.b.apply(op(name, (axis,), bool(n.attributes.get("keepdims", 1))), n.value(0))

    return read


def _constant(n: Node) -> Result:
    (name, value), *_ = n.attributes.items()
    if name == "value":
        return n.tensor(value)
    if name in ("value_float", "value_floats"):
        return known(np.asarray(value, np.float32))
    if name in ("value_int", "value_ints"):
        return known(np.asarray(value, np.int64))
    if name in ("value_string", "value_strings"):
        return known(np.asarray(value))
    raise ExportError("a sparse constant cannot be read")


def _shape(n: Node) -> Result:
    shape = n.shape(0)[n.attributes.get("start", 0) : n.attributes.get("end")]
    return known(np.array(shape, dtype=object if is_dynamic(shape) else np.int64))


def _size(n: Node) -> Result:
    total: Any = 1
    for d in n.shape(0):
        total = total * d
    return known(np.asarray(total, dtype=object if is_dynamic(n.shape(0)) else np.int64))


def _same(n: Node) -> Result | list[Result]:
    found = n.found(0)
    if isinstance(found, Constant):
        return found
    value = n.b.identity(found)
    return value


def _dropout(n: Node) -> Result | list[Result] | None:
    if n.uses(1) or (n.has(2) and n.number(2) != 0):  # a mask, or training
        return None
    return _same(n)


def _plain(name: str) -> Read:
    return lambda n: n.b.unary(name, n.value(0))


_WORDS = {
    **{"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "HardSwish": "hardswish", "Mish": "mish"},
    **{"Softplus": "softplus", "Softsign": "softsign", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs"},
    **{
        "Reciprocal": "reciprocal",
        "Neg": "neg",
        "Floor": "rounddown",
        "Ceil": "roundup",
        "Round": "round",
        "Sign": "sign",
    },
    **{"Erf": "erf", "Sin": "sin", "Cos": "cos", "Not": "not"},
}
_BINARY = {
    **{"Add": "add", "Sum": "add", "Sub": "sub", "Div": "div", "Pow": "pow", "Min": "min", "Max": "max"},
    **{"Equal": "equal", "Greater": "greater", "Less": "less", "GreaterOrEqual": "greaterequal"},
    **{"LessOrEqual": "lessequal", "And": "and", "Or": "or", "Xor": "xor", "Where": "where"},
}
_REDUCTIONS = {
    **{"ReduceMean": "mean", "ReduceSum": "sum", "ReduceMax": "amax", "ReduceMin": "amin", "ReduceProd": "prod"},
    **{"ReduceL1": "l1", "ReduceL2": "l2", "ReduceSumSquare": "sumsquare", "ReduceLogSum": "logsum"},
    **{"ReduceLogSumExp": "logsumexp"},
}

READ_TENSOR: dict[str, Read] = {
    **{kind: _plain(word) for kind, word in _WORDS.items()},
    **{kind: _elementwise(word) for kind, word in _BINARY.items()},
    **{kind: _reduce(word) for kind, word in _REDUCTIONS.items()},
    "Selu": lambda n: None if n.proto.attribute else n.b.unary("selu", n.value(0)),
    "Mul": _mul,
    "Mean": _mean,
    "Mod": _mod,
    "Clip": _clip,
    "HardSigmoid": _hard_sigmoid,
    "Gelu": lambda n: n.b.apply(op("gelu", n.attributes.get("approximate", b"none") == b"tanh"), n.value(0)),
    "LeakyRelu": lambda n: n.b.leaky_relu(n.value(0), round(n.attributes.get("alpha", 0.01), 7)),
    "Elu": lambda n: n.b.apply(op("elu", round(n.attributes.get("alpha", 1.0), 7)), n.value(0)),
    "Cast": _cast,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Flatten": _flatten,
    "Expand": _expand,
    "ConstantOfShape": _constant_of_shape,
    "Transpose": _transpose,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    "Constant": _constant,
    "Shape": _shape,
    "Size": _size,
    "Identity": _same,
    "Dropout": _dropout,
}
"""How to read each operator of this family."""

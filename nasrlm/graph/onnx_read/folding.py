"""Operators on constants, computed while the model is read: what exporters do with shapes, axes and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape, tidy
from nasrlm.graph.onnx_read.constants import MOST_ENTRIES, Constant, element_type, known

if TYPE_CHECKING:
    from nasrlm.graph.onnx_read.node import Node

Array = np.ndarray


def folded(n: Node) -> list[Constant] | None:
    """The values of a node whose operands are all constants; None if they cannot or should not be computed."""
    compute = FOLD.get(n.proto.op_type)
    operands = [n.constant_at(i) for i in range(len(n.proto.input))]
    if compute is None or any(c is not None and c.data is None for c in operands):
        return None
    if _too_large(n, operands):
        return None
    arrays = [None if c is None else c.data for c in operands]
    with np.errstate(all="ignore"):
        results = compute(n, *arrays)
    if results is None:
        return None
    return [_typed(r, n) for r in (results if isinstance(results, list) else [results])]


def _typed(result: Any, n: Node) -> Constant:
    array = np.asarray(result)
    if array.dtype == object:
        array = np.frompyfunc(tidy, 1, 1)(array)
        return known(np.asarray(array, dtype=object))
    if n.proto.op_type in _SAME_TYPE and array.dtype.kind == "f" and n.constant_at(0) is not None:
        first = n.constant_at(0)
        array = array.astype(first.data.dtype) if first is not None and first.data is not None else array
    return known(array)


def _too_large(n: Node, operands: Sequence[Constant | None]) -> bool:
    """Whether the result, or an operand that is only a view, has too many entries to be computed."""
    kind = n.proto.op_type
    sizes = [c.size for c in operands if c is not None]
    if kind in ("ConstantOfShape", "Shape", "Size"):
        return False
    if kind in ("Expand", "Tile", "Range"):
        return False  # bounded in their own functions
    total = max(sizes, default=0)
    if kind in _BROADCASTS and all(c is not None for c in operands):
        shape = np.broadcast_shapes(*(tuple(int(d) for d in c.shape) for c in operands if c is not None))
        total = max(total, int(np.prod(shape, dtype=object)))
    return total > MOST_ENTRIES or (kind in ("Concat", "Gather") and sum(sizes) > MOST_ENTRIES)


def _bounded(shape: Iterable[Any]) -> Shape:
    dims = tuple(int(d) for d in shape)
    if any(d < 0 for d in dims) or int(np.prod(dims, dtype=object)) > 2**53:
        raise ExportError(f"a constant of the shape {dims} is absurd")
    return dims


def _divide(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return a / b
    if a.dtype == object or b.dtype == object:
        return np.frompyfunc(lambda x, y: tidy(x / y) if not isinstance(x, int) else x // y, 2, 1)(a, b)
    if (np.asarray(b) == 0).any():
        raise ExportError("a constant is divided by zero")
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _modulo(n: Node, a: Array, b: Array) -> Any:
    if a.dtype.kind != "f" and (np.asarray(b) == 0).any():
        raise ExportError("a constant is divided by zero")
    return np.fmod(a, b) if n.attributes.get("fmod", 0) else np.mod(a, b)


def _cast(n: Node, x: Array, *_: Any) -> Any:
    kind = element_type(n.attributes.get("to", 0), "a Cast")
    if x.dtype == object:
        return x
    return x.astype(kind) if kind != "string" else np.asarray(x).astype(str)


def _slice(n: Node, x: Array, *_: Any) -> Any:
    starts, ends = n.integers(1, "starts"), n.integers(2, "ends")
    axes = n.integers(3, "axes") if n.has(3) or "axes" in n.attributes else list(range(len(starts)))
    steps = n.integers(4, "steps") if n.has(4) else [1] * len(starts)
    index: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0 and end < -x.shape[axis]:
            end = None
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _gather(n: Node, x: Array, indices: Array) -> Any:
    if max(x.size, 1) * max(indices.size, 1) > 16 * MOST_ENTRIES:
        raise ExportError("a constant Gather is too large")
    return np.take(x, indices.astype(np.int64), axis=n.attributes.get("axis", 0))


def _squeeze(n: Node, x: Array, *_: Any) -> Any:
    axes = n.integers(1, "axes") if n.has(1) or "axes" in n.attributes else None
    return np.squeeze(x, None if axes is None else tuple(axes))


def _unsqueeze(n: Node, x: Array, *_: Any) -> Any:
    axes = n.integers(1, "axes")
    return np.expand_dims(x, tuple(axes))


def _constant_of_shape(n: Node, shape: Array) -> Any:
    fill = n.attributes.get("value")
    value = np.zeros(1, np.float32) if fill is None else np.asarray(n.tensor(fill).data)
    if shape.dtype == object:
        raise ExportError("a constant with a dynamic shape")
    return np.broadcast_to(value.reshape(-1)[0], _bounded(shape.reshape(-1)))


def _range(n: Node, start: Array, limit: Array, delta: Array) -> Any:
    if any(v.dtype == object for v in (start, limit, delta)):
        raise ExportError("a range with a dynamic end")
    first, last, step = (float(v.reshape(-1)[0]) for v in (start, limit, delta))
    if step == 0 or not abs(last - first) <= MOST_ENTRIES * abs(step):
        return None
    return np.arange(start.reshape(-1)[0], limit.reshape(-1)[0], delta.reshape(-1)[0], dtype=start.dtype)


def _expand(_: Node, x: Array, shape: Array) -> Any:
    if shape.dtype == object:
        raise ExportError("an expansion to a dynamic shape")
    target = _bounded(shape.reshape(-1))
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, target))


def _reshape(n: Node, x: Array, shape: Array) -> Any:
    target = [int(v) for v in shape.reshape(-1)]
    if not n.attributes.get("allowzero", 0):
        target = [x.shape[i] if v == 0 else v for i, v in enumerate(target)]
    return x.reshape(target)


def _tile(_: Node, x: Array, repeats: Array) -> Any:
    if x.size * int(np.prod(repeats.astype(object))) > MOST_ENTRIES:
        raise ExportError("a constant Tile is too large")
    return np.tile(x, [int(v) for v in repeats.reshape(-1)])


def _trilu(n: Node, x: Array, k: Array | None = None) -> Any:
    offset = 0 if k is None else int(k.reshape(-1)[0])
    return np.triu(x, offset) if n.attributes.get("upper", 1) else np.tril(x, offset)


def _reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(n: Node, x: Array, *_: Any) -> Any:
        axes = n.integers(1, "axes") if n.has(1) or "axes" in n.attributes else None
        return function(x, axis=None if axes is None else tuple(axes), keepdims=bool(n.attributes.get("keepdims", 1)))

    return compute


def _cumulative(n: Node, x: Array, axis: Array) -> Any:
    k = int(axis.reshape(-1)[0])
    x = np.flip(x, k) if n.attributes.get("reverse", 0) else x
    total = np.cumsum(x, k) - (x if n.attributes.get("exclusive", 0) else 0)
    return np.flip(total, k) if n.attributes.get("reverse", 0) else total


def _split(n: Node, x: Array, *_: Any) -> Any:
    axis = n.attributes.get("axis", 0)
    return np.split(x, np.cumsum(n.split_sizes(x.shape[axis]))[:-1], axis)


def _scatter(_: Node, data: Array, indices: Array, updates: Array) -> Any:
    result = data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return result


def _where(_: Node, c: Array, x: Array, y: Array) -> Any:
    return np.where(c.astype(bool), x, y)


def _simple(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, *operands: function(*operands)


def _chain(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(_: Node, first: Array, *more: Array) -> Any:
        for x in more:
            first = function(first, x)
        return first

    return compute


_BROADCASTS = frozenset(
    ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or")
) | {"Xor", "Where", "Min", "Max"}
_SAME_TYPE = frozenset(("Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Neg", "Abs", "Min", "Max", "Exp", "Log"))

FOLD: dict[str, Callable[..., Any]] = {
    "Identity": _simple(lambda x: x),
    "Dropout": lambda n, x, *_: x,
    "Gather": _gather,
    "Concat": lambda n, *xs: np.concatenate(xs, axis=n.attributes["axis"]),
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Cast": _cast,
    "CastLike": lambda n, x, like: x.astype(like.dtype) if x.dtype != object else x,
    "Add": _simple(np.add),
    "Sub": _simple(np.subtract),
    "Mul": _simple(np.multiply),
    "Div": _simple(_divide),
    "Mod": _modulo,
    "Pow": _simple(np.power),
    "Neg": _simple(np.negative),
    "Abs": _simple(np.abs),
    "Sqrt": _simple(np.sqrt),
    "Exp": _simple(np.exp),
    "Log": _simple(np.log),
    "Floor": _simple(np.floor),
    "Ceil": _simple(np.ceil),
    "Reciprocal": _simple(lambda x: 1 / x),
    "Sin": _simple(np.sin),
    "Cos": _simple(np.cos),
    "Min": _chain(np.minimum),
    "Max": _chain(np.maximum),
    "Equal": _simple(np.equal),
    "Greater": _simple(np.greater),
    "Less": _simple(np.less),
    "GreaterOrEqual": _simple(np.greater_equal),
    "LessOrEqual": _simple(np.less_equal),
    "Not": _simple(np.logical_not),
    "And": _simple(np.logical_and),
    "Or": _simple(np.logical_or),
    "Xor": _simple(np.logical_xor),
    "Where": _where,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "Expand": _expand,
    "Reshape": _reshape,
    "Flatten": lambda n, x: x.reshape(int(np.prod(x.shape[: n.attributes.get("axis", 1)])), -1),
    "Transpose": lambda n, x: np.transpose(x, n.attributes.get("perm")),
    "Tile": _tile,
    "Trilu": _trilu,
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "ReduceMax": _reduce(np.max),
    "ReduceMin": _reduce(np.min),
    "ReduceAny": _reduce(np.any),
    "NonZero": _simple(lambda x: np.asarray(np.nonzero(x), np.int64)),
    "CumSum": _cumulative,
    "Split": _split,
    "ScatterND": _scatter,
    "IsNaN": _simple(np.isnan),
    "GatherElements": lambda n, x, i: np.take_along_axis(x, i, n.attributes.get("axis", 0)),
}
"""numpy's way of each operator."""

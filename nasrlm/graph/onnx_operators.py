"""How each ONNX operator becomes operators of a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import helper, numpy_helper

from nasrlm.errors import ExportError
from nasrlm.graph.builder import GraphBuilder
from nasrlm.graph.ops import op

Constant = np.ndarray | tuple[int, ...]
"""The entries of a small constant, or the shape alone of a weight."""

_READABLE = 4096
"""Constants of at most this many entries are read (axes, shapes, bounds); larger ones are weights."""


class State(Protocol):
    """What the reader knows so far."""

    builder: GraphBuilder
    values: dict[str, int]
    constants: dict[str, Constant]
    readers: defaultdict[str, list[tuple[str, int]]]
    """Operator and operand position of every node that reads a value, by the value's name."""
    marks: dict[str, tuple[str, int, int]]
    """Values within a channel shuffle: "apart" or "turned", the value that is shuffled, groups."""


def content(tensor: onnx.TensorProto) -> Constant:
    """The entries of a small constant; the shape alone of a weight."""
    size = int(np.prod(tensor.dims)) if tensor.dims else 1
    if size > _READABLE or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return tuple(tensor.dims)
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise ExportError(f"initializer {tensor.name!r} is damaged: {error}") from error


class Node:
    """One ONNX node beside the reader's state."""

    def __init__(self, reader: State, proto: onnx.NodeProto) -> None:
        self.reader, self.proto, self.b = reader, proto, reader.builder
        self.attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def value(self, slot: int) -> int:
        """An operand as a value; a constant becomes one."""
        name = self.proto.input[slot]
        if name in self.reader.values:
            return self.reader.values[name]
        return self.b.apply(op("const", self.shape(slot) or (1,)))

    def constant(self, slot: int) -> np.ndarray | None:
        """Entries of a constant operand; None when absent, a value, or too large to be read."""
        name = self.proto.input[slot] if slot < len(self.proto.input) else ""
        found = self.reader.constants.get(name)
        return found if isinstance(found, np.ndarray) else None

    def integers(self, slot: int, attribute: str) -> list[int]:
        """A list that older opsets give as an attribute and newer ones as a constant operand."""
        if attribute in self.attributes:
            return list(self.attributes[attribute])
        found = self.constant(slot)
        if found is None:
            raise ExportError(f"{attribute!r} must be a constant")
        return [int(v) for v in found.reshape(-1)]

    def is_constant(self, slot: int) -> bool:
        return self.proto.input[slot] in self.reader.constants

    def has(self, slot: int) -> bool:
        return slot < len(self.proto.input) and bool(self.proto.input[slot])

    def shape(self, slot: int) -> tuple[int, ...]:
        name = self.proto.input[slot]
        if name in self.reader.values:
            return self.b.shape(self.reader.values[name])
        found = self.reader.constants[name]
        return found if isinstance(found, tuple) else found.shape

    def window(self, kernel: tuple[int, ...]) -> dict[str, Any]:
        """Kernel, stride, dilation and padding with ONNX's defaults and automatic padding resolved."""
        rank = len(kernel)
        stride = tuple(self.attributes.get("strides", (1,) * rank))
        dilation = tuple(self.attributes.get("dilations", (1,) * rank))
        pads = tuple(self.attributes.get("pads", (0,) * 2 * rank))
        mode = self.attributes.get("auto_pad", b"NOTSET")
        if mode in (b"SAME_UPPER", b"SAME_LOWER"):
            pads = _automatic(self.shape(0)[2:], kernel, stride, dilation, mode == b"SAME_UPPER")
        return {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": pads}


def _automatic(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    upper: bool,
) -> tuple[int, ...]:
    totals = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
    ]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (*small, *large) if upper else (*large, *small)


# --- operators -----------------------------------------------------------------------------------------------------

Result = int | Constant


def _conv(n: Node) -> Result:
    out, _, *kernel = n.shape(1)
    window = n.window(tuple(n.attributes.get("kernel_shape", kernel)))
    return n.b.conv(n.value(0), out, groups=n.attributes.get("group", 1), bias=n.has(2), **window)


def _max_pool(n: Node) -> Result:
    window = n.window(tuple(n.attributes["kernel_shape"]))
    if set(window.pop("dilation")) != {1} or len(n.proto.output) > 1:
        raise ExportError("dilated pooling and pooling with indices cannot be read yet")
    return n.b.max_pool(n.value(0), **window, ceil=bool(n.attributes.get("ceil_mode", 0)))


def _avg_pool(n: Node) -> Result:
    window = n.window(tuple(n.attributes["kernel_shape"]))
    if set(window.pop("dilation")) != {1}:
        raise ExportError("dilated pooling cannot be read yet")
    counted = bool(n.attributes.get("count_include_pad", 0))
    return n.b.avg_pool(n.value(0), **window, ceil=bool(n.attributes.get("ceil_mode", 0)), count_include_pad=counted)


def _gemm(n: Node) -> Result:
    if n.attributes.get("transA", 0) or not n.is_constant(1):
        raise ExportError("only Gemm of a value and a constant weight can be read")
    out = n.shape(1)[0 if n.attributes.get("transB", 0) else 1]
    return n.b.linear(n.value(0), out, bias=n.has(2))


def _mat_mul(n: Node) -> Result:
    if not n.is_constant(1) or len(n.shape(1)) != 2:
        raise ExportError("only MatMul of a value and a constant matrix can be read yet")
    return n.b.linear(n.value(0), n.shape(1)[1], bias=False)


def _add(n: Node) -> Result:
    """A sum; a vector added to a linear layer or convolution that nothing else reads is its bias."""
    count = len(n.proto.input)
    for slot in (0, 1):
        if count == 2 and n.is_constant(slot) and not n.is_constant(1 - slot):
            return _with_bias(n, 1 - slot)
    return n.value(0) if count == 1 else n.b.apply(op("add"), *(n.value(i) for i in range(count)))


def _with_bias(n: Node, slot: int) -> Result:
    x = n.value(slot)
    ops = n.b._ops
    if "bias" in ops[x].spec.index and len(n.reader.readers[n.proto.input[slot]]) == 1:
        ops[x] = ops[x].replace(bias=True)
        return x
    return n.b.add(x, n.value(1 - slot))


def _mul(n: Node) -> Result:
    for slot in (0, 1):
        factor = n.constant(slot)
        if factor is not None and factor.size == 1 and float(factor.reshape(-1)[0]) == 0.0:
            return n.b.zeros_like(n.value(1 - slot))
    ops, x, y = n.b._ops, n.value(0), n.value(1)
    for value, gate in (
        (x, y),
        (y, x),
    ):  # x sigmoid(x) and x hardsigmoid(x), as exporters write silu and hard-swish
        if ops[gate].name in ("sigmoid", "hardsigmoid") and gate - n.b._refs[gate][0] == value:
            return n.b.unary("silu" if ops[gate].name == "sigmoid" else "hardswish", value)
    return n.b.mul(x, y)


def _clip(n: Node) -> Result:
    low, high = (n.attributes.get(k, n.constant(i)) for i, k in ((1, "min"), (2, "max")))
    low, high = (None if v is None else float(np.asarray(v).reshape(-1)[0]) for v in (low, high))
    if (low, high) == (0.0, 6.0):
        return n.b.relu6(n.value(0))
    if low == 0.0 and (high is None or high > 3e38):
        return n.b.relu(n.value(0))
    raise ExportError(f"a Clip to {low} .. {high} cannot be read yet, only 0 .. 6 and 0 .. infinity")


def _hard_sigmoid(n: Node) -> Result:
    slope = (n.attributes.get("alpha", 0.2), n.attributes.get("beta", 0.5))
    if not np.allclose(slope, (1 / 6, 0.5), atol=1e-6):
        raise ExportError(f"a HardSigmoid with alpha and beta {slope} cannot be read yet, only 1/6 and 0.5")
    return n.b.hard_sigmoid(n.value(0))


def _reduce_mean(n: Node) -> Result:
    rank = len(n.shape(0))
    axes = sorted(a % rank for a in n.integers(1, "axes"))
    if axes != list(range(2, rank)):
        raise ExportError(f"a mean over the axes {axes} cannot be read yet, only over all after the channels")
    pooled = n.b.global_avg_pool(n.value(0))
    return pooled if n.attributes.get("keepdims", 1) else n.b.flatten(pooled)


def _reshape(n: Node) -> Result:
    shape, target = n.shape(0), n.integers(1, "shape")
    target = [shape[i] if t == 0 else t for i, t in enumerate(target)]
    if -1 in target:
        rest = int(np.prod([t for t in target if t != -1]))
        target[target.index(-1)] = int(np.prod(shape)) // rest
    if tuple(target) == shape and n.proto.input[0] not in n.reader.marks:
        return n.value(0)
    if len(target) == 2 and target[0] == shape[0]:
        return n.b.flatten(n.value(0))
    shuffled = _shuffled(n, tuple(target))
    if shuffled is None:
        raise ExportError(
            f"a reshape from {shape} to {tuple(target)} cannot be read yet, only flattening and channel shuffles"
        )
    return shuffled


def _shuffled(n: Node, target: tuple[int, ...]) -> int | None:
    """The last Reshape of Reshape - Transpose - Reshape, as a channel shuffle of the first one's operand."""
    reader, name = n.reader, n.proto.input[0]
    marks = reader.marks
    shape = n.shape(0)
    if len(target) == len(shape) + 1 and target[0] == shape[0] and target[1] * target[2] == shape[1]:
        marks[n.proto.output[0]] = ("apart", n.value(0), target[1])
        return n.value(0)
    kind, value, groups = marks.get(name, ("", 0, 1))
    return n.b.channel_shuffle(value, groups) if kind == "turned" else None


def _transpose(n: Node) -> Result:
    marks = n.reader.marks
    kind, value, groups = marks.get(n.proto.input[0], ("", 0, 1))
    order = list(n.attributes.get("perm", ()))
    if kind != "apart" or order[:3] != [0, 2, 1] or order[3:] != list(range(3, len(order))):
        raise ExportError(f"a transpose in the order {order} cannot be read yet, only within a channel shuffle")
    marks[n.proto.output[0]] = ("turned", value, groups)
    return value


def _flatten(n: Node) -> Result:
    if n.attributes.get("axis", 1) != 1:
        raise ExportError(f"Flatten from axis {n.attributes['axis']} cannot be read yet, only from axis 1")
    return n.b.flatten(n.value(0))


def _pad(n: Node) -> Result:
    amounts = n.integers(1, "pads")
    rank = len(amounts) // 2
    if n.attributes.get("mode", b"constant") != b"constant" or any(amounts[:2]) or any(amounts[rank : rank + 2]):
        raise ExportError("only zero padding of the dimensions after the channels can be read yet")
    return n.b.pad(n.value(0), (*amounts[2:rank], *amounts[rank + 2 :]))


def _slice(n: Node) -> Result:
    shape = n.shape(0)
    starts, ends = n.integers(1, "starts"), n.integers(2, "ends")
    axes = n.integers(3, "axes") if n.has(3) or "axes" in n.attributes else list(range(len(starts)))
    steps = n.integers(4, "steps") if n.has(4) else [1] * len(starts)
    if set(steps) != {1}:
        raise ExportError(f"a slice in steps of {steps} cannot be read yet")
    x = n.value(0)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        size = shape[axis]
        begin, stop = (max(0, min(v + size if v < 0 else v, size)) for v in (start, end))
        x = n.b.slice(x, begin, stop, axis % len(shape))
    return x


def _constant(n: Node) -> Result:
    if "value" in n.attributes:
        return content(n.attributes["value"])
    return np.asarray(next(iter(n.attributes.values())))


def _constant_of_shape(n: Node) -> Result:
    return n.b.apply(op("const", tuple(n.integers(0, ""))))


def _softmax(n: Node) -> Result:
    return n.b.softmax(n.value(0), n.attributes.get("axis", -1))


def _unary(name: str) -> Callable[[Node], Result]:
    return lambda n: n.b.unary(name, n.value(0))


def _same(n: Node) -> Result:
    name = n.proto.input[0]
    return n.reader.constants[name] if name in n.reader.constants else n.b.identity(n.value(0))


READ: dict[str, Callable[[Node], Result]] = {
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _avg_pool,
    "Gemm": _gemm,
    "MatMul": _mat_mul,
    "Add": _add,
    "Sum": _add,
    "Mul": _mul,
    "Clip": _clip,
    "HardSigmoid": _hard_sigmoid,
    "ReduceMean": _reduce_mean,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Flatten": _flatten,
    "Pad": _pad,
    "Slice": _slice,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Softmax": _softmax,
    "Concat": lambda n: n.b.concat(
        [n.value(i) for i in range(len(n.proto.input))], n.attributes["axis"] % len(n.shape(0))
    ),
    "LeakyRelu": lambda n: n.b.leaky_relu(n.value(0), round(n.attributes.get("alpha", 0.01), 7)),
    "BatchNormalization": _unary("bn"),
    "PRelu": _unary("prelu"),
    "Relu": _unary("relu"),
    "Sigmoid": _unary("sigmoid"),
    "Tanh": _unary("tanh"),
    "HardSwish": _unary("hardswish"),
    "GlobalAveragePool": _unary("gap"),
    "GlobalMaxPool": _unary("gmp"),
    "Identity": _same,
    "Dropout": _same,
    "Cast": _same,
}

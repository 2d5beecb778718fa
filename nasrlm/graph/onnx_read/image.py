"""Operators on feature maps, linear layers, and normalisation a channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nasrlm.errors import ExportError
from nasrlm.graph.builder_args import without_ceil
from nasrlm.graph.dims import is_dynamic
from nasrlm.graph.onnx_read.node import Node, Result, axis_of
from nasrlm.graph.ops import op, op_with, relative_width

Read = Callable[[Node], "Result | list[Result] | None"]
"""None: this use of the operator has no word; it is written in full."""


def _conv(n: Node) -> Result | None:
    if not n.all_constant(1):
        return None
    out, _, *kernel = n.shape(1)
    window = n.window(tuple(n.attributes.get("kernel_shape", kernel)))
    groups, x = n.attributes.get("group", 1), n.value(0)
    if n.shape(1)[1] * groups != n.shape(0)[1] or list(window["kernel"]) != kernel:
        raise ExportError(f"the weight {n.shape(1)} does not fit the input {n.shape(0)} in {groups} groups")
    return n.b.conv(x, out, groups=groups, bias=n.has(2), **window)


def _conv_transpose(n: Node) -> Result | None:
    channels, each, *kernel = n.shape(1)
    window = n.window(tuple(n.attributes.get("kernel_shape", kernel)))
    rank, groups = len(window["kernel"]), n.attributes.get("group", 1)
    if not n.all_constant(1) or n.attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return None
    more = tuple(n.attributes.get("output_padding", (0,) * rank))
    if "output_shape" in n.attributes or channels != n.shape(0)[1]:
        return None
    word = "dw" if groups == channels > 1 else groups
    made = op_with("deconv", **window, output_padding=more, groups=word, bias=n.has(2))
    return n.b.apply(made.replace(width=relative_width(channels, each * groups)), n.value(0))


def _max_pool(n: Node) -> Result | None:
    window = n.window(tuple(n.attributes["kernel_shape"]))
    if n.uses(1) or n.attributes.get("storage_order", 0):
        return None
    dilation = window.pop("dilation")
    ceil = bool(n.attributes.get("ceil_mode", 0))
    made = op_with("maxpool", **window, ceil=ceil, dilation=dilation)
    return n.b.apply(without_ceil(made, n.shape(0)), n.value(0))


def _avg_pool(n: Node) -> Result | None:
    window = n.window(tuple(n.attributes["kernel_shape"]))
    if set(window.pop("dilation")) != {1}:
        return None
    counted = bool(n.attributes.get("count_include_pad", 0))
    return n.b.avg_pool(n.value(0), **window, ceil=bool(n.attributes.get("ceil_mode", 0)), count_include_pad=counted)


def _gemm(n: Node) -> Result | None:
    x = n.value(0)
    if n.attributes.get("transA", 0):
        x = n.b.transpose(x, (1, 0))
    if not n.is_constant(1) or n.is_constant(0):
        return _product_and_sum(n, x)
    rows, columns = n.shape(1)
    inner, out = (columns, rows) if n.attributes.get("transB", 0) else (rows, columns)
    if n.b.shape(x)[-1] != inner:
        raise ExportError(f"the weight {n.shape(1)} does not fit the input {n.b.shape(x)}")
    beta = n.attributes.get("beta", 1.0)
    if not n.has(2) or beta == 0:
        return n.b.linear(x, out, bias=False)
    summand = n.shape(2)
    if n.is_constant(2) and summand[-1:] in ((out,), (1,), ()) and all(d == 1 for d in summand[:-1]):
        return n.b.linear(x, out, bias=True)
    return n.b.add(n.b.linear(x, out, bias=False), _times(n, n.value(2), beta))


def _times(n: Node, x: int, factor: float) -> int:
    return x if factor == 1 else n.b.mul(x, n.b.constant(factor))


def _product_and_sum(n: Node, x: int) -> Result:
    y = n.value(1)
    if n.attributes.get("transB", 0):
        y = n.b.transpose(y, (1, 0))
    made = _times(n, n.b.binary("matmul", x, y), n.attributes.get("alpha", 1.0))
    beta = n.attributes.get("beta", 1.0)
    return n.b.add(made, _times(n, n.value(2), beta)) if n.has(2) and beta != 0 else made


def _mat_mul(n: Node) -> Result:
    ranks = len(n.shape(0)), len(n.shape(1))
    if n.is_constant(1) and not n.is_constant(0) and ranks[1] == 2 and ranks[0] > 1:
        x, (inner, out) = n.value(0), n.shape(1)
        if n.shape(0)[-1] != inner:
            raise ExportError(f"the weight {n.shape(1)} does not fit the input {n.shape(0)}")
        return n.b.linear(x, out, bias=False)
    x, y = n.value(0), n.value(1)
    if ranks[0] == 1:
        x = n.b.reshape(x, (1, *n.shape(0)))
    if ranks[1] == 1:
        y = n.b.reshape(y, (*n.shape(1), 1))
    made = n.b.binary("matmul", x, y)
    if 1 in ranks:
        shape = list(n.b.shape(made))
        if ranks[0] == 1:
            del shape[-2]
        if ranks[1] == 1:
            del shape[-1]
        made = n.b.reshape(made, shape)
    return made


def _batch_norm(n: Node) -> Result | None:
    if n.attributes.get("training_mode", 0) or not n.all_constant(1) or any(n.uses(i) for i in range(1, 5)):
        return None
    return n.b.batch_norm(n.value(0))


def _instance_norm(n: Node) -> Result | None:
    if not n.all_constant(1):
        return None
    scale, shift = n.constant_at(1), n.constant_at(2)
    plain = scale is not None and shift is not None and scale.uniform() == 1 and shift.uniform() == 0
    return n.b.apply(op("instancenorm", n.attributes.get("epsilon", 1e-5), not plain), n.value(0))


def _group_norm(n: Node) -> Result | None:
    if not n.all_constant(1):
        return None
    return n.b.group_norm(n.value(0), n.attributes["num_groups"], n.attributes.get("epsilon", 1e-5))


def _p_relu(n: Node) -> Result | None:
    shape, slope = n.shape(0), n.shape(1)
    shared = all(d == 1 for d in slope)
    channel = (shape[1], *(1,) * (len(shape) - 2))  # it is stretched as in any sum: the last dimensions meet
    if not n.is_constant(1) or not (shared or slope in (channel, (1, *channel))):
        return None
    return n.b.apply(op("prelu", shared), n.value(0))


def _pad(n: Node) -> Result | None:
    if n.known(1) is None and "pads" not in n.attributes:
        return None
    amounts, mode = n.integers(1, "pads"), n.attributes.get("mode", b"constant").decode()
    rank = len(n.shape(0))
    if n.has(3):
        axes = [axis_of(a, rank) for a in n.integers(3, "")]
        half, given = len(axes), amounts
        amounts = [0] * 2 * rank
        for k, axis in enumerate(axes):
            amounts[axis], amounts[axis + rank] = given[k], given[k + half]
    value = n.attributes.get("value", n.number(2) if n.has(2) else 0.0)
    if value is None or not all(isinstance(a, int) for a in amounts):
        return None
    if any(a < 0 for a in amounts) or any(a >= 2**31 for a in amounts):
        return None
    if rank > 2 and not any(amounts[:2]) and not any(amounts[rank : rank + 2]):
        amounts = [*amounts[2:rank], *amounts[rank + 2 :]]
    return n.b.apply(op("pad", tuple(amounts), mode, float(value)), n.value(0))


# --- resizing -----------------------------------------------------------------------------------------------

_COORDINATES = {
    "half_pixel": "half",
    "align_corners": "corners",
    "asymmetric": "asymmetric",
    "pytorch_half_pixel": "torch",
    "half_pixel_symmetric": "half_symmetric",
}
_MODES = {"nearest": "nearest", "linear": "lin", "bilinear": "lin", "cubic": "cubic"}


def _resize(n: Node) -> Result | None:
    a, shape = n.attributes, n.shape(0)
    plain = not a.get("antialias", 0) and not a.get("exclude_outside", 0) and "axes" not in a
    mode = _MODES.get(a.get("mode", b"nearest").decode())
    plain = plain and a.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
    coordinates = a.get("coordinate_transformation_mode", b"half_pixel").decode()
    if n.opset < 11:
        coordinates = "asymmetric"
    if not plain or mode is None or coordinates not in _COORDINATES or a.get("cubic_coeff_a", -0.75) != -0.75:
        return None
    scales, sizes = _scales(n), n.known(3) if n.opset >= 11 and n.has(3) else None
    if sizes is not None:
        target = list(sizes.reshape(-1))
    elif scales is not None and _exact(shape, scales):
        target = _scaled(shape, scales)
    else:
        return None
    target = [t if not isinstance(t, np.integer) else int(t) for t in target]
    if len(target) != len(shape) or target[:2] != list(shape[:2]):
        return None
    rounding = a.get("nearest_mode", b"round_prefer_floor").decode() if n.opset >= 11 else "floor"
    return n.b.apply(resize_op(mode, shape[2:], tuple(target[2:]), _COORDINATES[coordinates], rounding), n.value(0))


def _exact(shape: Sequence[Any], scales: Sequence[float]) -> bool:
    """Whether the sizes say all: else entries are taken at distances that the sizes do not tell."""
    return all(not isinstance(s, int) or abs(s * f - round(s * f)) < 1e-4 for s, f in zip(shape, scales, strict=True))


def _scaled(shape: Sequence[Any], scales: Sequence[float]) -> list[Any]:
    return [
        int(np.floor(s * f + 1e-4)) if isinstance(s, int) else s * _whole(f) for s, f in zip(shape, scales, strict=True)
    ]


def _whole(factor: float) -> int:
    if factor != int(factor):
        raise ExportError(f"a dynamic size is scaled by {factor}; only whole factors can be read")
    return int(factor)


def _scales(n: Node) -> list[float] | None:
    if "scales" in n.attributes:  # Upsample below opset 9
        return list(n.attributes["scales"])
    data = n.known(2 if n.opset >= 11 else 1)
    return None if data is None or data.size == 0 else [float(v) for v in data.reshape(-1)]


def resize_op(mode: str, before: tuple[Any, ...], after: tuple[Any, ...], coordinates: str, rounding: str) -> Any:
    """The plainest operator of a resizing: whole factors rather than sizes, plain repetition without its formula."""
    factors = [
        b // a if isinstance(a, int) and isinstance(b, int) and b % a == 0 else None
        for a, b in zip(before, after, strict=True)
    ]
    if None in factors and not all(isinstance(a, int) for a in before):
        factors = [f if f is not None else int(b / a) for f, a, b in zip(factors, before, after, strict=True)]
    whole = all(f is not None for f in factors)
    size = () if whole else tuple(after)
    scale = tuple(factors) if whole else (1,) * len(before)
    if coordinates == "torch" and all(b != 1 for b in after):
        coordinates = "half"
    if mode != "nearest":
        rounding = "plain"
    elif whole and all(_repeats(a, f, coordinates, rounding) for a, f in zip(before, factors, strict=True)):
        coordinates, rounding = "half", "plain"
    return op_with("resize", mode=mode, scale=scale, size=size, coordinates=coordinates, rounding=rounding)


_ROUND: dict[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _repeats(length: Any, factor: Any, coordinates: str, rounding: str) -> bool:
    """Whether a formula for the nearest entry comes to repeating each entry."""
    if factor == 1:
        return True
    length = length if isinstance(length, int) and length < 1024 else 64
    x = np.arange(length * factor)
    if coordinates in ("half", "half_symmetric", "torch"):
        source = (x + 0.5) / factor - 0.5
    elif coordinates == "asymmetric":
        source = x / factor
    else:
        return False
    nearest = np.clip(_ROUND[rounding](source), 0, length - 1)
    return bool((nearest == x // factor).all())


def _upsample(n: Node) -> Result | None:
    scales = _upsample_scales(n)
    mode = _MODES.get(n.attributes.get("mode", b"nearest").decode())
    shape = n.shape(0)
    if scales is None or mode is None or list(scales[:2]) != [1.0, 1.0] or not _exact(shape, scales):
        return None
    target = tuple(_scaled(shape, scales))
    return n.b.apply(resize_op(mode, shape[2:], target[2:], "asymmetric", "floor"), n.value(0))


def _upsample_scales(n: Node) -> list[float] | None:
    if "scales" in n.attributes:
        return list(n.attributes["scales"])
    data = n.known(1)
    return None if data is None else [float(v) for v in data.reshape(-1)]


def _depth_to_space(n: Node) -> Result:
    crd = n.attributes.get("mode", b"DCR") == b"CRD"
    return n.b.apply(op("depth2space", n.attributes["blocksize"], crd), n.value(0))


def _softmax(name: str) -> Read:
    def read(n: Node) -> Result:
        shape = n.shape(0)
        axis = axis_of(n.attributes.get("axis", -1 if n.opset >= 13 else 1), len(shape))
        x = n.value(0)
        if n.opset >= 13 or all(d == 1 for d in shape[axis + 1 :]) or axis == len(shape) - 1:
            return n.b.apply(op(name, axis), x)
        if is_dynamic(shape):
            raise ExportError(
                f"softmax over the dimensions from {axis} on, as opset {n.opset} has it, needs fixed sizes"
            )
        flat = n.b.reshape(x, (int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))))
        return n.b.reshape(n.b.apply(op(name, 1), flat), shape)

    return read


def _word(name: str) -> Read:
    return lambda n: n.b.unary(name, n.value(0))


READ_IMAGE: dict[str, Read] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _avg_pool,
    "GlobalAveragePool": _word("gap"),
    "GlobalMaxPool": _word("gmp"),
    "Gemm": _gemm,
    "MatMul": _mat_mul,
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "PRelu": _p_relu,
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _upsample,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": lambda n: n.b.apply(op("space2depth", n.attributes["blocksize"]), n.value(0)),
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("logsoftmax"),
}
"""How to read each operator of this family."""

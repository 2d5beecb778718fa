"""Operators on feature maps (batch, channels, height, width), and linear layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape, size, tidy
from nasrlm.graph.spec import (
    AXIS,
    EPSILON,
    Field,
    OpSpec,
    choice_field,
    flag,
    integer_field,
    number_field,
    read_numbers,
    same,
    shape_field,
    spatial_field,
    spatial_word,
)

if TYPE_CHECKING:
    from nasrlm.graph.ops import Op


def same_padding(kernel: Shape, dilation: Shape) -> Shape:
    """Begin and end padding that keeps the size at stride 1 for odd kernels: (top, left, bottom, right)."""
    return tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True)) * 2


def _padding_word(value: Shape, op_: Op) -> str:
    index = op_.spec.index  # what is written behind the padding is not known when it is read
    dilated = index.get("dilation", len(index)) < index["padding"]
    dilation = op_["dilation"] if dilated else (1,) * len(op_["kernel"])
    if value == same_padding(op_["kernel"], dilation):
        return ""
    half = len(value) // 2
    return "p" + (spatial_word(value[:half]) if value[:half] == value[half:] else "x".join(map(str, value)))


def _read_padding(word: str, rank: int) -> Any:
    numbers = read_numbers(word[1:]) if word.startswith("p") else None
    if numbers is None or len(numbers) == 2 * rank:
        return numbers
    return (numbers * rank if len(numbers) == 1 else numbers) * 2


def _default_padding(attrs: dict[str, Any], rank: int) -> Shape:
    return same_padding(attrs["kernel"], attrs.get("dilation", (1,) * rank))


def _read_width(word: str, _: int) -> str | None:
    return word if word.lstrip("*/").isdecimal() else None


def _read_groups(word: str, _: int) -> Any:
    if word == "dw":
        return "dw"
    return int(word[1:]) if word[0] == "g" and word[1:].isdecimal() else None


WIDTH = Field("width", lambda v, _: v, _read_width, lambda *_: "")
KERNEL, POOL_KERNEL = spatial_field("kernel", "k", 1), spatial_field("kernel", "k", 3)
STRIDE, DILATION = spatial_field("stride", "s", 1), spatial_field("dilation", "d", 1)
PADDING = Field("padding", _padding_word, _read_padding, _default_padding)
GROUPS = Field("groups", lambda v, _: "dw" if v == "dw" else f"g{v}" if v != 1 else "", _read_groups, lambda *_: 1)
BIAS = flag("bias", "nobias", when=False)
CEIL = flag("ceil", "ceil", when=True)
INCLUDE_PADDING = flag("include_padding", "padded", when=True)


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


def _window(length: int, kernel: int, stride: int, pad: int, dilation: int, ceil: bool) -> int:
    span = length + pad - dilation * (kernel - 1) - 1
    if not isinstance(span, int):
        return tidy((span + stride - 1) // stride + 1 if ceil else span // stride + 1)
    if span < 0:
        raise ExportError(
            f"a window of {kernel} (dilation {dilation}) does not fit a size of {length} with padding {pad}"
        )
    steps = -(-span // stride) if ceil else span // stride
    # ONNX and PyTorch: in ceil mode the last window must begin inside the input or its first padding.
    if ceil and steps * stride >= length + pad // 2:
        steps -= 1
    return steps + 1


def _slide(op_: Op, spatial: Shape, dilation: Shape, ceil: bool = False) -> Shape:
    rank = len(op_["kernel"])
    if len(spatial) != rank:
        raise ExportError(f"'{op_.text}' slides over {rank} dimensions, its input has {len(spatial)}")
    pads = op_["padding"]
    return tuple(
        _window(length, op_["kernel"][i], op_["stride"][i], pads[i] + pads[i + rank], dilation[i], ceil)
        for i, length in enumerate(spatial)
    )


def _widths(op_: Op, x: Shape) -> tuple[int, int]:
    groups, out = group_count(op_, x[1]), absolute_width(x[1], op_["width"])
    if x[1] % groups or out % groups:
        raise ExportError(f"'{op_.text}' cannot split {x[1]} input and {out} output channels into {groups} groups")
    return groups, out


def _conv_shape(op_: Op, x: Shape) -> Shape:
    return (x[0], _widths(op_, x)[1], *_slide(op_, x[2:], op_["dilation"]))


def _deconv_shape(op_: Op, x: Shape) -> Shape:
    rank = len(op_["kernel"])
    if len(x) != rank + 2:
        raise ExportError(f"'{op_.text}' slides over {rank} dimensions, its input has {len(x) - 2}")
    sizes = zip(x[2:], op_["kernel"], op_["stride"], op_["dilation"], op_["output_padding"], strict=True)
    pads = op_["padding"]
    out = tuple(
        (n - 1) * s - pads[i] - pads[i + rank] + d * (k - 1) + more + 1 for i, (n, k, s, d, more) in enumerate(sizes)
    )
    if any(isinstance(n, int) and n < 1 for n in out):
        raise ExportError(f"'{op_.text}' leaves nothing of {x}")
    return (x[0], _widths(op_, x)[1], *out)


def _pool_shape(op_: Op, x: Shape) -> Shape:
    dilation = op_["dilation"] if "dilation" in op_.spec.index else (1,) * len(op_["kernel"])
    return (*x[:2], *_slide(op_, x[2:], dilation, op_["ceil"]))


def _global_shape(_: Op, x: Shape) -> Shape:
    return (*x[:2], *(1,) * (len(x) - 2))


def _pad_shape(op_: Op, x: Shape) -> Shape:
    amounts = op_["padding"]
    half, skipped = len(amounts) // 2, len(x) - len(amounts) // 2
    if skipped not in (0, 2):
        raise ExportError(f"'{op_.text}' pads {half} dimensions of {x}; it must be all, or all after the channels")
    return (*x[:skipped], *(n + amounts[i] + amounts[i + half] for i, n in enumerate(x[skipped:])))


def _resize_shape(op_: Op, x: Shape) -> Shape:
    sizes = op_["size"] or tuple(n * s for n, s in zip(x[2:], op_["scale"], strict=True))
    if len(sizes) != len(x) - 2:
        raise ExportError(f"'{op_.text}' gives {len(sizes)} sizes for the {len(x) - 2} dimensions after the channels")
    return (*x[:2], *sizes)


def _depth_to_space(op_: Op, x: Shape) -> Shape:
    b = op_["block"]
    if len(x) != 4 or x[1] % (b * b):
        raise ExportError(f"'{op_.text}' needs four dimensions and channels that {b * b} divides, not {x}")
    return (x[0], x[1] // (b * b), x[2] * b, x[3] * b)


def _space_to_depth(op_: Op, x: Shape) -> Shape:
    b = op_["block"]
    if len(x) != 4 or x[2] % b or x[3] % b:
        raise ExportError(f"'{op_.text}' needs four dimensions and sizes that {b} divides, not {x}")
    return (x[0], x[1] * b * b, x[2] // b, x[3] // b)


# --- parameters and MACs ---------------------------------------------------------------------------------------


def _conv_parameters(op_: Op, x: Shape) -> int:
    out = absolute_width(x[1], op_["width"])
    return out * (x[1] // group_count(op_, x[1])) * size(op_["kernel"]) + out * op_["bias"]


def _conv_macs(op_: Op, y: Shape, x: Shape) -> int:
    return size(y) * (x[1] // group_count(op_, x[1])) * size(op_["kernel"])


def _deconv_parameters(op_: Op, x: Shape) -> int:
    out = absolute_width(x[1], op_["width"])
    return x[1] * (out // group_count(op_, x[1])) * size(op_["kernel"]) + out * op_["bias"]


def _deconv_macs(op_: Op, y: Shape, x: Shape) -> int:
    return size(x) * (y[1] // group_count(op_, x[1])) * size(op_["kernel"])


def _linear_parameters(op_: Op, x: Shape) -> int:
    out = absolute_width(x[-1], op_["width"])
    return out * x[-1] + out * op_["bias"]


def _affine(op_: Op, x: Shape) -> int:
    return 2 * x[1] * op_["affine"]


_POOL = (POOL_KERNEL, STRIDE, PADDING, CEIL)
AFFINE = flag("affine", "noaffine", when=False)

IMAGE: dict[str, OpSpec] = {
    "conv": OpSpec(
        _conv_shape,
        (WIDTH, KERNEL, STRIDE, DILATION, PADDING, GROUPS, BIAS),
        parameters=_conv_parameters,
        macs=_conv_macs,
    ),
    "deconv": OpSpec(
        _deconv_shape,
        (WIDTH, KERNEL, STRIDE, DILATION, PADDING, spatial_field("output_padding", "o", 0), GROUPS, BIAS),
        parameters=_deconv_parameters,
        macs=_deconv_macs,
    ),
    "linear": OpSpec(
        lambda o, x: (*x[:-1], absolute_width(x[-1], o["width"])),
        (WIDTH, BIAS),
        parameters=_linear_parameters,
        macs=lambda o, y, x: size(y) * x[-1],
    ),
    "bn": OpSpec(same, parameters=lambda o, x: 2 * x[1]),
    "instancenorm": OpSpec(same, (EPSILON, AFFINE), parameters=_affine),
    "groupnorm": OpSpec(same, (integer_field("groups", "g", 32), EPSILON, AFFINE), parameters=_affine),
    "prelu": OpSpec(same, (flag("shared", "shared", when=True),), parameters=lambda o, x: 1 if o["shared"] else x[1]),
    "maxpool": OpSpec(_pool_shape, (*_POOL, DILATION)),
    "avgpool": OpSpec(_pool_shape, (*_POOL, INCLUDE_PADDING)),
    "gap": OpSpec(_global_shape),
    "gmp": OpSpec(_global_shape),
    "pad": OpSpec(
        _pad_shape,
        (
            shape_field("padding", "p"),
            choice_field("mode", "constant", "reflect", "edge", "wrap"),
            number_field("value", "v", 0.0),
        ),
    ),
    "resize": OpSpec(
        _resize_shape,
        (
            choice_field("mode", "nearest", "lin", "cubic"),
            spatial_field("scale", "s", 1),
            shape_field("size", "to", ()),
            choice_field("coordinates", "half", "corners", "asymmetric", "torch", "half_symmetric"),
            choice_field("rounding", "plain", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
        ),
    ),
    "depth2space": OpSpec(_depth_to_space, (integer_field("block", "b", 2), flag("crd", "crd", when=True))),
    "space2depth": OpSpec(_space_to_depth, (integer_field("block", "b", 2),)),
    "shuffle": OpSpec(same, (integer_field("groups", "g", 2),)),
    "softmax": OpSpec(same, (AXIS,)),
    "logsoftmax": OpSpec(same, (AXIS,)),
}
"""Operators on feature maps. `resize` scales only dimensions after the channels; a plain rounding repeats each entry
(or has no part, in all modes but nearest)."""

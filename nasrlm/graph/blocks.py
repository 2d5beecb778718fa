"""Blocks that many search spaces share: convolution with norm and activation, squeeze-excite, inverted residual.

Each takes a `GraphBuilder` and a value first, returns a value. What a paper does otherwise stays in its space's file.
"""

from __future__ import annotations

from nasrlm.errors import unknown_name
from nasrlm.graph.builder import GraphBuilder
from nasrlm.graph.builder_args import Size

ACTIVATIONS = ("none", "relu", "relu6", "hard_swish", "hard_sigmoid", "sigmoid", "silu")
"""`silu` is x sigmoid(x), also called swish."""


def activation(b: GraphBuilder, x: int, name: str = "relu") -> int:
    """An activation by its name; "none" is the value itself.

    Raises:
        UnknownNameError: another name than one of `ACTIVATIONS`.
    """
    if name not in ACTIVATIONS:
        raise unknown_name("activation", name, ACTIVATIONS)
    if name == "none":
        return x
    return b.unary(name.replace("_", ""), x)


def conv_bn(
    b: GraphBuilder,
    x: int,
    out: int,
    kernel: Size = 1,
    stride: Size = 1,
    act: str = "relu",
    *,
    padding: Size | None = None,
    groups: int = 1,
    dilation: Size = 1,
    bias: bool = False,
) -> int:
    """Convolution, BatchNorm, activation ("none" for a linear one)."""
    y = b.conv(x, out, kernel, stride, padding=padding, groups=groups, dilation=dilation, bias=bias)
    return activation(b, b.batch_norm(y), act)


def squeeze_excite(b: GraphBuilder, x: int, hidden: int, act: str = "relu", gate: str = "hard_sigmoid") -> int:
    """Channels scaled by what two biased 1x1 convolutions make of their means (Hu et al. 2018)."""
    channels = b.shape(x)[1]
    squeezed = activation(b, b.conv(b.global_avg_pool(x), hidden, 1, bias=True), act)
    return b.mul(x, activation(b, b.conv(squeezed, channels, 1, bias=True), gate))


def inverted_residual(
    b: GraphBuilder,
    x: int,
    out: int,
    inner: int,
    kernel: int,
    stride: int = 1,
    act: str = "relu",
    *,
    expand: bool = True,
    squeeze: int = 0,
    squeeze_act: str = "relu",
    gate: str = "hard_sigmoid",
    shortcut: bool = True,
) -> int:
    """MobileNetV2's block: 1x1 to `inner` channels, depthwise kernel x kernel, 1x1 to `out` without activation.

    Args:
        inner: channels of the depthwise convolution; without `expand` those of `x`.
        squeeze: hidden channels of squeeze-excite behind the depthwise convolution; 0 = none.
        squeeze_act: the activation between its convolutions.
        gate: its gate.
        shortcut: adds `x` where stride is 1 and the channels are equal.
    """
    before = b.shape(x)[1]
    y = conv_bn(b, x, inner, 1, 1, act) if expand else x
    width = b.shape(y)[1]
    y = conv_bn(b, y, width, kernel, stride, act, groups=width)
    if squeeze:
        y = squeeze_excite(b, y, squeeze, squeeze_act, gate)
    y = conv_bn(b, y, out, 1, 1, "none")
    return b.add(y, x) if shortcut and stride == 1 and before == out else y


def round_channels(channels: float, divisor: int = 8) -> int:
    """The nearest multiple (half up), at least `divisor`, one more where it would lose over a tenth (MobileNetV2).

    >>> round_channels(18.5), round_channels(20)
    (24, 24)
    """
    found = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return found + divisor if found < 0.9 * channels else found

"""SNAS: plain convolutional networks of one to six blocks, small enough to train in a second.

In the spirit of the space "SNAS" of Akhauri et al., "Regression Language Models for Code", 2025 (arXiv:2509.26476):
convolutions, strides, groups, residuals and pooling drawn freely, and trained for a few dozen steps. That space is not
published in full, so this one is nasrlm's own; its values are not comparable with the paper's.

Network: 3x3 convolution, BatchNorm and activation (the stem); `depth` blocks; head (pool or flatten, linear layer).
Block: with `stride` 2 the image is halved, by the convolution itself or by a 2x2 pool before the block; then
convolution, BatchNorm, activation, if wanted squeeze-and-excitation (Hu et al. 2018), and the shortcut is added, which
is a 1x1 convolution with BatchNorm where shapes differ. `groups` = "depthwise" is a depthwise convolution and a 1x1
convolution behind it, each with BatchNorm and activation (Howard et al. 2017).

Widths are those at full size: a block whose image was halved once has twice as many channels, from the second time on
four times. So the MACs of a block are bounded wherever it stands: on digits no network has more than 9.9 million MACs
and 2.0 million parameters.
"""

from __future__ import annotations

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.spaces import Choice, Integer, Params, SearchSpace, SpaceError, When

BLOCKS = 6
WIDTHS = (4, 8, 12, 16, 24, 32)
MOST_DOUBLINGS = 2
SQUEEZE = 4  # channels divided by it are the hidden width of squeeze-and-excitation
GROUPS = (1, 2, 4, "depthwise")


def _block_parameters(i: int) -> tuple[Choice, ...]:
    there = When("depth", tuple(range(i, BLOCKS + 1)))
    return (
        Choice(f"width_{i}", WIDTHS, when=there),
        Choice(f"kernel_{i}", (1, 3, 5), when=there),
        Choice(f"stride_{i}", (1, 2), when=there),
        Choice(f"pool_{i}", ("none", "max", "avg"), when=When(f"stride_{i}", (2,))),
        Choice(f"groups_{i}", GROUPS, when=there),
        Choice(f"residual_{i}", (False, True), when=there),
        Choice(f"squeeze_excite_{i}", (False, True), when=there),
    )


class SNAS(SearchSpace):
    """Every block has its own width, kernel, stride, pool, groups, shortcut and squeeze-and-excitation.

    Args:
        image_size: Height and width of the input in pixels; 8 is scikit-learn's digits.
        in_channels: Channels of the input.
        num_classes: Outputs of the linear layer.

    >>> space = SNAS()
    >>> f"{space.size():.1e}"
    '1.3e+20'
    """

    name = "snas"
    parameters = (
        Integer("depth", 1, BLOCKS),
        Choice("stem_width", WIDTHS),
        Choice("activation", ("relu", "relu6", "hard_swish")),
        Choice("head", ("avg", "max", "flatten")),
        *(parameter for i in range(1, BLOCKS + 1) for parameter in _block_parameters(i)),
    )
    source = "nasrlm's own, after SNAS in Akhauri et al., Regression Language Models for Code, 2025, arXiv:2509.26476"
    metrics = (
        "accuracy/digits",
        "accuracy/digits_seed0",
        "accuracy/digits_seed1",
        "latency_ms/onnxruntime_cpu",
        "latency_ms/onnxruntime_int8",
        "latency_ms/openvino_cpu",
        "params",
        "macs",
    )

    def __init__(self, image_size: int = 8, in_channels: int = 1, num_classes: int = 10) -> None:
        options = {"image_size": image_size, "in_channels": in_channels, "num_classes": num_classes}
        for option, value in options.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SpaceError(f"option {option!r} of snas is {value!r}. Allowed: integers >= 1.")
        self.image_size, self.in_channels, self.num_classes = image_size, in_channels, num_classes

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        b = GraphBuilder()
        x = b.input((self.in_channels, self.image_size, self.image_size))
        x = _conv(b, str(params["activation"]), x, int(params["stem_width"]), 3)
        halvings = 0
        for i in range(1, int(params["depth"]) + 1):
            block = {name.removesuffix(f"_{i}"): value for name, value in params.items() if name.endswith(f"_{i}")}
            halvings += block["stride"] == 2
            out = int(block["width"]) * 2 ** min(halvings, MOST_DOUBLINGS)
            x = _block(b, {**block, "activation": params["activation"]}, x, out)
        if params["head"] != "flatten":
            x = b.global_avg_pool(x) if params["head"] == "avg" else b.global_max_pool(x)
        b.output(b.linear(b.flatten(x), self.num_classes))
        return b.build()


def _block(b: GraphBuilder, block: Params, x: int, out: int) -> int:
    stride = int(block["stride"]) if b.shape(x)[2] > 1 else 1  # a single pixel is not halved any more
    if stride == 2 and block["pool"] != "none":
        pool = b.max_pool if block["pool"] == "max" else b.avg_pool
        x, stride = pool(x, 2, stride=2, padding=0), 1
    y = _convolutions(b, block, x, out, stride)
    if block["squeeze_excite"]:
        y = _squeeze_excite(b, y, out)
    return b.add(y, _shortcut(b, x, out, stride)) if block["residual"] else y


def _convolutions(b: GraphBuilder, block: Params, x: int, out: int, stride: int) -> int:
    activation, kernel, groups = str(block["activation"]), int(block["kernel"]), block["groups"]
    if groups != "depthwise":
        return _conv(b, activation, x, out, kernel, stride, int(groups))
    channels = b.shape(x)[1]
    return _conv(b, activation, _conv(b, activation, x, channels, kernel, stride, channels), out, 1)


def _conv(b: GraphBuilder, activation: str, x: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> int:
    x = b.batch_norm(b.conv(x, out, kernel, stride, groups=groups))
    return {"relu": b.relu, "relu6": b.relu6, "hard_swish": b.hard_swish}[activation](x)


def _shortcut(b: GraphBuilder, x: int, out: int, stride: int) -> int:
    return x if stride == 1 and b.shape(x)[1] == out else b.batch_norm(b.conv(x, out, 1, stride))


def _squeeze_excite(b: GraphBuilder, x: int, channels: int) -> int:
    hidden = b.relu(b.conv(b.global_avg_pool(x), channels // SQUEEZE, 1, bias=True))
    return b.mul(x, b.hard_sigmoid(b.conv(hidden, channels, 1, bias=True)))


SPACE = SNAS

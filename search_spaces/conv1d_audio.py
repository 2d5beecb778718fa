"""One-dimensional convolutional networks for sound: keywords from a waveform, or from MFCC and other features.

nasrlm's own, a template for audio and other signals. The ideas are those of published keyword spotters, none of which
is a point of this space: M5, strided convolutions on the waveform (Dai et al., "Very Deep Convolutional Neural Networks
for Raw Waveforms", ICASSP 2017, arXiv:1610.00087); TC-ResNet, residual temporal convolutions on MFCC (Choi et al.,
Interspeech 2019, arXiv:1904.03814); MatchboxNet, separable residual blocks (Majumdar & Ginsburg, Interspeech 2020,
arXiv:2004.08531). The defaults fit Speech Commands: one second at 16 kHz, 35 words.

Network: front (strided convolution, BatchNorm, activation); stages of equal blocks, of which the first takes the
stage's stride; mean or maximum over time, linear layer. Blocks have BatchNorm and activation behind convolutions:
"plain" is one convolution; "residual" two, "separable" a depthwise and a 1x1 convolution, both with a shortcut added
before the last activation, which is a 1x1 convolution with BatchNorm where shapes differ. Squeeze-and-excitation
(Hu et al. 2018), if wanted, stands before the sum. Dilation spreads a block's kernels.

Unconfirmed: nothing is published for this space; there are no labels.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import activation, conv_bn, squeeze_excite
from nasrlm.spaces import Choice, Integer, Parameter, Params, SearchSpace, When, check_sizes

FEWEST, MOST = 2, 5
"""Stages."""
WIDTHS = (16, 24, 32, 48, 64, 96, 128)
SQUEEZE = 4  # channels divided by it are the hidden width of squeeze-and-excitation
INPUTS: dict[str, dict[str, Any]] = {
    "waveform": {"channels": 1, "length": 16_000, "kernels": (20, 40, 80), "strides": (4, 8, 16)},
    "features": {"channels": 40, "length": 101, "kernels": (1, 3, 5, 9), "strides": (1, 2)},
}
EXAMPLE = (
    '{"front_kernel":80,"front_stride":8,"front_width":32,"activation":"relu","head":"avg","stages":2,"block_1":'
    '"residual","blocks_1":2,"width_1":48,"kernel_1":9,"stride_1":4,"dilation_1":1,"squeeze_excite_1":false,"block_2":'
    '"separable","blocks_2":3,"width_2":96,"kernel_2":15,"stride_2":2,"dilation_2":2,"squeeze_excite_2":true}'
)


def _stage_parameters(s: int) -> tuple[Parameter, ...]:
    there = When("stages", tuple(range(s, MOST + 1))) if s > FEWEST else None
    return (
        Choice(f"block_{s}", ("plain", "residual", "separable"), there),
        Integer(f"blocks_{s}", 1, 3, when=there),
        Choice(f"width_{s}", WIDTHS, there),
        Choice(f"kernel_{s}", (3, 5, 9, 15), there),
        Choice(f"stride_{s}", (1, 2, 4), there),
        Choice(f"dilation_{s}", (1, 2, 4), there),
        Choice(f"squeeze_excite_{s}", (False, True), there),
    )


class Conv1dAudio(SearchSpace):
    """Two to five stages, each with its own blocks, width, kernel, stride, dilation and squeeze-and-excitation.

    Args:
        input: "waveform", or "features" (MFCC, spectrogram bands), whose front keeps more of the time.
        channels: Channels of the input: 1 for a waveform, 40 features by default.
        length: Samples or frames of the input: 16,000 samples or 101 frames by default.
        num_classes: Outputs of the linear layer.

    >>> space = Conv1dAudio()
    >>> f"{space.size():.1e}", space.architecture(EXAMPLE).graph().shapes[0]
    ('3.1e+20', (1, 1, 16000))
    """

    name = "conv1d_audio"
    source = "nasrlm's own; ideas of M5 arXiv:1610.00087, TC-ResNet arXiv:1904.03814, MatchboxNet arXiv:2004.08531"
    metrics = ("accuracy/speech_commands", "latency_ms/onnxruntime_cpu", "params", "macs")

    def __init__(
        self, input: str = "waveform", channels: int | None = None, length: int | None = None, num_classes: int = 35
    ) -> None:
        usual = INPUTS[str(Choice("input", tuple(INPUTS)).check(input))]
        self.input = input
        self.channels = usual["channels"] if channels is None else channels
        self.length = usual["length"] if length is None else length
        self.num_classes = num_classes
        options = {"channels": self.channels, "length": self.length, "num_classes": num_classes}
        # A front kernel of even length is padded by one less than it is long.
        check_sizes(self.name, options, least={"length": 2})
        self.parameters = (
            Choice("front_kernel", usual["kernels"]),
            Choice("front_stride", usual["strides"]),
            Choice("front_width", (16, 32, 64)),
            Choice("activation", ("relu", "hard_swish", "silu")),
            Choice("head", ("avg", "max")),
            Integer("stages", FEWEST, MOST),
            *(parameter for s in range(1, MOST + 1) for parameter in _stage_parameters(s)),
        )

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        b = GraphBuilder()
        x, act = b.input((self.channels, self.length)), str(params["activation"])
        kernel, stride = int(params["front_kernel"]), int(params["front_stride"])
        x = conv_bn(b, x, int(params["front_width"]), kernel, stride, act)
        for s in range(1, int(params["stages"]) + 1):
            stage = {name.removesuffix(f"_{s}"): value for name, value in params.items() if name.endswith(f"_{s}")}
            x = _block(b, stage, act, int(stage["stride"]), x)
            x = b.repeat(int(stage["blocks"]) - 1, partial(_block, b, stage, act, 1), x)
        x = b.global_avg_pool(x) if params["head"] == "avg" else b.global_max_pool(x)
        b.output(b.linear(b.flatten(x), self.num_classes))
        return b.build()


def _block(b: GraphBuilder, stage: Params, act: str, stride: int, x: int) -> int:
    kind, width, before = stage["block"], int(stage["width"]), b.shape(x)[1]
    kernel, dilation = int(stage["kernel"]), int(stage["dilation"])
    last = act if kind == "plain" else "none"
    if kind == "separable":
        y = conv_bn(b, x, before, kernel, stride, act, groups=before, dilation=dilation)
        y = conv_bn(b, y, width, act=last)
    elif kind == "residual":
        y = conv_bn(b, x, width, kernel, stride, act, dilation=dilation)
        y = conv_bn(b, y, width, kernel, act=last, dilation=dilation)
    else:
        y = conv_bn(b, x, width, kernel, stride, last, dilation=dilation)
    if stage["squeeze_excite"]:
        y = squeeze_excite(b, y, width // SQUEEZE)
    if kind == "plain":
        return y
    same = stride == 1 and before == width
    return activation(b, b.add(y, x if same else conv_bn(b, x, width, 1, stride, "none")), act)


SPACE = Conv1dAudio

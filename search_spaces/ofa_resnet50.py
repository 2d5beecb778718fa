"""Once-for-all's ResNet-50: elastic depth, expansion, width and resolution.

Cai et al., "Once-for-All: Train One Network and Specialize it for Efficient Deployment", ICLR 2020 (arXiv:1908.09791);
code mit-han-lab/once-for-all, ``ofa/imagenet_classification/elastic_nn/networks/ofa_resnets.py``. After ResNet-50-D
of He et al., "Bag of Tricks for Image Classification", CVPR 2019 (arXiv:1812.01187).

Network: 3x3 convolution of stride 2 to m channels, if wanted a 3x3 convolution with identity shortcut, 3x3 convolution
to o channels, 3x3 max pool of stride 2; four stages of 2, 2, 4, 2 bottleneck blocks and up to two more; global mean,
linear layer. Block: 1x1 convolution to ``expand`` times the output's channels, 3x3 convolution, 1x1 convolution; the
shortcut is the input, or where shapes differ an average pool (if the block halves) and a 1x1 convolution.
A width is 0.65, 0.8 or 1.0 times the base width, rounded to a multiple of 8: chosen for m, o and each stage.

Counts: the point that is ResNet-50-D has its 25,576,264 parameters. Unconfirmed: no table of published counts is at
hand. The resolutions are those of HELP's MobileNetV3 set (128 to 224 by 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nasrlm.graph import GraphBuilder
from nasrlm.graph.blocks import conv_bn, round_channels
from nasrlm.spaces import Choice, Parameter, Params, Value, When
from search_spaces._dictionaries import entry
from search_spaces._ofa import OnceForAll

WIDTHS, EXPANSIONS, EXTRA = (0.65, 0.8, 1.0), (0.2, 0.25, 0.35), (0, 1, 2)
STEM_DEPTHS = {0: False, 2: True}
STEM = 64
STAGE_WIDTHS, STAGE_DEPTHS, STRIDES = (256, 512, 1024, 2048), (2, 2, 4, 2), (1, 2, 2, 2)
WIDTH_NAMES = ("width_stem_middle", "width_stem", *(f"width_{s}" for s in range(1, 5)))
_SLOTS = tuple((s, i) for s, depth in enumerate(STAGE_DEPTHS, 1) for i in range(1, depth + max(EXTRA) + 1))

RESNET50_D = (
    '{"d":[2,1,2,2,1],"e":[0.25,0.25,0.25,0,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25,0],'
    '"w":[2,2,2,2,2,2],"r":224}'
)
EXAMPLE = RESNET50_D


def _block_parameter(s: int, i: int) -> Choice:
    above = i - STAGE_DEPTHS[s - 1]
    there = When(f"extra_{s}", tuple(extra for extra in EXTRA if extra >= above)) if above > 0 else None
    return Choice(f"expand_{s}_{i}", EXPANSIONS, there)


class _Layout:
    """Depths ``d`` (of the stem: 0 or 2; then what is added), expansions ``e``, indices of widths ``w``."""

    lengths: Mapping[str, int] = MappingProxyType({"d": 1 + len(STAGE_DEPTHS), "e": len(_SLOTS), "w": len(WIDTH_NAMES)})

    def parameters(self) -> tuple[Parameter, ...]:
        """Declare stem, depths, expansions and widths."""
        extras = [Choice(f"extra_{s}", EXTRA) for s in range(1, len(STAGE_DEPTHS) + 1)]
        blocks = [_block_parameter(s, i) for s, i in _SLOTS]
        widths = [Choice(name, WIDTHS) for name in WIDTH_NAMES]
        return (Choice("stem_block", (False, True)), *extras, *blocks, *widths)

    def lists(self, params: Params) -> dict[str, list[Any]]:
        """Return the dictionary's lists; 0 for a block that is not there."""
        extras = [params[f"extra_{s}"] for s in range(1, len(STAGE_DEPTHS) + 1)]
        return {
            "d": [2 if params["stem_block"] else 0, *extras],
            "e": [params.get(f"expand_{s}_{i}", 0) for s, i in _SLOTS],
            "w": [WIDTHS.index(float(params[name])) for name in WIDTH_NAMES],
        }

    def params(self, lists: Mapping[str, list[Any]]) -> dict[str, Value]:
        """Return the parameters of lists that have the right lengths."""
        params: dict[str, Value] = {"stem_block": STEM_DEPTHS[int(entry("d", 0, lists, tuple(STEM_DEPTHS)))]}
        for s in range(1, len(STAGE_DEPTHS) + 1):
            params[f"extra_{s}"] = entry("d", s, lists, EXTRA)
        for position, (s, i) in enumerate(_SLOTS):
            if i <= STAGE_DEPTHS[s - 1] + int(params[f"extra_{s}"]):
                params[f"expand_{s}_{i}"] = entry("e", position, lists, EXPANSIONS)
        for position, name in enumerate(WIDTH_NAMES):
            params[name] = WIDTHS[int(entry("w", position, lists, tuple(range(len(WIDTHS)))))]
        return params


class OFAResNet50(OnceForAll):
    """Up to two more blocks a stage, expansion a block, six widths: 2.46e12 architectures, times 25 resolutions.

    Args:
        resolution: Height and width of the input in pixels; None makes it a parameter, 128 to 224 by 4.
        num_classes: Outputs of the linear layer.

    >>> space = OFAResNet50(resolution=224)
    >>> space.to_dict(space.architecture(RESNET50_D))["w"]
    [2, 2, 2, 2, 2, 2]
    """

    name = "ofa_resnet50"
    source = "Cai et al., Once-for-All, ICLR 2020, arXiv:1908.09791; github.com/mit-han-lab/once-for-all"
    metrics = ("accuracy/imagenet", "params", "macs")
    layout = _Layout()
    example = EXAMPLE

    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        x = _stem(b, x, params)
        for s, (base, stride) in enumerate(zip(STAGE_WIDTHS, STRIDES, strict=True), 1):
            width = round_channels(base * float(params[f"width_{s}"]))
            for i in range(1, STAGE_DEPTHS[s - 1] + int(params[f"extra_{s}"]) + 1):
                inner = round_channels(round(width * float(params[f"expand_{s}_{i}"])))
                x = _bottleneck(b, x, width, inner, stride if i == 1 else 1)
        return b.global_avg_pool(x)


def _stem(b: GraphBuilder, x: int, params: Params) -> int:
    # The middle's width goes with the rounded width of the whole stem, not with its base width.
    middle = round_channels(round_channels(STEM * float(params["width_stem_middle"])) // 2)
    x = conv_bn(b, x, middle, 3, 2)
    if params["stem_block"]:
        x = b.add(conv_bn(b, x, middle, 3), x)
    x = conv_bn(b, x, round_channels(STEM * float(params["width_stem"])), 3)
    return b.max_pool(x, 3, 2, padding=1)


def _bottleneck(b: GraphBuilder, x: int, width: int, inner: int, stride: int) -> int:
    y = conv_bn(b, conv_bn(b, conv_bn(b, x, inner), inner, 3, stride), width, act="none")
    shortcut = x
    if stride > 1:
        shortcut = b.avg_pool(shortcut, stride, stride, padding=0, ceil=True)
    if stride > 1 or b.shape(x)[1] != width:
        shortcut = conv_bn(b, shortcut, width, act="none")
    return b.relu(b.add(y, shortcut))


SPACE = OFAResNet50

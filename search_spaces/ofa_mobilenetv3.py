"""Once-for-all's MobileNetV3: elastic depth, kernel, expansion and resolution.

Cai et al., "Once-for-All: Train One Network and Specialize it for Efficient Deployment", ICLR 2020 (arXiv:1908.09791);
code mit-han-lab/once-for-all, ``ofa/imagenet_classification/elastic_nn/networks/ofa_mbv3.py``. After Howard et al.,
"Searching for MobileNetV3", ICCV 2019 (arXiv:1905.02244).

Network: 3x3 convolution of stride 2; a block without expansion; five stages of 2 to 4 mobile blocks, of which stages
2, 4 and 5 have squeeze-excite and the last three hard swish; 1x1 convolution, global mean, 1x1 convolution without
BatchNorm or bias, hard swish, linear layer. Widths are multiplied by 1.0 or 1.2 and rounded to multiples of 8.

Counts (checked against a published table at width 1.0 and 224 pixels): parameters and MACs are exact.
Unconfirmed: the width behind HELP's published latencies of 5,000 architectures (1.2 is likely). Widths 1.0 and 1.2 look
the same in the encoding, so never join tables of both. The authors list width 1.2 for 160 to 224 pixels.
"""

from __future__ import annotations

from nasrlm.graph import GraphBuilder
from nasrlm.graph.blocks import activation, conv_bn, inverted_residual, round_channels
from nasrlm.spaces import Params, SpaceError
from search_spaces._ofa import MobileLayout, OnceForAll, Stage

STEM, FIRST, MIXED, FEATURES = 16, 16, 960, 1280
LAYOUT = MobileLayout(
    (
        Stage(24, 2, "relu"),
        Stage(40, 2, "relu", squeeze=True),
        Stage(80, 2, "hard_swish"),
        Stage(112, 1, "hard_swish", squeeze=True),
        Stage(160, 2, "hard_swish", squeeze=True),
    )
)
WIDTHS = (1.0, 1.2)
EXAMPLE = (
    '{"ks":[3,3,3,0,3,3,5,0,5,5,5,0,3,3,3,3,5,3,3,0],"e":[4,4,4,0,4,3,6,0,3,6,6,0,4,6,4,3,3,4,4,0],"d":[3,3,3,4,3],'
    '"r":224}'
)


class OFAMobileNetV3(OnceForAll):
    """Kernel 3, 5, 7 and expansion 3, 4, 6 a block, 2 to 4 blocks a stage: 7371^5 = 2.18e19, times 25 resolutions.

    Args:
        resolution: Height and width of the input in pixels; None makes it a parameter, 128 to 224 by 4.
        width: The width multiplier, 1.0 or 1.2.
        num_classes: Outputs of the linear layer.

    >>> space = OFAMobileNetV3()
    >>> space.to_dict(space.architecture(EXAMPLE))["d"]
    [3, 3, 3, 4, 3]
    """

    name = "ofa_mobilenetv3"
    source = "Cai et al., Once-for-All, ICLR 2020, arXiv:1908.09791; github.com/mit-han-lab/once-for-all"
    metrics = (
        "accuracy/imagenet",
        *(f"latency_ms/{gpu}_{batch}" for gpu in ("2080ti", "titan_rtx", "titan_xp", "v100") for batch in (1, 32, 64)),
        "params",
        "macs",
    )
    layout = LAYOUT
    example = EXAMPLE

    def __init__(self, resolution: int | None = None, width: float = 1.0, num_classes: int = 1000) -> None:
        if isinstance(width, bool) or width not in WIDTHS:
            allowed = ", ".join(map(str, WIDTHS))
            raise SpaceError(f"option 'width' of ofa_mobilenetv3 is {width!r}. Allowed: {allowed}.")
        self.width = float(width)
        super().__init__(resolution, num_classes)

    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        stem, first, mixed, features = (round_channels(w * self.width) for w in (STEM, FIRST, MIXED, FEATURES))
        x = conv_bn(b, x, stem, 3, 2, "hard_swish")
        x = inverted_residual(b, x, first, stem, 3, expand=False)
        x = LAYOUT.build(b, x, params, self.width)
        x = b.global_avg_pool(conv_bn(b, x, mixed, act="hard_swish"))
        return activation(b, b.conv(x, features), "hard_swish")


SPACE = OFAMobileNetV3

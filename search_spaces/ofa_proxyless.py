"""Once-for-all's ProxylessNAS: elastic depth, kernel, expansion and resolution at width 1.3.

Cai et al., "Once-for-All: Train One Network and Specialize it for Efficient Deployment", ICLR 2020 (arXiv:1908.09791);
code mit-han-lab/once-for-all, ``ofa/imagenet_classification/elastic_nn/networks/ofa_proxyless.py``. After Cai et al.,
"ProxylessNAS", ICLR 2019 (arXiv:1812.00332).

Network: 3x3 convolution of stride 2; a block without expansion and shortcut; five stages of 2 to 4 mobile blocks and a
sixth of one; 1x1 convolution, global mean, linear layer; ReLU6 throughout. Widths are multiplied by 1.3 and rounded
to multiples of 8. The sixth depth of the dictionary is always 1; larger ones are read as 1, as the authors' code does.

Unconfirmed: counts, as no published table of them is at hand; they agree with an independent count of the definition.
The resolutions are those of HELP's MobileNetV3 set (128 to 224 by 4); the authors' predictors use 128 to 224 by 32.
"""

from __future__ import annotations

from nasrlm.graph import GraphBuilder
from nasrlm.graph.blocks import conv_bn, inverted_residual, round_channels
from nasrlm.spaces import Params
from search_spaces._ofa import MobileLayout, OnceForAll, Stage

WIDTH = 1.3
STEM, FIRST, FEATURES = (round_channels(width * WIDTH) for width in (32, 16, 1280))
LAYOUT = MobileLayout(
    (
        Stage(24, 2, "relu6"),
        Stage(40, 2, "relu6"),
        Stage(80, 2, "relu6"),
        Stage(96, 1, "relu6"),
        Stage(192, 2, "relu6"),
        Stage(320, 1, "relu6", single=True),
    )
)
EXAMPLE = (
    '{"ks":[3,5,0,0,7,5,0,0,5,3,7,0,5,5,0,0,7,7,5,3,7],"e":[3,3,0,0,3,3,0,0,6,3,3,0,6,3,0,0,6,3,3,6,6],'
    '"d":[2,2,3,2,4,1],"r":224}'
)


class OFAProxyless(OnceForAll):
    """Kernel 3, 5, 7 and expansion 3, 4, 6 a block, 2 to 4 blocks a stage: 7371^5 x 9 = 1.96e20, times 25 resolutions.

    Args:
        resolution: Height and width of the input in pixels; None makes it a parameter, 128 to 224 by 4.
        num_classes: Outputs of the linear layer.

    >>> space = OFAProxyless(resolution=224)
    >>> space.to_dict(space.architecture(EXAMPLE))["d"]
    [2, 2, 3, 2, 4, 1]
    """

    name = "ofa_proxyless"
    source = "Cai et al., Once-for-All, ICLR 2020, arXiv:1908.09791; github.com/mit-han-lab/once-for-all"
    metrics = ("accuracy/imagenet", "params", "macs")
    layout = LAYOUT
    example = EXAMPLE

    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        x = conv_bn(b, x, STEM, 3, 2, "relu6")
        x = inverted_residual(b, x, FIRST, STEM, 3, act="relu6", expand=False, shortcut=False)
        x = LAYOUT.build(b, x, params, WIDTH)
        return b.global_avg_pool(conv_bn(b, x, FEATURES, act="relu6"))


SPACE = OFAProxyless

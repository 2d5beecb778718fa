"""NDS's space "ResNet": basic residual blocks, Radosavovic et al., ICCV 2019 (arXiv:1905.13214); see _nds_stages.py.

Block: 3x3 convolution, BatchNorm, ReLU, 3x3 convolution, BatchNorm; the shortcut is added, ReLU. The shortcut is the
input, or where shapes differ a 1x1 convolution with BatchNorm.

Depths and widths are those of walkerning/aw_nas, ``examples/research/surgery/nds``. Unconfirmed: how the published
``block_type`` goes on behind "res_basic". "ResNet-B" of the published files is another space.
"""

from __future__ import annotations

from nasrlm.graph import GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Params
from search_spaces._nds_stages import DEPTHS, WIDTHS, StagedNetworks, residual, stage_parameters

EXAMPLE = (
    '{"block_type":"res_basic_block","ds":[1,12,12,12],"ws":[16,24,24,40],"ss":[1,1,2,2],"bot_muls":[],"num_gs":[]}'
)


class NDSResNet(StagedNetworks):
    """Depth and width of three stages: 108^3 = 1,259,712 architectures.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels.

    >>> space = NDSResNet()
    >>> space.published_flops(space.architecture(EXAMPLE))
    184519578
    """

    name = "nds_resnet"
    parameters = stage_parameters(DEPTHS, WIDTHS)
    block_type = "res_basic_block"
    block_prefix = "res_basic"
    example = EXAMPLE

    def _block(self, b: GraphBuilder, stage: Params, stride: int, x: int) -> int:
        width = int(stage["width"])
        return residual(b, x, conv_bn(b, conv_bn(b, x, width, 3, stride), width, 3, act="none"), stride)


SPACE = NDSResNet

"""NDS's space "Vanilla": plain blocks, Radosavovic et al., ICCV 2019 (arXiv:1905.13214); see _nds_stages.py.

Block: 3x3 convolution, BatchNorm, ReLU, twice; no shortcut. Depths and widths are those of walkerning/aw_nas,
``examples/research/surgery/nds``.
"""

from __future__ import annotations

from nasrlm.graph import GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Params
from search_spaces._nds_stages import DEPTHS, WIDTHS, StagedNetworks, stage_parameters

EXAMPLE = (
    '{"block_type":"double_plain_block","ds":[1,12,12,12],"ws":[16,24,32,40],"ss":[1,1,2,2],"bot_muls":[],"num_gs":[]}'
)


class NDSVanilla(StagedNetworks):
    """Depth and width of three stages: 108^3 = 1,259,712 architectures.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels.

    >>> space = NDSVanilla()
    >>> space.published_flops(space.architecture(EXAMPLE))
    208363930
    """

    name = "nds_vanilla"
    parameters = stage_parameters(DEPTHS, WIDTHS)
    block_type = "double_plain_block"
    block_prefix = "double_plain"
    example = EXAMPLE

    def _block(self, b: GraphBuilder, stage: Params, stride: int, x: int) -> int:
        width = int(stage["width"])
        return conv_bn(b, conv_bn(b, x, width, 3, stride), width, 3)


SPACE = NDSVanilla

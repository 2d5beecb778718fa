"""NDS's space "ResNeXt-A": bottleneck blocks, Radosavovic et al., ICCV 2019 (arXiv:1905.13214); see _nds_stages.py.

Block: 1x1 convolution to ``ratio`` times the width, 3x3 convolution in ``groups`` groups, 1x1 convolution to the width,
each with BatchNorm and the first two with ReLU; the shortcut is added, ReLU. The shortcut is the input, or where shapes
differ a 1x1 convolution with BatchNorm.

The lists of values are those of walkerning/aw_nas, ``examples/research/surgery/nds``. Unconfirmed: how the published
``block_type`` goes on behind "res_bottleneck".
"""

from __future__ import annotations

from search_spaces._nds_stages import ResNeXt, stage_parameters

DEPTHS = (1, 2, 4, 8, 16)
WIDTHS = (16, 32, 64, 128, 256)
RATIOS = (1.0, 0.5, 0.25)
GROUPS = (1, 2, 4)
EXAMPLE = (
    '{"block_type":"res_bottleneck_block","ds":[1,16,1,4],"ws":[16,64,128,16],"ss":[1,1,2,2],'
    '"bot_muls":[0.0,0.25,0.25,0.25],"num_gs":[1,2,1,2]}'
)


class NDSResNeXtA(ResNeXt):
    """Depth, width, bottleneck ratio and groups of three stages: 225^3 = 11,390,625 architectures.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels.

    >>> space = NDSResNeXtA()
    >>> space.published_flops(space.architecture(EXAMPLE))
    69890986
    """

    name = "nds_resnext_a"
    parameters = stage_parameters(DEPTHS, WIDTHS, RATIOS, GROUPS)
    example = EXAMPLE


SPACE = NDSResNeXtA

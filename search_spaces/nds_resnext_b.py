"""NDS's space "ResNeXt-B": ResNeXt-A's with wider stages and more groups, Radosavovic et al., ICCV 2019
(arXiv:1905.13214); see nds_resnext_a.py and _nds_stages.py.

Unconfirmed: the widths, which are recalled from the paper's "at most 1024, five values", and counts, as no published
example is at hand. The largest network has 555 million parameters: as ONNX with weights it passes the 2 GiB that a
file can hold.
"""

from __future__ import annotations

from search_spaces._nds_stages import ResNeXt, stage_parameters

DEPTHS = (1, 2, 4, 8, 16)
WIDTHS = (64, 128, 256, 512, 1024)
RATIOS = (1.0, 0.5, 0.25)
GROUPS = (1, 2, 4, 8, 16)
EXAMPLE = (
    '{"block_type":"res_bottleneck_block","ds":[1,2,4,2],"ws":[16,64,128,256],"ss":[1,1,2,2],'
    '"bot_muls":[0.0,0.5,0.5,0.25],"num_gs":[1,8,16,16]}'
)


class NDSResNeXtB(ResNeXt):
    """Depth, width, bottleneck ratio and groups of three stages: 375^3 = 52,734,375 architectures.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels.

    >>> NDSResNeXtB().size()
    52734375
    """

    name = "nds_resnext_b"
    parameters = stage_parameters(DEPTHS, WIDTHS, RATIOS, GROUPS)
    example = EXAMPLE


SPACE = NDSResNeXtB

"""NDS's space "NASNet": cells of 5 nodes with NASNet's operations; see _nds_cells.py and _cells.py.

Radosavovic et al., ICCV 2019 (arXiv:1905.13214), after Zoph et al., CVPR 2018, arXiv:1707.07012. The output of a
cell is the nodes that no other node reads.

Operations are those of facebookresearch/unnas, nodes and output those of the published NASNet-A, which is the example.
"""

from __future__ import annotations

from search_spaces._nds_cells import NDSCells

OPERATIONS = (
    "skip_connect",
    "conv_3x1_1x3",
    "conv_7x1_1x7",
    "dil_conv_3x3",
    "avg_pool_3x3",
    "max_pool_3x3",
    "max_pool_5x5",
    "max_pool_7x7",
    "conv_1x1",
    "conv_3x3",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "sep_conv_7x7",
)
EXAMPLE = (
    '{"genotype":{"normal":[["sep_conv_5x5",1],["sep_conv_3x3",0],["sep_conv_5x5",0],["sep_conv_3x3",0],'
    '["avg_pool_3x3",1],["skip_connect",0],["avg_pool_3x3",0],["avg_pool_3x3",0],["sep_conv_3x3",1],'
    '["skip_connect",1]],"normal_concat":[2,3,4,5,6],"reduce":[["sep_conv_5x5",1],["sep_conv_7x7",0],'
    '["max_pool_3x3",1],["sep_conv_7x7",0],["avg_pool_3x3",1],["sep_conv_5x5",0],["skip_connect",3],'
    '["avg_pool_3x3",2],["sep_conv_3x3",2],["max_pool_3x3",1]],'
    '"reduce_concat":[4,5,6]},"width":16,"depth":20,"aux":false,"drop_prob":0.0}'
)


class NDSNASNet(NDSCells):
    """13 operations, 5 nodes, two inputs each, in two cells; width and depth: 7.7e+34 architectures.

    Options are those of :class:`NDSCells`.

    >>> space = NDSNASNet(width=16, depth=4)
    >>> space.parameters[1].name, f"{space.size():.1e}"
    ('normal_2_input_1', '5.1e+33')
    """

    name = "nds_nasnet"
    operations = OPERATIONS
    nodes = 5
    loose = True
    example = EXAMPLE


SPACE = NDSNASNet

"""NDS's space "PNAS": cells of 5 nodes with PNASNet's operations; see _nds_cells.py and _cells.py.

Radosavovic et al., ICCV 2019 (arXiv:1905.13214), after Liu et al., ECCV 2018, arXiv:1712.00559. The output of a
cell is all nodes.

Operations are those of facebookresearch/unnas, nodes and output those of the published PNASNet, which is the example.
"""

from __future__ import annotations

from search_spaces._nds_cells import NDSCells

OPERATIONS = (
    "sep_conv_3x3",
    "sep_conv_5x5",
    "sep_conv_7x7",
    "conv_7x1_1x7",
    "skip_connect",
    "avg_pool_3x3",
    "max_pool_3x3",
    "dil_conv_3x3",
)
EXAMPLE = (
    '{"genotype":{"normal":[["sep_conv_5x5",0],["max_pool_3x3",0],["sep_conv_7x7",1],["max_pool_3x3",1],'
    '["sep_conv_5x5",1],["sep_conv_3x3",1],["sep_conv_3x3",4],["max_pool_3x3",1],["sep_conv_3x3",0],'
    '["skip_connect",1]],"normal_concat":[2,3,4,5,6],"reduce":[["sep_conv_5x5",0],["max_pool_3x3",0],'
    '["sep_conv_7x7",1],["max_pool_3x3",1],["sep_conv_5x5",1],["sep_conv_3x3",1],["sep_conv_3x3",4],'
    '["max_pool_3x3",1],["sep_conv_3x3",0],["skip_connect",1]],'
    '"reduce_concat":[2,3,4,5,6]},"width":16,"depth":20,"aux":false,"drop_prob":0.0}'
)


class NDSPNAS(NDSCells):
    """8 operations, 5 nodes, two inputs each, in two cells; width and depth: 4.6e+30 architectures.

    Options are those of :class:`NDSCells`.

    >>> space = NDSPNAS(width=16, depth=4)
    >>> space.parameters[1].name, f"{space.size():.1e}"
    ('normal_2_input_1', '3.1e+29')
    """

    name = "nds_pnas"
    operations = OPERATIONS
    nodes = 5
    loose = False
    example = EXAMPLE


SPACE = NDSPNAS

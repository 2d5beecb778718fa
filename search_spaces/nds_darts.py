"""NDS's space "DARTS": cells of 4 nodes with DARTS's operations; see _nds_cells.py and _cells.py.

Radosavovic et al., ICCV 2019 (arXiv:1905.13214), after Liu et al., ICLR 2019, arXiv:1806.09055. The output of a
cell is all nodes.

Other than in DARTS itself (``darts.py``) the two inputs of a node may be the same, and ``none`` is drawn like any other
operation. Operations are those of facebookresearch/unnas; nodes and output those of the published DARTS_V2, which is
the example.
"""

from __future__ import annotations

from search_spaces._nds_cells import NDSCells

OPERATIONS = (
    "none",
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
EXAMPLE = (
    '{"genotype":{"normal":[["sep_conv_3x3",0],["sep_conv_3x3",1],["sep_conv_3x3",0],["sep_conv_3x3",1],'
    '["sep_conv_3x3",1],["skip_connect",0],["skip_connect",0],["dil_conv_3x3",2]],"normal_concat":[2,3,4,5],'
    '"reduce":[["max_pool_3x3",0],["max_pool_3x3",1],["skip_connect",2],["max_pool_3x3",1],["max_pool_3x3",0],'
    '["skip_connect",2],["skip_connect",2],["max_pool_3x3",1]],'
    '"reduce_concat":[2,3,4,5]},"width":16,"depth":20,"aux":false,"drop_prob":0.0}'
)


class NDSDARTS(NDSCells):
    """8 operations, 4 nodes, two inputs each, in two cells; width and depth: 8.8e+23 architectures.

    Options are those of :class:`NDSCells`.

    >>> space = NDSDARTS(width=16, depth=4)
    >>> space.parameters[1].name, f"{space.size():.1e}"
    ('normal_2_input_1', '5.8e+22')
    """

    name = "nds_darts"
    operations = OPERATIONS
    nodes = 4
    loose = False
    example = EXAMPLE


SPACE = NDSDARTS

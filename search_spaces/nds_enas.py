"""NDS's space "ENAS": cells of 5 nodes with ENAS's operations; see _nds_cells.py and _cells.py.

Radosavovic et al., ICCV 2019 (arXiv:1905.13214), after Pham et al., ICML 2018, arXiv:1802.03268. The output of a
cell is the nodes that no other node reads.

Operations are those of facebookresearch/unnas. Unconfirmed: five nodes, and that the output is the nodes that no other
node reads.
"""

from __future__ import annotations

from search_spaces._nds_cells import NDSCells

OPERATIONS = (
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "avg_pool_3x3",
    "max_pool_3x3",
)
EXAMPLE = (
    '{"genotype":{"normal":[["sep_conv_3x3",1],["skip_connect",1],["sep_conv_5x5",1],["skip_connect",0],'
    '["avg_pool_3x3",0],["sep_conv_3x3",1],["sep_conv_3x3",0],["avg_pool_3x3",1],["sep_conv_5x5",0],'
    '["avg_pool_3x3",0]],"normal_concat":[2,3,4,5,6],"reduce":[["sep_conv_5x5",0],["sep_conv_3x3",1],'
    '["sep_conv_3x3",1],["avg_pool_3x3",1],["sep_conv_3x3",1],["avg_pool_3x3",1],["avg_pool_3x3",1],'
    '["sep_conv_5x5",4],["sep_conv_3x3",5],["sep_conv_5x5",0]],'
    '"reduce_concat":[2,3,6]},"width":16,"depth":20,"aux":false,"drop_prob":0.0}'
)


class NDSENAS(NDSCells):
    """5 operations, 5 nodes, two inputs each, in two cells; width and depth: 3.8e+26 architectures.

    Options are those of :class:`NDSCells`.

    >>> space = NDSENAS(width=16, depth=4)
    >>> space.parameters[1].name, f"{space.size():.1e}"
    ('normal_2_input_1', '2.6e+25')
    """

    name = "nds_enas"
    operations = OPERATIONS
    nodes = 5
    loose = True
    example = EXAMPLE


SPACE = NDSENAS

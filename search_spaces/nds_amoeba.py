"""NDS's space "Amoeba": cells of 5 nodes with AmoebaNet's operations; see _nds_cells.py and _cells.py.

Radosavovic et al., ICCV 2019 (arXiv:1905.13214), after Real et al., AAAI 2019, arXiv:1802.01548. The output of a
cell is the nodes that no other node reads.

Operations, nodes and output are those of published rows.
"""

from __future__ import annotations

from search_spaces._nds_cells import NDSCells

OPERATIONS = (
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "sep_conv_7x7",
    "avg_pool_3x3",
    "max_pool_3x3",
    "dil_sep_conv_3x3",
    "conv_7x1_1x7",
)
EXAMPLE = (
    '{"genotype":{"normal":[["avg_pool_3x3",0],["conv_7x1_1x7",1],["sep_conv_3x3",2],["sep_conv_5x5",0],'
    '["dil_sep_conv_3x3",2],["dil_sep_conv_3x3",2],["skip_connect",4],["dil_sep_conv_3x3",4],["conv_7x1_1x7",2],'
    '["sep_conv_3x3",4]],"normal_concat":[3,5,6],"reduce":[["avg_pool_3x3",0],["dil_sep_conv_3x3",1],'
    '["sep_conv_3x3",0],["sep_conv_3x3",0],["skip_connect",2],["sep_conv_7x7",0],["conv_7x1_1x7",4],'
    '["skip_connect",4],["conv_7x1_1x7",0],["conv_7x1_1x7",5]],'
    '"reduce_concat":[3,6]},"width":32,"depth":12,"aux":false,"drop_prob":0.0}'
)


class NDSAmoeba(NDSCells):
    """8 operations, 5 nodes, two inputs each, in two cells; width and depth: 4.6e+30 architectures.

    Options are those of :class:`NDSCells`.

    >>> space = NDSAmoeba(width=16, depth=4)
    >>> space.parameters[1].name, f"{space.size():.1e}"
    ('normal_2_input_1', '3.1e+29')
    """

    name = "nds_amoeba"
    operations = OPERATIONS
    nodes = 5
    loose = True
    example = EXAMPLE


SPACE = NDSAmoeba

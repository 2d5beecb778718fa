"""NATS-Bench's topology search space (Dong et al., TPAMI 2021, arXiv:2009.00437): NAS-Bench-201 under another name."""

ALIAS_OF = "nasbench201"

"""NAS-Bench-201, the topology space of NATS-Bench: one cell of six edges, repeated fifteen times.

Dong & Yang, "NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search", ICLR 2020
(arXiv:2001.00326); Dong et al., "NATS-Bench", TPAMI 2021 (arXiv:2009.00437); code D-X-Y/AutoDL-Projects,
``xautodl/models/{cell_operations,cell_infers}``.

Network: 3x3 convolution to C channels with BatchNorm (no ReLU), N cells, a residual block to 2C at half the
resolution, N cells, a residual block to 4C, N cells, BatchNorm and ReLU, global average pool, linear layer.
Cell: nodes 0 to 3, an edge from every node to every later one; a node is the sum of the edges that enter it,
node 0 is the cell's input and node 3 its output. All six edges are built even if nothing living passes
through them: published parameter counts, FLOPs and latencies include them.

Counts (checked against the published tables): parameters are those of 10 classes; FLOPs are the MACs of
convolutions and the linear layer at 32 pixels and 100 classes, but for 150 rows that miss or add one edge.
"""

from __future__ import annotations

import re
from typing import Any

from nasrlm.graph import Graph
from nasrlm.spaces import Architecture, Choice, Params, SearchSpace, SpaceError, check_sizes, check_values
from search_spaces import _nats
from search_spaces._nats import EDGES, OPERATIONS

FORM = "|op~0|+|op~0|op~1|+|op~0|op~1|op~2|"
EXAMPLE = "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|"
_PARTS = re.split("(op)", FORM)
_PATTERN = re.compile(re.escape(FORM).replace("op", "([^|~+]*)"))


class NASBench201(SearchSpace):
    """Six operations, one an edge: 15,625 architectures, 6,466 different networks.

    Args:
        num_classes: Outputs of the linear layer: 10, 100 (CIFAR) or 120 (ImageNet16-120).
        image_size: Height and width of the input in pixels, a multiple of 4: 32, or 16 for ImageNet16-120.
        channels: Channels of the first stage, C.
        cells: Cells a stage, N.

    >>> space = NASBench201()
    >>> space.architecture(EXAMPLE).params["edge_1_3"]
    'skip_connect'
    """

    name = "nasbench201"
    parameters = tuple(Choice(f"edge_{source}_{target}", OPERATIONS) for source, target in EDGES)
    source = "Dong & Yang, NAS-Bench-201, ICLR 2020, arXiv:2001.00326; github.com/D-X-Y/AutoDL-Projects"
    metrics = (
        "accuracy/cifar10",
        "accuracy/cifar100",
        "accuracy/imagenet16_120",
        "latency_ms/pixel3",
        "latency_ms/raspi4",
        "latency_ms/eyeriss",
        "latency_ms/fpga",
        "latency_ms/gold_6226",
        "latency_ms/1080ti_1",
        "latency_ms/titan_rtx_256",
        "params",
        "macs",
    )

    def __init__(self, num_classes: int = 10, image_size: int = 32, channels: int = 16, cells: int = 5) -> None:
        options = {"num_classes": num_classes, "image_size": image_size, "channels": channels, "cells": cells}
        check_sizes(self.name, options, {"image_size": 4})
        self.num_classes, self.image_size = num_classes, image_size
        self.channels, self.cells = channels, cells

    def to_string(self, params: Params) -> str:
        """Return the official string, ``|op~0|+|op~0|op~1|+|op~0|op~1|op~2|``."""
        operations = iter(params.values())
        return "".join(str(next(operations)) if part == "op" else part for part in _PARTS)

    def from_string(self, text: str) -> Params:
        """Return the parameters of an official string.

        Raises:
            SpaceError: The text is of another form, or names an unknown operation.
        """
        found = _PATTERN.fullmatch(text.strip())
        if found is None:
            raise SpaceError(
                f"{text[:200]!r} is no architecture of nasbench201. The form is {FORM}, where op is one of: "
                f"{', '.join(OPERATIONS)}. Example: {EXAMPLE}"
            )
        return check_values(self.parameters, found.groups(), text)

    def to_index(self, a: Architecture) -> int:
        """Return our own index, 0 to 15,624: the operations' positions as digits of base 5, edge_0_1 leading.

        It is the position in :meth:`enumerate`. The official index is another: see :meth:`indices`.

        >>> NASBench201().to_index(NASBench201().from_index(1234))
        1234
        """
        positions = (OPERATIONS.index(str(operation)) for operation in self.architecture(a).params.values())
        return _nats.number(positions, len(OPERATIONS))

    def from_index(self, index: int) -> Architecture:
        """Return the architecture at our own index (:meth:`to_index`).

        Raises:
            SpaceError: The index is outside 0 to 15,624.
        """
        digits = _nats.digits(index, len(OPERATIONS), len(EDGES))
        return self.architecture({p.name: OPERATIONS[k] for p, k in zip(self.parameters, digits, strict=True)})

    def indices(self, table: Any) -> tuple[dict[int, Architecture], dict[Architecture, int]]:
        """Map official indices to architectures and back.

        The official order is a shuffled list that comes with the published data and cannot be computed, so it
        is read from a table of yours.

        Args:
            table: A DataFrame or mapping of sequences with columns ``index`` and ``arch`` (official strings).

        Returns:
            Architecture by official index, and official index by architecture.

        Raises:
            SpaceError: A string is outside the space, or an index or architecture comes twice.

        >>> by_index, index_of = NASBench201().indices({"index": [0], "arch": [EXAMPLE]})
        >>> index_of[by_index[0]]
        0
        """
        by_index: dict[int, Architecture] = {}
        index_of: dict[Architecture, int] = {}
        for index, text in zip(table["index"], table["arch"], strict=True):
            a = self.architecture(text)
            if int(index) in by_index or a in index_of:
                raise SpaceError(f"official index {index} or its architecture {text} comes twice. Keep one.")
            by_index[int(index)], index_of[a] = a, int(index)
        return by_index, index_of

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        c = self.channels
        operations = [str(operation) for operation in params.values()]
        return _nats.network(operations, (c, 2 * c, 2 * c, 4 * c, 4 * c), self.cells, self.image_size, self.num_classes)


SPACE = NASBench201

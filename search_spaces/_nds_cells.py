"""What NDS's five spaces of cell networks share: parameters, and the published ``net`` dictionary.

Radosavovic et al., "On Network Design Spaces for Visual Recognition", ICCV 2019 (arXiv:1905.13214); data
facebookresearch/nds, code facebookresearch/unnas, ``pycls/models/nas``. The networks are those of ``_cells.py``.

Two operations a node, on earlier states drawn independently (both may be the same state), in a normal and in a
reduction cell; besides them a network's width (channels of the first cells) and depth (number of cells).

Dictionary: "genotype" (the published word for the cells: ``normal`` and ``reduce`` with two (operation, state) pairs a
node, and the lists of concatenated states), ``width``, ``depth``, and the training settings ``aux`` and
``drop_prob``, which are no part of the network: they are read, and written as false and 0.0.

Counts: parameters and MACs of one published network (Amoeba, width 32, depth 12) are exact. Unconfirmed: the widths and
depths, which are recalled from the paper and agree with the rows seen; the values that the files ``*_fix-w-d`` fix (16
and 20 in the group's later study); the sizes of the files ``*_in`` (ImageNet); how published FLOPs are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from nasrlm.graph import Graph
from nasrlm.spaces import Choice, Parameter, Params, SpaceError, Value, check_sizes
from search_spaces._cells import INPUTS, KINDS, Cell, Images, check_outputs, loose_ends, network, pairs, read_nodes
from search_spaces._dictionaries import DictionarySpace, check_keys
from search_spaces._nds_stages import SOURCE

CELLS = "genotype"
"""The published key of the cells."""
WIDTHS = (16, 24, 32)
DEPTHS = (4, 8, 12, 16, 20)
METRICS = (
    "accuracy/cifar10",
    "accuracy/cifar10_best",
    "accuracy/imagenet",
    "accuracy/imagenet_best",
    "params",
    "macs",
    "flops/nds",
)


class NDSCells(DictionarySpace):
    """A normal and a reduction cell, width and depth.

    Args:
        width: Channels of the first cells, an even number; None = a parameter.
        depth: Number of cells; None = a parameter.
        stem: "cifar" or "imagenet".
        image_size: Height and width of the input in pixels; None = 32, or 224 with the ImageNet stem.
        num_classes: Outputs of the linear layer; None = 10, or 1000 with the ImageNet stem.

    Attributes:
        operations: What a node may apply.
        nodes: Nodes of a cell.
        loose: Whether a cell's output is the nodes that no other node reads; otherwise it is all nodes.
    """

    operations: ClassVar[tuple[str, ...]]
    nodes: ClassVar[int]
    loose: ClassVar[bool]
    metrics = METRICS
    source = SOURCE

    def __init__(
        self,
        width: int | None = None,
        depth: int | None = None,
        stem: str = "cifar",
        image_size: int | None = None,
        num_classes: int | None = None,
    ) -> None:
        self.images = Images.checked(self.name, stem, image_size, num_classes)
        self.fixed = {name: value for name, value in {"width": width, "depth": depth}.items() if value is not None}
        check_sizes(self.name, self.fixed, {"width": 2})
        sizes = (Choice("width", WIDTHS), Choice("depth", DEPTHS))
        cells = (parameter for kind in KINDS for parameter in self._cell_parameters(kind))
        self.parameters = (*cells, *(parameter for parameter in sizes if parameter.name not in self.fixed))

    def _cell_parameters(self, kind: str) -> list[Parameter]:
        return [
            parameter
            for node in range(INPUTS, INPUTS + self.nodes)
            for i in range(1, INPUTS + 1)
            for parameter in (
                Choice(f"{kind}_{node}_op_{i}", self.operations),
                Choice(f"{kind}_{node}_input_{i}", tuple(range(node))),
            )
        ]

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of ``_cells.py``."""
        sizes = {**params, **self.fixed}
        cells = {kind: self._cell(kind, params) for kind in KINDS}
        return network(cells, self.images, int(sizes["width"]), int(sizes["depth"]))

    def _cell(self, kind: str, params: Params) -> Cell:
        nodes = tuple(
            tuple(
                (str(params[f"{kind}_{node}_op_{i}"]), int(params[f"{kind}_{node}_input_{i}"]))
                for i in range(1, INPUTS + 1)
            )
            for node in range(INPUTS, INPUTS + self.nodes)
        )
        return Cell(nodes, loose_ends(nodes) if self.loose else tuple(range(INPUTS, INPUTS + self.nodes)))

    def _dict(self, params: Params) -> dict[str, Any]:
        cells: dict[str, Any] = {}
        for kind in KINDS:
            cell = self._cell(kind, params)
            cells |= {kind: pairs(cell), f"{kind}_concat": list(cell.outputs)}
        sizes = {**params, **self.fixed}
        return {
            CELLS: cells,
            "width": sizes["width"],
            "depth": sizes["depth"],
            "aux": False,
            "drop_prob": 0.0,
        }

    def _read(self, net: Mapping[str, Any]) -> dict[str, Value]:
        """Return the parameters of a published ``net`` dictionary.

        ``width`` and ``depth`` may be left out where options fix them; ``aux`` and ``drop_prob`` always.
        """
        free = [name for name in ("width", "depth") if name not in self.fixed]
        check_keys(self.name, net, required=(CELLS, *free), optional=("width", "depth", "aux", "drop_prob"))
        params = self._read_cells(net[CELLS])
        for name, value in self.fixed.items():
            if net.get(name, value) != value:
                raise SpaceError(f"{name!r} is {net[name]!r}, but the option {name!r} of {self.name} is {value}.")
        _check_training(net)
        return {**params, **{name: self._sizes[name].check(net[name]) for name in free}}

    @property
    def _sizes(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters if parameter.name in ("width", "depth")}

    def _read_cells(self, given: Any) -> dict[str, Value]:
        if not isinstance(given, Mapping):
            raise SpaceError(f"{CELLS!r} is {given!r}. Give an object, as in {self.example}")
        check_keys(self.name, given, required=("normal", "normal_concat", "reduce", "reduce_concat"), optional=())
        params: dict[str, Value] = {}
        for kind in KINDS:
            nodes = read_nodes(kind, given[kind], self.operations, self.nodes)
            for node, terms in enumerate(nodes, INPUTS):
                for i, (operation, state) in enumerate(terms, 1):
                    params |= {f"{kind}_{node}_op_{i}": operation, f"{kind}_{node}_input_{i}": state}
            why = "the nodes that no other node reads" if self.loose else "all nodes"
            check_outputs(kind, given[f"{kind}_concat"], self._cell(kind, params).outputs, why)
        return params


def _check_training(net: Mapping[str, Any]) -> None:
    """Refuse training settings that are none."""
    aux, drop = net.get("aux", False), net.get("drop_prob", 0.0)
    if not isinstance(aux, bool):
        raise SpaceError(f"'aux' is {aux!r}. Allowed: true, false.")
    if not isinstance(drop, int | float) or isinstance(drop, bool) or not 0 <= drop <= 1:
        raise SpaceError(f"'drop_prob' is {drop!r}. Allowed: a number from 0 to 1.")

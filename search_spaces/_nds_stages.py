"""What NDS's four spaces of staged networks share: the published ``net`` dictionary, the network, its counts.

Radosavovic et al., "On Network Design Spaces for Visual Recognition", ICCV 2019 (arXiv:1905.13214); data
facebookresearch/nds; blocks as in facebookresearch/pycls, ``pycls/models/anynet.py``.

Network: 3x3 convolution to 16 channels with BatchNorm and ReLU (the stem); three stages of equal blocks, the first
block of stages 2 and 3 with stride 2; global average pool, linear layer.

The dictionary's lists have four entries, of which the first is the stem: ``ds`` depths, ``ws`` widths, ``ss`` strides,
``bot_muls`` bottleneck ratios, ``num_gs`` numbers of groups (not group widths). Some projects build four stages from
them, behind an ImageNet stem: those are not the trained networks.

Blocks without bottleneck have no ``bot_muls`` and ``num_gs``: nni's reader of the files (microsoft/nni,
``nni/nas/benchmark/nds``) drops empty entries, and its examples of such blocks have neither. Unconfirmed: whether the
files hold empty lists (as is written here) or none; both are read.

Counts: parameters and FLOPs of one published example a space are exact (:meth:`StagedNetworks.published_flops`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from nasrlm.graph import Graph, GraphBuilder, costs
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Architecture, Choice, Parameter, Params, SpaceError, Value, check_sizes
from search_spaces._dictionaries import DictionarySpace, check_keys, entry, read_list

STAGES, STEM = 3, 16
STRIDES = (1, 2, 2)
FIRST = {"ds": 1, "ws": STEM, "ss": 1, "bot_muls": 0.0, "num_gs": 1}
"""The stem's entry of each list."""
KEYS = {"ds": "depth", "ws": "width", "bot_muls": "ratio", "num_gs": "groups"}
"""Parameter, but for its stage, by key."""
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
WIDTHS = (16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)
"""Depths and widths of a stage without bottlenecks."""
METRICS = ("accuracy/cifar10", "accuracy/cifar10_best", "params", "macs", "flops/nds")
SOURCE = "Radosavovic et al., On Network Design Spaces, ICCV 2019, arXiv:1905.13214; github.com/facebookresearch/nds"


def stage_parameters(
    depths: Sequence[int], widths: Sequence[int], ratios: Sequence[float] = (), groups: Sequence[int] = ()
) -> tuple[Parameter, ...]:
    """Declare depth, width and, where there is a choice, bottleneck ratio and groups of every stage."""
    options = {"depth": depths, "width": widths, "ratio": ratios, "groups": groups}
    return tuple(
        Choice(f"{name}_{s}", tuple(values)) for s in range(1, STAGES + 1) for name, values in options.items() if values
    )


class StagedNetworks(DictionarySpace):
    """Three stages of equal blocks.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels.

    Attributes:
        block_type: The block's name in the published files.
        block_prefix: How that name begins; what follows is not told apart when it is read.
    """

    block_type: ClassVar[str]
    block_prefix: ClassVar[str]
    metrics = METRICS
    source = SOURCE

    def __init__(self, num_classes: int = 10, image_size: int = 32) -> None:
        check_sizes(self.name, {"num_classes": num_classes, "image_size": image_size})
        self.num_classes, self.image_size = num_classes, image_size

    @abstractmethod
    def _block(self, b: GraphBuilder, stage: Params, stride: int, x: int) -> int:
        """Describe one block of a stage with these ``width``, ``ratio`` and ``groups``."""

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of ``_nds_stages.py``."""
        b = GraphBuilder()
        x = conv_bn(b, b.input((3, self.image_size, self.image_size)), STEM, 3)
        for s, stride in enumerate(STRIDES, 1):
            stage = {name: params[f"{name}_{s}"] for name in KEYS.values() if f"{name}_{s}" in params}
            x = self._block(b, stage, stride, x)
            x = b.repeat(int(stage["depth"]) - 1, partial(self._block, b, stage, 1), x)
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), self.num_classes))
        return b.build()

    def published_flops(self, a: Architecture) -> int:
        """Return FLOPs as NDS's files count them: MACs, classifier biases, and 5 an output element of BatchNorm."""
        graph = self.architecture(a).graph()
        norms = sum(math.prod(graph.shapes[i]) for i, op, _ in graph.nodes() if op.name == "bn")
        return costs(graph).macs + self.num_classes + 5 * norms

    def _dict(self, params: Params) -> dict[str, Any]:
        """Return the published ``net`` dictionary; lists of what the block has not are empty."""
        lists = {
            key: [FIRST[key], *(params[f"{name}_{s}"] for s in range(1, STAGES + 1))]
            if f"{name}_1" in params else []
            for key, name in KEYS.items()
        }  # fmt: skip
        strides = [FIRST["ss"], *STRIDES]
        return {"block_type": self.block_type, "ds": lists.pop("ds"), "ws": lists.pop("ws"), "ss": strides, **lists}

    def _read(self, net: Mapping[str, Any]) -> dict[str, Value]:
        """Return the parameters of a published ``net`` dictionary.

        ``block_type`` may be left out, and so may lists of what the block has not (they may also be neutral).
        """
        allowed = {parameter.name: parameter.options for parameter in self.parameters}
        chosen = [key for key, name in KEYS.items() if f"{name}_1" in allowed]
        check_keys(self.name, net, required=(*chosen, "ss"), optional=("block_type", *KEYS))
        block = str(net.get("block_type", self.block_type))
        if not block.startswith(self.block_prefix):
            raise SpaceError(f"'block_type' is {block!r}. Allowed in {self.name}: {self.block_type}.")
        lists = {key: read_list(key, net[key], STAGES + 1) for key in (*chosen, "ss")}
        for key in (*chosen, "ss"):
            entry(key, 0, lists, (FIRST[key],))
        for s, stride in enumerate(STRIDES, 1):
            entry("ss", s, lists, (stride,))
        self._check_neutral({key: net.get(key) for key in KEYS if key not in chosen})
        return {
            name: entry(key, s, lists, allowed[name])
            for s in range(1, STAGES + 1)
            for key in chosen
            for name in (f"{KEYS[key]}_{s}",)
        }

    def _check_neutral(self, given: Mapping[str, Any]) -> None:
        """Refuse bottleneck ratios or groups of a block that has none."""
        for key, values in given.items():
            if values is not None and not (
                isinstance(values, list | tuple) and all(value in (0, 1) for value in values)
            ):
                raise SpaceError(
                    f"{key!r} is {values!r}, but blocks of {self.name} have none. Leave it out, or give []."
                )


def residual(b: GraphBuilder, x: int, y: int, stride: int) -> int:
    """Add the shortcut to ``y`` and rectify: ``x`` itself, or where shapes differ its 1x1 convolution."""
    width = b.shape(y)[1]
    shortcut = x if stride == 1 and b.shape(x)[1] == width else conv_bn(b, x, width, 1, stride, "none")
    return b.relu(b.add(y, shortcut))


class ResNeXt(StagedNetworks):
    """Bottleneck blocks: ``ratio`` times the width is the width between, in ``groups`` groups."""

    block_type = "res_bottleneck_block"
    block_prefix = "res_bottleneck"

    def _block(self, b: GraphBuilder, stage: Params, stride: int, x: int) -> int:
        width = int(stage["width"])
        inner = round(width * float(stage["ratio"]))
        y = conv_bn(b, conv_bn(b, x, inner), inner, 3, stride, groups=int(stage["groups"]))
        return residual(b, x, conv_bn(b, y, width, act="none"), stride)

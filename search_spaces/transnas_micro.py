"""TransNAS-Bench-101, micro: one cell of six edges in five fixed modules, for seven tasks.

Duan et al., CVPR 2021 (arXiv:2105.11871); code yawen-d/TransNASBench. Stem, modules, heads, and what is unconfirmed:
see `_transnas`. The modules are 41414: 64 to 512 channels, 224 to 7 pixels.

Cell: nodes 0 to 3, an edge from every node to every later one; a node is the sum of the edges that enter it, node 0 is
the cell's input and node 3 its output. Edges from node 0 carry the module's change. Operations: ``0`` zeros; ``1``
identity (where shapes differ: ReLU, two 1x1 convolutions of that stride to half the channels each, the second one of
the image shifted by a pixel, concatenation, BatchNorm); ``2`` and ``3`` ReLU, 1x1 or 3x3 convolution, BatchNorm. The
order of the numbers is not NAS-Bench-201's.

Cells without a path from input to output exist, and have labels. Parameters of two encoders agree with counts made
apart from this; no published count was at hand.
"""

from __future__ import annotations

import re
from functools import partial

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.spaces import Choice, Params, SearchSpace, SpaceError
from search_spaces._nats import EDGES, dense_cell
from search_spaces._transnas import METRICS, SOURCE, Options, network, relu_conv_bn

OPERATIONS = ("none", "skip_connect", "conv_1x1", "conv_3x3")
MODULES = "41414"
EXAMPLE = "64-41414-1_02_333"
_FORM = re.compile(rf"64-{MODULES}-(.)_(..)_(...)|(.)-(.)-(.)-(.)-(.)-(.)")


class TransNASMicro(SearchSpace):
    """Six operations of four, one an edge: 4,096 architectures.

    Args:
        task: class_scene, class_object, room_layout, jigsaw, segmentsemantic, normal or autoencoder.
        image_size: Height and width of the input in pixels (of one of nine tiles, for jigsaw); by default 224, 64 for
            jigsaw, 256 for the last three.
        outputs: Outputs of the head: classes or channels; by default the task's own.

    >>> TransNASMicro().architecture(EXAMPLE).params["edge_1_3"]
    'conv_3x3'
    """

    name = "transnas_micro"
    parameters = tuple(Choice(f"edge_{source}_{target}", OPERATIONS) for source, target in EDGES)
    source = SOURCE
    metrics = METRICS

    def __init__(self, task: str = "class_scene", image_size: int | None = None, outputs: int | None = None) -> None:
        self.options = Options.checked(self.name, task, image_size, outputs)

    def to_string(self, params: Params) -> str:
        """Return the official string, ``64-41414-a_bc_def``: node 1 from 0; 2 from 0 and 1; 3 from 0, 1 and 2."""
        digits = "".join(str(OPERATIONS.index(str(operation))) for operation in params.values())
        return f"64-{MODULES}-{digits[0]}_{digits[1:3]}_{digits[3:]}"

    def from_string(self, text: str) -> Params:
        """Return the parameters of an official string, or of its six digits as ``a-b-c-d-e-f``.

        Raises:
            SpaceError: Another form, other modules, or a digit above 3.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise SpaceError(
                f"{text[:200]!r} is no architecture of transnas_micro. The form is 64-{MODULES}-a_bc_def, where each "
                f"letter is a digit from 0 to {len(OPERATIONS) - 1}. Example: {EXAMPLE}"
            )
        digits = "".join(group for group in found.groups() if group is not None)
        params = {}
        for parameter, digit in zip(self.parameters, digits, strict=True):
            if digit not in "0123":
                meaning = ", ".join(f"{i} ({operation})" for i, operation in enumerate(OPERATIONS))
                raise SpaceError(
                    f"in {text[:200]!r}: the digit of {parameter.name!r} is {digit!r}. Allowed: {meaning}."
                )
            params[parameter.name] = OPERATIONS[int(digit)]
        return params

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        return network(self.options, MODULES, partial(_cell, dict(zip(EDGES, params.values(), strict=True))))


def _cell(edges: dict[tuple[int, int], object], b: GraphBuilder, x: int, channels: int, stride: int) -> int:
    def edge(source: int, target: int, value: int) -> int:
        return _edge(b, value, channels, 1 if source else stride, str(edges[source, target]))

    return dense_cell(b, x, edge)


def _edge(b: GraphBuilder, x: int, channels: int, stride: int, operation: str) -> int:
    same = stride == 1 and b.shape(x)[1] == channels
    if operation == "skip_connect":
        return x if same else _factorized(b, x, channels, stride)
    if operation == "none":
        return _zeros(b, x, channels, stride)
    return relu_conv_bn(b, x, channels, 3 if operation == "conv_3x3" else 1, stride)


def _zeros(b: GraphBuilder, x: int, channels: int, stride: int) -> int:
    """Zeros of the edge's shape, made of ``x``, so that exporters cannot take them for weights."""
    zeros = b.zeros_like(x)
    if stride == 1:
        return zeros
    return b.max_pool(b.concat([zeros] * (channels // b.shape(x)[1])), 1, stride, padding=0)


def _factorized(b: GraphBuilder, x: int, channels: int, stride: int) -> int:
    x = b.relu(x)
    shifted = x
    for axis in (2, 3):
        shifted = b.slice(shifted, 1, b.shape(x)[axis], axis)
    if any(side % stride for side in b.shape(x)[2:]):
        shifted = b.pad(shifted, (0, 0, 1, 1))  # in images of even size what is padded would not be read
    halves = [b.conv(y, out, 1, stride) for y, out in ((x, channels // 2), (shifted, channels - channels // 2))]
    return b.batch_norm(b.concat(halves))


SPACE = TransNASMicro

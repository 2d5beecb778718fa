"""What the cell networks of the DARTS family share: operations, cells, stems, the network, and the published lists.

Liu et al., "DARTS: Differentiable Architecture Search", ICLR 2019 (arXiv:1806.09055), code quark0/darts, ``cnn``;
operations of the other spaces as in facebookresearch/unnas, ``pycls/models/nas``.

Network: a stem; cells, of which those at a third and at two thirds of the depth are reduction cells (twice the
channels, half the resolution); global average pool, linear layer. The auxiliary head that is trained along is no part
of it. CIFAR stem: 3x3 convolution to three times the channels with BatchNorm, both inputs of the first cell. ImageNet
stem: three 3x3 convolutions of stride 2 with BatchNorm and a ReLU between; the first cell reads the second and third.

Cell: states 0 and 1 are the outputs of the last cell but one and of the last, brought to the cell's channels by ReLU,
1x1 convolution, BatchNorm, or where the resolution is twice the cell's by a factorised reduction. Every node is one
more state, the sum of two operations on earlier states, which have stride 2 on states 0 and 1 of a reduction cell. The
output is a concatenation of nodes. No pool has a norm behind it; averages leave out the padding.

Concatenated nodes stand in an order that depends on the cell's structure only (:func:`output_order`), since what
follows is a convolution or linear layer over all channels: cells that differ in the order of their nodes or in what
stands behind ``none`` are one network and have one text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.graph.ops import op
from nasrlm.spaces import Choice, Integer, SpaceError, check_sizes

KINDS = ("normal", "reduce")
"""The two cells, by their published names."""
INPUTS = 2
"""States that are no nodes, and operations of a node."""

Term = tuple[str, int]
"""Operation and the state it reads."""


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        nodes: Two terms of every node.
        outputs: The states that are concatenated.
    """

    nodes: tuple[tuple[Term, ...], ...]
    outputs: tuple[int, ...]


def loose_ends(nodes: Sequence[Sequence[Term]]) -> tuple[int, ...]:
    """The nodes that no other node reads.

    >>> loose_ends([[("skip_connect", 0), ("skip_connect", 1)], [("skip_connect", 2), ("skip_connect", 0)]])
    (3,)
    """
    read = {state for node in nodes for _, state in node}
    return tuple(state for state in range(INPUTS, INPUTS + len(nodes)) if state not in read)


# --- operations ------------------------------------------------------------------------------------------------------


def _none(b: GraphBuilder, x: int, stride: int) -> int:
    for axis in (2, 3) if stride > 1 else ():
        x = b.apply(op("slice", axis, 0, b.shape(x)[axis], stride), x)
    return b.zeros_like(x)


def _skip(b: GraphBuilder, x: int, stride: int) -> int:
    return x if stride == 1 else factorised_reduction(b, x, b.shape(x)[1])


def factorised_reduction(b: GraphBuilder, x: int, out: int) -> int:
    """Half the resolution: two 1x1 convolutions to half the channels each, one of them a pixel further; BatchNorm."""
    x = b.relu(x)
    _, _, height, width = b.shape(x)
    shifted = b.slice(b.slice(x, 1, height, axis=2), 1, width, axis=3)
    halves = [b.conv(part, out // 2, 1, 2) for part in (x, shifted)]
    return b.batch_norm(b.concat(halves))


def _pool(kind: str, kernel: int, b: GraphBuilder, x: int, stride: int) -> int:
    return (b.max_pool if kind == "max" else b.avg_pool)(x, kernel, stride, padding=kernel // 2)


def _conv(kernel: int, b: GraphBuilder, x: int, stride: int) -> int:
    return conv_bn(b, b.relu(x), b.shape(x)[1], kernel, stride, "none")


def _two_conv(kernel: int, b: GraphBuilder, x: int, stride: int) -> int:
    channels = b.shape(x)[1]
    row = b.conv(b.relu(x), channels, (1, kernel), (1, stride))
    return conv_bn(b, row, channels, (kernel, 1), (stride, 1), "none")


def _separable(times: int, kernel: int, dilation: int, b: GraphBuilder, x: int, stride: int) -> int:
    for i in range(times):
        y = b.depthwise_conv(b.relu(x), kernel, stride if i == 0 else 1, dilation=dilation)
        x = conv_bn(b, y, b.shape(y)[1], act="none")
    return x


OPERATIONS: Mapping[str, Callable[[GraphBuilder, int, int], int]] = {
    "none": _none,
    "skip_connect": _skip,
    **{f"{kind}_pool_{k}x{k}": partial(_pool, kind, k) for kind in ("avg", "max") for k in (3, 5, 7)},
    **{f"conv_{k}x{k}": partial(_conv, k) for k in (1, 3)},
    **{f"conv_{k}x1_1x{k}": partial(_two_conv, k) for k in (3, 7)},
    **{f"sep_conv_{k}x{k}": partial(_separable, 2, k, 1) for k in (3, 5, 7)},
    **{f"dil_conv_{k}x{k}": partial(_separable, 1, k, 2) for k in (3, 5)},
    "dil_sep_conv_3x3": partial(_separable, 2, 3, 2),
}
"""Builder, value and stride to the operation's value; the channels stay."""


# --- networks --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stem:
    image_size: int
    num_classes: int
    multiple: int
    """Of what the image's size must be a multiple."""


STEMS = {"cifar": _Stem(32, 10, 4), "imagenet": _Stem(224, 1000, 32)}


@dataclass(frozen=True)
class Images:
    """What a network is built for.

    Attributes:
        stem: "cifar" or "imagenet".
        image_size: Height and width in pixels.
        num_classes: Outputs.
    """

    stem: str
    image_size: int
    num_classes: int

    @classmethod
    def checked(cls, space: str, stem: str, image_size: int | None, num_classes: int | None) -> Images:
        """Return the options of a space, with the stem's own sizes where none is given.

        Raises:
            SpaceError: Another stem, or a number that is no whole one from 1 up, or an image size no multiple of 4 (of
                32 with the ImageNet stem).
        """
        try:
            own = STEMS[str(Choice("stem", tuple(STEMS)).check(stem))]
        except SpaceError as error:
            raise SpaceError(f"option 'stem' of {space}: {error}") from error
        given = {"image_size": image_size, "num_classes": num_classes}
        sizes = {option: value for option, value in given.items() if value is not None}
        check_sizes(space, sizes, {"image_size": own.multiple})
        return cls(stem, image_size or own.image_size, num_classes or own.num_classes)


def network(cells: Mapping[str, Cell], images: Images, channels: int, layers: int) -> Graph:
    """Describe the network of a normal and a reduction cell.

    Args:
        cells: By their names in `KINDS`.
        images: Stem and sizes.
        channels: Of the first cell's operations, an even number.
        layers: Number of cells.
    """
    b = GraphBuilder()
    before, x = _stem(b, b.input((3, images.image_size, images.image_size)), images.stem, channels)
    for layer in range(layers):
        reduces = layer in (layers // 3, 2 * layers // 3)
        channels *= 2 if reduces else 1
        before, x = x, _cell(b, cells[KINDS[reduces]], before, x, channels, 2 if reduces else 1)
    b.output(b.linear(b.flatten(b.global_avg_pool(x)), images.num_classes))
    return b.build()


def _stem(b: GraphBuilder, x: int, stem: str, channels: int) -> tuple[int, int]:
    if stem == "cifar":
        x = conv_bn(b, x, 3 * channels, 3, act="none")
        return x, x
    quarter = conv_bn(b, conv_bn(b, x, channels // 2, 3, 2), channels, 3, 2, "none")
    return quarter, conv_bn(b, b.relu(quarter), channels, 3, 2, "none")


def _cell(b: GraphBuilder, cell: Cell, before: int, x: int, channels: int, stride: int) -> int:
    larger = b.shape(before)[2] > b.shape(x)[2]
    first = factorised_reduction(b, before, channels) if larger else conv_bn(b, b.relu(before), channels, act="none")
    states = [first, conv_bn(b, b.relu(x), channels, act="none")]
    for node in cell.nodes:
        terms = [OPERATIONS[name](b, states[state], _stride(stride, state)) for name, state in node]
        states.append(b.add(*terms))
    return b.concat([states[state] for state in output_order(cell, stride)])


def _stride(stride: int, state: int) -> int:
    return stride if state < INPUTS else 1


# --- the order of outputs --------------------------------------------------------------------------------------------

_ZERO = -1
"""Stands for the value of a node that has no living term."""


@lru_cache(maxsize=65_536)
def output_order(cell: Cell, stride: int) -> tuple[int, ...]:
    """The concatenated states in an order that isomorphic cells share.

    Nodes are taken as the network sees them: without ``none``, a lone skip as what it reads, nodes of equal pools as
    one, a sum that only another sum reads as part of that.
    """
    values, terms = _living(cell, stride)
    times = Counter(values[state] for state in cell.outputs)
    number = {_ZERO: _ZERO, **_numbered(terms, times)}
    return tuple(sorted(cell.outputs, key=lambda state: (number[values[state]], state)))


def _living(cell: Cell, stride: int) -> tuple[list[int], dict[int, list[Term]]]:
    """The state whose value each state has, and the living terms of the states that have their own."""
    values = list(range(INPUTS))
    terms: dict[int, list[Term]] = {}
    known: dict[tuple[Term, ...], int] = {}
    for state, node in enumerate(cell.nodes, INPUTS):
        living = sorted((name, values[x]) for name, x in node if name != "none" and values[x] != _ZERO)
        free = all("pool" in name or _is_skip(name, x, stride) for name, x in living)
        if not living:
            values.append(_ZERO)
        elif len(living) == 1 and _is_skip(*living[0], stride):
            values.append(living[0][1])
        elif free and tuple(living) in known:
            values.append(known[tuple(living)])
        else:
            values.append(state)
            known[tuple(living)] = state
            terms[state] = living
    users = Counter(x for living in terms.values() for _, x in living)
    users.update(values[state] for state in cell.outputs)
    for state, living in terms.items():
        terms[state] = sorted(
            term
            for name, x in living
            for term in (terms[x] if x in terms and name == "skip_connect" and users[x] == 1 else [(name, x)])
        )
    read = {values[state] for state in cell.outputs} | {x for living in terms.values() for _, x in living}
    return values, {state: living for state, living in terms.items() if state in read}


def _is_skip(name: str, state: int, stride: int) -> bool:
    return name == "skip_connect" and _stride(stride, state) == 1


def _numbered(terms: Mapping[int, list[Term]], times: Mapping[int, int]) -> dict[int, int]:
    """Numbers of the states in the least of all sequences that describe the cell; `times` they are concatenated."""

    def sequences(placed: dict[int, int]) -> Iterator[tuple[list[tuple[list[Term], int]], dict[int, int]]]:
        ready = {
            state: (sorted((name, placed[x]) for name, x in living), times.get(state, 0))
            for state, living in terms.items()
            if state not in placed and all(x in placed for _, x in living)
        }
        if not ready:
            yield [], placed
            return
        least = min(ready.values())
        for state, described in ready.items():
            if described == least:
                for rest, found in sequences({**placed, state: len(placed)}):
                    yield [least, *rest], found

    return min(sequences({state: state for state in range(INPUTS)}), key=lambda found: found[0])[1]


# --- the published lists ---------------------------------------------------------------------------------------------


def read_nodes(kind: str, given: Any, operations: Sequence[str], nodes: int) -> tuple[tuple[Term, ...], ...]:
    """Return the nodes of a published list of pairs (operation, state), two a node.

    Raises:
        SpaceError: Not such a list, or an operation or state that is not allowed; with its place, counted from 0.
    """
    length, form = INPUTS * nodes, "pairs of operation and state, such as ['skip_connect', 0]"
    if not isinstance(given, list | tuple):
        raise SpaceError(f"{kind!r} is {given!r}, not a list. Give {length} {form}.")
    if len(given) != length:
        raise SpaceError(f"{kind!r} has {len(given)} entries. Give {length} {form}.")
    found: list[Term] = []
    for i, pair in enumerate(given):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise SpaceError(f"'{kind}[{i}]' is {pair!r}. Give {form}.")
        name = Choice(f"{kind}[{i}][0]", tuple(operations)).check(pair[0])
        found.append((str(name), Integer(f"{kind}[{i}][1]", 0, i // INPUTS + 1).check(pair[1])))
    return tuple(tuple(found[i : i + INPUTS]) for i in range(0, len(found), INPUTS))


def check_outputs(kind: str, given: Any, expected: Sequence[int], why: str) -> None:
    """Raise SpaceError unless a published list of concatenated states holds the expected ones, in any order."""
    plain = list(given) if isinstance(given, list | tuple | range) else given
    if not isinstance(plain, list) or any(type(state) is not int for state in plain) or sorted(plain) != [*expected]:
        raise SpaceError(f"'{kind}_concat' is {plain!r}. Allowed: {[*expected]}, {why}.")


def pairs(cell: Cell) -> list[list[str | int]]:
    """The published list of a cell's nodes."""
    return [[name, state] for node in cell.nodes for name, state in node]

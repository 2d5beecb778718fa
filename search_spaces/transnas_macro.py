"""TransNAS-Bench-101, macro: how many modules, and which of them double the channels or halve the resolution.

Duan et al., CVPR 2021 (arXiv:2105.11871); code yawen-d/TransNASBench. Stem, modules, heads, and what is unconfirmed:
see `_transnas`. A cell is a residual block: twice ReLU, 3x3 convolution, BatchNorm; the shortcut is the input, or where
shapes differ a 1x1 convolution with BatchNorm; no ReLU behind the sum.

There are four to six modules; one to three of them double the channels and, counted apart, one to four halve the
resolution: 210 + 750 + 2,296 = 3,256 architectures, as published. An encoder's parameters agree with a count made apart
from this; no published count was at hand.
"""

from __future__ import annotations

import re
from itertools import combinations

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Choice, Params, SearchSpace, SpaceError, When
from search_spaces._transnas import METRICS, SOURCE, Options, network, relu_conv_bn

MODULES = (4, 5, 6)
MOST_DOUBLED, MOST_HALVED = 3, 4
EXAMPLE = "64-1234-basic"
_FORM = re.compile(r"64-(.*)-basic")


def _subsets(modules: int, most: int) -> tuple[str, ...]:
    """Positions from 1 up, one to ``most`` of them, as text: "1", "2" ... "12" ..."""
    chosen = (c for k in range(1, most + 1) for c in combinations(range(1, modules + 1), k))
    return tuple("".join(map(str, positions)) for positions in chosen)


def _parameters() -> tuple[Choice, ...]:
    found = [Choice("modules", MODULES)]
    for n in MODULES:
        there = When("modules", (n,))
        found.append(Choice(f"doubled_of_{n}", _subsets(n, MOST_DOUBLED), when=there))
        found.append(Choice(f"halved_of_{n}", _subsets(n, MOST_HALVED), when=there))
    return tuple(found)


class TransNASMacro(SearchSpace):
    """Modules, and the positions of those that change something: 3,256 architectures.

    ``doubled_of_4`` = "23" says that the second and third of four modules double the channels, ``halved_of_4`` which
    ones halve the resolution.

    Args:
        task: class_scene, class_object, room_layout, jigsaw, segmentsemantic, normal or autoencoder.
        image_size: Height and width of the input in pixels (of one of nine tiles, for jigsaw); by default 224, 64 for
            jigsaw, 256 for the last three.
        outputs: Outputs of the head: classes or channels; by default the task's own.

    >>> TransNASMacro().architecture(EXAMPLE).params
    {'modules': 4, 'doubled_of_4': '24', 'halved_of_4': '34'}
    """

    name = "transnas_macro"
    parameters = _parameters()
    source = SOURCE
    metrics = METRICS

    def __init__(self, task: str = "class_scene", image_size: int | None = None, outputs: int | None = None) -> None:
        self.options = Options.checked(self.name, task, image_size, outputs)

    def to_string(self, params: Params) -> str:
        """Return the official string, ``64-<a digit a module>-basic``."""
        return f"64-{_digits(params)}-basic"

    def from_string(self, text: str) -> Params:
        """Return the parameters of an official string.

        Raises:
            SpaceError: Another form, a digit outside 1 to 4, or too many or few modules or changes.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise SpaceError(
                f"{text[:200]!r} is no architecture of transnas_macro. The form is 64-<{MODULES[0]} to {MODULES[-1]} "
                f"digits from 1 to 4>-basic. Example: {EXAMPLE}"
            )
        digits, n = found[1], len(found[1])
        for position, digit in enumerate(digits, 1):
            if digit not in "1234":
                meaning = "1 (no change), 2 (twice the channels), 3 (half the resolution), 4 (both)"
                raise SpaceError(f"in {text[:200]!r}: digit {position} is {digit!r}. Allowed: {meaning}.")
        if n not in MODULES:
            allowed = ", ".join(map(str, MODULES))
            raise SpaceError(f"in {text[:200]!r}: there are {n} modules. Allowed: {allowed}.")
        return {
            "modules": n,
            f"doubled_of_{n}": _positions(text, digits, "24", "double the channels", MOST_DOUBLED),
            f"halved_of_{n}": _positions(text, digits, "34", "halve the resolution", MOST_HALVED),
        }

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        return network(self.options, _digits(params), _block)


def _digits(params: Params) -> str:
    modules, doubled, halved = params.values()
    positions = map(str, range(1, int(modules) + 1))
    return "".join(str(1 + (i in str(doubled)) + 2 * (i in str(halved))) for i in positions)


def _positions(text: str, digits: str, change: str, what: str, most: int) -> str:
    found = "".join(str(i) for i, digit in enumerate(digits, 1) if digit in change)
    if not 1 <= len(found) <= most:
        raise SpaceError(
            f"in {text[:200]!r}: {len(found)} modules {what} (digits {' and '.join(change)}). Allowed: 1 to {most}."
        )
    return found


def _block(b: GraphBuilder, x: int, channels: int, stride: int) -> int:
    y = relu_conv_bn(b, relu_conv_bn(b, x, channels, 3, stride), channels, 3)
    same = stride == 1 and b.shape(x)[1] == channels
    return b.add(y, x if same else conv_bn(b, x, channels, 1, stride, "none"))


SPACE = TransNASMacro

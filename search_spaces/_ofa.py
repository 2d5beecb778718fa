"""What the three Once-for-all spaces share: dictionaries of lists, resolution, and stages of mobile blocks.

Cai et al., "Once-for-All: Train One Network and Specialize it for Efficient Deployment", ICLR 2020 (arXiv:1908.09791);
code mit-han-lab/once-for-all, ``ofa/imagenet_classification/elastic_nn``.

The published dictionaries hold an entry for every block a stage can have. Entries of blocks beyond a stage's depth are
ignored when read and written as 0, so two dictionaries of the same network give the same architecture.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import inverted_residual, round_channels
from nasrlm.spaces import Choice, Integer, Parameter, Params, SpaceError, Value, When, check_sizes
from search_spaces._dictionaries import DictionarySpace, check_keys, entry, read_list

RESOLUTION = Integer("resolution", 128, 224, step=4)
SMALLEST = 32
"""Pixels; every network halves its image five times."""
SYNONYMS = {"image_size": "r"}
"""Other words of the authors' own tools."""


class Layout(Protocol):
    """How the dictionary's lists and the parameters (all but the resolution) go together."""

    @property
    def lengths(self) -> Mapping[str, int]:
        """Keys and numbers of entries of the lists, in the official order."""

    def parameters(self) -> tuple[Parameter, ...]:
        """Declare the parameters."""

    def lists(self, params: Params) -> dict[str, list[Any]]:
        """Return the dictionary's lists; 0 for a block that is not there."""

    def params(self, lists: Mapping[str, list[Any]]) -> dict[str, Value]:
        """Return the parameters of lists that have the right lengths.

        Raises:
            SpaceError: An active entry is not allowed.
        """


class OnceForAll(DictionarySpace):
    """An elastic network whose official encoding is a dictionary of lists and the resolution ``r``.

    Attributes:
        layout: The dictionary's lists.
    """

    layout: ClassVar[Layout]

    def __init__(self, resolution: int | None = None, num_classes: int = 1000) -> None:
        given = {} if resolution is None else {"resolution": resolution}
        check_sizes(self.name, {"num_classes": num_classes, **given}, least={"resolution": SMALLEST})
        self.num_classes, self.resolution = num_classes, resolution or 0
        self.parameters = (*self.layout.parameters(), *(() if self.resolution else (RESOLUTION,)))

    @abstractmethod
    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        """Describe the network from its input to the vector that the classifier reads, of size 1x1."""

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of the space's file."""
        b = GraphBuilder()
        x = self._features(b, b.input((3, self.pixels(params), self.pixels(params))), params)
        b.output(b.linear(b.flatten(x), self.num_classes))
        return b.build()

    def pixels(self, params: Params) -> int:
        """Return the height and width of the input in pixels: the option, or else the parameter."""
        return self.resolution or int(params["resolution"])

    def _dict(self, params: Params) -> dict[str, Any]:
        return {**self.layout.lists(params), "r": self.pixels(params)}

    def _read(self, given: Mapping[str, Any]) -> dict[str, Value]:
        """Return the parameters of the authors' dictionary; numpy numbers and tuples will do.

        The resolution may be called ``image_size`` and may be a list of one; with the option ``resolution`` it may be
        left out. ``wid`` is ignored if it is None.
        """
        given = {SYNONYMS.get(key, key): value for key, value in given.items() if (key, value) != ("wid", None)}
        lengths = self.layout.lengths
        check_keys(self.name, given, required=lengths, optional=("r",))
        params = self.layout.params({key: read_list(key, given[key], length) for key, length in lengths.items()})
        return {**params, **self._read_resolution(given.get("r"))}

    def _read_resolution(self, value: Any) -> dict[str, Value]:
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
            value = value[0]
        if not self.resolution:
            if value is None:
                raise SpaceError(
                    f"key 'r', the resolution, is missing. Give it, or the option 'resolution' of {self.name}."
                )
            return {"resolution": Integer("r", RESOLUTION.low, RESOLUTION.high, RESOLUTION.step).check(value)}
        if value is not None and value != self.resolution:
            raise SpaceError(f"'r' is {value!r}, but the option 'resolution' of {self.name} is {self.resolution}.")
        return {}


# --- stages of mobile blocks -----------------------------------------------------------------------------------------

DEPTHS, KERNELS, EXPANSIONS = (2, 3, 4), (3, 5, 7), (3, 4, 6)


@dataclass(frozen=True)
class Stage:
    """A stage of mobile blocks.

    Attributes:
        width: Output channels before the network's width multiplier.
        stride: Of the first block.
        act: The activation.
        squeeze: Whether its blocks have squeeze-excite.
        single: Whether it has one block instead of 2, 3 or 4.
    """

    width: int
    stride: int
    act: str
    squeeze: bool = False
    single: bool = False

    @property
    def longest(self) -> int:
        """The most blocks it can have."""
        return 1 if self.single else max(DEPTHS)


@dataclass(frozen=True)
class MobileLayout:
    """Kernels ``ks``, expansions ``e`` and depths ``d`` of stages of mobile blocks."""

    stages: tuple[Stage, ...]

    @property
    def lengths(self) -> Mapping[str, int]:
        """Keys and numbers of entries of the lists, in the official order."""
        blocks = sum(stage.longest for stage in self.stages)
        return {"ks": blocks, "e": blocks, "d": len(self.stages)}

    def parameters(self) -> tuple[Parameter, ...]:
        """Declare each stage's depth, and kernel and expansion of its blocks as far as they are there."""
        found: list[Parameter] = []
        for s, stage in enumerate(self.stages, 1):
            if not stage.single:
                found.append(Choice(f"depth_{s}", DEPTHS))
            for i in range(1, stage.longest + 1):
                there = When(f"depth_{s}", tuple(d for d in DEPTHS if d >= i)) if i > min(DEPTHS) else None
                found += [Choice(f"kernel_{s}_{i}", KERNELS, there), Choice(f"expand_{s}_{i}", EXPANSIONS, there)]
        return tuple(found)

    def lists(self, params: Params) -> dict[str, list[Any]]:
        """Return the dictionary's lists; 0 for a block that is not there."""
        places = self._places()
        return {
            "ks": [params.get(f"kernel_{s}_{i}", 0) for s, i in places],
            "e": [params.get(f"expand_{s}_{i}", 0) for s, i in places],
            "d": [params.get(f"depth_{s}", 1) for s in range(1, len(self.stages) + 1)],
        }

    def params(self, lists: Mapping[str, list[Any]]) -> dict[str, Value]:
        """Return the parameters of lists that have the right lengths.

        Raises:
            SpaceError: An active entry is not allowed.
        """
        params: dict[str, Value] = {}
        depths: dict[int, int] = {}
        for s, stage in enumerate(self.stages, 1):
            # The authors' networks cut what is asked for at the blocks there are.
            depth = int(entry("d", s - 1, lists, (1, *DEPTHS) if stage.single else DEPTHS))
            depths[s] = min(depth, stage.longest)
            if not stage.single:
                params[f"depth_{s}"] = depth
        for position, (s, i) in enumerate(self._places()):
            if i <= depths[s]:
                params[f"kernel_{s}_{i}"] = entry("ks", position, lists, KERNELS)
                params[f"expand_{s}_{i}"] = entry("e", position, lists, EXPANSIONS)
        return params

    def _places(self) -> list[tuple[int, int]]:
        """Stage and block, both from 1, of every position in the lists."""
        return [(s, i) for s, stage in enumerate(self.stages, 1) for i in range(1, stage.longest + 1)]

    def build(self, b: GraphBuilder, x: int, params: Params, multiplier: float) -> int:
        """Describe all stages; widths are multiplied and rounded to a multiple of 8."""
        for s, stage in enumerate(self.stages, 1):
            for i in range(1, int(params.get(f"depth_{s}", 1)) + 1):
                inner = round_channels(b.shape(x)[1] * int(params[f"expand_{s}_{i}"]))
                x = inverted_residual(
                    b, x, round_channels(stage.width * multiplier), inner, int(params[f"kernel_{s}_{i}"]),
                    stage.stride if i == 1 else 1, stage.act,
                    squeeze=round_channels(inner // 4) if stage.squeeze else 0,
                )  # fmt: skip
        return x

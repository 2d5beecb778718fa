"""What GENNAPE's three own families share: their frame, their operations, and the rules of a path of operations.

Mills et al., "GENNAPE: Towards Generalized Neural Architecture Performance Estimators", AAAI 2023 (arXiv:2211.17226);
code Ascend-Research/GENNAPE, ``model_src/search_space/{hiaml_two_path,inception}``.

Unconfirmed for all three: the published graphs come from the authors' TensorFlow twins of the PyTorch networks that
are described here. The authors compare the two by total parameters only; TensorFlow pads strided convolutions otherwise
("same") and leaves padding out of averages. No published table of parameters or MACs is at hand.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import (
    Architecture,
    Choice,
    Integer,
    Parameter,
    Params,
    SearchSpace,
    Seed,
    SpaceError,
    Value,
    When,
    check_sizes,
    generator,
)

SOURCE = "Mills et al., GENNAPE, AAAI 2023, arXiv:2211.17226; github.com/Ascend-Research/GENNAPE"
METRICS = ("accuracy/cifar10", "params", "macs")
SMALLEST = 8
"""Pixels; every network halves its image three times."""


class Family(SearchSpace):
    """A family of CIFAR-10 networks: features, global average pool, linear layer."""

    source = SOURCE
    metrics = METRICS

    def __init__(self, num_classes: int = 10, image_size: int = 32) -> None:
        options = {"num_classes": num_classes, "image_size": image_size}
        check_sizes(self.name, options, least={"image_size": SMALLEST})
        self.num_classes, self.image_size = num_classes, image_size

    def _sampled(self, n: int, seed: Seed, draw: Callable[[np.random.Generator], Params]) -> list[Architecture]:
        """Draw ``n`` architectures by `draw`, one after the other, so that the first do not depend on ``n``."""
        rng = generator(seed)
        SearchSpace.sample(self, min(n, 0), rng)  # refuses a negative n
        return [self.repaired(draw(rng)) for _ in range(n)]

    @abstractmethod
    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        """Describe the network between its input and the pool."""

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        b = GraphBuilder()
        x = self._features(b, b.input((3, self.image_size, self.image_size)), params)
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), self.num_classes))
        return b.build()


# --- operations ----------------------------------------------------------------------------------------------------


def cbr(b: GraphBuilder, x: int, out: int, kernel: int = 1, stride: int = 1, *, bias: bool = False) -> int:
    """Convolution, BatchNorm, ReLU6."""
    return conv_bn(b, x, out, kernel, stride, "relu6", bias=bias)


def cb(b: GraphBuilder, x: int, out: int, kernel: int = 1, stride: int = 1, *, bias: bool = False) -> int:
    """Convolution, BatchNorm."""
    return conv_bn(b, x, out, kernel, stride, "none", bias=bias)


def split(
    b: GraphBuilder, x: int, out: int, kernel: int, first: int | tuple[int, int] = 1,
    second: int | tuple[int, int] = 1, *, bias: bool = False,
) -> int:  # fmt: skip
    """Convolution 1xk and kx1, each with BatchNorm and ReLU6; `first` and `second` are their strides."""
    y = conv_bn(b, x, out, (1, kernel), first, "relu6", bias=bias)
    return conv_bn(b, y, out, (kernel, 1), second, "relu6", bias=bias)


def pooled(b: GraphBuilder, x: int, operation: str) -> int:
    """avgpool3x3, which counts the padding, or maxpool3x3, with BatchNorm behind it."""
    y = b.avg_pool(x, 3, count_include_pad=True) if operation == "avgpool3x3" else b.max_pool(x, 3)
    return b.batch_norm(y)


# --- paths: operations in a row --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathRules:
    """Which operations a path may have: at least one of `conv`, at most one of `supp`, in any order.

    Attributes:
        conv: The convolutions; the first of a path takes its stride.
        supp: Supplementary operations.
        most: The most operations in a path.
    """

    conv: tuple[str, ...]
    supp: tuple[str, ...]
    most: int

    @property
    def names(self) -> tuple[str, ...]:
        """All operations."""
        return self.conv + self.supp

    def parameters(self, prefix: str, when: When | None) -> Iterator[Parameter]:
        """Declare a path: how many operations, and each of them."""
        yield Integer(f"{prefix}_ops", 1, self.most, when=when)
        for j in range(1, self.most + 1):
            yield Choice(f"{prefix}_op{j}", self.names, When(f"{prefix}_ops", tuple(range(j, self.most + 1))))

    def operations(self, params: Params, prefix: str) -> list[str]:
        """Return a path's operations."""
        return [str(params[f"{prefix}_op{j}"]) for j in range(1, int(params[f"{prefix}_ops"]) + 1)]

    def values(self, prefix: str, operations: Sequence[str]) -> dict[str, Value]:
        """Return the parameters of a path; the inverse of :meth:`operations`."""
        names = {f"{prefix}_op{j}": operation for j, operation in enumerate(operations, 1)}
        return {f"{prefix}_ops": len(operations), **names}

    def types(self, operations: Sequence[str]) -> list[str]:
        """Return "conv" or "supp" for every operation."""
        return ["conv" if operation in self.conv else "supp" for operation in operations]

    def repaired(self, operations: Sequence[str]) -> list[str]:
        """Return the path with one supplementary operation at most and a convolution at least.

        The first supplementary operation stays if another operation is there; those too many become the convolution at
        the same place of its list.
        """
        found: list[str] = []
        free = len(operations) > 1
        for operation in operations:
            if operation in self.supp and not free:
                operation = self.conv[self.supp.index(operation)]
            free = free and operation in self.conv
            found.append(operation)
        return found

    def drawn(self, count: int, rng: np.random.Generator) -> list[str]:
        """Draw as the authors do: a convolution; others by their share, but one supplementary at most; shuffled."""
        found = [self.conv[int(rng.integers(len(self.conv)))]]
        share = len(self.conv) / len(self.names)
        for _ in range(count - 1):
            full = any(operation in self.supp for operation in found)
            kind = self.conv if rng.random() < share or full else self.supp
            found.append(kind[int(rng.integers(len(kind)))])
        return [found[i] for i in rng.permutation(count)]

    def read(self, where: str, key: str, operations: Any, types: Any) -> list[str]:
        """Return the operations of a published path.

        Args:
            where: The path's place, for messages: "path1[0]".
            key: The key that holds them.
            operations: Names.
            types: "conv" or "supp" for every name.

        Raises:
            SpaceError: An unknown name, too many or too few, or types that do not fit.
        """
        if not isinstance(operations, list | tuple) or not 1 <= len(operations) <= self.most:
            shown = f"{len(operations)} entries" if isinstance(operations, list | tuple) else repr(operations)
            raise SpaceError(f"'{where}.{key}' has {shown}. Give a list of 1 to {self.most} operations.")
        names = Choice("", self.names).values
        found = [str(Choice(f"{where}.{key}[{j}]", names).check(name)) for j, name in enumerate(operations)]
        kinds = self.types(found)
        if not isinstance(types, list | tuple) or list(types) != kinds:
            raise SpaceError(f"'{where}.op_types' is {types!r}, but the types of {found} are {kinds}.")
        if kinds.count("supp") > 1 or "conv" not in kinds:
            raise SpaceError(
                f"'{where}.{key}' is {found}, with {kinds.count('conv')} of conv and {kinds.count('supp')} of supp. "
                f"Allowed: at least one of {', '.join(self.conv)}; at most one of {', '.join(self.supp)}."
            )
        return found

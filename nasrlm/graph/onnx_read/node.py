"""One ONNX node beside what the reader knows so far."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import helper

from nasrlm.errors import ExportError
from nasrlm.graph.builder import GraphBuilder
from nasrlm.graph.dims import Shape
from nasrlm.graph.onnx_read.constants import Constant, leaf, read_tensor
from nasrlm.graph.operators.tensor import broadcast
from nasrlm.graph.ops import op
from nasrlm.graph.spec import shortest

Result = int | Constant
Results = Result | list[Result]


class State(Protocol):
    """What the reader knows so far."""

    builder: GraphBuilder
    values: dict[str, Result]
    """Every name that was given a value so far."""
    opset: int
    read: dict[str, int]
    """How often each name is read, model outputs included."""
    infos: dict[str, onnx.TypeProto]
    """Types that the file gives, by name."""

    def dimension(self, name: str, axis: int, dim: onnx.TensorShapeProto.Dimension) -> Any:
        """A number, or the symbol of a dimension's name."""

    def body_text(
        self, graph: onnx.GraphProto, inputs: list[tuple[str, tuple[str, Shape]]], constants: dict[str, Constant]
    ) -> str:
        """Canonical text of a sub-graph, without the version."""


class Node:
    """One ONNX node.

    Attributes:
        proto: the node.
        b: where its operators go.
        attributes: attribute values by name.
    """

    def __init__(self, reader: State, proto: onnx.NodeProto, builder: GraphBuilder | None = None) -> None:
        self.reader, self.proto = reader, proto
        self.b = reader.builder if builder is None else builder
        self._scratch = builder is not None

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Attribute values by name, numbers with the fewest digits; sub-graphs and tensors as their protos."""
        values = {a.name: helper.get_attribute_value(a) for a in self.proto.attribute}
        return {name: shortest(v) if isinstance(v, float) else v for name, v in values.items()}

    @property
    def opset(self) -> int:
        """Version of the operators."""
        return self.reader.opset

    def has(self, slot: int) -> bool:
        """Whether an operand is given."""
        return slot < len(self.proto.input) and bool(self.proto.input[slot])

    def uses(self, output: int) -> bool:
        """Whether anything reads a value of this node."""
        return output < len(self.proto.output) and self.reader.read.get(self.proto.output[output], 0) > 0

    def found(self, slot: int) -> Result:
        """An operand as it is known: a value or a constant."""
        if not self.has(slot):
            raise ExportError(f"operand {slot} is missing")
        return self.reader.values[self.proto.input[slot]]

    def is_constant(self, slot: int) -> bool:
        """Whether an operand is given and constant."""
        return self.has(slot) and isinstance(self.found(slot), Constant)

    def all_constant(self, first: int) -> bool:
        """Whether every operand from here on that is given is constant: a computed weight is no weight."""
        return self.has(first) and all(self.is_constant(i) for i in range(first, len(self.proto.input)) if self.has(i))

    def constant_at(self, slot: int) -> Constant | None:
        """A constant operand; None for a value or nothing."""
        found = self.found(slot) if self.has(slot) else None
        return found if isinstance(found, Constant) else None

    def known(self, slot: int) -> np.ndarray | None:
        """Entries of a constant operand; None where it is absent, a value, or a weight."""
        constant = self.constant_at(slot)
        return None if constant is None else constant.data

    def number(self, slot: int) -> float | None:
        """The only entry of a constant operand."""
        data = self.known(slot)
        return float(data.reshape(-1)[0]) if data is not None and data.size == 1 and data.dtype != object else None

    def integers(self, slot: int, attribute: str) -> list[Any]:
        """A list that older opsets give as an attribute and newer ones as a constant operand."""
        if attribute in self.attributes:
            given = self.attributes[attribute]
            return [given] if isinstance(given, int) else list(given)
        data = self.known(slot)
        if data is None:
            raise ExportError(f"{attribute!r} must be a constant that is in the file")
        return [v if data.dtype == object else int(v) for v in data.reshape(-1)]

    def shape(self, slot: int) -> Shape:
        """Shape of an operand."""
        found = self.found(slot)
        return found.shape if isinstance(found, Constant) else self.b.shape(found)

    def dtype(self, slot: int) -> str:
        """Element type of an operand."""
        found = self.found(slot)
        return found.dtype if isinstance(found, Constant) else self.b.dtype(found)

    def value(self, slot: int) -> int:
        """An operand as a value; a constant becomes a leaf of its own at each use."""
        found = self.found(slot)
        if isinstance(found, Constant):
            return self.b.apply(leaf(found))
        return found

    def operands(self, slots: Sequence[int] | None = None) -> list[int]:
        """Operands of an element-wise operator; one number stands for a constant with equal entries."""
        slots = range(len(self.proto.input)) if slots is None else slots
        found = [self.found(s) for s in slots]
        shapes = [f.shape if isinstance(f, Constant) else self.b.shape(f) for f in found]
        whole = broadcast(op("add"), *shapes)
        made = []
        for i, f in enumerate(found):
            if isinstance(f, Constant):
                others = [s for k, s in enumerate(shapes) if k != i]
                spare = bool(others) and broadcast(op("add"), *others) == whole
                made.append(self.b.apply(leaf(f, () if spare else None)))
            else:
                made.append(f)
        return made

    def tensor(self, proto: onnx.TensorProto) -> Constant:
        """A tensor attribute."""
        return read_tensor(proto, learned=False)

    def split_sizes(self, total: int) -> list[int]:
        """Lengths of the parts of a Split."""
        if "split" in self.attributes or self.has(1):
            return self.integers(1, "split")
        parts = self.attributes.get("num_outputs", len(self.proto.output))
        each = -(-total // parts)
        return [min(each, total - i * each) for i in range(parts)]

    def window(self, kernel: tuple[int, ...]) -> dict[str, Any]:
        """Kernel, stride, dilation and padding with ONNX's defaults and automatic padding resolved."""
        rank = len(kernel)
        stride = tuple(self.attributes.get("strides", (1,) * rank))
        dilation = tuple(self.attributes.get("dilations", (1,) * rank))
        pads = tuple(self.attributes.get("pads", (0,) * 2 * rank))
        mode = self.attributes.get("auto_pad", b"NOTSET")
        if any(not 1 <= n < 2**31 for n in (*kernel, *stride, *dilation)) or any(abs(n) >= 2**31 for n in pads):
            raise ExportError(f"the window {kernel} with strides {stride}, dilations {dilation}, pads {pads} is absurd")
        if mode in (b"SAME_UPPER", b"SAME_LOWER"):
            pads = _automatic(self.shape(0)[2:], kernel, stride, dilation, mode == b"SAME_UPPER")
        return {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": pads}


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        ExportError: it is not one of `rank`.
    """
    if not -rank <= axis < rank:
        raise ExportError(f"the axis {axis} is none of {rank} dimensions")
    return axis % rank


def _automatic(
    size: Shape, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], upper: bool
) -> tuple[int, ...]:
    if not all(isinstance(n, int) for n in size):
        raise ExportError("automatic padding needs fixed sizes")
    totals = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
    ]
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (*small, *large) if upper else (*large, *small)

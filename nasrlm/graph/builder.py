"""GraphBuilder: describe a network once; text, ONNX and costs follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from nasrlm.errors import ExportError
from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import Op, Shape, op, relative_width, same, same_padding

Size = int | Sequence[int]


@lru_cache(maxsize=65_536)
def _shape_of(op_: Op, *shapes: Shape) -> Shape:
    return op_.spec.shape(op_, *shapes)


def _tuple(value: Size, rank: int, what: str) -> tuple[int, ...]:
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) != rank or any(n < 1 for n in numbers):
        raise ExportError(f"{what} {value!r} must be one positive integer or {rank} of them")
    return numbers


def _padding(value: Size | None, kernel: Shape, dilation: Shape) -> tuple[int, ...]:
    if value is None:
        return same_padding(kernel, dilation)
    rank = len(kernel)
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) not in (rank, 2 * rank) or any(n < 0 for n in numbers):
        raise ExportError(f"padding {value!r} must be one integer >= 0, {rank} or {2 * rank} (begins, then ends)")
    return numbers * 2 if len(numbers) == rank else numbers


@lru_cache(maxsize=65_536)
def _conv_op(
    rank: int,
    channels: int,
    out: int,
    kernel: Size,
    stride: Size,
    padding: Size | None,
    groups: int,
    dilation: Size,
    bias: bool,
) -> Op:
    k, s, d = (_tuple(v, rank, w) for v, w in ((kernel, "kernel"), (stride, "stride"), (dilation, "dilation")))
    if out < 1 or groups < 1 or channels % groups or out % groups:
        raise ExportError(f"a convolution cannot split {channels} input and {out} output channels into {groups} groups")
    group_word = "dw" if groups == channels and groups > 1 else groups
    return op("conv", relative_width(channels, out), k, s, d, _padding(padding, k, d), group_word, bias)


@lru_cache(maxsize=4096)
def _pool_op(name: str, rank: int, kernel: Size, stride: Size, padding: Size | None, ceil: bool, *more: bool) -> Op:
    k, s = _tuple(kernel, rank, "kernel"), _tuple(stride, rank, "stride")
    return op(name, k, s, _padding(padding, k, (1,) * rank), ceil, *more)


def _hashable(value: Size | None) -> Size | None:
    return value if value is None or isinstance(value, int) else tuple(value)


class GraphBuilder:
    """Builds a `Graph` operation by operation. Every method takes and returns values (small integers).

    Shapes are known at once (`shape(x)`), batch first; a mistake raises ExportError where it is made.

    Example:
        >>> b = GraphBuilder()
        >>> x = b.input((3, 32, 32))
        >>> x = b.relu(b.batch_norm(b.conv(x, 16, kernel=3)))
        >>> b.shape(x)
        (1, 16, 32, 32)
        >>> b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
        >>> len(b.build())
        7
    """

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._refs: list[tuple[int, ...]] = []
        self._shapes: list[Shape] = []
        self._outputs: list[int] = []

    def shape(self, x: int) -> Shape:
        """Shape of value `x`, batch first."""
        return self._shapes[x]

    def apply(self, op_: Op, *operands: int) -> int:
        """Append any operator; the named methods below are the usual way."""
        shapes = self._shapes
        here = len(shapes)
        if operands and (min(operands) < 0 or max(operands) >= here):
            raise ExportError(f"operands {operands} of '{op_.text}' are not all values of this builder (it has {here})")
        refs: tuple[int, ...]
        if len(operands) == 1:  # by far the most frequent case
            (x,) = operands
            refs = (here - x,)
            shape = shapes[x] if op_.spec.shape is same else _shape_of(op_, shapes[x])
        else:
            refs = tuple([here - x for x in operands])
            shape = _shape_of(op_, *[shapes[x] for x in operands])
        self._ops.append(op_)
        self._refs.append(refs)
        self._shapes.append(shape)
        return here

    def input(self, shape: Sequence[int], *, batch: int = 1) -> int:
        """A network input of `shape` (without the batch: (channels, height, width))."""
        if any(size < 1 for size in (batch, *shape)):
            raise ExportError(f"input shape {tuple(shape)} (batch {batch}) must be positive")
        return self.apply(op("in", (batch, *shape)))

    def conv(
        self,
        x: int,
        out: int,
        kernel: Size = 1,
        stride: Size = 1,
        *,
        padding: Size | None = None,
        groups: int = 1,
        dilation: Size = 1,
        bias: bool = False,
    ) -> int:
        """Convolution over all dimensions after the channels; `padding=None` keeps the size at stride 1."""
        shape = self._shapes[x]
        sizes = (_hashable(kernel), _hashable(stride), _hashable(padding))
        made = _conv_op(len(shape) - 2, shape[1], out, *sizes, groups, _hashable(dilation), bias)
        return self.apply(made, x)

    def depthwise_conv(
        self, x: int, kernel: Size = 3, stride: Size = 1, *, dilation: Size = 1, bias: bool = False
    ) -> int:
        """Convolution with one group a channel."""
        channels = self._shapes[x][1]
        return self.conv(x, channels, kernel, stride, groups=channels, dilation=dilation, bias=bias)

    def linear(self, x: int, out: int, *, bias: bool = True) -> int:
        """Linear layer on the last dimension."""
        return self.apply(op("linear", relative_width(self._shapes[x][-1], out), bias), x)

    def max_pool(
        self, x: int, kernel: Size = 3, stride: Size = 1, *, padding: Size | None = None, ceil: bool = False
    ) -> int:
        """Maximum over windows; padding never wins."""
        rank = len(self._shapes[x]) - 2
        return self.apply(_pool_op("maxpool", rank, _hashable(kernel), _hashable(stride), _hashable(padding), ceil), x)

    def avg_pool(
        self,
        x: int,
        kernel: Size = 3,
        stride: Size = 1,
        *,
        padding: Size | None = None,
        ceil: bool = False,
        count_include_pad: bool = False,
    ) -> int:
        """Mean over windows; a window that covers the whole input is the global mean."""
        shape = self._shapes[x]
        made = _pool_op(
            "avgpool", len(shape) - 2, _hashable(kernel), _hashable(stride), _hashable(padding), ceil, False
        )
        if not any(made["padding"]):
            if made["kernel"] == shape[2:]:
                return self.global_avg_pool(x)
        elif count_include_pad:
            made = made.replace(include_padding=True)
        return self.apply(made, x)

    def global_avg_pool(self, x: int) -> int:
        """Mean over all dimensions after the channels, which stay with size 1."""
        return self.apply(op("gap"), x)

    def global_max_pool(self, x: int) -> int:
        """Maximum over all dimensions after the channels, which stay with size 1."""
        return self.apply(op("gmp"), x)

    def add(self, *operands: int) -> int:
        """Sum of two or more values, from left to right."""
        return self._chain("add", operands)

    def mul(self, *operands: int) -> int:
        """Product of two or more values (broadcast), from left to right."""
        return self._chain("mul", operands)

    def _chain(self, name: str, operands: Sequence[int]) -> int:
        if len(operands) < 2:
            raise ExportError(f"'{name}' needs at least two operands, got {len(operands)}")
        total = operands[0]
        for x in operands[1:]:
            total = self.apply(op(name), total, x)
        return total

    def concat(self, operands: Sequence[int], axis: int = 1) -> int:
        """Concatenation; of one value it is that value."""
        if not operands:
            raise ExportError("'concat' needs at least one operand")
        return operands[0] if len(operands) == 1 else self.apply(op("concat", axis), *operands)

    def slice(self, x: int, start: int, stop: int, axis: int = 1) -> int:
        """Entries start..stop-1 of one axis; the whole axis is `x` itself."""
        if (start, stop) == (0, self._shapes[x][axis]):
            return x
        return self.apply(op("slice", axis, start, stop), x)

    def pad(self, x: int, padding: Size) -> int:
        """Zero padding of the dimensions after the channels."""
        rank = len(self._shapes[x]) - 2
        amounts = _padding(padding, (1,) * rank, (1,) * rank)
        return self.apply(op("pad", amounts), x) if any(amounts) else x

    def channel_shuffle(self, x: int, groups: int = 2) -> int:
        """ShuffleNet's channel shuffle."""
        if self._shapes[x][1] % groups:
            raise ExportError(f"a channel shuffle cannot split {self._shapes[x][1]} channels into {groups} groups")
        return self.apply(op("shuffle", groups), x)

    def softmax(self, x: int, axis: int = 1) -> int:
        """Softmax along an axis."""
        return self.apply(op("softmax", axis % len(self._shapes[x])), x)

    def leaky_relu(self, x: int, slope: float = 0.01) -> int:
        """max(x, slope x)."""
        return self.apply(op("leakyrelu", float(slope)), x)

    def flatten(self, x: int) -> int:
        """All dimensions after the batch as one."""
        return x if len(self._shapes[x]) == 2 else self.apply(op("flatten"), x)

    def unary(self, name: str, x: int) -> int:
        """An operator without attributes by its word (see `nasrlm.graph.ops.SPECS`)."""
        return self.apply(op(name), x)

    def relu(self, x: int) -> int:
        """max(x, 0)."""
        return self.apply(op("relu"), x)

    def relu6(self, x: int) -> int:
        """min(max(x, 0), 6)."""
        return self.apply(op("relu6"), x)

    def hard_swish(self, x: int) -> int:
        """x relu6(x + 3) / 6."""
        return self.apply(op("hardswish"), x)

    def hard_sigmoid(self, x: int) -> int:
        """relu6(x + 3) / 6."""
        return self.apply(op("hardsigmoid"), x)

    def batch_norm(self, x: int) -> int:
        """Batch normalisation with scale and shift."""
        return self.apply(op("bn"), x)

    def identity(self, x: int) -> int:
        """The value itself, as a node that the canonical form drops."""
        return self.apply(op("identity"), x)

    def zeros_like(self, x: int) -> int:
        """`x` times zero: an operation that frameworks run although its value is constant."""
        return self.apply(op("zeros"), x)

    def repeat(self, times: int, block: Callable[[int], int], x: int) -> int:
        """`block` applied `times` in a row; traced once and copied when it keeps the shape.

        The block must end with the node it returns and read no other value than its argument.
        """
        for i in range(times):
            start, shape = len(self._ops), self._shapes[x]
            y = block(x)
            span = len(self._ops) - start
            local = x == start - 1 and y == len(self._ops) - 1 and self._shapes[y] == shape
            if local and span and all(r <= j + 1 for j, refs in enumerate(self._refs[start:]) for r in refs):
                return self._copy(start, times - i - 1)
            x = y
        return x

    def _copy(self, start: int, times: int) -> int:
        self._ops.extend(self._ops[start:] * times)
        self._refs.extend(self._refs[start:] * times)
        self._shapes.extend(self._shapes[start:] * times)
        return len(self._ops) - 1

    def output(self, *values: int) -> None:
        """Mark values as outputs of the network."""
        self._outputs.extend(values)

    def build(self) -> Graph:
        """The finished graph."""
        if not self._outputs:
            raise ExportError("the network has no output: call output(value) before build()")
        return Graph(tuple(self._ops), tuple(self._refs), tuple(self._shapes), tuple(self._outputs))

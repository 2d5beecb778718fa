"""GraphBuilder: describe a network once; text, ONNX and costs follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from nasrlm.errors import ExportError, unknown_name
from nasrlm.graph.builder_args import Size, conv_op, hashable, paddings, pool_op, sizes, with_ceil, without_ceil
from nasrlm.graph.dims import symbol
from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import Op, Shape, op, relative_width, same
from nasrlm.graph.spec import DTYPES, FLOAT

Dim = int | str


@lru_cache(maxsize=65_536)
def _shape_of(op_: Op, *shapes: Shape) -> Shape:
    if op_.name != "item" and any(s and isinstance(s[0], tuple) for s in shapes):
        raise ExportError(f"'{op_.text}' reads an operator that gives several values; take one of them with 'item'")
    return op_.spec.shape(op_, *shapes)


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
        self._dtypes: list[Any] = []
        self._symbols: dict[str, int] = {}

    def shape(self, x: int) -> Shape:
        """Shape of value `x`, batch first."""
        return self._shapes[x]

    def dtype(self, x: int) -> Any:
        """Element type of value `x`, such as "float32"."""
        known = self._dtypes  # filled on demand: most networks never ask
        for i in range(len(known), x + 1):
            op_, given = self._ops[i], [known[i - r] for r in self._refs[i]]
            known.append(op_.spec.dtype(op_, *given) if op_.spec.dtype else given[0])
        return known[x]

    def node(self, x: int) -> tuple[Op, tuple[int, ...]]:
        """Operator and operands of value `x`."""
        return self._ops[x], tuple(x - r for r in self._refs[x])

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

    def input(self, shape: Sequence[Dim], *, batch: Dim = 1, dtype: str = FLOAT) -> int:
        """A network input of `shape` (without the batch: (channels, height, width)).

        A dimension is a number, or a name for one that is only known at run time ("height"); equal names, equal sizes.
        """
        dims = tuple(self._dimension(d) for d in (batch, *shape))
        if any(isinstance(d, int) and d < 1 for d in dims):
            raise ExportError(f"input shape {tuple(shape)} (batch {batch}) must be positive")
        if dtype not in DTYPES:
            raise unknown_name("element type", dtype, DTYPES)
        return self.apply(op("in", dims, dtype))

    def _dimension(self, dim: Dim) -> Any:
        return symbol(self._symbols.setdefault(dim, len(self._symbols))) if isinstance(dim, str) else dim

    def weight(self, *shape: int) -> int:
        """A learned tensor, such as position embeddings."""
        return self.apply(op("weight", shape))

    def constant(self, number: float, dtype: str = FLOAT) -> int:
        """A known number."""
        return self.apply(op("value", (number,), dtype, ()))

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
        sizes = (hashable(kernel), hashable(stride), hashable(padding))
        made = conv_op(len(shape) - 2, shape[1], out, *sizes, groups, hashable(dilation), bias)
        return self.apply(made, x)

    def depthwise_conv(
        self, x: int, kernel: Size = 3, stride: Size = 1, *, dilation: Size = 1, bias: bool = False
    ) -> int:
        """Convolution with one group a channel."""
        channels = self._shapes[x][1]
        return self.conv(x, channels, kernel, stride, groups=channels, dilation=dilation, bias=bias)

    def conv_transpose(
        self, x: int, out: int, kernel: Size = 2, stride: Size = 2, *, padding: Size | None = None, groups: int = 1,
        output_padding: Size = 0, bias: bool = True,
    ) -> int:  # fmt: skip
        """Transposed convolution: with the defaults twice the size."""
        rank, channels = len(self._shapes[x]) - 2, self._shapes[x][1]
        k, s = sizes(kernel, rank, "kernel"), sizes(stride, rank, "stride")
        more = (output_padding,) * rank if isinstance(output_padding, int) else tuple(output_padding)
        ones, word = (1,) * rank, "dw" if groups == channels > 1 else groups
        made = op("deconv", relative_width(channels, out), k, s, ones, paddings(padding, k, ones), more, word, bias)
        return self.apply(made, x)

    def linear(self, x: int, out: int, *, bias: bool = True) -> int:
        """Linear layer on the last dimension."""
        return self.apply(op("linear", relative_width(self._shapes[x][-1], out), bias), x)

    def max_pool(
        self, x: int, kernel: Size = 3, stride: Size = 1, *, padding: Size | None = None, ceil: bool = False
    ) -> int:
        """Maximum over windows; padding never wins. A window that covers the whole input is the global maximum."""
        shape = self._shapes[x]
        made = pool_op("maxpool", len(shape) - 2, hashable(kernel), hashable(stride), hashable(padding), ceil)
        made = without_ceil(made, shape) if ceil else made
        whole = made["kernel"] == shape[2:] and not any(made["padding"])
        return self.global_max_pool(x) if whole else self.apply(made, x)

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
        made = pool_op("avgpool", len(shape) - 2, hashable(kernel), hashable(stride), hashable(padding), ceil, False)
        if not any(made["padding"]):
            if made["kernel"] == shape[2:]:
                return self.global_avg_pool(x)
        elif count_include_pad:
            made = made.replace(include_padding=True)
        return self.apply(without_ceil(made, shape) if ceil else with_ceil(made, shape), x)

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
        amounts = paddings(padding, (1,) * rank, (1,) * rank)
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

    def resize(self, x: int, scale: Size = 2, mode: str = "nearest") -> int:
        """Up-sampling by whole factors: "nearest" or "lin" (bilinear for images)."""
        return self.apply(op("resize", mode, sizes(scale, len(self._shapes[x]) - 2, "scale")), x)

    def layer_norm(self, x: int, axes: int = 1, epsilon: float = 1e-5) -> int:
        """Normalisation over the last dimensions, with a learned scale and shift."""
        return self.apply(op("layernorm", axes, epsilon), x)

    def rms_norm(self, x: int, epsilon: float = 1e-5) -> int:
        """Root-mean-square normalisation over the last dimension, with a learned scale."""
        return self.apply(op("rmsnorm", 1, epsilon), x)

    def group_norm(self, x: int, groups: int = 32, epsilon: float = 1e-5) -> int:
        """Group normalisation with a learned scale and shift a channel."""
        return self.apply(op("groupnorm", groups, epsilon), x)

    def attention(self, q: int, k: int, v: int, mask: int | None = None, *, causal: bool = False) -> int:
        """softmax(q k' / sqrt(width) + mask) v on (batch, heads, length, width)."""
        made = op("attention", None, causal)
        return self.apply(made, q, k, v) if mask is None else self.apply(made, q, k, v, mask)

    def split_heads(self, x: int, heads: int) -> int:
        """(batch, length, heads width) to (batch, heads, length, width)."""
        return self.apply(op("heads", heads), x)

    def merge_heads(self, x: int) -> int:
        """(batch, heads, length, width) to (batch, length, heads width)."""
        return self.apply(op("merge"), x)

    def embedding(self, x: int, rows: int, width: int) -> int:
        """Rows of a learned table by whole numbers."""
        return self.apply(op("embedding", rows, width), x)

    def recurrent(self, kind: str, x: int, hidden: int, direction: str = "forward") -> tuple[int, ...]:
        """ "lstm", "gru" or "rnn" on (length, batch, width).

        Returns:
            The sequence (length, directions, batch, hidden), the last hidden state (directions, batch, hidden), and the
            last cell state of an lstm.
        """
        made = self.apply(op(kind, hidden, direction), x)
        return tuple(self.apply(op("item", i), made) for i in range(len(self._shapes[made])))

    def reshape(self, x: int, shape: Sequence[int]) -> int:
        """Other dimensions (with the batch), same entries."""
        return self.apply(op("reshape", tuple(shape)), x)

    def transpose(self, x: int, order: Sequence[int]) -> int:
        """Dimensions in another order."""
        return self.apply(op("transpose", tuple(order)), x)

    def mean(self, x: int, axes: Sequence[int], *, keep: bool = True) -> int:
        """Mean over some dimensions."""
        rank = len(self._shapes[x])
        return self.apply(op("mean", tuple(sorted(a % rank for a in axes)), keep), x)

    def binary(self, name: str, x: int, y: int) -> int:
        """An operator of two values by its word, such as "sub", "div", "matmul" or "gather"."""
        return self.apply(op(name), x, y)

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

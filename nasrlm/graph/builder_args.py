"""Arguments of `GraphBuilder`, checked and turned into operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nasrlm.errors import ExportError
from nasrlm.graph.ops import Op, Shape, op, relative_width, same_padding

Size = int | Sequence[int]


def sizes(value: Size, rank: int, what: str) -> tuple[int, ...]:
    """One positive number a dimension."""
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) != rank or any(n < 1 for n in numbers):
        raise ExportError(f"{what} {value!r} must be one positive integer or {rank} of them")
    return numbers


def paddings(value: Size | None, kernel: Shape, dilation: Shape) -> tuple[int, ...]:
    """Begins, then ends; None keeps the size at stride 1."""
    if value is None:
        return same_padding(kernel, dilation)
    rank = len(kernel)
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) not in (rank, 2 * rank) or any(n < 0 for n in numbers):
        raise ExportError(f"padding {value!r} must be one integer >= 0, {rank} or {2 * rank} (begins, then ends)")
    return numbers * 2 if len(numbers) == rank else numbers


@lru_cache(maxsize=65_536)
def conv_op(
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
    """A convolution."""
    k, s, d = (sizes(v, rank, w) for v, w in ((kernel, "kernel"), (stride, "stride"), (dilation, "dilation")))
    if out < 1 or groups < 1 or channels % groups or out % groups:
        raise ExportError(f"a convolution cannot split {channels} input and {out} output channels into {groups} groups")
    group_word = "dw" if groups == channels and groups > 1 else groups
    return op("conv", relative_width(channels, out), k, s, d, paddings(padding, k, d), group_word, bias)


@lru_cache(maxsize=4096)
def pool_op(name: str, rank: int, kernel: Size, stride: Size, padding: Size | None, ceil: bool, *more: bool) -> Op:
    """A pooling operator."""
    k, s = sizes(kernel, rank, "kernel"), sizes(stride, rank, "stride")
    return op(name, k, s, paddings(padding, k, (1,) * rank), ceil, *more)


def hashable(value: Size | None) -> Size | None:
    """The same as a number or a tuple, for caches."""
    return value if value is None or isinstance(value, int) else tuple(value)


def with_ceil(made: Op, shape: Shape) -> Op:
    """The same average of this shape with rounding up, where its padding at the end does just that and counts not."""
    rank, pads = len(made["kernel"]), made["padding"]
    if made["include_padding"] or pads[:rank] == pads[rank:] or not all(isinstance(n, int) for n in shape[2:]):
        return made
    up = made.replace(padding=pads[:rank] * 2, ceil=True)
    out = made.spec.shape(made, shape)[2:]
    fills = all(
        end == begin or (n - 1) * s + k == length + begin + end
        for n, s, k, length, begin, end in zip(
            out, made["stride"], made["kernel"], shape[2:], pads[:rank], pads[rank:], strict=True
        )
    )
    return up if fills and up.spec.shape(up, shape)[2:] == out else made


def without_ceil(made: Op, shape: Shape) -> Op:
    """The same pooling of this shape without rounding up: where that adds a window, by padding the end of a maximum."""
    if not made["ceil"] or not all(isinstance(n, int) for n in shape[2:]):
        return made
    rank, pads, up = len(made["kernel"]), list(made["padding"]), made.spec.shape(made, shape)[2:]
    if up == made.spec.shape(made.replace(ceil=False), shape)[2:]:
        return made.replace(ceil=False)
    if made.name != "maxpool":
        return made
    for i, (length, out, k, s) in enumerate(zip(shape[2:], up, made["kernel"], made["stride"], strict=True)):
        span = made["dilation"][i] * (k - 1) + 1
        pads[i + rank] += max((out - 1) * s + span - length - pads[i] - pads[i + rank], 0)
    return made.replace(ceil=False, padding=tuple(pads))

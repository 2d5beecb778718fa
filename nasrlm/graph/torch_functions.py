"""Operators without weights as functions of torch tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nasrlm.errors import ExportError
from nasrlm.graph.ops import Op

Function = Callable[..., Any]
Sizes = Mapping[Any, int]
"""Values of the dynamic dimensions in a call."""


def dtype_of(name: str) -> torch.dtype:
    """torch's type of an element type."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ExportError(f"torch has no element type {name!r}")
    return found


def sized(shape: tuple[Any, ...], sizes: Sizes) -> list[int]:
    """A shape with its dynamic dimensions filled in."""
    return [d if isinstance(d, int) else int(d.subs(dict(sizes))) for d in shape]


def padded(x: Tensor, pads: tuple[int, ...], value: float) -> Tensor:
    """x with begins and ends added to its last dimensions."""
    half = len(pads) // 2
    order = [n for i in range(half - 1, -1, -1) for n in (pads[i], pads[i + half])]
    return F.pad(x, order, value=value) if any(pads) else x


def evened(x: Tensor, pads: tuple[int, ...], value: float) -> tuple[Tensor, tuple[int, ...]]:
    """x and the padding that torch's layers can add by themselves (the same on both sides)."""
    half = len(pads) // 2
    if pads[:half] == pads[half:]:
        return x, pads[:half]
    return padded(x, pads, value), (0,) * half


def _max_pool(op: Op) -> Function:
    rank = len(op["kernel"])
    pool = getattr(F, f"max_pool{rank}d")

    def run(x: Tensor) -> Tensor:
        pads = op["padding"]
        small = all(p <= k // 2 for p, k in zip(pads, op["kernel"] * 2, strict=True))
        x, even = evened(x, pads, -torch.inf) if small else (padded(x, pads, -torch.inf), (0,) * rank)
        return pool(x, op["kernel"], op["stride"], even, op["dilation"], op["ceil"])

    return run


def _avg_pool(op: Op) -> Function:
    rank, pads = len(op["kernel"]), op["padding"]
    pool = getattr(F, f"avg_pool{rank}d")
    even = pads[:rank] == pads[rank:] and all(p <= k // 2 for p, k in zip(pads, op["kernel"] * 2, strict=True))

    def run(x: Tensor) -> Tensor:
        if even:
            return pool(x, op["kernel"], op["stride"], pads[:rank], op["ceil"], op["include_padding"])
        total = pool(padded(x, pads, 0.0), op["kernel"], op["stride"], 0, op["ceil"])
        if op["include_padding"]:
            return total
        share = pool(padded(torch.ones_like(x), pads, 0.0), op["kernel"], op["stride"], 0, op["ceil"])
        return total / share

    return run


def _pad(op: Op) -> Function:
    pads, mode = op["padding"], op["mode"]
    half = len(pads) // 2
    if mode == "constant":
        return lambda x: padded(x, pads, op["value"])

    def run(x: Tensor) -> Tensor:  # torch's own modes pad only some dimensions of some ranks
        for i in range(half):
            dim, before, after = x.dim() - half + i, pads[i], pads[i + half]
            index = np.pad(np.arange(x.shape[dim]), (max(before, 0), max(after, 0)), mode)
            x = _chosen(x, dim, index[max(-before, 0) : len(index) - max(-after, 0)])
        return x

    return run


def _resize(op: Op) -> Function:
    scale, size = op["scale"], op["size"]
    mode = {("lin", 1): "linear", ("lin", 2): "bilinear", ("lin", 3): "trilinear", ("cubic", 2): "bicubic"}
    name, corners = mode.get((op["mode"], len(scale))), op["coordinates"] == "corners"
    if name is None or op["coordinates"] not in ("half", "corners"):
        one = {"nearest": _nearest, "lin": _linear, "cubic": _cubic}[op["mode"]]
        return lambda x: reduce(lambda y, d: one(y, d, op), range(2, x.dim()), x)
    return lambda x: F.interpolate(
        x, size or [n * s for n, s in zip(x.shape[2:], scale, strict=True)], mode=name, align_corners=corners
    )


def _centres(length: int, dim: int, op: Op) -> np.ndarray:
    """Where each new entry stands among the old ones (onnx.ai/onnx/operators/onnx__Resize.html)."""
    out = op["size"][dim - 2] if op["size"] else length * op["scale"][dim - 2]
    steps, kind = np.arange(out), op["coordinates"]
    if kind == "asymmetric":
        return steps * (length / out)
    if kind == "corners":
        return steps * (length - 1) / max(out - 1, 1)
    if kind == "torch" and out == 1:
        return np.zeros(1)
    return (steps + 0.5) * (length / out) - 0.5  # "half_symmetric" differs where sizes are not whole: never here


def _nearest(x: Tensor, dim: int, op: Op) -> Tensor:
    length = x.shape[dim]
    if op["rounding"] == "plain":
        out = op["size"][dim - 2] if op["size"] else length * op["scale"][dim - 2]
        return _chosen(x, dim, np.floor(np.arange(out) * (length / out) + 1e-6))
    rounded: dict[str, Function] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda v: np.ceil(v - 0.5),
        "round_prefer_ceil": lambda v: np.floor(v + 0.5),
    }
    return _chosen(x, dim, np.clip(rounded[op["rounding"]](_centres(length, dim, op)), 0, length - 1))


def _linear(x: Tensor, dim: int, op: Op) -> Tensor:
    centre = np.clip(_centres(x.shape[dim], dim, op), 0, x.shape[dim] - 1)
    return _weighted(x, dim, centre, {0: lambda t: 1 - t, 1: lambda t: t})


def _cubic(x: Tensor, dim: int, op: Op) -> Tensor:
    a = -0.75  # ONNX's default; Keys 1981, doi.org/10.1109/TASSP.1981.1163711

    def near(t: np.ndarray) -> np.ndarray:
        return ((a + 2) * t - (a + 3)) * t**2 + 1

    def far(t: np.ndarray) -> np.ndarray:
        return ((t - 5) * t + 8) * t * a - 4 * a

    taps = {-1: lambda t: far(t + 1), 0: near, 1: lambda t: near(1 - t), 2: lambda t: far(2 - t)}
    return _weighted(x, dim, _centres(x.shape[dim], dim, op), taps)


def _weighted(x: Tensor, dim: int, centre: np.ndarray, taps: Mapping[int, Function]) -> Tensor:
    """Sum of neighbours, each with a weight that depends on how far the centre is from the entry below it."""
    base, total = np.floor(centre), torch.zeros((), dtype=x.dtype, device=x.device)
    for offset, weight in taps.items():
        chosen = _chosen(x, dim, np.clip(base + offset, 0, x.shape[dim] - 1))
        factors = torch.from_numpy(weight(centre - base)).to(x.device, x.dtype)
        total = total + chosen * factors.reshape(-1, *(1,) * (x.dim() - dim - 1))
    return total


def _chosen(x: Tensor, dim: int, index: np.ndarray) -> Tensor:
    return x.index_select(dim, torch.from_numpy(index.astype(np.int64)).to(x.device))


def _depth_to_space(op: Op) -> Function:
    b = op["block"]
    if op["crd"]:
        return lambda x: F.pixel_shuffle(x, b)

    def run(x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        parts = x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
        return parts.reshape(n, c // (b * b), h * b, w * b)

    return run


def _space_to_depth(op: Op) -> Function:
    b = op["block"]

    def run(x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        parts = x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
        return parts.reshape(n, c * b * b, h // b, w // b)

    return run


def _shuffle(op: Op) -> Function:
    def run(x: Tensor) -> Tensor:
        parts = x.reshape(x.shape[0], op["groups"], x.shape[1] // op["groups"], *x.shape[2:])
        return parts.transpose(1, 2).reshape(x.shape)

    return run


def _attention(op: Op) -> Function:
    def run(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        if op["causal"]:
            seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)
            seen = seen.tril(k.shape[-2] - q.shape[-2])
            hidden = torch.zeros(seen.shape, dtype=q.dtype, device=q.device).masked_fill(~seen, -torch.inf)
            mask = hidden if mask is None else mask + hidden
        return F.scaled_dot_product_attention(q, k, v, mask, scale=op["scale"])

    return run


def _heads(op: Op) -> Function:
    return lambda x: x.reshape(*x.shape[:2], op["heads"], x.shape[2] // op["heads"]).transpose(1, 2)


def _slice(op: Op) -> Function:
    return lambda x: x[(slice(None),) * op["axis"] + (slice(op["start"], op["stop"], op["step"]),)]


def _concat(op: Op) -> Function:
    def run(*xs: Tensor) -> Tensor:
        batch = max(x.shape[0] for x in xs)  # constants have a batch of one
        axis = op["axis"]
        return torch.cat([x.expand(batch, *x.shape[1:]) if axis and x.shape[0] == 1 else x for x in xs], axis)

    return run


def _gather(op: Op) -> Function:
    def run(x: Tensor, indices: Tensor) -> Tensor:
        flat = x.index_select(op["axis"], indices.reshape(-1).long() % x.shape[op["axis"]])
        return flat.reshape(*x.shape[: op["axis"]], *indices.shape, *x.shape[op["axis"] + 1 :])

    return run


def _reduction(function: Callable[[Tensor, list[int], bool], Tensor]) -> Callable[[Op], Function]:
    return lambda op: lambda x: function(x, list(op["axes"]) or list(range(x.dim())), op["keep"])


def _sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return x.sum(axes, keepdim=keep, dtype=x.dtype)  # torch's sums of integers would be int64


def _mean(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.is_floating_point():
        return x.mean(axes, keepdim=keep)
    return _divided(_sum(x, axes, keep), x.new_tensor(prod(x.shape[a] for a in axes)))


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keep, dtype=x.dtype)
    return x


def _length(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.is_floating_point():  # its gradient at zero is zero, that of a root would be none
        return torch.linalg.vector_norm(x, dim=axes, keepdim=keep)
    return _sum(x.square(), axes, keep).double().sqrt().to(x.dtype)


def _divided(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode=None if x.is_floating_point() else "trunc")


def _clip(op: Op) -> Function:
    low, high = op["low"], op["high"]
    return lambda x: x if low is None and high is None else x.clamp(low, high).to(x.dtype)


def _cast(op: Op) -> Function:
    dtype = dtype_of(op["dtype"])
    return lambda x: x.to(dtype)


def _chain(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Op], Function]:
    return lambda op: lambda *xs: reduce(function, xs)


def _plain(function: Function) -> Callable[[Op], Function]:
    return lambda op: function


def _global(function: Callable[..., Tensor]) -> Callable[[Op], Function]:
    return lambda op: lambda x: function(x, tuple(range(2, x.dim())), True)


_WORDS: dict[str, Function] = {
    **{"relu": F.relu, "relu6": F.relu6, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "silu": F.silu, "mish": F.mish},
    **{"hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "softplus": F.softplus, "softsign": F.softsign},
    **{"selu": F.selu, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "reciprocal": torch.reciprocal},
    **{"abs": torch.abs, "neg": torch.neg, "rounddown": torch.floor, "roundup": torch.ceil, "round": torch.round},
    **{"sign": torch.sign, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos, "not": torch.logical_not},
    **{"sub": torch.sub, "div": _divided, "pow": torch.pow, "mod": torch.remainder, "equal": torch.eq},
    **{"greater": torch.gt, "less": torch.lt, "greaterequal": torch.ge, "lessequal": torch.le, "where": torch.where},
    **{"and": torch.logical_and, "or": torch.logical_or, "xor": torch.logical_xor, "matmul": torch.matmul},
    **{"identity": lambda x: x, "dropout": lambda x: x, "literal": lambda x: x, "after": lambda x, *_: x},
    **{"zeros": lambda x: x * 0, "blank": lambda x: x * 0, "flatten": lambda x: x.flatten(1)},
    "merge": lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1),
}

FUNCTIONS: dict[str, Callable[[Op], Function]] = {
    **{word: _plain(function) for word, function in _WORDS.items()},
    **{"add": _chain(torch.add), "mul": _chain(torch.mul), "min": _chain(torch.minimum), "max": _chain(torch.maximum)},
    "mean": _reduction(_mean),
    "sum": _reduction(_sum),
    "amax": _reduction(lambda x, axes, keep: x.amax(axes, keepdim=keep)),
    "amin": _reduction(lambda x, axes, keep: x.amin(axes, keepdim=keep)),
    "prod": _reduction(_product),
    "l1": _reduction(lambda x, axes, keep: _sum(x.abs(), axes, keep)),
    "l2": _reduction(_length),
    "sumsquare": _reduction(lambda x, axes, keep: _sum(x.square(), axes, keep)),
    "logsum": _reduction(lambda x, axes, keep: x.sum(axes, keepdim=keep).log()),
    "logsumexp": _reduction(lambda x, axes, keep: x.logsumexp(axes, keepdim=keep)),
    "argmax": _reduction(lambda x, axes, keep: x.argmax(axes[0], keepdim=keep)),
    "argmin": _reduction(lambda x, axes, keep: x.argmin(axes[0], keepdim=keep)),
    "gap": _global(torch.mean),
    "gmp": _global(torch.amax),
    "maxpool": _max_pool,
    "avgpool": _avg_pool,
    "pad": _pad,
    "resize": _resize,
    "depth2space": _depth_to_space,
    "space2depth": _space_to_depth,
    "shuffle": _shuffle,
    "softmax": lambda op: lambda x: F.softmax(x, op["axis"]),
    "logsoftmax": lambda op: lambda x: F.log_softmax(x, op["axis"]),
    "clip": _clip,
    "leakyrelu": lambda op: lambda x: F.leaky_relu(x, op["slope"]),
    "elu": lambda op: lambda x: F.elu(x, op["alpha"]),
    "gelu": lambda op: lambda x: F.gelu(x, approximate="tanh" if op["approximate"] else "none"),
    "concat": _concat,
    "slice": _slice,
    "transpose": lambda op: lambda x: x.permute(op["order"]),
    "gather": _gather,
    "cast": _cast,
    "attention": _attention,
    "heads": _heads,
    "item": lambda op: lambda x: x[op["index"]],
}
"""How to make the function of an operator."""

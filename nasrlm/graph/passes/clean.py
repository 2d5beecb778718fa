"""What does nothing goes; reshapes and transposes in a row become one."""

from __future__ import annotations

from collections.abc import Callable

from nasrlm.graph.dims import Shape, is_dynamic, tidy
from nasrlm.graph.ops import NO_OPERATION, op
from nasrlm.graph.passes.net import Net

_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "pow": 1.0}
"""The operand that changes nothing; of `sub`, `div` and `pow` as the second one."""


def no_operations(net: Net) -> None:
    """Identity, Dropout, Cast to the same type, Reshape or Expand to the same shape, zero padding, x + 0, x * 1."""
    for i in net.nodes():
        x = _same_as(net, i)
        if x is not None:
            net.bypass(i, x)


def _same_as(net: Net, i: int) -> int | None:
    name, xs = net.name(i), net.operands[i]
    if name in NO_OPERATION and name != "after":
        return xs[0]
    if name in _NEUTRAL and len(xs) == 2:
        for slot in (1,) if name in ("sub", "div", "pow") else (1, 0):
            if net.number(xs[slot]) == _NEUTRAL[name] and net.shapes[xs[1 - slot]] == net.shapes[i]:
                return xs[1 - slot]
        return None
    test = _UNCHANGED.get(name)
    return xs[0] if test and test(net, i) else None


def _keeps_shape(net: Net, i: int) -> bool:
    return net.shapes[i] == net.shapes[net.operands[i][0]]


def _keeps_order(net: Net, i: int) -> bool:
    order = net.ops[i]["order"]
    return order == tuple(range(len(order)))


_UNCHANGED: dict[str, Callable[[Net, int], bool]] = {
    "cast": lambda net, i: net.dtype(net.operands[i][0]) == net.ops[i]["dtype"],
    "reshape": _keeps_shape,
    "flatten": _keeps_shape,
    "expand": _keeps_shape,
    "slice": _keeps_shape,
    "transpose": _keeps_order,
    "pad": lambda net, i: not any(net.ops[i]["padding"]),
    "clip": lambda net, i: net.ops[i]["low"] is None and net.ops[i]["high"] is None,
}


def constants(net: Net) -> None:
    """Scalars in a row become one: x * a * b, x / a as it stands, x + a + b."""
    for i in net.nodes():
        if net.name(i) not in ("mul", "add") or len(net.operands[i]) != 2:
            continue
        for constant, x in net.parted(i, "value"):
            number = net.number(constant)
            inner = [(net.number(c), y) for c, y in net.parted(x, "value")] if net.name(x) == net.name(i) else []
            if number is not None and inner and inner[0][0] is not None and net.alone(x):
                joined = number * inner[0][0] if net.name(i) == "mul" else number + inner[0][0]
                value = net.add(x, op("value", (joined,), net.ops[constant]["dtype"], ()))
                net.replace(i, net.ops[i], inner[0][1], value)
                break


def reshapes(net: Net) -> None:
    """Chains of reshapes and of transposes; a transpose that moves only dimensions of one entry is a reshape."""
    for i in net.nodes():
        name = net.name(i)
        if name not in ("reshape", "flatten", "transpose"):
            continue
        x = net.operands[i][0]
        if name == "transpose":
            inner = net.operand(i, "transpose")
            if inner is not None:
                order = tuple(net.ops[inner]["order"][k] for k in net.ops[i]["order"])
                x = net.operands[inner][0]
                net.replace(i, op("transpose", order), x)
            if _keeps_order(net, i):
                net.bypass(i, x)
                continue
            if not _moves(net.ops[i]["order"], net.shapes[x]):
                name = _reshape(net, i, x)
        if name in ("reshape", "flatten"):
            while net.name(x) in ("reshape", "flatten"):
                x = net.operands[x][0]
            if net.shapes[x] == net.shapes[i]:
                net.bypass(i, x)
            else:
                _reshape(net, i, x)


def _moves(order: tuple[int, ...], shape: Shape) -> bool:
    """Whether an order of dimensions changes the order of those that have several entries."""
    moved = [k for k in order if shape[k] != 1]
    return moved != sorted(moved)


def _reshape(net: Net, i: int, x: int) -> str:
    """Node i as the plainest reshape of x."""
    before, after = net.shapes[x], net.shapes[i]
    if len(before) > 2 and len(after) == 2 and after[0] == before[0]:
        net.replace(i, op("flatten"), x)
    else:
        net.replace(i, op("reshape", target(before, after)), x)
    return "reshape"


def target(before: Shape, after: Shape) -> Shape:
    """The dimensions to write: numbers, dynamic dimensions that have a word, and at most one that follows (-1)."""
    if not is_dynamic(after):
        return after
    known = set(before)
    plain = tuple(n if isinstance(n, int) or (n in known and n.is_Symbol) else -1 for n in after)
    return plain if plain.count(-1) <= 1 else tuple(map(tidy, after))

"""What does nothing goes; numbers in a row become one."""

from __future__ import annotations

from collections.abc import Callable

from nasrlm.graph.operators.tensor import broadcast
from nasrlm.graph.ops import NO_OPERATION, op
from nasrlm.graph.passes.net import Net

_NEUTRAL = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "pow": 1.0, "and": 1.0, "or": 0.0}
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
            if net.number(xs[slot]) == _NEUTRAL[name]:
                if net.shapes[xs[1 - slot]] == net.shapes[i]:
                    return xs[1 - slot]
                net.replace(i, op("expand", net.shapes[i]), xs[1 - slot])
                break
        return None
    if name == "where" and _tests_nan(net, xs[0], xs[2]):
        return xs[2]  # a guard of masked softmax: NaN becomes a number
    test = _UNCHANGED.get(name)
    return xs[0] if test and test(net, i) else None


def _tests_nan(net: Net, test: int, x: int) -> bool:
    made = net.ops[test]
    return made.name == "onnx" and made["kind"] == "IsNaN" and net.operands[test] == [x]


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


def weights(net: Net) -> None:
    """What is computed from weights alone is one weight, as exporters write it: they compute it once."""
    for i in net.nodes():
        xs = net.operands[i]
        computed = bool(xs) and all(net.name(x) in ("weight", "value") for x in xs)
        if computed and any(map(net.is_weight, xs)) and i not in net.outputs and net.users[i]:
            shape = net.shapes[i]
            if not (shape and isinstance(shape[0], tuple)) and all(isinstance(n, int) for n in shape):
                net.replace(i, op("weight", shape, net.dtype(i)))


_ELEMENTWISE = frozenset(
    ("add", "sub", "mul", "div", "pow", "min", "max", "where", "and", "or", "equal", "greater", "less", "cast", "not")
)


def expansions(net: Net) -> None:
    """An expansion goes behind the element-wise operators that read it, and goes where they stretch it anyway."""
    for i in net.nodes():
        xs = net.operands[i]
        if net.name(i) not in _ELEMENTWISE or not any(net.name(x) == "expand" for x in xs):
            continue
        inner = [net.operands[x][0] if net.name(x) == "expand" else x for x in xs]
        shape = broadcast(net.ops[i], *(net.shapes[x] for x in inner))
        if shape == net.shapes[i]:
            net.replace(i, net.ops[i], *inner)
        elif len(shape) == len(net.shapes[i]):
            smaller = net.add(i, net.ops[i], *inner, shape=shape)
            net.replace(i, op("expand", net.shapes[i]), smaller)

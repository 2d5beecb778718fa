"""Activations that an exporter wrote as arithmetic, recognised by their values.

A node is a function of one variable if every way up from it ends at one value or at a number. Such a function is
tried at a few points; if it agrees with a known activation there, it is that activation, whatever the formula.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import erf, sqrt

import numpy as np

from nasrlm.graph.ops import Op, op
from nasrlm.graph.passes.net import Net

_POINTS = np.array([-9.7, -6.1, -4.3, -3.2, -2.6, -1.7, -0.9, -0.31, 0.17, 0.62, 1.3, 2.2, 2.9, 3.4, 5.2, 6.3, 8.1])
_TOLERANCE = 2e-5
"""Constants in files are float32, such as 0.70710677 or 0.16666667; gelu and its approximation differ by 4e-4."""
_MOST_NODES = 16
"""Nodes of the longest formula (the approximate gelu has ten)."""

Array = np.ndarray


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array) -> Array:
    return np.log1p(np.exp(x))


_erf = np.vectorize(erf, otypes=[float])

FUNCTIONS: dict[str, Callable[..., Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "silu": lambda x: x * _sigmoid(x),
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "softplus": _softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "gelu": lambda x: x * (1 + _erf(x / sqrt(2))) / 2,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1 / x,
    "abs": np.abs,
    "neg": np.negative,
    "sign": np.sign,
    "erf": _erf,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "greater": np.greater,
    "less": np.less,
    "greaterequal": np.greater_equal,
    "lessequal": np.less_equal,
    "where": np.where,
    "identity": lambda x: x,
}
"""Values of the operators that formulas are made of."""

_ROOTS = frozenset(("mul", "div", "min", "max", "clip", "where", "reciprocal", "log", "sub", "add"))
"""Operators that a formula can end with."""


@lru_cache(maxsize=1)
def _known() -> list[tuple[Op, Array]]:
    words = ("relu", "relu6", "sigmoid", "tanh", "hardsigmoid", "hardswish", "silu", "mish", "softplus", "softsign")
    found = [(op(word), FUNCTIONS[word](_POINTS)) for word in (*words, "gelu")]
    inner = sqrt(2 / np.pi) * (_POINTS + 0.044715 * _POINTS**3)
    found.append((op("gelu", True), _POINTS * (1 + np.tanh(inner)) / 2))
    found.append((op("elu"), np.where(_POINTS > 0, _POINTS, np.expm1(_POINTS))))
    return found


def activations(net: Net) -> None:
    """Formulas as the activations that they are; the longest first."""
    for i in net.backwards():
        if net.name(i) in _ROOTS and net.is_float(i):
            found = _recognised(net, i)
            if found is not None:
                net.replace(i, *found)


def _recognised(net: Net, root: int) -> tuple[Op, int] | None:
    for source in _sources(net, root):
        values = _values(net, root, source)
        if values is None:
            continue
        for known, expected in _known():
            if np.allclose(values, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
                return known, source
    return None


def _sources(net: Net, root: int) -> list[int]:
    """Values above a node that it may be a function of, the nearest first."""
    met: dict[int, None] = {}
    stack = [root]
    while stack and len(met) <= _MOST_NODES:
        x = stack.pop()
        if x not in met and not net.ops[x].inline:
            met[x] = None
            if x == root or _is_step(net, x):
                stack += net.operands[x]
    shape = net.shapes[root]
    return [x for x in met if x != root and net.shapes[x] == shape and net.is_float(x)]


def _is_step(net: Net, x: int) -> bool:
    return net.name(x) in FUNCTIONS or net.name(x) == "clip"


def _values(net: Net, root: int, source: int) -> Array | None:
    """Values of a node at the points as a function of `source`; None if it is not one."""
    values: dict[int, Array] = {source: _POINTS}
    stack = [root]
    while stack:
        if len(values) + len(stack) > 2 * _MOST_NODES:
            return None
        x = stack[-1]
        number = net.number(x)
        if x in values:
            stack.pop()
        elif number is not None:
            values[x] = np.full_like(_POINTS, number)
        elif not _is_step(net, x):
            return None
        elif waiting := [y for y in net.operands[x] if y not in values]:
            stack += waiting
        else:
            values[x] = _apply(net.ops[x], [values[y] for y in net.operands[x]])
            stack.pop()
    return values[root]


def _apply(made: Op, operands: list[Array]) -> Array:
    with np.errstate(all="ignore"):
        if made.name == "clip":
            return np.clip(operands[0], made["low"], made["high"])
        if len(operands) > 2 and made.spec.commutative:
            total = operands[0]
            for x in operands[1:]:
                total = FUNCTIONS[made.name](total, x)
            return total
        return FUNCTIONS[made.name](*operands)

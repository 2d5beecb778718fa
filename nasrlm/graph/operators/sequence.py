"""Operators on sequences (batch, length, width): normalisation, attention, recurrence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nasrlm.errors import ExportError
from nasrlm.graph.dims import Shape, size
from nasrlm.graph.operators.image import BIAS
from nasrlm.graph.spec import EPSILON, OpSpec, choice_field, flag, integer_field, number_field, same

if TYPE_CHECKING:
    from nasrlm.graph.ops import Op

_SCALE, _SHIFT = flag("scale", "noscale", when=False), flag("shift", "noshift", when=False)


def _layer_norm_parameters(op_: Op, x: Shape) -> int:
    return size(x[-op_["axes"] :]) * (op_["scale"] + op_["shift"])


def _attention_shape(op_: Op, q: Shape, k: Shape, v: Shape, mask: Shape = ()) -> Shape:
    if not len(q) == len(k) == len(v) >= 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise ExportError(f"'attention' cannot join queries {q}, keys {k} and values {v}")
    return (*q[:-1], v[-1])


def _attention_macs(op_: Op, y: Shape, q: Shape, k: Shape, v: Shape, mask: Shape = ()) -> int:
    scores = size(q[:-1]) * size(k[-2:-1])
    return scores * (size(q[-1:]) + size(v[-1:]))


def _heads_shape(op_: Op, x: Shape) -> Shape:
    n = op_["heads"]
    if len(x) != 3 or n < 1 or x[2] % n:
        raise ExportError(f"'{op_.text}' cannot split {x} into {n} heads")
    return (x[0], n, x[1], x[2] // n)


def _merge_shape(op_: Op, x: Shape) -> Shape:
    if len(x) != 4:
        raise ExportError(f"'merge' needs (batch, heads, length, width), not {x}")
    return (x[0], x[2], x[1] * x[3])


def _recurrent(gates: int, states: int) -> OpSpec:
    """`gates` matrices a direction; the values are the sequence (length, directions, batch, hidden), the last hidden
    state and, of an LSTM, the last cell state (directions, batch, hidden)."""

    def directions(op_: Op) -> int:
        return 2 if op_["direction"] == "both" else 1

    def shape(op_: Op, x: Shape, *_: Shape) -> Any:
        if len(x) != 3:
            raise ExportError(f"'{op_.text}' reads (length, batch, width), not {x}")
        last = (directions(op_), x[1], op_["hidden"])
        return ((x[0], *last), *(last,) * states)

    def parameters(op_: Op, x: Shape, *_: Shape) -> int:
        h = op_["hidden"]
        return directions(op_) * gates * h * (x[2] + h + 2 * op_["offset"])

    def macs(op_: Op, _: Shape, x: Shape, *__: Shape) -> int:
        h = op_["hidden"]
        return size(x[:2]) * directions(op_) * gates * h * (x[2] + h)

    fields = (
        integer_field("hidden", "", 0),
        choice_field("direction", "forward", "backward", "both"),
        flag("offset", "nobias", when=False),
        flag("reset_after", "resetfirst", when=False),
    )
    return OpSpec(
        shape,
        fields,
        arity=(1, 1 + states),
        parameters=parameters,
        macs=macs,
        dtype=lambda o, x, *_: (x,) * (1 + states),
    )


def _norm(parameters: Callable[[Op, Shape], int], *more: Any) -> OpSpec:
    return OpSpec(same, (integer_field("axes", "a", 1), EPSILON, _SCALE, *more), parameters=parameters)


SEQUENCE: dict[str, OpSpec] = {
    "layernorm": _norm(_layer_norm_parameters, _SHIFT),
    "rmsnorm": _norm(lambda o, x: size(x[-o["axes"] :]) * o["scale"]),
    "attention": OpSpec(
        _attention_shape,
        (number_field("scale", "s", None), flag("causal", "causal", when=True)),
        arity=(3, 4),
        macs=_attention_macs,
    ),
    "heads": OpSpec(_heads_shape, (integer_field("heads", "", 1),)),
    "merge": OpSpec(_merge_shape),
    "lstm": _recurrent(4, 2),
    "gru": _recurrent(3, 1),
    "rnn": _recurrent(1, 1),
}
"""`layernorm`/`rmsnorm` normalise the last `a` dimensions. `attention` is softmax(q k' scale + mask) v on (..., length,
width), scale 1 / sqrt(width) unless written; `heads` turns (batch, length, heads width) into (batch, heads, length,
width), `merge` turns it back."""

__all__ = ["BIAS", "SEQUENCE"]

"""Normalisation over the last dimensions, recurrence, attention."""

from __future__ import annotations

from nasrlm.errors import ExportError
from nasrlm.graph.onnx_read.constants import Constant
from nasrlm.graph.onnx_read.image import Read
from nasrlm.graph.onnx_read.node import Node, Result, axis_of
from nasrlm.graph.ops import op, op_with


def _layer_norm(n: Node) -> Result | None:
    if any(n.uses(i) for i in (1, 2)) or not n.all_constant(1):
        return None
    rank = len(n.shape(0))
    axes = rank - axis_of(n.attributes.get("axis", -1), rank)
    if tuple(n.shape(1)) != tuple(n.shape(0)[-axes:]):
        return None
    made = op_with("layernorm", axes=axes, epsilon=n.attributes.get("epsilon", 1e-5), shift=n.has(2))
    return n.b.apply(made, n.value(0))


def _rms_norm(n: Node) -> Result | None:
    rank = len(n.shape(0))
    axes = rank - axis_of(n.attributes.get("axis", -1), rank)
    if any(n.uses(i) for i in (1, 2, 3)) or not n.is_constant(1) or tuple(n.shape(1)) != tuple(n.shape(0)[-axes:]):
        return None
    return n.b.apply(op_with("rmsnorm", axes=axes, epsilon=n.attributes.get("epsilon", 1e-5)), n.value(0))


_DIRECTIONS = {b"forward": "forward", b"reverse": "backward", b"bidirectional": "both"}
_USUAL = {
    "LSTM": (b"Sigmoid", b"Tanh", b"Tanh"),
    "GRU": (b"Sigmoid", b"Tanh"),
    "RNN": (b"Tanh",),
}


def _recurrent(kind: str) -> Read:
    states = 2 if kind == "LSTM" else 1

    def read(n: Node) -> Result | list[Result] | None:
        a = n.attributes
        direction = _DIRECTIONS.get(a.get("direction", b"forward"))
        usual = _USUAL[kind] * (2 if direction == "both" else 1)
        plain = tuple(a.get("activations", usual)) == usual and "clip" not in a and not a.get("layout", 0)
        plain = plain and not a.get("input_forget", 0) and not n.has(4) and not n.has(7)
        computed = any(n.has(i) and not n.is_constant(i) for i in (1, 2, 3))
        if not plain or direction is None or computed:
            return None
        hidden = n.shape(2)[-1]
        if n.shape(1)[-1] != n.shape(0)[-1] or n.shape(1)[1] != hidden * {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]:
            raise ExportError(f"the weight {n.shape(1)} does not fit the input {n.shape(0)} and {hidden} hidden units")
        reset_after = kind != "GRU" or bool(a.get("linear_before_reset", 0))
        made = op_with(kind.lower(), hidden=hidden, direction=direction, offset=n.has(3), reset_after=reset_after)
        starts = [i for i in range(5, 5 + states) if n.has(i)]
        if all(_is_zero(n, i) for i in starts):
            starts = []
        elif len(starts) != states:
            return None
        x = n.b.apply(made, n.value(0), *(n.value(i) for i in starts))
        return [n.b.apply(op("item", i), x) if n.uses(i) else x for i in range(1 + states)]

    return read


def _is_zero(n: Node, slot: int) -> bool:
    found = n.found(slot)
    if isinstance(found, Constant):
        return found.uniform() == 0
    made, operands = n.b.node(found)
    return made.name == "expand" and n.b.node(operands[0])[0].text == "#0"


def _attention(n: Node) -> Result | None:
    a = n.attributes
    if n.has(4) or n.has(5) or any(n.uses(i) for i in (1, 2, 3)) or a.get("softcap", 0.0) or n.has(6):
        return None
    ranks = {len(n.shape(i)) for i in range(3)}
    mask = [n.value(3)] if n.has(3) else []
    if mask and n.dtype(3) == "bool":
        return None
    made = op_with("attention", scale=a.get("scale"), causal=bool(a.get("is_causal", 0)))
    if ranks == {4}:
        return n.b.apply(made, *(n.value(i) for i in range(3)), *mask) if n.shape(0)[1] == n.shape(1)[1] else None
    heads = a.get("q_num_heads")
    if ranks != {3} or not heads or heads != a.get("kv_num_heads"):
        return None
    split = [n.b.split_heads(n.value(i), heads) for i in range(3)]
    return n.b.merge_heads(n.b.apply(made, *split, *mask))


READ_SEQUENCE: dict[str, Read] = {
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "SimplifiedLayerNormalization": _rms_norm,
    "LSTM": _recurrent("LSTM"),
    "GRU": _recurrent("GRU"),
    "RNN": _recurrent("RNN"),
    "Attention": _attention,
}
"""How to read each operator of this family."""

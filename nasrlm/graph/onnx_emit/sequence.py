"""Normalisation over the last dimensions, attention, recurrence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nasrlm.graph.dims import is_dynamic
from nasrlm.graph.onnx_emit.image import Emit
from nasrlm.graph.ops import Op

if TYPE_CHECKING:
    from nasrlm.graph.onnx_writer import Writer


def _layer_norm(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    shape = tuple(w.graph.shapes[operands[0]][-op["axes"] :])
    if op["scale"] and w.opset >= 17:
        weights = [w.near(f"{name}.weight", shape, 1.0, operands[0])]
        weights += [w.near(f"{name}.bias", shape, 0.0, operands[0])] if op["shift"] else []
        w.emit("LayerNormalization", [*inputs, *weights], name, axis=-op["axes"], epsilon=op["epsilon"])
        return
    centred = w.emit("Sub", [inputs[0], _mean(w, op, f"{name}.mean", inputs[0])], f"{name}.centred")
    square = w.emit("Pow", [centred, w.number(name, 2.0, operands[0])], f"{name}.square")
    _scaled(w, op, name, _divided(w, op, name, centred, square, operands[0]), shape, operands[0])


def _rms_norm(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    shape = tuple(w.graph.shapes[operands[0]][-op["axes"] :])
    square = w.emit("Pow", [inputs[0], w.number(name, 2.0, operands[0])], f"{name}.square")
    _scaled(w, op, name, _divided(w, op, name, inputs[0], square, operands[0]), shape, operands[0])


def _mean(w: Writer, op: Op, name: str, x: str) -> str:
    axes = tuple(range(-op["axes"], 0))
    if w.opset >= 18:
        return w.emit("ReduceMean", [x, w.constant(f"{name}.axes", np.array(axes, np.int64))], name, keepdims=1)
    return w.emit("ReduceMean", [x], name, axes=axes, keepdims=1)


def _divided(w: Writer, op: Op, name: str, x: str, square: str, operand: int) -> str:
    total = w.emit(
        "Add", [_mean(w, op, f"{name}.variance", square), w.number(name, op["epsilon"], operand)], f"{name}.total"
    )
    return w.emit("Div", [x, w.emit("Sqrt", [total], f"{name}.root")], f"{name}.normed")


def _scaled(w: Writer, op: Op, name: str, x: str, shape: tuple[int, ...], operand: int) -> None:
    if op["scale"]:
        x = w.emit("Mul", [x, w.near(f"{name}.weight", shape, 1.0, operand)], f"{name}.scaled")
    if "shift" in op.spec.index and op["shift"]:
        x = w.emit("Add", [x, w.near(f"{name}.bias", shape, 0.0, operand)], f"{name}.shifted")
    w.rename(name, x)


def _attention(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    q, k = (w.graph.shapes[x] for x in operands[:2])
    if op["causal"] and (is_dynamic(q[-2:]) or is_dynamic(k[-2:])):
        w.need_opset(23)
        scale = {} if op["scale"] is None else {"scale": op["scale"]}
        w.emit("Attention", inputs, name, is_causal=1, **scale)
        return
    rank = len(k)
    turned = w.emit("Transpose", [inputs[1]], f"{name}.keys", perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = w.emit("MatMul", [inputs[0], turned], f"{name}.products")
    scale = op["scale"] if op["scale"] is not None else q[-1] ** -0.5
    scores = w.emit("Mul", [scores, w.number(name, scale, operands[0])], f"{name}.scores")
    if len(inputs) == 4:
        scores = w.emit("Add", [scores, inputs[3]], f"{name}.masked")
    if op["causal"]:
        seen = np.tril(np.ones((q[-2], k[-2]), bool), k[-2] - q[-2])
        mask = np.where(seen, 0, -np.inf).astype(w.dtype(operands[0])).reshape((1,) * (len(q) - 2) + seen.shape)
        scores = w.emit("Add", [scores, w.constant(f"{name}.mask", mask)], f"{name}.causal")
    weights = w.emit("Softmax", [scores], f"{name}.weights", axis=-1)
    w.emit("MatMul", [weights, inputs[2]], name)


def _heads(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    b, length, width = w.graph.shapes[operands[0]]
    parts = (b, length, op["heads"], width // op["heads"])
    apart = w.emit("Reshape", [*inputs, w.dims(f"{name}.parts", parts)], f"{name}.apart")
    w.emit("Transpose", [apart], name, perm=[0, 2, 1, 3])


def _merge(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    b, h, length, width = w.graph.shapes[operands[0]]
    turned = w.emit("Transpose", inputs, f"{name}.turned", perm=[0, 2, 1, 3])
    w.emit("Reshape", [turned, w.dims(f"{name}.shape", (b, length, h * width))], name)


_DIRECTIONS = {"forward": "forward", "backward": "reverse", "both": "bidirectional"}


def _recurrent(kind: str, gates: int, states: int) -> Emit:
    def emit(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
        hidden, width = op["hidden"], w.graph.shapes[operands[0]][2]
        n, rows = 2 if op["direction"] == "both" else 1, gates * hidden
        weights = [w.kernel(name, (n, rows, width), width, operands[0])]
        weights.append(w.near(f"{name}.recurrence", (n, rows, hidden), 0.0, operands[0]))
        starts = inputs[1:]
        if op["offset"] or starts:
            weights.append(w.near(f"{name}.bias", (n, 2 * rows), 0.0, operands[0]) if op["offset"] else "")
        given = [inputs[0], *weights, *(["", *starts] if starts else [])]
        more = {"linear_before_reset": int(op["reset_after"])} if kind == "GRU" else {}
        outputs = [f"{name}.{i}" for i in range(1 + states)]
        w.emit_several(kind, given, outputs, direction=_DIRECTIONS[op["direction"]], hidden_size=hidden, **more)

    return emit


EMIT_SEQUENCE: dict[str, Emit] = {
    "layernorm": _layer_norm,
    "rmsnorm": _rms_norm,
    "attention": _attention,
    "heads": _heads,
    "merge": _merge,
    "lstm": _recurrent("LSTM", 4, 2),
    "gru": _recurrent("GRU", 3, 1),
    "rnn": _recurrent("RNN", 1, 1),
}
"""How to write each operator of this family."""

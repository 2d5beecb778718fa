"""Element-wise operators, shapes and reductions."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper

from nasrlm.graph.onnx_emit.image import Emit
from nasrlm.graph.onnx_generic import element_number, leaf_tensor
from nasrlm.graph.ops import Op

if TYPE_CHECKING:
    from nasrlm.graph.onnx_writer import Writer


def _join(kind: str, several: str | None = None) -> Emit:
    """An operator of two values, or of any number where ONNX has one, else pair by pair."""

    def emit(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
        if len(inputs) == 2 or several == kind:
            w.emit(kind, inputs, name)
        elif several is not None:
            w.emit(several, inputs, name)
        else:
            total = inputs[0]
            for i, x in enumerate(inputs[1:], 2):
                total = w.emit(kind, [total, x], name if i == len(inputs) else f"{name}.{i}")

    return emit


def _unary(kind: str) -> Emit:
    def emit(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
        w.emit(kind, inputs[:1], name)

    return emit


def _relu6(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Clip", [*inputs, *(w.number(name, v, operands[0]) for v in (0.0, 6.0))], name)


def _clip(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    bounds = ["" if v is None else w.number(name, v, operands[0]) for v in (op["low"], op["high"])]
    w.emit("Clip", [*inputs, *bounds], name)


def _zeros(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Mul", [*inputs, w.number(name, 0.0, operands[0])], name)


def _silu(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Mul", [inputs[0], w.emit("Sigmoid", inputs, f"{name}.gate")], name)


def _hard_sigmoid(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("HardSigmoid", inputs, name, alpha=1 / 6, beta=0.5)


def _hard_swish(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    if w.opset < 14:
        gate = w.emit("HardSigmoid", inputs, f"{name}.gate", alpha=1 / 6, beta=0.5)
        w.emit("Mul", [inputs[0], gate], name)
    else:
        w.emit("HardSwish", inputs, name)


def _mish(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    gate = w.emit("Tanh", [w.emit("Softplus", inputs, f"{name}.softplus")], f"{name}.gate")
    w.emit("Mul", [inputs[0], gate], name)


def _gelu(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    x = inputs[0]

    def number(v: float) -> str:
        return w.number(name, v, operands[0])

    if op["approximate"]:
        cubed = w.emit("Pow", [x, number(3.0)], f"{name}.cubed")
        part = w.emit("Mul", [cubed, number(0.044715)], f"{name}.part")
        whole = w.emit("Mul", [w.emit("Add", [x, part], f"{name}.sum"), number(sqrt(2 / pi))], f"{name}.scaled")
        gate = w.emit("Tanh", [whole], f"{name}.tanh")
    else:
        gate = w.emit("Erf", [w.emit("Div", [x, number(sqrt(2))], f"{name}.scaled")], f"{name}.erf")
    half = w.emit("Mul", [x, w.emit("Add", [gate, number(1.0)], f"{name}.gate")], f"{name}.double")
    w.emit("Mul", [half, number(0.5)], name)


def _leaky_relu(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("LeakyRelu", inputs, name, alpha=op["slope"])


def _elu(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Elu", inputs, name, alpha=op["alpha"])


def _concat(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Concat", inputs, name, axis=op["axis"])


def _slice(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    bounds = {"start": op["start"], "stop": op["stop"], "axis": op["axis"], "step": op["step"]}
    given = [w.constant(f"{name}.{k}", np.array([v], np.int64)) for k, v in bounds.items() if k != "step" or v != 1]
    w.emit("Slice", [*inputs, *given], name)


def _reshape(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Reshape", [*inputs, w.dims(f"{name}.shape", op["shape"])], name)


def _expand(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Expand", [*inputs, w.dims(f"{name}.shape", op["shape"])], name)


def _transpose(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Transpose", inputs, name, perm=op["order"])


def _gather(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Gather", inputs, name, axis=op["axis"])


def _embedding(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    table = w.tensor(f"{name}.weight", (op["rows"], op["width"]), op["dtype"])
    w.emit("Gather", [table, *inputs], name, axis=0)


def _cast(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Cast", inputs, name, to=element_number(op["dtype"]))


def _reduce(kind: str) -> Emit:
    def emit(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
        axes = op["axes"] or tuple(range(len(w.graph.shapes[operands[0]])))
        if w.opset >= (13 if kind == "ReduceSum" else 18):
            given = [*inputs, w.constant(f"{name}.axes", np.array(axes, np.int64))]
            w.emit(kind, given, name, keepdims=int(op["keep"]))
        else:
            w.emit(kind, inputs, name, axes=axes, keepdims=int(op["keep"]))

    return emit


def _arg(kind: str) -> Emit:
    def emit(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
        w.emit(kind, inputs, name, axis=op["axes"][0], keepdims=int(op["keep"]))

    return emit


def _const(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    # ConstantOfShape keeps a large constant out of the file.
    fill = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0])
    w.emit("ConstantOfShape", [w.constant(f"{name}.shape", np.array(op["shape"], np.int64))], name, value=fill)


def _weight(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.rename(name, w.tensor(f"{name}.weight", op["shape"], op["dtype"]))


def _value(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.constant(name, leaf_tensor(op), op["dtype"])


def _item(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.rename(name, f"{inputs[0]}.{op['index']}")


_JOINS = {
    **{"add": ("Add", "Sum"), "mul": ("Mul", None), "min": ("Min", "Min"), "max": ("Max", "Max")},
    **{"sub": ("Sub", None), "div": ("Div", None), "pow": ("Pow", None), "mod": ("Mod", None)},
    **{"equal": ("Equal", None), "greater": ("Greater", None), "less": ("Less", None), "xor": ("Xor", None)},
    **{"greaterequal": ("GreaterOrEqual", None), "lessequal": ("LessOrEqual", None), "and": ("And", None)},
    **{"or": ("Or", None), "where": ("Where", "Where"), "matmul": ("MatMul", None)},
}
_UNARY = {
    **{"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softplus": "Softplus", "softsign": "Softsign"},
    **{"selu": "Selu", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "reciprocal": "Reciprocal", "abs": "Abs"},
    **{
        "neg": "Neg",
        "rounddown": "Floor",
        "roundup": "Ceil",
        "round": "Round",
        "sign": "Sign",
        "erf": "Erf",
        "sin": "Sin",
    },
    **{"cos": "Cos", "not": "Not", "identity": "Identity", "dropout": "Dropout", "after": "Identity"},
    **{"flatten": "Flatten", "literal": "Identity"},
}
_REDUCTIONS = {
    **{"mean": "ReduceMean", "sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd"},
    **{"l1": "ReduceL1", "l2": "ReduceL2", "sumsquare": "ReduceSumSquare", "logsum": "ReduceLogSum"},
    **{"logsumexp": "ReduceLogSumExp"},
}

EMIT_TENSOR: dict[str, Emit] = {
    **{word: _join(*kinds) for word, kinds in _JOINS.items()},
    **{word: _unary(kind) for word, kind in _UNARY.items()},
    **{word: _reduce(kind) for word, kind in _REDUCTIONS.items()},
    "relu6": _relu6,
    "clip": _clip,
    "zeros": _zeros,
    "blank": _zeros,
    "silu": _silu,
    "hardsigmoid": _hard_sigmoid,
    "hardswish": _hard_swish,
    "mish": _mish,
    "gelu": _gelu,
    "leakyrelu": _leaky_relu,
    "elu": _elu,
    "concat": _concat,
    "slice": _slice,
    "reshape": _reshape,
    "expand": _expand,
    "transpose": _transpose,
    "gather": _gather,
    "embedding": _embedding,
    "cast": _cast,
    "argmax": _arg("ArgMax"),
    "argmin": _arg("ArgMin"),
    "const": _const,
    "weight": _weight,
    "value": _value,
    "item": _item,
}
"""How to write each operator of this family."""

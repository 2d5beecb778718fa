"""Operators on feature maps, linear layers, and normalisation a channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from nasrlm.graph.ops import Op, absolute_width, group_count

if TYPE_CHECKING:
    from nasrlm.graph.onnx_writer import Writer

Emit = Callable[["Writer", Op, str, list[str], tuple[int, ...]], None]


def _conv(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    channels = w.graph.shapes[operands[0]][1]
    groups, out = group_count(op, channels), absolute_width(channels, op["width"])
    shape = (out, channels // groups, *op["kernel"])
    weights = [w.kernel(name, shape, int(np.prod(shape[1:])), operands[0])]
    if op["bias"]:
        weights.append(w.bias(name, out, operands[0]))
    w.emit("Conv", [*inputs, *weights], name, **_window(op), dilations=op["dilation"], group=groups)


def _deconv(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    channels = w.graph.shapes[operands[0]][1]
    groups, out = group_count(op, channels), absolute_width(channels, op["width"])
    weights = [w.kernel(name, (channels, out // groups, *op["kernel"]), channels, operands[0])]
    if op["bias"]:
        weights.append(w.bias(name, out, operands[0]))
    more = {"dilations": op["dilation"], "group": groups, "output_padding": op["output_padding"]}
    w.emit("ConvTranspose", [*inputs, *weights], name, **_window(op), **more)


def _window(op: Op) -> dict[str, Any]:
    return {"kernel_shape": op["kernel"], "strides": op["stride"], "pads": op["padding"]}


def _max_pool(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("MaxPool", inputs, name, **_window(op), ceil_mode=int(op["ceil"]), dilations=op["dilation"])


def _avg_pool(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    more = {"ceil_mode": int(op["ceil"]), "count_include_pad": int(op["include_padding"])}
    w.emit("AveragePool", inputs, name, **_window(op), **more)


def _linear(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    x = operands[0]
    shape = w.graph.shapes[x]
    out = absolute_width(shape[-1], op["width"])
    if len(shape) == 2:
        bias = [w.bias(name, out, x)] if op["bias"] else []
        w.emit("Gemm", [*inputs, w.kernel(name, (out, shape[-1]), shape[-1], x), *bias], name, transB=1)
        return
    product = f"{name}.product" if op["bias"] else name
    w.emit("MatMul", [*inputs, w.kernel(name, (shape[-1], out), shape[-1], x, turned=True)], product)
    if op["bias"]:
        w.emit("Add", [product, w.bias(name, out, x)], name)


def _batch_norm(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    size = w.graph.shapes[operands[0]][1]
    starts = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
    w.emit(
        "BatchNormalization",
        [*inputs, *(w.filled(f"{name}.{k}", (size,), v, operands[0]) for k, v in starts.items())],
        name,
    )


def _instance_norm(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    size = w.graph.shapes[operands[0]][1]
    if op["affine"]:
        weights = [
            w.near(f"{name}.weight", (size,), 1.0, operands[0]),
            w.near(f"{name}.bias", (size,), 0.0, operands[0]),
        ]
    else:
        weights = _plain(w, name, size, operands[0])
    w.emit("InstanceNormalization", [*inputs, *weights], name, epsilon=op["epsilon"])


def _plain(w: Writer, name: str, size: int, operand: int) -> list[str]:
    ones, zeros = np.ones(size, w.dtype(operand)), np.zeros(size, w.dtype(operand))
    return [w.constant(f"{name}.one", ones), w.constant(f"{name}.zero", zeros)]


def _group_norm(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    shape, groups = w.graph.shapes[operands[0]], op["groups"]
    apart = w.emit("Reshape", [*inputs, w.dims(f"{name}.groups", (shape[0], groups, -1))], f"{name}.apart")
    normed = w.emit(
        "InstanceNormalization", [apart, *_plain(w, name, groups, operands[0])], f"{name}.normed", epsilon=op["epsilon"]
    )
    back = w.emit("Reshape", [normed, w.dims(f"{name}.shape", shape)], f"{name}.back" if op["affine"] else name)
    if op["affine"]:
        channel = (shape[1], *(1,) * (len(shape) - 2))
        scaled = w.emit("Mul", [back, w.near(f"{name}.weight", channel, 1.0, operands[0])], f"{name}.scaled")
        w.emit("Add", [scaled, w.near(f"{name}.bias", channel, 0.0, operands[0])], name)


def _p_relu(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    shape = w.graph.shapes[operands[0]]
    slope = (1,) if op["shared"] else (shape[1], *(1,) * (len(shape) - 2))
    w.emit("PRelu", [*inputs, w.filled(f"{name}.weight", slope, 0.25, operands[0])], name)


def _pad(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    amounts, rank = list(op["padding"]), len(w.graph.shapes[operands[0]])
    half = len(amounts) // 2
    if half != rank:
        amounts = [0, 0, *amounts[:half], 0, 0, *amounts[half:]]
    given = [*inputs, w.constant(f"{name}.amounts", np.array(amounts, np.int64))]
    if op["value"]:
        given.append(w.number(name, op["value"], operands[0]))
    w.need_opset(19 if op["mode"] == "wrap" else 0)
    w.emit("Pad", given, name, mode=op["mode"])


_MODES = {"nearest": "nearest", "lin": "linear", "cubic": "cubic"}
_COORDINATES = {
    "half": "half_pixel",
    "corners": "align_corners",
    "asymmetric": "asymmetric",
    "torch": "pytorch_half_pixel",
    "half_symmetric": "half_pixel_symmetric",
}


def _resize(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    shape = w.graph.shapes[operands[0]]
    coordinates, rounding = _COORDINATES[op["coordinates"]], op["rounding"]
    if op["mode"] == "nearest" and rounding == "plain":
        coordinates, rounding = "asymmetric", "floor"
    more = {"nearest_mode": rounding} if op["mode"] == "nearest" else {}
    w.need_opset(19 if op["coordinates"] == "half_symmetric" else 0)
    if op["size"]:
        given = [*inputs, "", "", w.dims(f"{name}.sizes", (*shape[:2], *op["size"]))]
    else:
        given = [*inputs, "", w.constant(f"{name}.scales", np.array([1, 1, *op["scale"]], np.float32))]
    w.emit("Resize", given, name, mode=_MODES[op["mode"]], coordinate_transformation_mode=coordinates, **more)


def _shuffle(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    n, c, *size = w.graph.shapes[operands[0]]
    groups = op["groups"]
    split, merge = (n, groups, c // groups, *size), (n, c, *size)
    apart = w.emit("Reshape", [*inputs, w.dims(f"{name}.split", split)], f"{name}.apart")
    order = [0, 2, 1, *range(3, 3 + len(size))]
    turned = w.emit("Transpose", [apart], f"{name}.turned", perm=order)
    w.emit("Reshape", [turned, w.dims(f"{name}.merge", merge)], name)


def _named(kind: str, **attributes: str) -> Emit:
    def emit(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
        w.emit(kind, inputs, name, **{key: op[field] for key, field in attributes.items()})

    return emit


def _depth_to_space(w: Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("DepthToSpace", inputs, name, blocksize=op["block"], mode="CRD" if op["crd"] else "DCR")


EMIT_IMAGE: dict[str, Emit] = {
    "conv": _conv,
    "deconv": _deconv,
    "linear": _linear,
    "bn": _batch_norm,
    "instancenorm": _instance_norm,
    "groupnorm": _group_norm,
    "prelu": _p_relu,
    "maxpool": _max_pool,
    "avgpool": _avg_pool,
    "gap": _named("GlobalAveragePool"),
    "gmp": _named("GlobalMaxPool"),
    "pad": _pad,
    "resize": _resize,
    "depth2space": _depth_to_space,
    "space2depth": _named("SpaceToDepth", blocksize="block"),
    "shuffle": _shuffle,
    "softmax": _named("Softmax", axis="axis"),
    "logsoftmax": _named("LogSoftmax", axis="axis"),
}
"""How to write each operator of this family."""

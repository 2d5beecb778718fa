"""Graph to ONNX: checked, deterministic, with or without weights."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.random import Generator, default_rng
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference

from nasrlm.errors import ExportError
from nasrlm.graph.graph import Graph
from nasrlm.graph.ops import Op, Shape, absolute_width, group_count
from nasrlm.graph.sources import as_graph

OPSET = 17
_OPSETS = range(13, 22)
_IR_VERSION = 8
_INLINE_BYTES = 512 * 2**20
"""Files with more weights than this keep them in a file of their own beside the model (protobuf ends at 2 GiB)."""


def to_onnx(
    x: Any,
    path: str | PathLike[str] | None = None,
    *,
    weights: str | None = None,
    seed: int = 0,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """ONNX model of a network; it passes onnx.checker and carries every shape.

    Args:
        x: anything `as_graph` takes.
        path: also write the file (parents are made); weights over 512 MiB go to `<name>.data` beside it.
        weights: None leaves weights out: they are declared as further graph inputs. "random" draws them (He et al.
            2015 scale, BatchNorm at identity) from `seed`, so that the model runs.
        seed: of the random weights; the same seed gives the same bytes.
        opset: 13 to 21.

    Raises:
        ExportError: bad argument, or a file that cannot be written.

    Example:
        >>> from nasrlm.graph import GraphBuilder
        >>> b = GraphBuilder()
        >>> b.output(b.conv(b.input((3, 8, 8)), 4, kernel=3))
        >>> [i.name for i in to_onnx(b.build()).graph.input]
        ['input', 'conv_1.weight']
    """
    if weights not in (None, "random"):
        raise ExportError(f"weights={weights!r} is unknown. Allowed: None, 'random'.")
    if opset not in _OPSETS:
        raise ExportError(f"opset {opset} is not written. Allowed: {_OPSETS.start} to {_OPSETS.stop - 1}.")
    model = _Writer(as_graph(x), default_rng(seed) if weights else None, opset).model()
    if path is not None:
        _save(model, Path(path))
    return model


def _save(model: onnx.ModelProto, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if model.ByteSize() < _INLINE_BYTES:
            onnx.save(model, path)
        else:
            (path.parent / f"{path.name}.data").unlink(missing_ok=True)
            onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data")
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}. Choose a folder that you may write to.") from error


class _Writer:
    def __init__(self, graph: Graph, rng: Generator | None, opset: int) -> None:
        self.graph, self.rng, self.opset = graph, rng, opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.ValueInfoProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.names: list[str] = []

    def model(self) -> onnx.ModelProto:
        graph = self.graph
        several = len(graph.inputs) > 1
        for i, op, operands in graph.nodes():
            name = f"{op.name}_{i}" if op.name != "in" else f"input_{i}" if several else "input"
            self.names.append(name)
            if op.name != "in":
                _EMIT.get(op.name, _plain)(self, op, name, [self.names[x] for x in operands], operands)
        inputs = [self._info(i) for i in graph.inputs]
        outputs = self._outputs()
        made = helper.make_graph(self.nodes, "nasrlm", [*inputs, *self.weights], outputs, self.initializers)
        model = helper.make_model(
            made,
            opset_imports=[helper.make_opsetid("", self.opset)],
            producer_name="nasrlm",
            ir_version=_IR_VERSION,
        )
        checker.check_model(model, full_check=model.ByteSize() < _INLINE_BYTES)
        return shape_inference.infer_shapes(model, strict_mode=True) if model.ByteSize() < _INLINE_BYTES else model

    def _outputs(self) -> list[onnx.ValueInfoProto]:
        """Outputs named output, output_1 ...: Identity keeps an output that is also an input or used twice valid."""
        infos = []
        for position, i in enumerate(self.graph.outputs):
            name = "output" if len(self.graph.outputs) == 1 else f"output_{position}"
            self.emit("Identity", [self.names[i]], name)
            infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, self.graph.shapes[i]))
        return infos

    def _info(self, i: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(self.names[i], TensorProto.FLOAT, self.graph.shapes[i])

    def emit(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def weight(self, name: str, shape: Shape, draw: Callable[[Generator], np.ndarray]) -> str:
        """A trainable or statistical tensor: an initializer when weights are drawn, else a graph input."""
        if self.rng is None:
            self.weights.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        else:
            self.initializers.append(numpy_helper.from_array(draw(self.rng).astype(np.float32), name))
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def kernel(self, name: str, shape: Shape, fan_in: int) -> str:
        return self.weight(f"{name}.weight", shape, lambda rng: rng.normal(0, (2 / fan_in) ** 0.5, shape))

    def bias(self, name: str, size: int) -> str:
        return self.weight(f"{name}.bias", (size,), lambda rng: rng.normal(0, 0.01, size))


_PLAIN = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "hardswish": "HardSwish",
    "gap": "GlobalAveragePool",
    "gmp": "GlobalMaxPool",
    "flatten": "Flatten",
    "identity": "Identity",
    "dropout": "Dropout",
    "concat": "Concat",
    "softmax": "Softmax",
    "leakyrelu": "LeakyRelu",
    "hardsigmoid": "HardSigmoid",
}

_ATTRIBUTES: dict[str, Callable[[Op], dict[str, Any]]] = {
    "concat": lambda op: {"axis": op["axis"]},
    "softmax": lambda op: {"axis": op["axis"]},
    "leakyrelu": lambda op: {"alpha": op["slope"]},
    "hardsigmoid": lambda op: {"alpha": 1 / 6, "beta": 0.5},
}


def _plain(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    if op.name == "hardswish" and w.opset < 14:
        gate = w.emit("HardSigmoid", inputs, f"{name}.gate", alpha=1 / 6, beta=0.5)
        w.emit("Mul", [inputs[0], gate], name)
        return
    attributes = _ATTRIBUTES.get(op.name)
    w.emit(_PLAIN[op.name], inputs, name, **(attributes(op) if attributes else {}))


def _join(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    if op.name == "add":
        w.emit("Add" if len(inputs) == 2 else "Sum", inputs, name)
        return
    product = inputs[0]
    for i, factor in enumerate(inputs[1:], 2):
        product = w.emit("Mul", [product, factor], name if i == len(inputs) else f"{name}.{i}")


def _conv(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    channels = w.graph.shapes[operands[0]][1]
    groups, out = group_count(op, channels), absolute_width(channels, op["width"])
    shape = (out, channels // groups, *op["kernel"])
    inputs = [*inputs, w.kernel(name, shape, int(np.prod(shape[1:])))]
    if op["bias"]:
        inputs.append(w.bias(name, out))
    w.emit("Conv", inputs, name, **_window(op), dilations=op["dilation"], group=groups)


def _window(op: Op) -> dict[str, Any]:
    return {"kernel_shape": op["kernel"], "strides": op["stride"], "pads": op["padding"]}


def _pool(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    extra = {} if op.name == "maxpool" else {"count_include_pad": int(op["include_padding"])}
    kind = "MaxPool" if op.name == "maxpool" else "AveragePool"
    w.emit(kind, inputs, name, **_window(op), ceil_mode=int(op["ceil"]), **extra)


def _linear(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    shape = w.graph.shapes[operands[0]]
    out = absolute_width(shape[-1], op["width"])
    if len(shape) == 2:
        bias = [w.bias(name, out)] if op["bias"] else []
        w.emit("Gemm", [*inputs, w.kernel(name, (out, shape[-1]), shape[-1]), *bias], name, transB=1)
        return
    product = f"{name}.product" if op["bias"] else name
    w.emit("MatMul", [*inputs, w.kernel(name, (shape[-1], out), shape[-1])], product)
    if op["bias"]:
        w.emit("Add", [product, w.bias(name, out)], name)


def _batch_norm(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    size = w.graph.shapes[operands[0]][1]
    starts = {"scale": 1.0, "shift": 0.0, "mean": 0.0, "variance": 1.0}
    tensors = [w.weight(f"{name}.{k}", (size,), lambda _, v=v: np.full(size, v)) for k, v in starts.items()]  # type: ignore[misc]
    w.emit("BatchNormalization", [*inputs, *tensors], name)


def _prelu(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    shape = w.graph.shapes[operands[0]]
    slope = (shape[1], *(1,) * (len(shape) - 2))
    w.emit("PRelu", [*inputs, w.weight(f"{name}.slope", slope, lambda _: np.full(slope, 0.25))], name)


def _relu6(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    bounds = [w.constant(f"{name}.{k}", np.float32(v)) for k, v in (("low", 0), ("high", 6))]  # type: ignore[arg-type]
    w.emit("Clip", [*inputs, *bounds], name)


def _zeros(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Mul", [*inputs, w.constant(f"{name}.zero", np.float32(0))], name)  # type: ignore[arg-type]


def _after(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Identity", inputs[:1], name)


def _silu(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    w.emit("Mul", [inputs[0], w.emit("Sigmoid", inputs, f"{name}.gate")], name)


def _shuffle(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    n, c, *size = w.graph.shapes[operands[0]]
    groups = op["groups"]
    split = w.constant(f"{name}.split", np.array([n, groups, c // groups, *size], np.int64))
    merge = w.constant(f"{name}.merge", np.array([n, c, *size], np.int64))
    apart = w.emit("Reshape", [*inputs, split], f"{name}.apart")
    order = [0, 2, 1, *range(3, 3 + len(size))]
    w.emit("Reshape", [w.emit("Transpose", [apart], f"{name}.turned", perm=order), merge], name)


def _slice(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    bounds = {"start": op["start"], "stop": op["stop"], "axis": op["axis"]}
    w.emit(
        "Slice",
        [*inputs, *(w.constant(f"{name}.{k}", np.array([v], np.int64)) for k, v in bounds.items())],
        name,
    )


def _pad(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    half = len(op["padding"]) // 2
    amounts = [0, 0, *op["padding"][:half], 0, 0, *op["padding"][half:]]
    w.emit("Pad", [*inputs, w.constant(f"{name}.amounts", np.array(amounts, np.int64))], name)


def _const(w: _Writer, op: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    # ConstantOfShape keeps a large constant out of the file.
    shape = w.constant(f"{name}.shape", np.array(op["shape"], np.int64))
    w.emit("ConstantOfShape", [shape], name)


_EMIT: dict[str, Callable[[_Writer, Op, str, list[str], tuple[int, ...]], None]] = {
    "add": _join,
    "mul": _join,
    "conv": _conv,
    "linear": _linear,
    "bn": _batch_norm,
    "prelu": _prelu,
    "maxpool": _pool,
    "avgpool": _pool,
    "relu6": _relu6,
    "zeros": _zeros,
    "blank": _zeros,
    "after": _after,
    "silu": _silu,
    "shuffle": _shuffle,
    "slice": _slice,
    "pad": _pad,
    "const": _const,
}

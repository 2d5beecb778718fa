"""Graph to ONNX: checked, deterministic, with or without weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.random import Generator, default_rng
from onnx import checker, helper, numpy_helper, shape_inference

from nasrlm.errors import ExportError, nearest
from nasrlm.graph.dims import dim_word, is_dynamic
from nasrlm.graph.graph import Graph
from nasrlm.graph.onnx_emit.image import EMIT_IMAGE, Emit
from nasrlm.graph.onnx_emit.sequence import EMIT_SEQUENCE
from nasrlm.graph.onnx_emit.tensor import EMIT_TENSOR
from nasrlm.graph.onnx_generic import element_number, numpy_type
from nasrlm.graph.onnx_generic import write as write_generic
from nasrlm.graph.onnx_reader import WEIGHTS_KEY
from nasrlm.graph.ops import Shape
from nasrlm.graph.sources import as_graph

OPSET = 17
_OPSETS = range(13, 22)
_IR_VERSION = 8
_INLINE_BYTES = 512 * 2**20
"""Files with more weights than this keep them in a file of their own beside the model (protobuf ends at 2 GiB)."""

_FLOAT = np.dtype(np.float32)
EMIT: dict[str, Emit] = {**EMIT_IMAGE, **EMIT_TENSOR, **EMIT_SEQUENCE, "onnx": write_generic}
"""How to write each operator."""


def to_onnx(
    x: Any,
    path: str | PathLike[str] | None = None,
    *,
    weights: str | Mapping[str, Any] | None = None,
    seed: int = 0,
    opset: int = OPSET,
) -> onnx.ModelProto:
    """ONNX model of a network; it passes onnx.checker and carries every shape.

    Args:
        x: anything `as_graph` takes.
        path: also write the file (parents are made); weights over 512 MiB go to `<name>.data` beside it.
        weights: None leaves weights out: they are declared as further graph inputs. "random" draws them (He et al.
            2015 scale, norms near identity) from `seed`, so that the model runs. A mapping gives them by name, as
            arrays or torch tensors, such as the `state_dict()` of `to_torch`.
        seed: of the random weights; the same seed gives the same bytes.
        opset: 13 to 21; raised where an operator needs a later one.

    Raises:
        ExportError: bad argument, a weight that is missing or has another shape, or a file that cannot be written.

    Example:
        >>> from nasrlm.graph import GraphBuilder
        >>> b = GraphBuilder()
        >>> b.output(b.conv(b.input((3, 8, 8)), 4, kernel=3))
        >>> [i.name for i in to_onnx(b.build()).graph.input]
        ['input', 'conv_1.weight']
    """
    if not (weights is None or weights == "random" or isinstance(weights, Mapping)):
        raise ExportError(f"weights={weights!r} is unknown. Allowed: None, 'random', or a mapping from name to array.")
    if opset not in _OPSETS:
        raise ExportError(f"opset {opset} is not written. Allowed: {_OPSETS.start} to {_OPSETS.stop - 1}.")
    model = _model(as_graph(x), weights, seed, opset)
    if path is not None:
        _save(model, Path(path))
    return model


def _model(graph: Graph, weights: str | Mapping[str, Any] | None, seed: int, opset: int) -> onnx.ModelProto:
    writer = Writer(graph, _source(weights, seed), opset)
    model = writer.model()
    if writer.needed > opset:  # an operator asked for a later one, which may change how others are written
        writer = Writer(graph, _source(weights, seed), writer.needed)
        model = writer.model()
    small = model.ByteSize() < _INLINE_BYTES
    try:
        checker.check_model(model, full_check=small and not writer.domains)
        return shape_inference.infer_shapes(model, strict_mode=not writer.domains) if small else model
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise ExportError(f"the network is no valid ONNX model: {str(error)[:300]}") from error


def _source(weights: str | Mapping[str, Any] | None, seed: int) -> Source:
    if isinstance(weights, Mapping):
        return weights
    return default_rng(seed) if weights else None


Source = Generator | Mapping[str, Any] | None


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


class Writer:
    """Writes a graph node by node.

    Attributes:
        graph: what is written.
        opset: version of ONNX's operators.
        nodes: what was written so far.
        weights: weights that are declared as inputs.
        initializers: constants, and weights where they are given.
        needed: the least opset that all operators have.
        domains: foreign ONNX domains.
        infos: types that ONNX cannot infer.
    """

    def __init__(self, graph: Graph, source: Source, opset: int) -> None:
        self.graph, self.source, self.opset = graph, source, opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.ValueInfoProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.needed = 0
        self.domains: set[str] = set()
        self.infos: list[onnx.ValueInfoProto] = []
        self._names: list[str] = []
        self._aliases: dict[str, str] = {}
        self._constants = 0

    def model(self) -> onnx.ModelProto:
        """The model."""
        several = len(self.graph.inputs) > 1
        inputs = self._write("", {i: f"input_{i}" if several else "input" for i in self.graph.inputs})
        outputs = self._outputs("output")
        made = helper.make_graph(
            self.nodes, "nasrlm", [*inputs, *self.weights], outputs, self.initializers, value_info=self.infos
        )
        opsets = [helper.make_opsetid("", max(self.opset, self.needed))]
        opsets += [helper.make_opsetid(domain, 1) for domain in sorted(self.domains)]
        model = helper.make_model(made, opset_imports=opsets, producer_name="nasrlm", ir_version=self._ir_version())
        if self.weights:
            helper.set_model_props(model, {WEIGHTS_KEY: "inputs"})
        return model

    def _ir_version(self) -> int:
        return _IR_VERSION if max(self.opset, self.needed) < 21 else 10

    def _write(self, prefix: str, inputs: Mapping[int, str]) -> list[onnx.ValueInfoProto]:
        """Emit all nodes; the declared inputs are returned."""
        for i, op, operands in self.graph.nodes():
            name = inputs.get(i, f"{prefix}{op.name}_{i}")
            self._names.append(name)
            if op.name != "in":
                EMIT[op.name](self, op, name, [self._name(x) for x in operands], operands)
        return [self._info(self._names[i], i) for i in self.graph.inputs]

    def body(self, graph: Graph, name: str, captured: list[str]) -> onnx.GraphProto:
        """A sub-graph; its last inputs are values from outside."""
        inner = Writer(graph, self.source, self.opset)
        own = len(graph.inputs) - len(captured)
        names = [f"{name}.input_{k}" for k in range(own)] + captured
        inputs = inner._write(f"{name}.", dict(zip(graph.inputs, names, strict=True)))
        outputs = inner._outputs(f"{name}.output")
        self.weights += inner.weights
        self.initializers += inner.initializers
        self.need_opset(inner.needed)
        self.domains |= inner.domains
        return helper.make_graph(inner.nodes, name, inputs[:own], outputs, value_info=inner.infos)

    def _name(self, i: int) -> str:
        name = self._names[i]
        return self._aliases.get(name, name)

    def rename(self, name: str, other: str) -> None:
        """What stands as `name` in the graph is `other` in the model."""
        self._aliases[name] = self._aliases.get(other, other)

    def _outputs(self, word: str) -> list[onnx.ValueInfoProto]:
        """Outputs named output, output_1 ...: Identity keeps an output that is also an input or used twice valid."""
        infos = []
        for position, i in enumerate(self.graph.outputs):
            name = word if len(self.graph.outputs) == 1 else f"{word}_{position}"
            self.emit("Identity", [self._name(i)], name)
            infos.append(self._info(name, i))
        return infos

    def _info(self, name: str, i: int) -> onnx.ValueInfoProto:
        dims = [d if isinstance(d, int) else str(d).replace(" ", "") for d in self.graph.shapes[i]]
        return helper.make_tensor_value_info(name, element_number(self.graph.dtypes[i]), dims)

    def dtype(self, i: int) -> Any:
        """numpy's type of the weights beside a value: its own if it is a floating-point one."""
        dtype = self.graph.dtypes[i]
        return np.dtype(numpy_type(dtype if "float" in dtype else "float32"))

    def need_opset(self, opset: int) -> None:
        """Say that an operator needs at least this opset."""
        self.needed = max(self.needed, opset)

    def emit(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Write a node with one value, whose name is returned."""
        self.emit_several(kind, inputs, [output], **attributes)
        return output

    def emit_several(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Write a node."""
        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), name=outputs[0], **attributes))

    def constant(self, name: str, value: Any, dtype: str | None = None) -> str:
        """A known tensor."""
        array = np.asarray(value)
        if dtype == "bfloat16":
            array = array.astype(numpy_type(dtype))
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def number(self, name: str, value: float, operand: int) -> str:
        """A known number of the type of a value."""
        self._constants += 1
        dtype = np.dtype(numpy_type(self.graph.dtypes[operand]))
        return self.constant(f"{name}.number_{self._constants}", np.array(value).astype(dtype))

    def dims(self, name: str, shape: Shape) -> str:
        """A shape as a tensor; dynamic dimensions are taken from the network's inputs."""
        if not is_dynamic(shape):
            return self.constant(name, np.array(shape, np.int64))
        parts = [self._dim(f"{name}.{k}", d) for k, d in enumerate(shape)]
        return self.emit("Concat", parts, name, axis=0)

    def _dim(self, name: str, dim: Any) -> str:
        if isinstance(dim, int):
            return self.constant(name, np.array([dim], np.int64))
        dim_word(dim)  # refuses what is no multiple of a dynamic dimension
        factor, symbol = dim.as_coeff_Mul()
        for i in self.graph.inputs:
            if symbol in self.graph.shapes[i]:
                axis = self.graph.shapes[i].index(symbol)
                shape = self.emit("Shape", [self._name(i)], f"{name}.shape")
                index = self.constant(f"{name}.axis", np.array([axis], np.int64))
                size = self.emit("Gather", [shape, index], f"{name}.size")
                if factor == 1:
                    return size
                return self.emit(
                    "Mul", [size, self.constant(f"{name}.factor", np.array([int(factor)], np.int64))], name
                )
        raise ExportError(f"the dynamic dimension {dim} is the size of no input")

    def tensor(self, name: str, shape: Shape, dtype: str) -> str:
        """A learned tensor."""
        return self.weight(name, shape, lambda rng: rng.normal(0, 0.1, shape), np.dtype(numpy_type(dtype)))

    def kernel(self, name: str, shape: Shape, fan_in: int, operand: int, *, turned: bool = False) -> str:
        """A learned matrix or kernel; a turned one is given the other way round."""
        draw = (2 / max(fan_in, 1)) ** 0.5
        if turned and isinstance(self.source, Mapping):
            array = self._given(f"{name}.weight", shape[::-1]).T
            return self.weight(f"{name}.weight", shape, lambda _: array, self.dtype(operand), array=array)
        return self.weight(f"{name}.weight", shape, lambda rng: rng.normal(0, draw, shape), self.dtype(operand))

    def bias(self, name: str, size: int, operand: int) -> str:
        """A learned vector."""
        return self.weight(f"{name}.bias", (size,), lambda rng: rng.normal(0, 0.01, size), self.dtype(operand))

    def filled(self, name: str, shape: Shape, value: float, operand: int) -> str:
        """A learned tensor that starts as one number."""
        return self.weight(name, shape, lambda _: np.full(shape, value), self.dtype(operand))

    def near(self, name: str, shape: Shape, value: float, operand: int) -> str:
        """A learned tensor that starts near one number: exactly at it, a scale or shift would be none."""
        return self.weight(name, shape, lambda rng: value + rng.normal(0, 0.05, shape), self.dtype(operand))

    def weight(
        self,
        name: str,
        shape: Shape,
        draw: Callable[[Generator], np.ndarray],
        dtype: Any = _FLOAT,
        array: np.ndarray | None = None,
    ) -> str:
        """A trainable or statistical tensor: an initializer when weights are given or drawn, else a graph input."""
        if self.source is None:
            kind = int(helper.np_dtype_to_tensor_dtype(dtype))
            self.weights.append(helper.make_tensor_value_info(name, kind, shape))
            return name
        if array is None:
            array = self._given(name, shape) if isinstance(self.source, Mapping) else draw(self.source)
        self.initializers.append(numpy_helper.from_array(np.asarray(array).astype(dtype), name))
        return name

    def _given(self, name: str, shape: Shape) -> np.ndarray:
        source = self.source if isinstance(self.source, Mapping) else {}
        if name not in source:
            close = ", ".join(nearest(name, list(source))) or "none is like it"
            raise ExportError(
                f"the weight {name!r} of shape {tuple(shape)} is not among those given. Nearest: {close}."
            )
        found = source[name]
        if hasattr(found, "detach"):
            found = found.detach().cpu()
            found = found.float() if str(found.dtype) == "torch.bfloat16" else found
        array = np.asarray(found)
        if [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
            raise ExportError(f"the weight {name!r} has the shape {array.shape}, the network needs {tuple(shape)}")
        return array.reshape(shape)

"""The same network for another batch size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, product
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from nasrlm.errors import DeviceError

if TYPE_CHECKING:
    import onnx

_FEW = 64  # entries of a tensor that may be a shape
_SHAPE_INPUT = {"Reshape": 1, "Resize": 3}
_STATES = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}


def with_batch_size(model: bytes, size: int) -> bytes:
    """A serialized ONNX model whose inputs take `size` examples at once instead of one.

    Every input that is not a weight must have 1, or nothing fixed, as its first dimension. Shapes that the network
    reshapes or resizes to, and that name a batch of one, are widened along; what it concatenates with the batch, such
    as a class token, is expanded, and so are the states that a recurrent layer starts from. Stated shapes behind the
    inputs are dropped, so that the runtime works them out anew. What cannot be followed stays (a batch inside a loop,
    or of an operator that ONNX does not know), and the runtime may then refuse to run it.

    Raises:
        DeviceError: not an ONNX model, or an input with another fixed first dimension.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load_model_from_string(model)
    except DecodeError as error:
        raise DeviceError(f"these {len(model)} bytes are no ONNX model: {error}.") from error
    weights = {initializer.name for initializer in proto.graph.initializer}
    widening = _Widening(proto, size)
    for value in proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in weights or not dims:
            continue
        if dims[0].dim_value > 1:
            raise DeviceError(
                f"the network's input {value.name!r} has the fixed batch size {dims[0].dim_value}, so it cannot "
                f"run with batch_size {size}. Set batch_size: {dims[0].dim_value}, or export it with one example."
            )
        dims[0].dim_value = 1
        widening.one.types[value.name] = onnx.TypeProto.FromString(value.type.SerializeToString())
        dims[0].dim_value = size
        widening.several.types[value.name] = value.type
    nodes = list(widening.nodes())
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    del proto.graph.value_info[:]
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto.SerializeToString()


class _Widening:
    """Types, and values of small tensors, for one example and for several, followed node by node.

    Where the types of a value differ is its batch.

    Attributes:
        one, several: what is known of the values, by name; the types of the inputs are to be given.
    """

    def __init__(self, proto: onnx.ModelProto, size: int) -> None:
        self.graph, self.size = proto.graph, size
        self.one, self.several = _Known(proto), _Known(proto)
        self.within: dict[str, int] = {}  # where a batch is merged into a dimension: its entries outside the batch
        self._made = 0

    def nodes(self) -> Iterator[onnx.NodeProto]:
        """The network's nodes, changed where they name a batch of one."""
        for node in list(self.graph.node):
            self.one.follow(node)
            for new in self._widened(node):
                self.several.follow(new)
                self._pass_on(new)
                yield new

    def _pass_on(self, node: onnx.NodeProto) -> None:
        """A dimension with a batch inside stays so through an operation that keeps its size."""
        for name, output in product(node.input, node.output):
            if name not in self.within:
                continue
            sizes = [self.one.dims(value)[axis] for value in (name, output) if (axis := self._batch(value)) is not None]
            if len(sizes) == 2 and sizes[0] == sizes[1]:
                self.within.setdefault(output, self.within[name])

    def _widened(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        batches = [self._batch(name) for name in node.input]
        for i, axis in self._fixed(node, batches):
            if batches[i] is None and self.one.dims(node.input[i])[axis : axis + 1] == [1]:
                expanded = self._expanded(node.input[i], axis)
                node.input[i] = expanded.output[0]
                yield expanded
        where = _SHAPE_INPUT.get(node.op_type, len(node.input))
        if where < len(node.input) and batches[0] is not None:
            shape = node.input[where]
            if self.one.says(shape) and self.one.says(shape) == self.several.says(shape):  # else computed from an input
                node.input[where] = self._widened_shape(node, shape, batches[0])
        yield node

    def _fixed(self, node: onnx.NodeProto, batches: list[int | None]) -> list[tuple[int, int]]:
        """Inputs that must have the batch which another input has, and its axis there."""
        known = [axis for axis in batches if axis is not None]
        if node.op_type == "Concat" and known:
            return [(i, known[0]) for i in range(len(batches))]
        return [(i, 1) for i in _STATES.get(node.op_type, ()) if known and i < len(batches) and node.input[i]]

    def _widened_shape(self, node: onnx.NodeProto, name: str, axis: int) -> str:
        """The name of a shape in which the dimension that holds the batch has grown; of the old one if none has to."""
        x, y = node.input[0], node.output[0]
        before, after = self.one.dims(x), self.one.dims(y)
        entries = self.one.says(name)
        if None in before or None in after or len(entries) != len(after):
            return name
        outside = [*accumulate(before, mul, initial=1)][axis] * self.within.get(x, 1)
        place = _place(outside, int(np.prod(before)) // outside, after)
        if place is None:
            return name
        k, inside = place
        if inside > 1:
            self.within[y] = inside
        entries[k] = after[k] * self.size
        return self._shape(entries)

    def _expanded(self, name: str, axis: int) -> onnx.NodeProto:
        from onnx import helper

        shape = self._shape([self.size if k == axis else 1 for k in range(len(self.one.dims(name)))])
        return helper.make_node("Expand", [name, shape], [f"{shape}.of"])

    def _shape(self, entries: list[int]) -> str:
        from onnx import numpy_helper

        self._made += 1
        tensor = numpy_helper.from_array(np.array(entries, np.int64), f"nasrlm.batch.{self._made}")
        self.graph.initializer.append(tensor)
        self.several.constant(tensor.name, tensor)
        return str(tensor.name)

    def _batch(self, name: str) -> int | None:
        """The axis of the batch; None where there is none, or it is not known."""
        one, several = self.one.dims(name), self.several.dims(name)
        differ = [k for k, (a, b) in enumerate(zip(one, several, strict=False)) if a != b]
        return differ[0] if len(one) == len(several) and len(differ) == 1 else None


def _place(outside: int, inside: int, shape: list[int]) -> tuple[int, int] | None:
    """Where a batch of one is in a new shape, by what it stands between: its axis, and what of that is outside of it.

    A dimension of its own comes first. Else it may have been merged with what is inside it (the batch before heads) or
    outside (the batch after positions, before a linear layer that keeps the last dimension whole).

    >>> _place(49, 32, [49, 1, 32]), _place(49, 32, [49, 4, 8]), _place(49, 32, [49, 32]), _place(7, 32, [49, 32])
    ((1, 1), (1, 1), (0, 49), None)
    """
    products = [*accumulate(shape, mul, initial=1)]
    begins = [k for k in range(len(shape)) if products[k] == outside]
    own = [k for k in begins if shape[k] == 1]
    ends = [k for k in range(len(shape)) if products[k + 1] == outside and shape[k] > 1]
    whole = [k for k in begins if shape[k] == inside]
    if not own and ends and (whole or not begins):
        return ends[0], shape[ends[0]]
    return next(((k, 1) for k in own or begins), None)


class _Known:
    """What is known of a network's values before it runs: types, and the entries of small whole-number tensors."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.opsets = list(proto.opset_import)
        self.versions = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in self.opsets}
        self.types: dict[str, onnx.TypeProto] = {}
        self.values: dict[str, np.ndarray] = {}
        for tensor in proto.graph.initializer:
            self.constant(tensor.name, tensor)

    def constant(self, name: str, tensor: onnx.TensorProto) -> None:
        from onnx import TensorProto, helper, numpy_helper

        self.types[name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        whole = tensor.data_type in (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
        if whole and np.prod(tensor.dims) <= _FEW and not tensor.external_data:
            self.values[name] = numpy_helper.to_array(tensor)

    def says(self, name: str) -> list[int]:
        """The entries of a shape; none where they are not known."""
        return [int(entry) for entry in self.values[name].reshape(-1)] if name in self.values else []

    def dims(self, name: str) -> list[Any]:
        """Sizes, None for one that is not known; empty where nothing is."""
        if name not in self.types or not self.types[name].tensor_type.HasField("shape"):
            return []
        return [dim.dim_value if dim.HasField("dim_value") else None for dim in self.types[name].tensor_type.shape.dim]

    def follow(self, node: onnx.NodeProto) -> None:
        """Adds what is known of a node's outputs."""
        from onnx import numpy_helper

        self.types |= self._inferred(node)
        for name, value in zip(node.output, self._computed(node), strict=False):
            if isinstance(value, np.ndarray | np.generic) and np.size(value) <= _FEW:
                self.constant(name, numpy_helper.from_array(np.asarray(value), name))

    def _inferred(self, node: onnx.NodeProto) -> dict[str, Any]:
        from onnx import defs, numpy_helper, shape_inference

        given = {name: self.types[name] for name in node.input if name in self.types}
        data = {name: numpy_helper.from_array(self.values[name], name) for name in node.input if name in self.values}
        try:
            schema = defs.get_schema(node.op_type, self.versions[node.domain], node.domain)
            return dict(shape_inference.infer_node_outputs(schema, node, given, data, opset_imports=self.opsets))
        except (KeyError, RuntimeError, defs.SchemaError, shape_inference.InferenceError):
            return {}

    def _computed(self, node: onnx.NodeProto) -> list[Any]:
        """A node's outputs, where it computes a shape from what is known."""
        from onnx.reference import ReferenceEvaluator

        if node.op_type == "Shape":
            dims = self.dims(node.input[0])
            bounds = {attribute.name: attribute.i for attribute in node.attribute}
            known = bool(dims) and None not in dims
            return [np.array(dims, np.int64)[bounds.get("start", 0) : bounds.get("end")]] if known else []
        given = {name: self.values.get(name) for name in node.input if name}
        if any(value is None for value in given.values()) or not (given or node.op_type == "Constant"):
            return []
        try:
            return list(ReferenceEvaluator(node).run(None, given))
        except Exception:  # whatever it is, the value is not known
            return []

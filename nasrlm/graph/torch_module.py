"""Graph to a trainable torch.nn.Module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from nasrlm.errors import ExportError, nearest
from nasrlm.graph.dims import shape_word
from nasrlm.graph.graph import Graph
from nasrlm.graph.onnx_generic import leaf_tensor
from nasrlm.graph.ops import Op, Shape
from nasrlm.graph.sources import as_graph
from nasrlm.graph.torch_functions import FUNCTIONS, Function, Sizes, dtype_of, sized
from nasrlm.graph.torch_layers import LAYERS

_KNOWN = {*FUNCTIONS, *LAYERS, "in", "value", "const", "reshape", "expand"}


def to_torch(x: Any, *, seed: int = 0, weights: Mapping[str, Any] | onnx.ModelProto | None = None) -> GraphModule:
    """Trainable module of a network, dead work included.

    Its outputs equal onnxruntime's on the same weights; `to_onnx(x, weights=module.state_dict())` writes them.

    Args:
        x: anything `as_graph` takes.
        seed: of the initial weights (torch's defaults for each layer); torch's own random state stays as it was.
        weights: in place of random ones, by name: a state dict of such a module, or a model that `to_onnx` made.

    Returns:
        A module whose `forward` takes the network's inputs and gives a tensor, or a tuple of several. The batch may
        have any size if the network keeps it in front.

    Raises:
        ExportError: an operator that torch has not, or weights that do not fit.

    Example:
        >>> from nasrlm.graph import GraphBuilder
        >>> b = GraphBuilder()
        >>> b.output(b.linear(b.flatten(b.global_avg_pool(b.conv(b.input((3, 8, 8)), 4, kernel=3))), 10))
        >>> module = to_torch(b.build())
        >>> module(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 10])
        >>> list(module.state_dict())
        ['conv_1.weight', 'linear_4.weight', 'linear_4.bias']
    """
    graph = as_graph(x)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = GraphModule(graph)
    if weights is not None:
        module.load(weights)
    return module


class GraphModule(nn.Module):
    """Runs a graph node by node; values are freed after their last use.

    Attributes:
        graph: the network.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        unknown = dict.fromkeys(
            f"'{op.text}'"
            for op, dtype in zip(graph.ops, graph.dtypes, strict=True)
            if op.name not in _KNOWN or "string" in dtype
        )
        if unknown:
            raise ExportError(
                f"torch cannot run {', '.join(unknown)}: nasrlm has no torch function for it, or it makes texts"
            )
        self.graph = graph
        self._steps: list[tuple[int, Function | None, tuple[int, ...]]] = []
        last = {i: i for i in range(len(graph))}  # what nobody uses is freed at once
        for i, op, operands in graph.nodes():
            if op.name != "in":
                self._steps.append((i, self._made(i, op, operands), operands))
            last |= dict.fromkeys(operands, i)
        last |= dict.fromkeys(graph.outputs, len(graph))
        self._freed: dict[int, list[int]] = {}
        for x, i in last.items():
            self._freed.setdefault(i, []).append(x)

    def _made(self, i: int, op: Op, operands: tuple[int, ...]) -> Function | None:
        shapes = [self.graph.shapes[x] for x in operands]
        if op.name in LAYERS:
            layer = LAYERS[op.name](op, *shapes[:1])
            self.add_module(f"{op.name}_{i}", layer.to(dtype_of(self._weight_dtype(op, operands))))
            return None
        if op.name in ("value", "const"):
            self.register_buffer(f"constant_{i}", _constant(op), persistent=False)
            return None
        if op.name in ("reshape", "expand"):
            return self._shaped(op, shapes[0])
        return FUNCTIONS[op.name](op)

    def _weight_dtype(self, op: Op, operands: tuple[int, ...]) -> str:
        if "dtype" in op.spec.index:
            return op["dtype"]
        dtype = self.graph.dtypes[operands[0]]
        return dtype if "float" in dtype else "float32"

    def _shaped(self, op: Op, x: Shape) -> Function:
        if op.name == "reshape":
            batched = bool(x) and op["shape"][:1] == x[:1]  # a batch of any size goes through
            return lambda y, sizes: y.reshape(
                [y.shape[0], *sized(op["shape"][1:], sizes)] if batched else sized(op["shape"], sizes)
            )
        return lambda x, sizes: x.expand(torch.broadcast_shapes(x.shape, tuple(sized(op["shape"], sizes))))

    def forward(self, *inputs: Tensor) -> Any:
        """The outputs for these inputs."""
        expected = self.graph.inputs
        if len(inputs) != len(expected):
            raise ExportError(f"the network takes {len(expected)} inputs, not {len(inputs)}")
        values: dict[int, Any] = dict(zip(expected, inputs, strict=True))
        sizes = self._sizes(inputs)
        for i, function, operands in self._steps:
            given = [values[x] for x in operands]
            values[i] = self._run(i, function, given, sizes)
            for x in self._freed.get(i, ()):
                del values[x]
        found = tuple(values[o] for o in self.graph.outputs)
        return found[0] if len(found) == 1 else found

    def _run(self, i: int, function: Function | None, given: list[Any], sizes: Sizes) -> Any:
        name = self.graph.ops[i].name
        if name in ("reshape", "expand"):
            assert function is not None
            return function(*given, sizes)
        if function is not None:
            return function(*given)
        if name in ("value", "const"):
            return getattr(self, f"constant_{i}")
        return self.get_submodule(f"{name}_{i}")(*given)

    def _sizes(self, inputs: tuple[Tensor, ...]) -> Sizes:
        """Dynamic dimensions of this call."""
        sizes: dict[Any, int] = {}
        for i, x in zip(self.graph.inputs, inputs, strict=True):
            shape = self.graph.shapes[i]
            if x.dim() != len(shape):
                raise ExportError(
                    f"input {i} of the network has {len(shape)} dimensions ({shape_word(shape)}), "
                    f"the tensor given has the shape {tuple(x.shape)}"
                )
            for described, size in zip(shape, x.shape, strict=True):
                if not isinstance(described, int) and sizes.setdefault(described, size) != size:
                    raise ExportError(f"the dynamic dimension {described} is both {sizes[described]} and {size}")
        return sizes

    def load(self, weights: Mapping[str, Any] | onnx.ModelProto) -> None:
        """Take weights by name.

        Raises:
            ExportError: one is missing, or has another shape (dimensions of one entry do not count).
        """
        turned = isinstance(weights, onnx.ModelProto)
        given: Mapping[str, Any] = _tensors(weights) if isinstance(weights, onnx.ModelProto) else weights
        if not isinstance(given, Mapping):
            raise ExportError(
                f"weights={given!r} are none. Allowed: None, a mapping from name to array, or an ONNX model."
            )
        state = {}
        for name, old in self.state_dict().items():
            if name.endswith("num_batches_tracked"):
                state[name] = old
                continue
            if name not in given:
                raise ExportError(_missing(name, old, given, turned))
            new = _as_tensor(name, given[name])
            if turned and self._is_product(name):
                new = new.T
            if _long(new) != _long(old):  # the number of entries is not enough: a turned matrix has the same
                raise ExportError(f"the weight {name!r} has the shape {tuple(new.shape)}, not {tuple(old.shape)}")
            state[name] = new.reshape(old.shape).to(old.dtype)
        self.load_state_dict(state)

    def _is_product(self, name: str) -> bool:
        """Whether to_onnx writes this weight of a linear layer as the second factor of a MatMul."""
        layer, _, kind = name.partition(".")
        i = int(layer.rpartition("_")[2])
        return layer.startswith("linear") and kind == "weight" and len(self.graph.shapes[i]) != 2


def _missing(name: str, old: Tensor, given: Mapping[str, Any], model: bool) -> str:
    text = f"the weight {name!r} of shape {tuple(old.shape)} was not given"
    if not given:
        return f"{text}: {'write the model with to_onnx(..., weights=...)' if model else 'the mapping is empty'}"
    return f"{text}. Nearest: {', '.join(nearest(name, list(given))) or 'none is like it'}."


def _as_tensor(name: str, given: Any) -> Tensor:
    try:
        return given.detach() if isinstance(given, Tensor) else torch.from_numpy(np.array(given))
    except (TypeError, ValueError) as error:
        raise ExportError(f"the weight {name!r} is no array of numbers but {type(given).__name__}") from error


def _long(x: Tensor) -> list[int]:
    return [n for n in x.shape if n != 1]


def _constant(op: Op) -> Tensor:
    if op.name == "const":
        return torch.zeros(op["shape"])
    dtype = dtype_of(op["dtype"])
    return torch.from_numpy(np.array(leaf_tensor(op))).to(dtype)


def _tensors(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}

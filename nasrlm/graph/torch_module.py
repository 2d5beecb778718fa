"""Graph to a trainable torch.nn.Module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from nasrlm.errors import ExportError
from nasrlm.graph.graph import Graph
from nasrlm.graph.onnx_generic import leaf_tensor
from nasrlm.graph.ops import Op, Shape
from nasrlm.graph.sources import as_graph
from nasrlm.graph.torch_functions import FUNCTIONS, Function, Sizes, sized
from nasrlm.graph.torch_layers import LAYERS


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
        self.graph = graph
        self._steps: list[tuple[int, Function | None, tuple[int, ...]]] = []
        last = {o: len(graph) for o in graph.outputs}
        for i, op, operands in graph.nodes():
            if op.name != "in":
                self._steps.append((i, self._made(i, op, operands), operands))
            for x in operands:
                last[x] = max(last.get(x, 0), i)
        self._freed: dict[int, list[int]] = {}
        for x, i in last.items():
            self._freed.setdefault(i, []).append(x)

    def _made(self, i: int, op: Op, operands: tuple[int, ...]) -> Function | None:
        shapes = [self.graph.shapes[x] for x in operands]
        if op.name in LAYERS:
            self.add_module(f"{op.name}_{i}", LAYERS[op.name](op, *shapes[:1]))
            return None
        if op.name in ("value", "const"):
            array = leaf_tensor(op) if op.name == "value" else np.zeros(op["shape"], np.float32)
            self.register_buffer(f"constant_{i}", torch.from_numpy(np.array(array)), persistent=False)
            return None
        if op.name in ("reshape", "expand"):
            return self._shaped(op, shapes[0])
        if op.name not in FUNCTIONS:
            raise ExportError(f"torch cannot run '{op.text}': nasrlm has no torch function for this operator")
        return FUNCTIONS[op.name](op)

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
            for described, size in zip(self.graph.shapes[i], x.shape, strict=True):
                if not isinstance(described, int):
                    sizes[described] = size
        return sizes

    def load(self, weights: Mapping[str, Any] | onnx.ModelProto) -> None:
        """Take weights by name.

        Raises:
            ExportError: one is missing, or has another shape.
        """
        turned = isinstance(weights, onnx.ModelProto)
        given: Mapping[str, Any] = _tensors(weights) if isinstance(weights, onnx.ModelProto) else weights
        state = {}
        for name, old in self.state_dict().items():
            if name.endswith("num_batches_tracked"):
                state[name] = old
                continue
            if name not in given:
                raise ExportError(f"the weight {name!r} of shape {tuple(old.shape)} was not given")
            new = torch.as_tensor(np.array(given[name]))
            if turned and self._is_product(name):
                new = new.T
            if new.numel() != old.numel():
                raise ExportError(f"the weight {name!r} has the shape {tuple(new.shape)}, not {tuple(old.shape)}")
            state[name] = new.reshape(old.shape).to(old.dtype)
        self.load_state_dict(state)

    def _is_product(self, name: str) -> bool:
        """Whether to_onnx writes this weight of a linear layer as the second factor of a MatMul."""
        layer, _, kind = name.partition(".")
        i = int(layer.rpartition("_")[2])
        return layer.startswith("linear") and kind == "weight" and len(self.graph.shapes[i]) != 2


def _tensors(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}

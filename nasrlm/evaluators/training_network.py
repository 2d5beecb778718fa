"""From an architecture to a module that trains: initial weights, normalisation, and what goes in and out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from nasrlm.errors import ExportError, NasrlmError, RunError
from nasrlm.evaluators.training_options import wrong
from nasrlm.graph import Graph, to_torch
from nasrlm.spaces import Architecture, SearchSpace

_TRIED = 8  # architectures of a space, until one can be built
_BATCH_NORMS = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


@dataclass(frozen=True)
class Form:
    """What a network takes and gives, without the batch.

    Attributes:
        shape: of its input; entries that are no int are free.
        whole: it takes whole numbers (ids), not float.
        outputs: length of its output, one number a class; None if it is not known.
    """

    shape: tuple[Any, ...]
    whole: bool
    outputs: int | None


def by_module(space: SearchSpace) -> bool:
    """Whether the space's networks are PyTorch code (`build_module`)."""
    return type(space).build_module is not SearchSpace.build_module


def form_of_space(space: SearchSpace) -> Form:
    """What the networks of a space take and give, by the first of some that can be built.

    Raises:
        ConfigError: networks that cannot be trained as classifiers of one input.
        NasrlmError: none of some can be built; why the first cannot.
    """
    first: Exception | None = None
    for architecture in space.sample(_TRIED, seed=0):
        try:
            return _form_of_module(architecture) if by_module(space) else _form_of_graph(architecture.graph())
        except Exception as error:  # a space may be anybody's code
            first = first or error
    if isinstance(first, NasrlmError):
        raise first
    raise RunError(f"the networks of {space.name} cannot be built: {type(first).__name__}: {first}") from first


def _form_of_graph(graph: Graph) -> Form:
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise wrong(
            "data",
            f"the networks have {len(graph.inputs)} inputs and {len(graph.outputs)} outputs. Those with one of each "
            "can be trained.",
        )
    (source,), (end,) = graph.inputs, graph.outputs
    out = graph.shapes[end]
    if len(out) != 2:
        raise wrong("data", f"the networks give the shape {out}. A classifier gives (batch, classes).")
    return Form(tuple(graph.shapes[source][1:]), "int" in graph.dtypes[source], _int_or_none(out[1]))


def _form_of_module(architecture: Architecture) -> Form:
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        module, example = _made(architecture)
        found = module.eval()(example)
    if not isinstance(found, torch.Tensor) or found.dim() != 2:
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise wrong("data", f"the networks give {shape}. A classifier gives (batch, classes).")
    return Form(tuple(example.shape[1:]), not example.is_floating_point(), int(found.shape[1]))


def _made(architecture: Architecture) -> tuple[nn.Module, torch.Tensor]:
    """The user's module and an example of its input."""
    space = architecture.space
    made = space.build_module(architecture.params)
    module, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, nn.Module):
        raise ExportError(f"build_module returned {type(module).__name__}, not a torch.nn.Module or (module, example)")
    if isinstance(example, tuple) and len(example) == 1:
        example = example[0]
    if example is None and space.example_shape is not None:
        example = torch.zeros(1, *space.example_shape)
    if not isinstance(example, torch.Tensor):
        raise ExportError(
            f"build_module returned {type(module).__name__} without one example input. Set the space's "
            "example_shape, such as (3, 32, 32), or return (module, example)."
        )
    return module, example


def make_network(architecture: Architecture, seed: int, normalize: bool) -> nn.Module:
    """The network with initial weights. Call it where torch's random state may be moved.

    Modules of `build_module` keep the weights their code gives them. In other networks, kernels and matrices are
    drawn from a normal distribution of variance 2 / fan-in, which keeps the size of activations through ReLUs
    (He et al., "Delving Deep into Rectifiers", ICCV 2015); biases are zero.

    Args:
        architecture: which.
        seed: of the weights.
        normalize: put BatchNorm behind convolutions that have a bias (not where the image is one pixel).

    Raises:
        ExportError: torch cannot run it.
        RunError: it has no weights.
    """
    torch.manual_seed(seed)
    if by_module(architecture.space):
        module: nn.Module = _made(architecture)[0]
        module.train()
    else:
        graph = architecture.graph()
        module = to_torch(graph, seed=seed)
        _draw_weights(module)
        if normalize:
            _normalize(module, graph)
        if all(p.dim() <= 4 for p in module.parameters()):  # faster by a sixth; torch has no such format for volumes
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if not any(p.requires_grad for p in module.parameters()):
        raise RunError("the network has no weights to train")
    return module


def _draw_weights(module: nn.Module) -> None:
    for name, layer in module.named_children():
        kind = name.partition("_")[0]
        if kind in ("conv", "deconv", "linear"):
            # a transposed kernel has its inputs in front
            mode = "fan_out" if kind == "deconv" else "fan_in"
            nn.init.kaiming_normal_(layer.weight, mode=mode)  # type: ignore[arg-type]
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]


def _normalize(module: nn.Module, graph: Graph) -> None:
    for i, op, _ in graph.nodes():
        shape = graph.shapes[i]
        layer = getattr(module, f"{op.name}_{i}", None)
        if op.name != "conv" or layer is None or layer.bias is None or math.prod(shape[2:]) == 1:
            continue  # a squeeze-and-excitation block's convolutions see one pixel, and have biases of their own
        layer.bias = None  # BatchNorm's shift takes its place
        setattr(module, f"{op.name}_{i}", nn.Sequential(layer, _BATCH_NORMS[len(shape)](shape[1])))


def _int_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) else None

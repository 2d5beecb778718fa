"""torch.nn.Module to Graph, through torch's own ONNX exporter."""

from __future__ import annotations

import io
import warnings
from typing import Any

import onnx
import torch

from nasrlm.errors import ExportError
from nasrlm.graph.graph import Graph
from nasrlm.graph.onnx_reader import from_onnx

_OPSET = 17


def from_torch(module: torch.nn.Module, example: Any) -> Graph:
    """Graph of a torch module.

    Args:
        module: the network; it is exported in evaluation mode and left as it was.
        example: an input tensor (batch, channels, height, width) or a tuple of inputs.

    Raises:
        ExportError: torch cannot export it, or an operator cannot be read.
    """
    return from_onnx(export_module(module, example))


def graph_of(made: Any, example_shape: tuple[int, ...] | None) -> Graph:
    """Graph of what `SearchSpace.build_module` returns.

    Args:
        made: a module, or a pair (module, example inputs).
        example_shape: shape of the input of a module alone, without the batch.

    Raises:
        ExportError: it is no module, or has no example; torch cannot export it, or an operator cannot be read.
    """
    if isinstance(made, tuple) and len(made) == 2:
        return from_torch(*made)
    if not isinstance(made, torch.nn.Module):
        raise ExportError(f"build_module returned {type(made).__name__}, not a torch.nn.Module or (module, example)")
    if example_shape is None:
        raise ExportError(
            f"build_module returned {type(made).__name__} without an example input. Set the space's example_shape, "
            "such as (3, 32, 32), or return (module, example)."
        )
    return from_torch(made, torch.zeros(1, *example_shape))


def export_module(module: torch.nn.Module, example: Any, opset: int = _OPSET) -> onnx.ModelProto:
    """ONNX model of a torch module by the TorchScript exporter, unfolded and with its weights."""
    was_training = module.training
    buffer = io.BytesIO()
    arguments = example if isinstance(example, tuple) else (example,)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module.eval(),
                arguments,
                buffer,  # type: ignore[arg-type]  # the stub forgets streams
                dynamo=False,
                opset_version=opset,
                do_constant_folding=False,
            )
    except Exception as error:  # torch raises many kinds here, all of them about the user's module
        raise ExportError(f"torch cannot export {type(module).__name__}: {error}") from error
    finally:
        module.train(was_training)
    return onnx.load_from_string(buffer.getvalue())

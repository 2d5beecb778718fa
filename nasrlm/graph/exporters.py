"""torch.nn.Module to Graph, through torch's own ONNX exporters."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import onnx
import torch

from nasrlm.errors import ExportError, unknown_name
from nasrlm.graph.graph import Graph
from nasrlm.graph.onnx_reader import from_onnx

Exporter = Literal["torchscript", "dynamo"]
EXPORTERS: tuple[Exporter, ...] = get_args(Exporter)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_OPSET = {"torchscript": 17, "dynamo": 18}


def from_torch(module: torch.nn.Module, example: Any, exporter: Exporter | None = None) -> Graph:
    """Graph of a torch module.

    Args:
        module: the network; it is exported in evaluation mode and left as it was.
        example: an input tensor (batch, channels, height, width) or a tuple of inputs.
        exporter: see `export_module`.

    Raises:
        ExportError: torch cannot export it, or an operator cannot be read.
    """
    return from_onnx(export_module(module, example, exporter))


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


def export_module(module: torch.nn.Module, example: Any, exporter: Exporter | None = None) -> onnx.ModelProto:
    """ONNX model of a torch module with its weights.

    Args:
        module: the network; it is exported in evaluation mode and left as it was.
        example: an input tensor or a tuple of inputs.
        exporter: "torchscript", "dynamo", or None: TorchScript, which is ten times as fast, and dynamo for what
            TorchScript cannot export. Both give the same text.

    Raises:
        ExportError: an exporter that is not there, or torch cannot export the module.
    """
    if exporter is not None and exporter not in EXPORTERS:
        raise ExportError(str(unknown_name("exporter", exporter, EXPORTERS, where="export_module")))
    was_training = module.training
    arguments = example if isinstance(example, tuple) else (example,)
    problems = []
    try:
        module.eval()
        for way in EXPORTERS if exporter is None else (exporter,):
            try:
                with _calm(), torch.no_grad():
                    return _torchscript(module, arguments) if way == "torchscript" else _dynamo(module, arguments)
            except Exception as error:  # torch raises many kinds here, all of them about the user's module
                problems.append(f"{way}: {_in_short(error)}")
    finally:
        module.train(was_training)
    reasons = "\n  ".join(problems)
    raise ExportError(f"torch cannot export {type(module).__name__}. What its exporters say:\n  {reasons}")


def _torchscript(module: torch.nn.Module, arguments: tuple[Any, ...]) -> onnx.ModelProto:
    """Not folded: constants are folded here, the same way for all."""
    buffer = io.BytesIO()
    torch.onnx.export(
        module,
        arguments,
        buffer,  # type: ignore[arg-type]  # the stub forgets streams
        dynamo=False,
        opset_version=_OPSET["torchscript"],
        do_constant_folding=False,
    )
    return onnx.load_from_string(buffer.getvalue())


def _dynamo(module: torch.nn.Module, arguments: tuple[Any, ...]) -> onnx.ModelProto:
    program = torch.onnx.export(module, arguments, dynamo=True, opset_version=_OPSET["dynamo"], verbose=False)
    return program.model_proto  # type: ignore[union-attr]  # None only where a file is written


@contextmanager
def _calm() -> Iterator[None]:
    """No warnings and log lines (they are about operators of other libraries), and attention as it was written."""
    logger = logging.getLogger("torch.onnx")
    level, fast = logger.level, torch.backends.mha.get_fastpath_enabled()
    logger.setLevel(logging.ERROR)
    torch._C._jit_set_onnx_log_output_stream("stderr")  # a graph that TorchScript fails on; results go to stdout
    torch.backends.mha.set_fastpath_enabled(False)  # one operator that no exporter knows
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        logger.setLevel(level)


def _in_short(error: BaseException) -> str:
    """The root cause, in the first line that says something: messages here go on for pages."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in _COLOURS.sub("", str(error)).splitlines() if line.strip(" -=")]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__

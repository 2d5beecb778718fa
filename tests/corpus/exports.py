"""The corpus through both exporters of torch."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import torch

from tests.corpus.networks import network

Way = tuple[str, int]
WAYS: tuple[Way, ...] = (
    ("torchscript", 9),
    ("torchscript", 14),
    ("torchscript", 17),
    ("unfolded", 17),
    ("dynamo", 18),
    ("dynamo", 21),
)
"""Exporter and opset; "unfolded" is TorchScript without constant folding."""
_ATTENTION = "not supported"
CANNOT: dict[tuple[str, str, int], str] = {
    **{(name, "torchscript", 9): _ATTENTION for name in ("vit", "torch_attention", "bert", "bert_masked", "gpt_sdpa")},
    ("torch_attention", "torchscript", 14): _ATTENTION,
    ("torch_attention", "torchscript", 17): _ATTENTION,
    ("torch_attention", "unfolded", 17): _ATTENTION,
}
"""What an exporter cannot do, with words of its error: scaled_dot_product_attention comes with opset 14, and
nn.MultiheadAttention takes a path of its own in evaluation mode."""
DIFFERENT: dict[tuple[str, str, int], str] = {
    ("unet_bilinear", "torchscript", 9): "Upsample of opset 9 has other coordinates: another network",
}
"""Exports that compute something else."""


@cache
def _folder() -> Path:
    """Kept between runs: one for each state of the corpus and version of torch."""
    source = b"".join(f.read_bytes() for f in sorted(Path(__file__).parent.glob("*.py")))
    digest = hashlib.sha256(source + torch.__version__.encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"nasrlm-corpus-{digest}"
    folder.mkdir(exist_ok=True)
    return folder


@cache
def export(name: str, exporter: str, opset: int) -> onnx.ModelProto:
    """The model, from the cache if it was exported before."""
    file = _folder() / f"{name}.{exporter}.{opset}.onnx"
    if not file.exists():
        module, example = network(name)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(exported(module, example, exporter, opset).SerializeToString())
        part.replace(file)
    return onnx.load(file)


def exported(module: torch.nn.Module, example: Any, exporter: str, opset: int, **more: Any) -> onnx.ModelProto:
    """A module's export, not kept."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            program = torch.onnx.export(module, example, dynamo=True, opset_version=opset, verbose=False, **more)
            assert program is not None
            return program.model_proto
        stream = io.BytesIO()
        folding = exporter == "torchscript"
        options = {"dynamo": False, "opset_version": opset, "do_constant_folding": folding, **more}
        torch.onnx.export(module, example, stream, **options)  # type: ignore[arg-type]
        return onnx.load_from_string(stream.getvalue())


@cache
def export_dynamic(name: str, exporter: str) -> onnx.ModelProto:
    """The model for any batch size."""
    module, example = network(name)
    if exporter == "dynamo":
        batch = torch.export.Dim("batch", min=1, max=1024)
        more: dict[str, Any] = {"dynamic_shapes": tuple({0: batch} for _ in example)}
        example = tuple(torch.cat([x, x]) for x in example)  # a size of one would be taken for fixed
    else:
        more = {"input_names": [f"x{i}" for i in range(len(example))]}
        more["dynamic_axes"] = {key: {0: "batch"} for key in more["input_names"]}
    return exported(module, example, exporter, 18 if exporter == "dynamo" else 17, **more)

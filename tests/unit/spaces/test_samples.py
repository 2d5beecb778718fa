"""Random samples of every space: one text over exporters, opsets, names, orders and weights; and back.

NASRLM_SAMPLES=1000 takes more samples of each space than the suite has time for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
import torch

from nasrlm.devices import get_device
from nasrlm.graph import Graph, costs, parse_text, to_onnx, to_text, to_torch
from nasrlm.graph.passes import simplified
from nasrlm.spaces import Architecture
from tests.conformance.spaces import affordable, spaces
from tests.corpus import exported, shuffled, without_weights

SAMPLES = int(os.environ.get("NASRLM_SAMPLES", "5"))
EXPORTED = max(2, SAMPLES // 10)
DYNAMO = max(1, SAMPLES // 50)  # this exporter takes seconds a network
DYNAMO_NODES = 100 if SAMPLES <= 5 else 300
"""A network with more operators is not given to it."""
OPSETS = range(13, 22)

every_space = pytest.mark.parametrize("name", spaces())


def samples(name: str, n: int, seed: int) -> Iterator[Architecture]:
    return iter(affordable(name).sample(n, seed))


@every_space
def test_samples_have_one_text(name: str) -> None:
    for i, a in enumerate(samples(name, EXPORTED, seed=11)):
        text, graph = to_text(a), a.graph()
        opset = OPSETS[i % len(OPSETS)]
        model = to_onnx(a, weights="random", opset=opset)
        ways = {
            f"opset {opset}": model,
            "without weights": without_weights(model),
            "no weights": to_onnx(a, opset=opset),
            "shuffled": shuffled(model, i),
        }
        module = trained(to_torch(a))
        example = tuple(torch.zeros(*graph.shapes[node]) for node in graph.inputs)
        ways["torchscript"] = exported(module, example, "torchscript", (9, 14, 17)[i % 3])
        if i < DYNAMO and len(graph) <= DYNAMO_NODES:
            ways["dynamo"] = exported(module, example, "dynamo", (18, 21)[i % 2])
        for way, other in ways.items():
            assert to_text(other) == text, (a, way)


@every_space
def test_samples_rebuilt_from_their_text_are_the_network(name: str) -> None:
    device = get_device("onnxruntime_cpu")
    for a in samples(name, SAMPLES, seed=12):
        text, graph = to_text(a), a.graph()
        read = parse_text(text)
        assert to_text(read) == text, a
        again = parse_text(to_text(a, dead_work=True))
        assert costs(again).macs == costs(graph).macs
        assert kernel_weights(again) == kernel_weights(simplified(graph))
        model = to_onnx(read, weights="random")
        onnx.checker.check_model(model, full_check=True)
        outputs = list(device.run(model.SerializeToString()).values())  # type: ignore[attr-defined]
        assert [y.shape for y in outputs] == [graph.shapes[node] for node in graph.outputs]
        assert all(np.isfinite(y).all() for y in outputs), a


def kernel_weights(graph: Graph) -> int:
    """Parameters but for norms and biases: a norm folds into what is before it, and leaves a bias."""
    rest = 0
    for op, shape in zip(graph.ops, graph.shapes, strict=True):
        rest += 2 * shape[1] if op.name == "bn" else 0
        rest += shape[1] if op.name in ("conv", "linear") and "nobias" not in op.text.split() else 0
    return costs(graph).params - rest


def trained(module: torch.nn.Module) -> torch.nn.Module:
    """With no weight and no statistic as it was initialised, since exporters look at zeros and ones."""
    statistics = (tensor for name, tensor in module.named_buffers() if name.endswith(("running_mean", "running_var")))
    with torch.no_grad():
        for tensor in (*module.parameters(), *statistics):
            tensor.uniform_(0.5, 1.5)
    return module.eval()

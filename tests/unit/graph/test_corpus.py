"""Real networks: one text over exporters, opsets, names, orders and weights; and back to a network that runs."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nasrlm.graph import as_graph, costs, parse_text, to_onnx, to_text
from tests.corpus import CANNOT, CORPUS, DIFFERENT, WAYS, export, export_dynamic, network, shuffled, without_weights

BEST = ("dynamo", 21)


@cache
def text(name: str) -> str:
    return to_text(export(name, *BEST))


@pytest.mark.parametrize("name", CORPUS)
def test_one_text_over_exporters_and_opsets(name: str) -> None:
    ways = [way for way in WAYS if (name, *way) not in CANNOT and (name, *way) not in DIFFERENT]
    assert len({way[0] for way in ways} - {"unfolded"}) == (1 if name == "torch_attention" else 2)
    for way in ways:
        assert to_text(export(name, *way)) == text(name), way


@pytest.mark.parametrize(("name", "exporter", "opset"), CANNOT)
def test_what_an_exporter_cannot_do_it_still_cannot(name: str, exporter: str, opset: int) -> None:
    with pytest.raises(Exception, match=CANNOT[name, exporter, opset]):
        export(name, exporter, opset)


def test_an_export_that_computes_something_else_reads_different() -> None:
    for name, *way in DIFFERENT:
        assert to_text(export(name, *way)) != text(name)


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("way", [("dynamo", 18), ("unfolded", 17)])
def test_names_and_order_of_nodes_change_nothing(name: str, way: tuple[str, int]) -> None:
    if (name, *way) not in CANNOT:
        for seed in range(3):
            assert to_text(shuffled(export(name, *way), seed)) == text(name)


@pytest.mark.parametrize("name", CORPUS)
def test_external_weights_change_nothing(name: str) -> None:
    assert to_text(without_weights(export(name, *BEST))) == text(name)


@pytest.mark.parametrize("name", ["plain", "residual", "mobilenet_v3", "densenet", "unet_deconv", "convnext", "audio"])
def test_weights_declared_as_inputs_change_nothing(name: str) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(export(name, *BEST))
    for tensor in list(model.graph.initializer):
        if tensor.data_type == onnx.TensorProto.FLOAT and np.prod(tensor.dims) > 1 and "gamma" not in tensor.name:
            model.graph.initializer.remove(tensor)
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    assert to_text(model) == text(name)


@pytest.mark.parametrize("name", CORPUS)
def test_the_exports_are_the_networks(name: str) -> None:
    """Else equal texts would say nothing."""
    module, example = network(name)
    with torch.no_grad():
        found = module(*example)
    expected = found if isinstance(found, tuple) else (found,)
    assert all(y.std() > 1e-3 for y in expected)
    for way in (("torchscript", 17), BEST):
        if (name, *way) in CANNOT:
            continue
        model = export(name, *way)
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds = {i.name: x.numpy() for i, x in zip(session.get_inputs(), example, strict=True)}
        for a, b in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("opset", [13, 17, 21])
def test_a_text_makes_a_model_that_runs_and_reads_the_same(name: str, opset: int) -> None:
    graph = parse_text(text(name))
    assert to_text(graph) == text(name)
    assert to_text(to_onnx(graph, opset=opset)) == text(name)
    model = to_onnx(graph, weights="random", opset=opset)
    assert to_text(model) == text(name)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    example = network(name)[1]
    feeds = {i.name: x.numpy() for i, x in zip(session.get_inputs(), example, strict=True)}
    outputs = session.run(None, feeds)
    expected = network(name)[0](*example)
    shapes = [tuple(y.shape) for y in (expected if isinstance(expected, tuple) else (expected,))]
    assert [y.shape for y in outputs] == shapes == [graph.shapes[o] for o in graph.outputs]
    assert all(np.isfinite(y).all() for y in outputs)


UNCOUNTED = ("lstm", "gru", "torch_attention")  # torch counts nothing within its fused operators


@pytest.mark.parametrize("name", [n for n in CORPUS if n not in UNCOUNTED])
def test_macs_are_those_that_torch_counts(name: str) -> None:
    module, example = network(name)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel([SDPBackend.MATH]):
        module(*example)
    assert 2 * costs(text(name)).macs == counter.get_total_flops() == 2 * costs(export(name, *BEST)).macs


# Position tables of which a text has the rows in use, and biases that BatchNorm brings, make the difference.
ROWS = {"bert": 52 + 2 - 12, "bert_masked": 52 + 2 - 12, "gpt_eager": 52, "gpt_sdpa": 52}


@pytest.mark.parametrize("name", CORPUS)
def test_parameters_are_those_of_the_module(name: str) -> None:
    module, _ = network(name)
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    kept = text(name).split().count("bn")
    expected = sum(p.numel() for p in module.parameters()) - sum(2 * m.num_features for m in norms)
    if name in ROWS:
        expected -= 32 * ROWS[name]
    if name in ("gpt_eager", "gpt_sdpa"):
        expected += 3200  # tied to the embedding, and written at each use
    if name == "llama":
        expected += 2 * 2 * 2 * 12 * 16  # sines and cosines at each use
    found = costs(text(name)).params
    if kept:
        assert found > expected
    else:
        assert found == expected + sum(m.num_features for m in norms)


@pytest.mark.parametrize("name", ["residual", "vit", "bert", "lstm", "detector"])
def test_a_dynamic_batch_stays_a_symbol(name: str) -> None:
    found = to_text(export_dynamic(name, "torchscript"))
    assert found.split("\n")[1].startswith("in ?0x")
    assert to_text(parse_text(found)) == found
    model = to_onnx(found, weights="random")
    assert to_text(model) == found
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    example = network(name)[1]
    feeds = {i.name: np.concatenate([x.numpy()] * 3) for i, x in zip(session.get_inputs(), example, strict=True)}
    assert all(y.shape[0] == 3 for y in session.run(None, feeds))


@pytest.mark.parametrize("name", ["residual", "vit", "detector"])
def test_a_dynamic_batch_reads_the_same_from_both_exporters(name: str) -> None:
    assert to_text(export_dynamic(name, "dynamo")) == to_text(export_dynamic(name, "torchscript"))


def test_the_corpus_reads_as_one_graph_a_network() -> None:
    for name in CORPUS:
        assert to_text(as_graph(export(name, *BEST))) == text(name)

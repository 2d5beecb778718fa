"""Graphs as torch modules: equal to onnxruntime on the same weights, and trainable."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from nasrlm.errors import ExportError
from nasrlm.graph import Graph, GraphBuilder, to_onnx, to_text, to_torch
from nasrlm.graph.ops import op
from nasrlm.spaces import get_space
from tests.corpus import CORPUS, export, network
from tests.corpus.operators import ALL, CASES


def run(model: onnx.ModelProto, *inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs, strict=True))))


def compare(graph: Graph, *inputs: np.ndarray) -> None:
    """Both ways: weights of to_onnx in the module, and the module's weights in to_onnx."""
    module = to_torch(graph).eval()
    model = to_onnx(graph, weights="random", seed=1)
    for weights in (None, model):
        if weights is None:
            model_now = to_onnx(graph, weights=module.state_dict())
        else:
            module.load(weights)
            model_now = model
        with torch.no_grad():
            found = module(*map(torch.from_numpy, inputs))
        expected = run(model_now, *inputs)
        for a, b in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b, rtol=2e-4, atol=2e-5)


def example(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    found = []
    for i in graph.inputs:
        array = rng.uniform(0, 3, graph.shapes[i])
        found.append(array.astype(graph.dtypes[i]))
    return found


@pytest.mark.parametrize(("name", "case"), ALL)
def test_every_operator_runs_as_in_onnxruntime(name: str, case: int) -> None:
    graph = CASES[name][case]()
    compare(graph, *example(graph))


@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus_runs_as_in_onnxruntime(name: str) -> None:
    from nasrlm.graph import as_graph

    compare(as_graph(export(name, "dynamo", 21)), *(x.numpy() for x in network(name)[1]))


@pytest.mark.parametrize("name", ["residual", "vit", "bert", "convnext", "detector", "group_norm"])
def test_a_batch_of_any_size_goes_through(name: str) -> None:
    module = to_torch(export(name, "dynamo", 21)).eval()
    one = [x[:1] for x in network(name)[1]]
    three = [torch.cat([x, x.flip(-1), x]) for x in one]
    with torch.no_grad():
        alone, together = module(*one), module(*three)
    pairs = zip(alone, together, strict=True) if isinstance(alone, tuple) else [(alone, together)]
    for a, b in pairs:
        assert b.shape == (3, *a.shape[1:])
        torch.testing.assert_close(b[2], a[0], rtol=1e-4, atol=1e-5)


def test_search_spaces_run_as_in_onnxruntime() -> None:
    for space in ("nasbench201", "tiny"):
        for architecture in get_space(space).sample(5, 0):
            graph = architecture.graph()
            compare(graph, *example(graph))


def test_gradients_reach_all_weights_and_norms_learn() -> None:
    graph = (
        get_space("nasbench201")
        .architecture("|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|skip_connect~0|nor_conv_3x3~1|avg_pool_3x3~2|")
        .graph()
    )
    module = to_torch(graph).train()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    loss = module(torch.randn(4, 3, 32, 32)).square().mean()
    loss.backward()
    assert all(
        p.grad is not None and torch.isfinite(p.grad).all() and p.grad.abs().sum() > 0 for p in module.parameters()
    )
    changed = {k for k, v in module.state_dict().items() if not torch.equal(v, before[k])}
    assert changed and all("running" in k or "tracked" in k for k in changed)


def test_a_module_can_learn() -> None:
    b = GraphBuilder()
    b.output(b.linear(b.relu(b.linear(b.input((4,)), 16)), 1))
    module = to_torch(b.build(), seed=3)
    x = torch.randn(64, 4)
    y = x[:, :1] * x[:, 1:2]
    optimiser = torch.optim.Adam(module.parameters(), 0.03)
    losses = []
    for _ in range(60):
        loss = (module(x) - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_seeds_are_kept_to_themselves() -> None:
    b = GraphBuilder()
    b.output(b.conv(b.input((3, 8, 8)), 4, 3))
    state = torch.random.get_rng_state()
    a, again, other = (to_torch(b.build(), seed=s).state_dict()["conv_1.weight"] for s in (1, 1, 2))
    assert torch.equal(a, again) and not torch.equal(a, other)
    assert torch.equal(state, torch.random.get_rng_state())


def test_dynamic_dimensions() -> None:
    b = GraphBuilder()
    x = b.input((3, "length"), batch="batch")
    y = b.conv(x, 8, 3, bias=True)
    b.output(b.reshape(y, (b.shape(y)[0], 4, -1)))
    module = to_torch(b.build())
    assert module(torch.zeros(2, 3, 10)).shape == (2, 4, 20)
    assert to_text(b.build()).split("\n")[1] == "in ?0x3x?1"


def test_what_torch_has_not_is_named() -> None:
    b = GraphBuilder()
    b.output(b.apply(op("resize", "lin", (2, 2), (), "asymmetric"), b.input((3, 8, 8))))
    with pytest.raises(ExportError, match="resize lin s2 asymmetric"):
        to_torch(b.build())
    with pytest.raises(ExportError, match="torch cannot run 'onnx:Celu"):
        to_torch("nasrlm1 in 1x4 onnx:Celu alpha=0.7f")


def test_weights_that_do_not_fit() -> None:
    b = GraphBuilder()
    b.output(b.conv(b.input((3, 8, 8)), 4, 3))
    graph = b.build()
    with pytest.raises(ExportError, match=r"'conv_1\.weight' of shape \(4, 3, 3, 3\) was not given"):
        to_torch(graph, weights={"conv_2.weight": np.zeros(3)})
    with pytest.raises(ExportError, match="has the shape"):
        to_torch(graph, weights={"conv_1.weight": np.zeros(3)})
    with pytest.raises(ExportError, match=r"not among those given\. Nearest: conv1\.weight"):
        to_onnx(graph, weights={"conv1.weight": np.zeros(3)})
    with pytest.raises(ExportError, match="takes 1 inputs, not 2"):
        to_torch(graph)(torch.zeros(1), torch.zeros(1))

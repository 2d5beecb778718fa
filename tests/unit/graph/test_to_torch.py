"""Graphs as torch modules: equal to onnxruntime on the same weights, and trainable."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from nasrlm.errors import ExportError
from nasrlm.graph import Graph, GraphBuilder, to_onnx, to_text, to_torch
from nasrlm.graph.ops import op, op_with
from nasrlm.spaces import get_space
from tests.corpus import CORPUS, export, network
from tests.corpus.operators import ALL, CASES, one


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
    with pytest.raises(
        ExportError, match="torch cannot run 'onnx:Celu alpha=0.7f', 'onnx:Celu alpha=0.6f': nasrlm has"
    ):
        to_torch("nasrlm1 in 1x4 onnx:Celu alpha=0.7f onnx:Celu alpha=0.6f")
    with pytest.raises(ExportError, match="torch cannot run 'cast string'"):
        to_torch(one(op("cast", "string"), (4,)))


def test_weights_that_do_not_fit() -> None:
    b = GraphBuilder()
    b.output(b.conv(b.input((3, 8, 8)), 4, 3))
    graph = b.build()
    with pytest.raises(ExportError, match=r"'conv_1\.weight' of shape \(4, 3, 3, 3\) was not given"):
        to_torch(graph, weights={"conv_2.weight": np.zeros(3)})
    with pytest.raises(ExportError, match="has the shape"):
        to_torch(graph, weights={"conv_1.weight": np.zeros(3)})
    turned = {"conv_1.weight": torch.zeros(3, 4, 3, 3)}  # as many entries, in another order
    with pytest.raises(ExportError, match=r"has the shape \(3, 4, 3, 3\), not \(4, 3, 3, 3\)"):
        to_torch(graph, weights=turned)
    with pytest.raises(ExportError, match="is no array of numbers but str"):
        to_torch(graph, weights={"conv_1.weight": "x"})
    with pytest.raises(ExportError, match=r"was not given: write the model with to_onnx"):
        to_torch(graph, weights=to_onnx(graph))
    with pytest.raises(ExportError, match=r"weights='random' are none\. Allowed: None, a mapping"):
        to_torch(graph, weights="random")
    with pytest.raises(ExportError, match=r"not among those given\. Nearest: conv1\.weight"):
        to_onnx(graph, weights={"conv1.weight": np.zeros(3)})
    with pytest.raises(ExportError, match="takes 1 inputs, not 2"):
        to_torch(graph)(torch.zeros(1), torch.zeros(1))
    with pytest.raises(ExportError, match=r"has 4 dimensions \(1x3x8x8\), the tensor given has the shape \(3, 8, 8\)"):
        to_torch(graph)(torch.zeros(3, 8, 8))


def test_weights_may_be_parameters_of_any_type() -> None:
    b = GraphBuilder()
    b.output(b.linear(b.input((4,)), 3))
    module = to_torch(b.build())
    again = to_torch(b.build(), seed=1, weights=dict(module.named_parameters()))
    assert all(torch.equal(p, q) for p, q in zip(module.parameters(), again.parameters(), strict=True))
    to_torch(b.build(), weights={k: v.bfloat16() for k, v in module.state_dict().items()})


HARD = {
    **{
        f"pad {mode} {name}": (op("pad", pads, mode), (4, 8, 8))
        for mode in ("reflect", "edge", "wrap")
        for name, pads in {"space": (1, 2, 0, 3), "channels": (0, 1, 0, 0, 0, 2, 0, 1)}.items()
    },
    **{
        f"resize {mode} {place} {to}": (op_with("resize", mode=mode, size=(to, 5), coordinates=place), (4, 8, 8))
        for mode in ("lin", "cubic")
        for place in ("asymmetric", "torch", "half_symmetric")
        for to in (1, 3, 11)
    },
    "nearest torch": (op_with("resize", size=(1, 5), coordinates="torch", rounding="floor"), (4, 8, 8)),
    "uneven deconv": (op_with("deconv", kernel=(3, 3), stride=(2, 2), padding=(0, 1, 1, 0)), (4, 8, 8)),
    "single entries": (op("instancenorm"), (4, 1, 1)),
    "groups of one": (op("groupnorm", 4), (4, 1, 1)),
    "no bounds": (op("clip"), (4,)),
    "float64": (op("linear", "3", True), (4,), "float64"),
    "float16": (op("linear", "3", True), (4,), "float16"),
    "half table": (op("embedding", 20, 8, "float16"), (4,), "int64"),
    **{f"int {name}": (op_with(name, axes=(1,)), (4,), "int32") for name in ("sum", "mean", "prod", "l1", "l2")},
}


@pytest.mark.parametrize("name", HARD)
def test_what_torch_does_in_another_way(name: str) -> None:
    made, shape, *dtype = HARD[name]
    graph = one(made, shape, dtype=dtype[0] if dtype else "float32")
    module = to_torch(graph).eval()
    for x in example(graph):
        expected = run(to_onnx(graph, weights=module.state_dict()), x)[0]
        found = module(torch.from_numpy(x)).detach().numpy()
        assert found.dtype == expected.dtype
        exact = 2e-3 if found.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(found, expected, rtol=10 * exact, atol=exact)


def test_whole_numbers_are_divided_as_in_onnx() -> None:
    x, y = np.array([[-7, 7, -8, 8]]), np.array([[2, -2, 3, 3]])
    for name in ("div", "mod"):
        graph = one(op(name), (4,), (4,), dtype="int64")
        found = to_torch(graph)(torch.from_numpy(x), torch.from_numpy(y))
        np.testing.assert_array_equal(found.numpy(), run(to_onnx(graph), x, y)[0])
        assert found.dtype == torch.int64


def test_ids_below_zero_count_from_the_end() -> None:
    graph = one(op("embedding", 20, 8), (3,), dtype="int64")
    module = to_torch(graph)
    found = module(torch.tensor([[-1, 0, -20]]))[0]
    table = module.state_dict()["embedding_1.weight"]
    assert torch.equal(found, table[[19, 0, 0]])


def test_an_lstm_may_start_with_its_state_alone() -> None:
    b = GraphBuilder()
    x, state = b.input((2, 4), batch=7), b.input((2, 6), batch=1)
    b.output(b.apply(op("item", 0), b.apply(op("lstm", 6), x, state)))
    compare(b.build(), *example(b.build()))


def test_the_gradient_of_a_length_of_zero_is_zero() -> None:
    x = torch.zeros(1, 4, requires_grad=True)
    to_torch(one(op_with("l2", axes=(1,)), (4,)))(x).sum().backward()
    assert x.grad is not None and torch.equal(x.grad, torch.zeros(1, 4))


def test_sizes_of_one_dimension_agree() -> None:
    b = GraphBuilder()
    b.output(b.add(*(b.input((3, "length"), batch="batch") for _ in range(2))))
    with pytest.raises(ExportError, match="dynamic dimension d1 is both 5 and 1"):
        to_torch(b.build())(torch.zeros(2, 3, 5), torch.zeros(2, 3, 1))


def test_values_that_nobody_uses_are_freed() -> None:
    b = GraphBuilder()
    x = b.input((4,))
    b.relu(x)
    b.output(b.unary("sigmoid", x))
    module = to_torch(b.build())
    assert sorted(x for freed in module._freed.values() for x in freed) == [0, 1, 2]
    assert 1 in module._freed[1]

"""ONNX out and in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from nasrlm.errors import ExportError
from nasrlm.graph import Graph, GraphBuilder, as_graph, costs, onnx_writer, to_onnx, to_text
from nasrlm.graph.ops import SPECS


def every_operator() -> Graph:
    b = GraphBuilder()
    x = b.input((4, 16, 16))
    x = b.relu6(b.batch_norm(b.conv(x, 8, 3, 2)))
    x = b.channel_shuffle(b.conv(x, 8, groups=2), 2)
    x = b.concat([b.hard_swish(x), b.avg_pool(x, 3, count_include_pad=True), b.max_pool(x, 3)])
    for name in ("silu", "tanh", "prelu", "sigmoid", "hardsigmoid", "identity", "dropout"):
        x = b.unary(name, x)
    x = b.add(b.leaky_relu(x, 0.2), b.zeros_like(x))
    x = b.slice(b.pad(x, (1, 2)), 1, 9)
    x = b.mul(x, b.conv(b.global_max_pool(x), 8, bias=True), b.global_avg_pool(x))
    x = b.apply(onnx_writer_op("add"), x, b.relu(x), b.max_pool(x, 3))
    x = b.softmax(b.linear(b.flatten(b.global_avg_pool(x)), 10, bias=False))
    b.output(x)
    return b.build()


def onnx_writer_op(name: str):
    from nasrlm.graph.ops import op

    return op(name)


def test_every_operator_is_written_read_back_and_runs() -> None:
    graph = every_operator()
    used = {op.name for op in graph.ops}
    assert set(SPECS) - used == {"const", "blank", "after"}, "an operator is missing from this test"
    for weights in (None, "random"):
        model = to_onnx(graph, weights=weights)
        assert to_text(model, dead_work=True) == to_text(graph, dead_work=True)
        assert costs(model).params == costs(graph).params
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (out,) = session.run(None, {"input": np.ones((1, 4, 16, 16), np.float32)})
    assert out.shape == graph.shapes[graph.outputs[0]]
    assert np.isclose(out.sum(), 1)


@pytest.mark.parametrize("opset", [13, 15, 17, 19, 21])
def test_every_opset_gives_one_text(opset: int) -> None:
    graph = every_operator()
    model = to_onnx(graph, opset=opset)
    assert model.opset_import[0].version == opset
    assert to_text(model) == to_text(graph)


def test_bytes_are_deterministic() -> None:
    graph = every_operator()
    first, again = (to_onnx(graph, weights="random", seed=3).SerializeToString() for _ in range(2))
    assert first == again
    assert first != to_onnx(graph, weights="random", seed=4).SerializeToString()


def test_large_weights_go_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_writer, "_INLINE_BYTES", 100)
    graph = every_operator()
    to_onnx(graph, tmp_path / "deep" / "net.onnx", weights="random")
    assert (tmp_path / "deep" / "net.onnx.data").stat().st_size > 0
    assert to_text(tmp_path / "deep" / "net.onnx") == to_text(graph)
    onnxruntime.InferenceSession(str(tmp_path / "deep" / "net.onnx"))


def test_tensors_and_names_do_not_matter() -> None:
    model = to_onnx(every_operator())
    expected = to_text(model)
    for node in model.graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = f"x_{name}" if name else name
    for info in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        info.name = f"x_{info.name}"
    assert to_text(model) == expected


def test_bad_files_are_export_errors(tmp_path: Path) -> None:
    whole = to_onnx(every_operator(), weights="random").SerializeToString()
    for name, content in {"empty": b"", "text": b"hello world", "cut": whole[: len(whole) // 2]}.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(content)
        with pytest.raises(ExportError):
            to_text(path)
    with pytest.raises(ExportError, match="cannot read"):
        to_text(tmp_path / "missing.onnx")


def test_an_unknown_operator_is_named_with_its_node() -> None:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4])
    node = onnx.helper.make_node("Whirl", ["x"], ["y"], name="turn", domain="acme")
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [x]))
    with pytest.raises(ExportError, match=r"'turn' \(Whirl\): operator acme\.Whirl"):
        as_graph(model)


def test_bad_arguments() -> None:
    graph = every_operator()
    with pytest.raises(ExportError, match="weights='zeros' is unknown"):
        to_onnx(graph, weights="zeros")
    with pytest.raises(ExportError, match="opset 9"):
        to_onnx(graph, opset=9)
    with pytest.raises(ExportError, match="cannot write"):
        to_onnx(graph, "/proc/none/x.onnx")

"""ONNX out and in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from nasrlm.errors import ExportError
from nasrlm.graph import Graph, GraphBuilder, as_graph, costs, onnx_writer, parse_text, to_onnx, to_text
from nasrlm.graph.ops import SPECS
from nasrlm.graph.spec import Field
from tests.corpus.operators import ALL, CASES, missing


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


def test_every_operator_has_a_case() -> None:
    assert not missing(), "tests/corpus/operators.py lacks an operator"


def test_no_attribute_is_written_like_an_operator() -> None:
    words = {w for name, k in ALL for o in CASES[name][k]().ops if not o.inline for w in o.text.split()[1:]}
    assert not words & set(SPECS)
    fields = [f for spec in SPECS.values() for f in spec.fields if f.name not in ("kind", "inputs", "attributes")]
    read = {w for w in SPECS for f in fields if _reads(f, w)}
    assert not read


def _reads(field: Field, word: str) -> bool:
    return field.read(word, 2) is not None


NUMPY = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.INT64: np.int64, onnx.TensorProto.BOOL: np.bool_}


@pytest.mark.parametrize(("name", "case"), ALL)
def test_every_operator_is_written_read_back_and_runs(name: str, case: int) -> None:
    graph = CASES[name][case]()
    rng = np.random.default_rng(0)
    for opset in (13, 17, 21):
        for weights in (None, "random"):
            model = to_onnx(graph, weights=weights, opset=opset)
            assert to_text(model, dead_work=True) == to_text(graph, dead_work=True)
            assert costs(model).macs == costs(graph).macs
            assert costs(model).params == costs(graph).params
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds = {
            i.name: rng.uniform(0, 3, [d.dim_value for d in i.type.tensor_type.shape.dim]).astype(
                NUMPY[i.type.tensor_type.elem_type]
            )
            for i in model.graph.input
        }
        outputs = session.run(None, feeds)
        assert [y.shape for y in outputs] == [graph.shapes[o] for o in graph.outputs]
        assert [str(y.dtype) for y in outputs] == [graph.dtypes[o] for o in graph.outputs]


@pytest.mark.parametrize(("name", "case"), ALL)
def test_every_operator_parses_back(name: str, case: int) -> None:
    text = to_text(CASES[name][case]())
    assert to_text(parse_text(text)) == text


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
    with pytest.raises(ExportError, match=r"'turn' \(Whirl\): the shape of 'y' is not known: acme\.Whirl"):
        as_graph(model)


def test_bad_arguments() -> None:
    graph = every_operator()
    with pytest.raises(ExportError, match="weights='zeros' is unknown"):
        to_onnx(graph, weights="zeros")
    with pytest.raises(ExportError, match="opset 9"):
        to_onnx(graph, opset=9)
    with pytest.raises(ExportError, match="cannot write"):
        to_onnx(graph, "/proc/none/x.onnx")

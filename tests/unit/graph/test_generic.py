"""Operators that are written in full, sub-graphs, foreign operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from nasrlm.errors import ExportError, TextError
from nasrlm.graph import parse_text, to_onnx, to_text

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Info = tuple[str, int, list[Any]]


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[Info],
    outputs: list[Info],
    constants: dict[str, Any] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )
    domains = sorted({n.domain for n in nodes if n.domain})
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return made if domains else onnx.shape_inference.infer_shapes(made)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    names = [("" if x == "_" else x) for x in inputs.split()]
    return helper.make_node(kind, names, outputs.split(), **attributes)


X: Info = ("x", FLOAT, [1, 4, 6])
IDS = np.array([[0, 1], [0, 2]])


def _body(nodes: list[onnx.NodeProto], inputs: list[Info], outputs: list[Info], **constants: Any) -> onnx.GraphProto:
    return helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )


def _if() -> onnx.ModelProto:
    then = _body([node("Relu", "x", "t")], [], [("t", FLOAT, [1, 4, 6])])
    other = _body([node("Mul", "x two", "e")], [], [("e", FLOAT, [1, 4, 6])], two=np.float32(2))
    nodes = [
        node("ReduceMax", "x", "m", keepdims=0),
        node("Greater", "m zero", "c"),
        node("If", "c", "y", then_branch=then, else_branch=other),
    ]
    return model(nodes, [X], [("y", FLOAT, [1, 4, 6])], {"zero": np.float32(0)})


def _loop() -> onnx.ModelProto:
    nodes = [node("Identity", "go", "on"), node("Add", "a x", "b"), node("ReduceSum", "b", "s", keepdims=0)]
    inputs = [("i", INT, []), ("go", BOOL, []), ("a", FLOAT, [1, 4, 6])]
    body = _body(nodes, inputs, [("on", BOOL, []), ("b", FLOAT, [1, 4, 6]), ("s", FLOAT, [])])
    return model(
        [node("Relu", "x", "start"), node("Loop", "n go start", "last sums", body=body), node("Sum", "last", "y")],
        [X],
        [("y", FLOAT, [1, 4, 6]), ("sums", FLOAT, [3])],
        {"n": np.int64(3), "go": np.array(True)},
    )


def _scan() -> onnx.ModelProto:
    body = _body(
        [node("Add", "s r", "t"), node("Identity", "t", "o")],
        [("s", FLOAT, [6]), ("r", FLOAT, [6])],
        [("t", FLOAT, [6]), ("o", FLOAT, [6])],
    )
    nodes = [
        node("Squeeze", "x zero", "rows"),
        node("ReduceMax", "rows", "first", axes=[0], keepdims=0),
        node("Scan", "first rows", "last all", body=body, num_scan_inputs=1),
    ]
    return model(nodes, [X], [("last", FLOAT, [6]), ("all", FLOAT, [4, 6])], {"zero": np.array([0])})


def _nested() -> onnx.ModelProto:
    """An If in a Loop that reads values of both levels above it."""
    then = _body([node("Add", "a x", "t")], [], [("t", FLOAT, [1, 4, 6])])
    other = _body([node("Sub", "a w", "e")], [], [("e", FLOAT, [1, 4, 6])])
    inner = [
        node("Relu", "a", "w"),
        node("Greater", "i one", "c"),
        node("If", "c", "b", then_branch=then, else_branch=other),
        node("Identity", "go", "on"),
    ]
    inputs = [("i", INT, []), ("go", BOOL, []), ("a", FLOAT, [1, 4, 6])]
    body = _body(inner, inputs, [("on", BOOL, []), ("b", FLOAT, [1, 4, 6])], one=np.int64(1))
    return model(
        [node("Abs", "x", "start"), node("Loop", "n _ start", "y", body=body)],
        [X],
        [("y", FLOAT, [1, 4, 6])],
        {"n": np.int64(4)},
    )


MODELS = {
    "TopK": lambda: model(
        [node("TopK", "x k", "v i", axis=2)],
        [X],
        [("v", FLOAT, [1, 4, 5]), ("i", INT, [1, 4, 5])],
        {"k": np.array([5])},
    ),
    "TopK, one value used": lambda: model(
        [node("TopK", "x k", "v i", largest=0)], [X], [("i", INT, [1, 4, 2])], {"k": np.array([2])}
    ),
    "CumSum": lambda: model([node("CumSum", "x a", "y")], [X], [("y", FLOAT, [1, 4, 6])], {"a": np.int64(2)}),
    "Einsum": lambda: model([node("Einsum", "x x", "y", equation="bij,bkj->bik")], [X], [("y", FLOAT, [1, 4, 4])]),
    "Tile": lambda: model([node("Tile", "x r", "y")], [X], [("y", FLOAT, [1, 8, 6])], {"r": np.array([1, 2, 1])}),
    "Celu": lambda: model([node("Celu", "x", "y", alpha=0.7)], [X], [("y", FLOAT, [1, 4, 6])]),
    "HardSigmoid": lambda: model([node("HardSigmoid", "x", "y")], [X], [("y", FLOAT, [1, 4, 6])]),
    "LpPool": lambda: model([node("LpPool", "x", "y", kernel_shape=[2])], [X], [("y", FLOAT, [1, 4, 5])]),
    "OneHot": lambda: model(
        [node("Cast", "x", "i", to=INT), node("OneHot", "i d v", "y")],
        [X],
        [("y", FLOAT, [1, 4, 6, 9])],
        {"d": np.int64(9), "v": np.array([0, 1], np.float32)},
    ),
    "ScatterND": lambda: model(
        [node("ScatterND", "x i u", "y")], [X], [("y", FLOAT, [1, 4, 6])], {"i": IDS, "u": np.ones((2, 6), np.float32)}
    ),
    "NonZero": lambda: model([node("NonZero", "x", "y")], [X], [("y", INT, [3, "n"])]),
    "GridSample": lambda: model(
        [node("GridSample", "x g", "y", align_corners=1)],
        [("x", FLOAT, [1, 2, 5, 5]), ("g", FLOAT, [1, 3, 3, 2])],
        [("y", FLOAT, [1, 2, 3, 3])],
    ),
    "NonMaxSuppression": lambda: model(
        [node("NonMaxSuppression", "b s n t", "y")],
        [("b", FLOAT, [1, 5, 4]), ("s", FLOAT, [1, 2, 5])],
        [("y", INT, ["n", 3])],
        {"n": np.array([3]), "t": np.array([0.5], np.float32)},
    ),
    "Quantize": lambda: model(
        [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")],
        [X],
        [("y", FLOAT, [1, 4, 6])],
        {"s": np.float32(0.1), "z": np.uint8(3)},
    ),
    "IsNaN": lambda: model(
        [node("IsNaN", "x", "n"), node("Cast", "n", "y", to=FLOAT)], [X], [("y", FLOAT, [1, 4, 6])], opset=20
    ),
    "reverse": lambda: model(
        [node("Slice", "x s e a t", "y")],
        [X],
        [("y", FLOAT, [1, 4, 6])],
        {"s": np.array([-1]), "e": np.array([-99]), "a": np.array([2]), "t": np.array([-1])},
    ),
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "If in Loop": _nested,
}


@pytest.mark.parametrize("name", MODELS)
def test_models_read_write_and_run(name: str) -> None:
    source = MODELS[name]()
    onnx.checker.check_model(source)
    text = to_text(source)
    assert ":" in text
    assert to_text(parse_text(text)) == text
    assert to_text(parse_text(" ".join(text.split()))) == text
    assert to_text(to_onnx(text)) == text
    written = to_onnx(text, weights="random")
    assert to_text(written) == text
    values = {i.name: _example(i) for i in source.graph.input}
    expected = _run(source, values)
    found = _run(written, dict(zip([i.name for i in written.graph.input], values.values(), strict=True)))
    for a, b in zip(expected, found, strict=True):
        assert a.shape == b.shape
        if name not in ("ScatterND", "OneHot"):  # updates and values are weights
            np.testing.assert_allclose(a, b, rtol=1e-5)


def _example(info: onnx.ValueInfoProto) -> np.ndarray:
    shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _run(made: onnx.ModelProto, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, values))


def test_texts_say_what_is_used() -> None:
    assert to_text(MODELS["TopK"]()).split("\n")[2:] == [
        "onnx:TopK <@;#int64:1:5> axis=2 ->2",
        "item",
        "item 1 @2",
        "out @2 @1",
    ]
    lines = to_text(MODELS["If"]()).split("\n")
    assert lines[-1] == ("onnx:If <@bool;^> else_branch=( in 1x4x6 mul #2 ) then_branch=( in 1x4x6 relu ) of @1 @3")


def _foreign(shape: list[int] | None) -> onnx.ModelProto:
    nodes = [node("Swirl", "x w", "y", domain="com.acme", power=2, mode="left right", taps=[0.5, 1.0])]
    made = model(nodes, [X], [("y", FLOAT, [1, 4, 3])], {"w": np.zeros((6, 3), np.float32)})
    if shape is None:
        made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def test_foreign_operators_are_written_in_full() -> None:
    text = to_text(_foreign([1, 4, 3]))
    line = "com.acme:Swirl <@;%6x3> mode='left%20right power=2 taps=[0.5f,1f] =>float32:1x4x3"
    assert text.split("\n")[2] == line
    assert to_text(parse_text(text)) == text
    assert to_text(to_onnx(text)) == text
    with pytest.raises(ExportError, match="the shape of 'y' is not known"):
        to_text(_foreign(None))


def test_sequences_are_refused_in_plain_words() -> None:
    made = model([node("SplitToSequence", "x", "y")], [X], [("y", FLOAT, [1])])
    with pytest.raises(ExportError, match="sequences of tensors"):
        to_text(made)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("onnx:TopK <@;#int64:1:5> ->2 why", "'why' has no place"),
        ("onnx:If <@bool> then_branch=( in 1", "may be cut short"),
        ("com.acme:Swirl =>float33:1", "no type such as"),
        ("onnx:Whirl", "no operator Whirl"),
        ("onnx:TopK", "does not fit|does not say"),
        ("onnx:Sin axis=3", "Sin has no attribute 'axis'"),
        ("onnx:Sin =>float32:7x7", "one of ONNX has none"),
        ("onnx:Sin /999999", "no operator Sin of opset 999999"),
        ("onnx:Sin ->100000000", "cannot give 100000000 values"),
        ("onnx:Sin ->3", "at most 1 values"),
        ("com.acme:S =>float32:1x4 ->2", "1 types for 2 values"),
        ("onnx:TopK <@;%zzz>", "is no input"),
        ("onnx:TopK <@;!x>", "is no input"),
        ("onnx:TopK <@foo;@>", "is no element type"),
        ("onnx:Add <@;@>", "reads 2 values, but 1"),
        ("onnx:Sin <@;@> of @1", "reads 2 values, but 1"),
        ("onnx:Celu t=%100000x100000x100", "more than"),
        ("onnx:Scan <@> body=( in 4 relu )", "does not fit"),
        ("onnx:Loop <@> body=( in - int64 in - bool )", "Loop"),
        ("onnx:TopK <@;#int64:1:2> axis=1 ->2", "take one with 'item'"),
        ("onnx:TopK <@;#int64:1:2> axis=1 ->2 relu", "take one of them with 'item'"),
    ],
)
def test_bad_words_are_text_errors(words: str, complaint: str) -> None:
    with pytest.raises(TextError, match=complaint):
        parse_text(f"nasrlm1 in 1x4 {words}")


def test_branches_may_stand_in_any_order() -> None:
    first, second = _if(), _if()
    node_ = next(n for n in second.graph.node if n.op_type == "If")
    attributes = list(node_.attribute)[::-1]
    del node_.attribute[:]
    node_.attribute.extend(attributes)
    assert to_text(first) == to_text(second)


def test_a_scan_of_other_axes() -> None:
    body = _body(
        [node("Add", "s r", "t"), node("Identity", "t", "o")],
        [("s", FLOAT, [6]), ("r", FLOAT, [6])],
        [("t", FLOAT, [6]), ("o", FLOAT, [6])],
    )
    scan = node(
        "Scan", "first x2", "last all", body=body, num_scan_inputs=1, scan_input_axes=[-1], scan_output_axes=[1]
    )
    made = model(
        [
            node("Transpose", "x", "x1", perm=[0, 2, 1]),
            node("Squeeze", "x1 z", "x2"),
            node("ReduceMax", "x2", "first", axes=[1], keepdims=0),
            scan,
        ],
        [X],
        [("last", FLOAT, [6]), ("all", FLOAT, [6, 4])],
        {"z": np.array([0])},
    )
    text = to_text(made)
    assert to_text(to_onnx(text)) == text
    values = {"x": _example(made.graph.input[0])}
    for a, b in zip(_run(made, values), _run(to_onnx(text, weights="random"), {"input": values["x"]}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_loop_value_that_grows_is_refused() -> None:
    nodes = [node("Identity", "go", "on"), node("Concat", "a x", "b", axis=1)]
    inputs = [("i", INT, []), ("go", BOOL, []), ("a", FLOAT, None)]
    body = _body(nodes, inputs, [("on", BOOL, []), ("b", FLOAT, None)])
    made = model(
        [node("Relu", "x", "start"), node("Loop", "n _ start", "y", body=body)],
        [X],
        [("y", FLOAT, None)],
        {"n": np.int64(3)},
    )
    with pytest.raises(ExportError, match="grows from"):
        to_text(made)


def test_old_forms_that_opset_17_has_not_are_refused() -> None:
    made = model([node("TopK", "x", "v i", k=2)], [X], [("v", FLOAT, [1, 4, 2])], {}, 9)
    with pytest.raises(ExportError, match="convert_version"):
        to_text(made)


def test_nesting_ends_somewhere() -> None:
    deep = "onnx:If <@bool> then_branch=( in 1 bool " * 40
    with pytest.raises(TextError, match="16 deep"):
        parse_text(f"nasrlm1 in 1 bool {deep}")

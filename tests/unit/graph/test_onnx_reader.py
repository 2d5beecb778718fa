"""ONNX models, operator by operator: what is read computes what the model computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from nasrlm.errors import ExportError
from nasrlm.graph import to_onnx, to_text
from tests.unit.graph.test_generic import model, node

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
X4 = ("x", FLOAT, [2, 4, 6, 6])
X2 = ("x", FLOAT, [2, 9])
Y4 = ("y", FLOAT, [2, 4, 6, 6])


def run(made: onnx.ModelProto, feeds: list[np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(zip([i.name for i in session.get_inputs()], feeds, strict=True))))


def unary(kind: str, output: list[int] | None = None, constants: dict[str, Any] | None = None, **attributes: Any):
    def make(opset: int = 17) -> onnx.ModelProto:
        given = " ".join(["x", *(constants or {})])
        y = ("y", FLOAT, output or [2, 4, 6, 6])
        return model([node(kind, given, "y", **attributes)], [X4], [y], constants, opset)

    return make


def shapes(nodes: list[onnx.NodeProto], output: list[int], **constants: Any):
    return lambda: model(nodes, [X2], [("y", FLOAT, output)], constants)


def gathered(kind: str, **attributes: Any):
    nodes = [node(kind, "c a", "s", **attributes), node("Gather", "x s", "y", axis=1)]
    return shapes(nodes, [2, 3], c=np.array([0, 1, 2]), a=np.int64(0))


def resized(mode: str, coordinates: str, rounding: str, scale: float, size: int):
    scales = np.array([1, 1, scale, scale], np.float32)
    nodes = [
        node(
            "Resize",
            "x _ s",
            "y",
            mode=mode,
            coordinate_transformation_mode=coordinates,
            **({"nearest_mode": rounding} if mode == "nearest" else {}),
        )
    ]
    return lambda: model(nodes, [X4], [("y", FLOAT, [2, 4, size, size])], {"s": scales})


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


SAME = {
    "CumSum of constants": gathered("CumSum"),
    "CumSum of constants, exclusive": gathered("CumSum", exclusive=1),
    "CumSum of constants, reversed": gathered("CumSum", reverse=1),
    "Selu": unary("Selu"),
    "Selu with its own numbers": unary("Selu", alpha=2.0, gamma=3.0),
    "Dropout": unary("Dropout"),
    "Softmax": unary("Softmax", axis=1),
    "AveragePool that rounds up": unary("AveragePool", [2, 4, 3, 3], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "MaxPool that rounds up": unary("MaxPool", [2, 4, 3, 3], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "MaxPool, dilated": unary("MaxPool", [2, 4, 4, 4], kernel_shape=[2, 2], dilations=[2, 2]),
    "MaxPool, lower": unary("MaxPool", [2, 4, 3, 3], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER"),
    "Pad, reflected": unary("Pad", [2, 4, 8, 6], {"p": i64(0, 0, 1, 0, 0, 0, 1, 0)}, mode="reflect"),
    "Pad of channels": unary("Pad", [2, 6, 6, 6], {"p": i64(0, 1, 0, 0, 0, 1, 0, 0)}),
    "Slice": unary("Slice", [2, 2, 6, 2], {"s": i64(1, 0), "e": i64(3, 5), "a": i64(1, 3), "t": i64(1, 3)}),
    "Slice from the end": unary("Slice", [2, 2, 6, 6], {"s": i64(-2), "e": i64(2**63 - 1), "a": i64(1)}),
    "Slice backwards": unary("Slice", [2, 4, 6, 6], {"s": i64(-1), "e": i64(-99), "a": i64(3), "t": i64(-1)}),
    "ReduceMean": lambda: unary("ReduceMean", [2, 4, 1, 1], {"a": i64(-1, -2)})(18),
    "ReduceSumSquare of nothing": lambda: unary("ReduceSumSquare", None, {"a": i64()}, noop_with_empty_axes=1)(18),
    "Mean": lambda: model([node("Neg", "x", "z"), node("Mean", "x z x", "y")], [X4], [Y4]),
    "Gather": unary("Gather", [2, 3, 6, 6], {"i": i64(2, 0, -1)}, axis=1),
    "integer division": shapes(
        [node("Div", "a b", "d"), node("Gather", "x d", "y", axis=1)], [2, 2], a=i64(-7, 7), b=i64(2, 2)
    ),
    "Reshape by computed sizes": shapes(
        [
            node("Shape", "x", "s"),
            node("Gather", "s z", "b"),
            node("Concat", "b m", "t", axis=0),
            node("Reshape", "x t", "y"),
        ],
        [2, 9],
        z=i64(0),
        m=i64(-1),
    ),
    "Split": lambda: model(
        [node("Split", "x", "a b", axis=1, num_outputs=2), node("Concat", "b a", "y", axis=1)],
        [X2],
        [("y", FLOAT, [2, 9])],
        {},
        18,
    ),
    **{
        f"Resize {mode} {coordinates} {rounding} {scale}": resized(mode, coordinates, rounding, scale, size)
        for scale, size in ((2.0, 12), (0.5, 3), (1.3, 7))
        for coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
        for mode, rounding in (("nearest", "floor"), ("nearest", "round_prefer_ceil"), ("linear", "floor"))
    },
    "Attention": lambda: model(
        [node("Attention", "x x x", "y", is_causal=1)],
        [("x", FLOAT, [1, 2, 5, 8])],
        [("y", FLOAT, [1, 2, 5, 8])],
        {},
        23,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_read_computes_the_same(name: str) -> None:
    source = SAME[name]()
    rng = np.random.default_rng(0)
    feeds = [
        rng.normal(size=[d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32)
        for i in source.graph.input
    ]
    text = to_text(source)
    written = to_onnx(text, weights="random")
    assert to_text(written) == text
    for a, b in zip(run(source, feeds), run(written, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def lines(made: onnx.ModelProto) -> str:
    return " ".join(to_text(made).split("\n")[2:])


W = np.ones((9, 5), np.float32)
Y2 = ("y", FLOAT, [2, 5])


def test_summands_of_gemm() -> None:
    def gemm(c: np.ndarray, **attributes: Any) -> str:
        return lines(model([node("Gemm", "x w c", "y", **attributes)], [X2], [Y2], {"w": W, "c": c}))

    assert gemm(np.ones(5, np.float32)) == "linear 5"
    assert gemm(np.ones((1, 5), np.float32)) == "linear 5"
    assert gemm(np.ones(5, np.float32), beta=0.0) == "linear 5 nobias"
    assert gemm(np.array([[0.1], [0.2]], np.float32)) == "linear 5 nobias add %2x1"
    nodes = [node("Neg", "c", "d"), node("Gemm", "x w d", "y", beta=0.5)]
    made = model(nodes, [X2, ("c", FLOAT, [2, 5])], [Y2], {"w": W})
    assert lines(made) == "in 2x5 linear 5 nobias @2 neg @2 mul #0.5 add @3"


@pytest.mark.parametrize(
    ("kind", "operands", "constants"),
    [
        ("BatchNormalization", "x v c c c", {"c": np.ones(4, np.float32)}),
        ("InstanceNormalization", "x v c", {"c": np.ones(4, np.float32)}),
        ("Conv", "x w v", {"w": np.ones((4, 4, 1, 1), np.float32)}),
        ("PRelu", "x c", {"c": np.arange(6, dtype=np.float32)}),
        ("Dropout", "x r t", {"r": np.float32(0.5), "t": np.array(True)}),
    ],
)
def test_what_is_no_layer_is_written_in_full(kind: str, operands: str, constants: dict[str, Any]) -> None:
    nodes = [node("Relu", "u", "v"), node(kind, operands, "y")]
    text = to_text(model(nodes, [X4, ("u", FLOAT, [4])], [Y4], constants))
    assert f"onnx:{kind} " in text


def test_a_slope_a_channel() -> None:
    made = model([node("PRelu", "x c", "y")], [X4], [Y4], {"c": np.arange(4, dtype=np.float32).reshape(4, 1, 1)})
    assert lines(made) == "prelu"


def test_large_constants_are_not_computed() -> None:
    huge = {"s": np.array([10**6, 10**6], np.int64)}
    made = model(
        [
            node("ConstantOfShape", "s", "c"),
            node("Cos", "c", "d"),
            node("ReduceSum", "d", "e", keepdims=0),
            node("Mul", "x e", "y"),
        ],
        [X2],
        [("y", FLOAT, [2, 9])],
        huge,
    )
    assert lines(made) == "mul %-"


@pytest.mark.parametrize(
    ("kind", "attributes", "complaint"),
    [
        ("Concat", {"axis": 9}, "the axis 9 is none of 4"),
        ("Transpose", {"perm": [0, 0, 1, 2]}, "no order of the 4 dimensions"),
        ("DepthToSpace", {"blocksize": 3}, "divides"),
        ("MaxPool", {"kernel_shape": [9, 9]}, "does not fit"),
        ("MaxPool", {"kernel_shape": [0, 1]}, "absurd"),
        ("Whirl", {}, "no operator 'Whirl'"),
    ],
)
def test_bad_nodes_are_named(kind: str, attributes: dict[str, Any], complaint: str) -> None:
    made = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node(kind, ["x"], ["y"], name="here", **attributes)],
            "g",
            [onnx.helper.make_tensor_value_info(*X4)],
            [onnx.helper.make_tensor_value_info(*Y4)],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
    )
    with pytest.raises(ExportError, match=complaint) as caught:
        to_text(made)
    assert "here" in str(caught.value)

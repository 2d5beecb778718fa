"""What is wrong inside of an ONNX model: each fault has its message, and what only looks wrong is read."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, TensorProto, helper, numpy_helper

from nasrlm.errors import ExportError
from nasrlm.graph import to_text
from nasrlm.graph.onnx_file import open_model

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, value, opset_id = helper.make_node, helper.make_tensor_value_info, helper.make_opsetid


def chain(*, branch_on: str = "a", **more: object) -> ModelProto:
    """Relu, an If whose branches read a and b, an Add and a product with a weight."""
    branches = [
        helper.make_graph(
            [node(kind, [branch_on], ["u"], "first"), node("Mul", ["u", "b"], ["v"], "second")],
            *(kind, [], [value("v", FLOAT, [2, 4])]),
        )
        for kind in ("Elu", "Tanh")
    ]
    nodes = [
        node("Relu", ["x"], ["a"], "relu"),
        node("Sigmoid", ["a"], ["b"], "sigmoid"),
        node("If", ["c"], ["d"], "if", then_branch=branches[0], else_branch=branches[1]),
        node("Add", ["a", "d"], ["e"], "add"),
        node("MatMul", ["e", "w"], ["y"], "matmul"),
    ]
    weights = [numpy_helper.from_array(np.ones((4, 4), np.float32), "w")]
    inputs = [value("x", FLOAT, [2, 4]), value("c", BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", FLOAT, [2, 4])], weights)
    return helper.make_model(graph, opset_imports=[opset_id("", 17)], ir_version=8, **more)


def body(m: ModelProto) -> object:
    return m.graph.node[2].attribute[0].g


FAULTS: dict[str, tuple[Callable[[ModelProto], object], str]] = {
    "no nodes": (lambda m: m.graph.ClearField("node"), "has no nodes"),
    "no output": (lambda m: m.graph.ClearField("output"), "has no output"),
    "output": (lambda m: m.graph.output.append(value("gone", FLOAT, [1])), r"output 'gone' reads 'gone'"),
    "missing weight": (lambda m: m.graph.ClearField("initializer"), r"node 'matmul' \(MatMul\) reads 'w', which is"),
    "misspelt": (lambda m: set_input(m, 3, "aa"), r"node 'add' \(Add\) reads 'aa'.* Nearest: 'a'"),
    "missing inside": (
        lambda m: set_input(body(m), 0, "q"),
        r"'first' \(Tanh\) in 'else_branch' of node 'if'.*reads 'q'",
    ),
    "two nodes": (lambda m: set_output(m, 3, "b"), r"'add' \(Add\) writes 'b', which node 'sigmoid' \(Sigmoid\) gives"),
    "node and weight": (lambda m: set_output(m, 3, "w"), "writes 'w', which an input or initializer gives, too"),
    "node and input": (lambda m: set_output(m, 3, "x"), "writes 'x', which an input"),
    "twice inside": (lambda m: set_output(body(m), 1, "u"), "in 'else_branch'.* writes 'u'"),
    "inputs": (lambda m: m.graph.input.append(m.graph.input[0]), "input 'x' is declared twice"),
    "weights": (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "initializer 'w' is given twice"),
    "own value": (lambda m: set_input(m, 0, "a"), r"circle: node 'relu' \(Relu\) -> node 'relu'"),
    "circle": (lambda m: set_input(m, 0, "e"), "circle: .*'relu'.*; no order computes them"),
    "circle by a branch": (lambda m: set_input(body(m), 0, "d"), "circle: node 'if'"),
    "negative": (lambda m: set_dim(m, -4), r"input 'x' has a negative dimension: \(2, -4\)"),
    "huge": (lambda m: set_dim(m, 2**53), r"input 'x' has the absurd shape \(2, 9007199254740992\)"),
    "type": (lambda m: set_type(m, 99), "input 'x' has the element type 99"),
    "weight type": (lambda m: setattr(m.graph.initializer[0], "data_type", 0), "tensor 'w' has the element type 0"),
    "no data": (lambda m: m.graph.initializer[0].ClearField("raw_data"), r"'w' of FLOAT \(4, 4\) holds 0 numbers, 16"),
    "no opset": (lambda m: m.ClearField("opset_import"), "opset_import is missing"),
    "other opset": (lambda m: setattr(m.opset_import[0], "domain", "my"), "opset_import is missing"),
    "two opsets": (lambda m: m.opset_import.append(opset_id("ai.onnx", 18)), "'ai.onnx' are imported in two versions"),
    "old opset": (lambda m: setattr(m.opset_import[0], "version", 8), "opset 8 of ONNX; allowed: 9 to"),
    "later operator": (lambda m: set_kind(m, "Gelu"), "'relu'.*: operator Gelu does not exist in opset 17"),
    "misspelt operator": (lambda m: set_kind(m, "Rellu"), "no operator 'Rellu' in opset 17. Nearest: Relu"),
    "no operator": (lambda m: set_kind(m, ""), "node 'relu' .* has no operator"),
    "few inputs": (lambda m: m.graph.node[3].input.pop(), r"'add' \(Add\) has 1 inputs; allowed: 2 to 2"),
    "many inputs": (lambda m: m.graph.node[0].input.append("x"), "has 2 inputs; allowed: 1 to 1"),
    "empty input": (lambda m: set_input(m, 3, ""), "'add'.* input 0 is left empty"),
    "no outputs": (lambda m: m.graph.node[0].ClearField("output"), "has no output"),
    "many outputs": (lambda m: m.graph.node[0].output.append("z"), "has 2 outputs; allowed: 1 to 1"),
    "unknown attribute": (lambda m: add(m, "alhpa", 1.0), r"'if'.*attribute 'alhpa' is unknown.*Allowed: else_branch"),
    "attribute type": (lambda m: set_attribute(m, type=AttributeProto.INT), "says that it is INT and holds g"),
    "attribute without type": (lambda m: set_attribute(m, type=0), "attribute 'else_branch' has no type"),
    "attribute without value": (lambda m: m.graph.node[2].attribute[0].ClearField("g"), "GRAPH has no value"),
    "attribute twice": (lambda m: set_attribute(m, name="then_branch"), "'then_branch' has no name or is given twice"),
    "attribute of a function": (lambda m: set_attribute(m, ref_attr_name="r"), "refers to 'r' of a function"),
    "attribute missing": (lambda m: m.graph.node[2].attribute.pop(), "attribute 'then_branch' is missing"),
}


def set_input(m: object, position: int, name: str) -> None:
    getattr(m, "graph", m).node[position].input[0] = name


def set_output(m: object, position: int, name: str) -> None:
    getattr(m, "graph", m).node[position].output[0] = name


def set_kind(m: ModelProto, kind: str) -> None:
    m.graph.node[0].op_type = kind


def set_dim(m: ModelProto, size: int) -> None:
    m.graph.input[0].type.tensor_type.shape.dim[1].dim_value = size


def set_type(m: ModelProto, number: int) -> None:
    m.graph.input[0].type.tensor_type.elem_type = number


def add(m: ModelProto, name: str, given: object) -> None:
    m.graph.node[2].attribute.append(helper.make_attribute(name, given))


def set_attribute(m: ModelProto, **fields: object) -> None:
    for name, given in fields.items():
        setattr(m.graph.node[2].attribute[0], name, given)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(fault: str, tmp_path: Path) -> None:
    change, message = FAULTS[fault]
    model = chain()
    change(model)
    with pytest.raises(ExportError, match=message):
        open_model(model)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ExportError, match=f"model.onnx'.*{message}"):
        open_model(path)


def test_words_that_are_no_text(tmp_path: Path) -> None:
    data = chain().SerializeToString()
    for word in (b"relu", b"sigmoid", b"then_branch", b"second"):
        path = tmp_path / "model.onnx"
        path.write_bytes(data.replace(word, b"\xff" * len(word)))
        with pytest.raises(ExportError, match="no text|no name"):
            open_model(path)


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("GatherND", {"batch_dims": -(2**31)}, "'batch_dims' is -2147483648; allowed: 0 to 64"),
        ("Concat", {"axis": 2**40}, "'axis' is 1099511627776; allowed: -64 to 64"),
        ("Split", {"num_outputs": 2**31 - 1}, "'num_outputs' is 2147483647, the node has 1 outputs"),
        ("Einsum", {"equation": b"\xff\xfe"}, "'equation' is .* allowed: letters"),
        ("MaxPool", {"kernel_shape": [2**62, 3]}, "'kernel_shape' is 4611686018427387904; allowed: -2147483648 to"),
    ],
)
def test_numbers_that_crash_or_stall_shape_inference_are_refused(kind: str, attributes: dict, message: str) -> None:
    model = chain()
    model.opset_import[0].version = 18
    inputs = ["x"] if kind in ("Split", "MaxPool") else ["x", "x"]
    model.graph.node[0].CopyFrom(node(kind, inputs, ["a"], **attributes))
    with pytest.raises(ExportError, match=message):
        to_text(model)


def test_messages_stay_short() -> None:
    model = chain()
    set_input(model, 3, "n" * 100_000)
    model.graph.node[3].name = "m" * 100_000
    with pytest.raises(ExportError) as error:
        open_model(model)
    assert len(str(error.value)) < 500


# --- what only looks wrong ------------------------------------------------------------------------------------


def test_the_order_of_nodes_does_not_matter() -> None:
    rng = random.Random(0)
    expected = to_text(chain())
    for _ in range(20):
        model = chain()
        for graph in (body(model), model.graph.node[2].attribute[1].g, model.graph):
            nodes = rng.sample(list(graph.node), len(graph.node))
            del graph.node[:]
            graph.node.extend(nodes)
        before = model.SerializeToString()
        assert to_text(model) == expected
        assert model.SerializeToString() == before, "the user's model must not change"


def test_a_model_in_memory_is_not_copied_without_need() -> None:
    model = chain()
    assert open_model(model) is model


def test_initializers_may_be_declared_as_inputs() -> None:
    model = chain()
    model.graph.input.append(value("w", FLOAT, [4, 4]))
    assert to_text(model) == to_text(chain())


def test_zeros_may_be_left_unwritten() -> None:
    """As writers with the third version of protobuf do."""
    model = chain()
    nodes = model.graph.node
    nodes[0].CopyFrom(node("Softmax", ["x"], ["a"], axis=0))
    expected = to_text(model)
    nodes[0].attribute[0].ClearField("i")
    assert to_text(model) == expected


# --- functions ------------------------------------------------------------------------------------------------


def function(name: str, nodes: list, opset: int = 17, attributes: list = ()) -> FunctionProto:
    imports = [opset_id("", opset), opset_id("my", 1)]
    return helper.make_function("my", name, ["x"], ["y"], nodes, imports, list(attributes))


def calls(name: str, times: int) -> list:
    """y = name(name(... x))."""
    values = ["x", *(f"t{i}" for i in range(times - 1)), "y"]
    return [node(name, [a], [b], domain="my") for a, b in pairwise(values)]


def calling(name: str, functions: list, opset: int = 17, **attributes: object) -> ModelProto:
    model = chain(functions=functions)
    model.opset_import[0].version = opset
    model.opset_import.append(opset_id("my", 1))
    model.graph.node[0].CopyFrom(node(name, ["x"], ["a"], "call", domain="my", **attributes))
    return model


def test_functions_are_written_out(tmp_path: Path) -> None:
    slope = AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope")
    leaky = node("LeakyRelu", ["x"], ["y"])
    leaky.attribute.append(slope)
    functions = [function("Leaky", [leaky], attributes=["slope"])]
    model = calling("Leaky", functions, slope=0.3)
    plain = chain()
    plain.graph.node[0].CopyFrom(node("LeakyRelu", ["x"], ["a"], alpha=0.3))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert to_text(model) == to_text(path) == to_text(plain)
    assert len(model.functions) == 1, "the user's model must not change"


def test_functions_of_another_opset() -> None:
    functions = [function("Act", [node("Relu", ["x"], ["y"])], opset=15)]
    assert to_text(calling("Act", functions)) == to_text(chain())
    squeezed = function("Squash", [node("ReduceMean", ["x"], ["y"], axes=[0])], opset=17)
    with pytest.raises(ExportError, match="'my.Squash' is written for other versions|cannot be written out"):
        open_model(calling("Squash", [squeezed], opset=18))


def test_functions_that_double_are_counted_before_they_are_written_out() -> None:
    functions = [function("F0", [node("Relu", ["x"], ["y"])])]
    functions += [function(f"F{i}", calls(f"F{i - 1}", 2)) for i in range(1, 60)]
    with pytest.raises(ExportError, match="with its functions written out the model has 576,460,752,303,423,496 nodes"):
        open_model(calling("F59", functions))
    assert len(open_model(calling("F5", functions[:6])).graph.node) == 36


def test_functions_with_large_constants_are_counted_in_bytes() -> None:
    constant = numpy_helper.from_array(np.ones(2**16, np.int64), "t")
    nodes = [node("Constant", [], ["w"], value=constant), node("Relu", ["x"], ["y"])]
    functions = [function("F", nodes), function("G", calls("F", 1000))]
    with pytest.raises(ExportError, match="524,.* bytes"):
        open_model(calling("G", functions))


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([function("F", calls("F", 1))], "circle: 'my.F' -> 'my.F'"),
        ([function("F", calls("G", 1)), function("G", calls("F", 2))], "circle: 'my.F' -> 'my.G' -> 'my.F'"),
        ([function("F", calls("H", 1))] * 2, "'my.F' is defined twice"),
        ([function("F", [node("Relu", ["q"], ["y"])])], r"\(Relu\) reads .*q"),
        ([helper.make_function("my", "F", [], ["y"], [], [opset_id("", 17)])], "calls function 'F' with 1 inputs"),
        ([function(f"F{i or ''}", calls(f"F{i + 1}", 1)) for i in range(99)], "more than 64 deep, from 'my.F'"),
    ],
)
def test_wrong_functions(functions: list, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        open_model(calling("F", functions))

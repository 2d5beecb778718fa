"""Small models of every kind, and ways to damage them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from nasrlm.graph import to_onnx
from nasrlm.spaces import get_space

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, value = helper.make_node, helper.make_tensor_value_info


def tensor(name: str, data: object, dtype: object = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def weight(name: str, *dims: int) -> TensorProto:
    return tensor(name, np.random.default_rng(0).standard_normal(dims), np.float32)


def model(nodes: list[NodeProto], inputs: list, outputs: list, initializers: list, **more: object) -> ModelProto:
    opset = more.pop("opset", 17)
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", opset), *more.pop("imports", [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


def branches() -> ModelProto:
    """If and Loop, whose bodies read values from outside."""
    one = helper.make_graph([node("Relu", ["x"], ["a"])], "then", [], [value("a", FLOAT, [2, 4])])
    two = helper.make_graph([node("Tanh", ["x"], ["b"])], "else", [], [value("b", FLOAT, [2, 4])])
    body = helper.make_graph(
        [
            node("Add", ["s", "x"], ["t"]),
            node("Identity", ["c"], ["d"]),
            node("If", ["d"], ["u"], then_branch=one, else_branch=two),
            node("Mul", ["t", "u"], ["v"]),
        ],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("s", FLOAT, [2, 4])],
        [value("d", BOOL, []), value("v", FLOAT, [2, 4]), value("t", FLOAT, [2, 4])],
    )
    nodes = [
        node("If", ["flag"], ["y"], then_branch=one, else_branch=two),
        node("Loop", ["times", "true", "y"], ["z", "all"], body=body),
    ]
    inputs = [value("x", FLOAT, [2, 4]), value("flag", BOOL, [])]
    outputs = [value("z", FLOAT, [2, 4]), value("all", FLOAT, None)]
    return model(nodes, inputs, outputs, [tensor("times", 3), tensor("true", True, bool)])


def recurrent() -> ModelProto:
    """An embedding, an LSTM in both directions and a classifier on its last state."""
    nodes = [
        node("Gather", ["table", "ids"], ["e"]),
        node("Transpose", ["e"], ["t"], perm=[1, 0, 2]),
        node("LSTM", ["t", "w", "r", "b"], ["", "h", ""], hidden_size=6, direction="bidirectional"),
        node("Split", ["h", "parts"], ["h0", "h1"], axis=0),
        node("Concat", ["h0", "h1"], ["c"], axis=2),
        node("Squeeze", ["c", "zero"], ["q"]),
        node("Gemm", ["q", "m", "n"], ["y"], transB=1),
    ]
    weights = [weight("table", 20, 8), weight("w", 2, 24, 8), weight("r", 2, 24, 6), weight("b", 2, 48)]
    weights += [weight("m", 3, 12), weight("n", 3), tensor("parts", [1, 1]), tensor("zero", [0])]
    return model(nodes, [value("ids", INT64, ["batch", 7])], [value("y", FLOAT, ["batch", 3])], weights)


def attention() -> ModelProto:
    """Heads of attention with a causal mask, shapes computed on the way as exporters do."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["batch"], axis=0),
        node("Unsqueeze", ["batch", "axis"], ["b1"]),
        node("Concat", ["b1", "tail"], ["heads"], axis=0),
        node("MatMul", ["x", "wq"], ["q0"]),
        node("Reshape", ["q0", "heads"], ["q1"]),
        node("Transpose", ["q1"], ["q"], perm=[0, 2, 1, 3]),
        node("Transpose", ["q1"], ["k"], perm=[0, 2, 3, 1]),
        node("Mul", ["q", "scale"], ["qs"]),
        node("MatMul", ["qs", "k"], ["scores"]),
        node("Where", ["mask", "scores", "low"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1),
        node("MatMul", ["p", "q"], ["o"]),
        node("Transpose", ["o"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "flat"], ["o2"]),
        node("Add", ["o2", "x"], ["r"]),
        node("LayerNormalization", ["r", "g", "b"], ["y"], axis=-1, epsilon=1e-5),
    ]
    constants = [tensor("zero", 0), tensor("axis", [0]), tensor("tail", [5, 2, 4]), tensor("flat", [0, 0, -1])]
    constants += [tensor("scale", 0.5, np.float32), tensor("low", -1e9, np.float32), weight("wq", 8, 8)]
    constants += [tensor("mask", np.tril(np.ones((5, 5))), bool), weight("g", 8), weight("b", 8)]
    return model(nodes, [value("x", FLOAT, ["n", 5, 8])], [value("y", FLOAT, ["n", 5, 8])], constants)


def image() -> ModelProto:
    """Operators of images with attributes that older opsets have, and an upsampling by computed sizes."""
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c", "g", "h", "m", "v"], ["n"], epsilon=1e-5),
        node("Clip", ["n", "lo", "hi"], ["k"]),
        node("MaxPool", ["k"], ["p"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
        node("ConvTranspose", ["p", "u"], ["t"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Pad", ["t", "pads"], ["d"], mode="reflect"),
        node("Slice", ["d", "starts", "ends", "axes", "steps"], ["s"]),
        node("Resize", ["s", "", "scales"], ["r"], mode="linear"),
        node("InstanceNormalization", ["r", "g", "h"], ["i"]),
        node("ReduceMean", ["i"], ["mean"], axes=[2, 3], keepdims=1),
        node("Constant", [], ["half"], value=tensor("half", [0.5], np.float32)),
        node("Mul", ["i", "half"], ["halved"]),
        node("Sub", ["halved", "mean"], ["y"]),
    ]
    weights = [weight("w", 4, 3, 3, 3), weight("u", 4, 4, 2, 2), *(weight(n, 4) for n in "bghmv")]
    weights += [tensor("lo", 0, np.float32), tensor("hi", 6, np.float32), tensor("pads", [0, 0, 1, 1, 0, 0, 1, 1])]
    weights += [
        tensor("starts", [1, 1]),
        tensor("ends", [9, 2**63 - 1]),
        tensor("axes", [2, 3]),
        tensor("steps", [1, 1]),
    ]
    weights += [tensor("scales", [1, 1, 2, 2], np.float32)]
    return model(nodes, [value("x", FLOAT, [1, 3, 16, 16])], [value("y", FLOAT, None)], weights)


def functions() -> ModelProto:
    """A function that calls another twice, and an operator of another maker."""
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    inner = helper.make_function("my", "Act", ["x"], ["y"], [node("Elu", ["x"], ["y"])], opset)
    outer = [node("Act", ["x"], ["t"], domain="my"), node("Act", ["t"], ["y"], domain="my")]
    nodes = [
        node("Twice", ["x"], ["a"], domain="my"),
        node("BiasGelu", ["a", "b"], ["y"], domain="com.microsoft"),
        node("TopK", ["y", "k"], ["best", "where"], axis=-1),
    ]
    outputs = [value("best", FLOAT, [2, 1]), value("where", INT64, [2, 1])]
    made = model(
        nodes,
        [value("x", FLOAT, [2, 4])],
        outputs,
        [weight("b", 4), tensor("k", [1])],
        functions=[inner, helper.make_function("my", "Twice", ["x"], ["y"], outer, opset)],
        imports=[helper.make_opsetid("my", 1), helper.make_opsetid("com.microsoft", 1)],
    )
    made.graph.value_info.append(value("y", FLOAT, [2, 4]))
    return made


def bases() -> list[ModelProto]:
    """Models that can be read, before anything is damaged."""
    space = get_space("nasbench201")
    cells = [to_onnx(a, weights=w) for a, w in zip(space.sample(2, 0), (None, "random"), strict=True)]
    return [branches(), recurrent(), attention(), image(), functions(), *cells]


# --- damage to bytes ------------------------------------------------------------------------------------------


def flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 1, 2, 5, 40])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 2, 10, 100, len(data)])]


def insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice([1, 2, 8, 64]))


def swap(data: bytearray, rng: random.Random) -> None:
    n = rng.choice([1, 4, 32, 200])
    a, b = rng.randrange(len(data)), rng.randrange(len(data))
    data[a : a + n], data[b : b + n] = data[b : b + n], data[a : a + n]


def zero(data: bytearray, rng: random.Random) -> None:
    at, n = rng.randrange(len(data)), rng.choice([1, 4, 16, 256])
    data[at : at + n] = bytes(len(data[at : at + n]))


def repeat(data: bytearray, rng: random.Random) -> None:
    at, n = rng.randrange(len(data)), rng.choice([2, 16, 300])
    data[at:at] = data[at : at + n]


BYTES: list[Callable[[bytearray, random.Random], None]] = [flip, cut, insert, swap, zero, repeat]


# --- damage to models -----------------------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 2, 3, 7, -2, 64, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63), 10**6]
FLOATS = [0.0, -1.0, 1e-30, 1e38, float("inf"), float("nan"), 0.3, 2.0]
STRINGS = [b"", b"SAME_UPPER", b"VALID", b"nearest", b"\xff\xfe", b"reverse", b"edge", b"x" * 3000, b"ij,jk->ik"]


def graphs(made: ModelProto) -> list[GraphProto]:
    found = [made.graph]
    for g in found:
        found += [a.g for n in g.node for a in n.attribute if a.type == AttributeProto.GRAPH]
    return found


def numbers(rng: random.Random) -> list[int]:
    return [rng.choice(NUMBERS) for _ in range(rng.choice([0, 1, 2, 2, 3, 4, 4, 5, 8]))]


def rename_input(g: GraphProto, rng: random.Random) -> None:
    n = rng.choice(g.node)
    names = [o for m in g.node for o in m.output] + [t.name for t in g.initializer] + ["", "nothing"]
    if n.input and rng.random() < 0.8:
        n.input[rng.randrange(len(n.input))] = rng.choice(names)
    else:
        n.output[rng.randrange(len(n.output))] = rng.choice(names)


def resize_slots(g: GraphProto, rng: random.Random) -> None:
    n = rng.choice(g.node)
    slots = rng.choice([n.input, n.output])
    if slots and rng.random() < 0.6:
        del slots[rng.randrange(len(slots))]
    else:
        slots.append(rng.choice([*slots, "", "more"]))


def drop(g: GraphProto, rng: random.Random) -> None:
    kind = rng.choice([g.node, g.node, g.initializer, g.input, g.output, g.value_info])
    if kind:
        del kind[rng.randrange(len(kind))]


def copy_something(g: GraphProto, rng: random.Random) -> None:
    kind = rng.choice([g.node, g.initializer, g.input, g.output])
    if kind:
        kind.append(rng.choice(kind))


def move_node(g: GraphProto, rng: random.Random) -> None:
    nodes = list(g.node)
    rng.shuffle(nodes)
    del g.node[:]
    g.node.extend(nodes)


def change_attribute(g: GraphProto, rng: random.Random) -> None:
    n = rng.choice([n for n in g.node if n.attribute] or list(g.node))
    if not n.attribute or rng.random() < 0.1:
        names = ("axis", "axes", "to", "perm", "group", "num_outputs", "keepdims")
        n.attribute.append(helper.make_attribute(rng.choice(names), rng.choice(NUMBERS)))
        return
    at = rng.randrange(len(n.attribute))
    a = n.attribute[at]
    if rng.random() < 0.15:
        del n.attribute[at]
    elif a.type == AttributeProto.INTS and a.ints and rng.random() < 0.5:
        a.ints[rng.randrange(len(a.ints))] = rng.choice(NUMBERS)
    elif a.type == AttributeProto.INT and rng.random() < 0.7:
        a.i = rng.choice(NUMBERS)
    elif a.type == AttributeProto.FLOAT and rng.random() < 0.7:
        a.f = rng.choice(FLOATS)
    elif a.type == AttributeProto.STRING and rng.random() < 0.7:
        a.s = rng.choice(STRINGS)
    else:
        values = [rng.choice(NUMBERS), numbers(rng) or [0], rng.choice(FLOATS), rng.choice(STRINGS), tensor("t", [1])]
        a.CopyFrom(helper.make_attribute(a.name, rng.choice(values)))


def change_operator(g: GraphProto, rng: random.Random) -> None:
    kinds = [
        "Relu",
        "Add",
        "Concat",
        "Reshape",
        "Gather",
        "Slice",
        "Conv",
        "MatMul",
        "Gemm",
        "Softmax",
        "Split",
        "Where",
    ]
    kinds += ["Expand", "Tile", "Pad", "Resize", "ConstantOfShape", "Range", "Shape", "Transpose", "ReduceMean", "Cast"]
    kinds += ["Einsum", "DepthToSpace", "GRU", "Scan", "NonZero", "OneHot", "Flatten", "Upsample", "Sum", "Nonsense"]
    kinds += ["LSTM", "Unsqueeze", "ArgMax", "GlobalAveragePool", "Identity", "Dropout", "CumSum", "ScatterND", "Mod"]
    rng.choice(g.node).op_type = rng.choice([*kinds, *(n.op_type for n in g.node)])


def change_dims(g: GraphProto, rng: random.Random) -> None:
    infos = [*g.input, *g.output, *g.value_info]
    if infos and rng.random() < 0.5:
        t = rng.choice(infos).type.tensor_type
        if t.shape.dim and rng.random() < 0.7:
            d = rng.choice(t.shape.dim)
            d.dim_value = rng.choice(NUMBERS)
        elif rng.random() < 0.5:
            t.elem_type = rng.randrange(40)
        else:
            del t.shape.dim[:]
            t.shape.dim.extend(helper.make_tensor_value_info("x", 1, numbers(rng)).type.tensor_type.shape.dim)
    elif g.initializer:
        t = rng.choice(g.initializer)
        if t.dims and rng.random() < 0.6:
            t.dims[rng.randrange(len(t.dims))] = rng.choice(NUMBERS)
        else:
            t.data_type = rng.randrange(30)


def change_constant(g: GraphProto, rng: random.Random) -> None:
    found = [t for t in g.initializer if t.data_type == INT64]
    if not found:
        return change_dims(g, rng)
    t = rng.choice(found)
    try:
        old = numpy_helper.to_array(t).copy()
    except ValueError:  # damaged already
        return None
    if old.size and rng.random() < 0.7:
        old.reshape(-1)[rng.randrange(old.size)] = rng.choice(NUMBERS)
        t.CopyFrom(tensor(t.name, old))
    else:
        t.CopyFrom(tensor(t.name, numbers(rng)))
    return None


def change_model(made: ModelProto, rng: random.Random) -> None:
    kind = rng.randrange(4)
    if kind == 0 and made.opset_import:
        rng.choice(made.opset_import).version = rng.choice([1, 8, 9, 10, 11, 12, 13, 18, 21, 23, 25, *NUMBERS])
    elif kind == 1:
        del made.opset_import[:]
    elif kind == 2 and made.functions:
        f = rng.choice(made.functions)
        n = rng.choice(f.node)
        n.op_type, n.domain = rng.choice(["Twice", "Act", "Relu"]), rng.choice(["my", ""])
    else:
        made.ir_version = rng.choice(NUMBERS)


GRAPHS: list[Callable[[GraphProto, random.Random], None]] = [
    *(rename_input, resize_slots, drop, copy_something, move_node, change_attribute, change_attribute),
    *(change_attribute, change_operator, change_operator, change_dims, change_dims, change_constant, change_constant),
]


def damaged(base: ModelProto, rng: random.Random) -> bytes:
    """The bytes of a model with one to three things wrong in its bytes or in its content."""
    if rng.random() < 0.35:
        data = bytearray(base.SerializeToString())
        for _ in range(rng.choice([1, 1, 1, 2])):
            rng.choice(BYTES)(data or bytearray(b"x"), rng)
        return bytes(data)
    made = ModelProto()
    made.CopyFrom(base)
    for _ in range(rng.choice([1, 1, 2, 3])):
        if rng.random() < 0.05:
            change_model(made, rng)
        else:
            g = rng.choice([g for g in graphs(made) if g.node] or [made.graph])
            if g.node:
                rng.choice(GRAPHS)(g, rng)
    return made.SerializeToString()

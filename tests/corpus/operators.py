"""One small network for each operator of a graph; tests over all of SPECS use them."""

from __future__ import annotations

from collections.abc import Callable

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.ops import SPECS, Op, op, op_with

NOT_WRITTEN = {"in", "blank", "after"}
"""`in` is in every network; the others are made by the parser for dead work."""


def one(made: Op, *shapes: tuple[int, ...], dtype: str = "float32") -> Graph:
    """A network of one operator on inputs of these shapes (without the batch)."""
    b = GraphBuilder()
    b.output(b.apply(made, *(b.input(s, dtype=dtype) for s in shapes)))
    return b.build()


def several(made: Op, *shapes: tuple[int, ...]) -> Graph:
    """The values of an operator that gives several, the first one reshaped."""
    b = GraphBuilder()
    x = b.apply(made, *(b.input(s[1:], batch=s[0]) for s in shapes))
    b.output(*(b.apply(op("item", i), x) for i in range(len(b.shape(x)))))
    return b.build()


def _gather() -> Graph:
    b = GraphBuilder()
    x, indices = b.input((5, 8)), b.apply(op("value", (3, 0, 4), "int64", (3,)))
    b.output(b.apply(op("gather", 1), x, indices))
    return b.build()


def _embedding() -> Graph:
    return one(op("embedding", 20, 8), (5,), dtype="int64")


def _constants() -> Graph:
    b = GraphBuilder()
    x = b.add(b.mul(b.input((4, 8)), b.constant(0.5)), b.weight(4, 8))
    b.output(b.apply(op("literal"), b.weight(2, 3)), x)
    return b.build()


def _const() -> Graph:
    b = GraphBuilder()
    b.output(b.concat([b.input((4, 8, 8)), b.apply(op("const", (1, 2, 8, 8)))]))
    return b.build()


def _logic(name: str) -> Graph:
    b = GraphBuilder()
    x, y = (b.apply(op("greater"), b.input((4,)), b.constant(0.0)) for _ in range(2))
    z = b.unary("not", x) if name == "not" else b.apply(op(name), x, y)
    b.output(b.apply(op("cast", "float32"), z))
    return b.build()


def _where() -> Graph:
    b = GraphBuilder()
    x = b.input((4,))
    b.output(b.apply(op("where"), b.apply(op("less"), x, b.constant(0.25)), x, b.constant(2.0)))
    return b.build()


def _cast() -> Graph:
    b = GraphBuilder()
    b.output(b.apply(op("cast", "int64"), b.input((4,))))
    return b.build()


def _attention(made: Op, mask: bool) -> Graph:
    b = GraphBuilder()
    x = b.input((6, 16))
    q, k, v = (b.split_heads(b.linear(x, 16), 2) for _ in range(3))
    operands = [q, k, v, *([b.weight(1, 1, 6, 6)] if mask else [])]
    b.output(b.merge_heads(b.apply(made, *operands)))
    return b.build()


def _image(made: Op) -> Graph:
    return one(made, (4, 8, 8))


_UNARY = (
    *("relu", "relu6", "sigmoid", "tanh", "silu", "hardsigmoid", "hardswish", "mish", "softplus", "softsign", "selu"),
    *(
        "exp",
        "abs",
        "neg",
        "rounddown",
        "roundup",
        "round",
        "sign",
        "erf",
        "sin",
        "cos",
        "identity",
        "dropout",
        "bn",
        "prelu",
    ),
    *("gap", "gmp", "flatten", "zeros", "gelu", "leakyrelu", "elu"),
)
_POSITIVE = ("log", "sqrt", "reciprocal", "logsum")
_BINARY = ("add", "mul", "min", "max", "sub", "div", "equal", "greater", "less", "greaterequal", "lessequal")
_REDUCTIONS = ("mean", "sum", "amax", "amin", "prod", "l1", "l2", "sumsquare", "logsumexp")


def _positive(name: str) -> Graph:
    b = GraphBuilder()
    x = b.unary("exp", b.input((4, 8)))
    b.output(b.apply(op_with(name, axes=(1,)) if name == "logsum" else op(name), x))
    return b.build()


def _power(name: str) -> Graph:
    b = GraphBuilder()
    x = b.input((4, 8))
    b.output(b.apply(op(name), b.unary("exp", x), b.constant(1.5)))
    return b.build()


def _modulo() -> Graph:
    b = GraphBuilder()
    x = b.apply(op("cast", "int64"), b.input((4,)))
    b.output(b.apply(op("mod"), x, b.constant(3, "int64")))
    return b.build()


CASES: dict[str, list[Callable[[], Graph]]] = {
    **{name: [lambda n=name: _image(op(n))] for name in _UNARY},
    **{name: [lambda n=name: _positive(n)] for name in _POSITIVE},
    **{name: [lambda n=name: one(op(n), (4, 8), (4, 8))] for name in _BINARY},
    **{name: [lambda n=name: _logic(n)] for name in ("and", "or", "xor", "not")},
    **{
        name: [
            lambda n=name: one(op_with(n, axes=(1, 2)), (4, 6, 5)),
            lambda n=name: one(op_with(n, axes=(2,), keep=False), (4, 6, 5)),
        ]
        for name in _REDUCTIONS
    },
    **{name: [lambda n=name: one(op_with(n, axes=(1,), keep=False), (4, 6))] for name in ("argmax", "argmin")},
    "pow": [lambda: _power("pow")],
    "mod": [_modulo],
    "where": [_where],
    "cast": [_cast],
    "conv": [
        lambda: _image(op_with("conv", width="*2", kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1))),
        lambda: _image(op_with("conv", kernel=(1, 5), padding=(0, 1, 0, 3), groups="dw", bias=False)),
        lambda: one(op_with("conv", width="6", kernel=(3,), dilation=(2,), padding=(2, 2), groups=2), (4, 9)),
    ],
    "deconv": [
        lambda: _image(op_with("deconv", width="/2", kernel=(2, 2), stride=(2, 2), padding=(0,) * 4)),
        lambda: _image(
            op_with(
                "deconv", kernel=(3, 3), stride=(2, 2), padding=(1,) * 4, output_padding=(1, 1), groups=2, bias=False
            )
        ),
    ],
    "linear": [lambda: one(op("linear", "*2", True), (5, 4)), lambda: one(op("linear", "7", False), (4,))],
    "instancenorm": [lambda: _image(op("instancenorm")), lambda: _image(op("instancenorm", 1e-3, False))],
    "groupnorm": [lambda: _image(op("groupnorm", 2)), lambda: _image(op("groupnorm", 4, 1e-6, False))],
    "prelu": [lambda: _image(op("prelu")), lambda: _image(op("prelu", True))],
    "maxpool": [
        lambda: _image(op_with("maxpool", kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1))),
        lambda: _image(op_with("maxpool", kernel=(2, 2), dilation=(2, 2), padding=(1, 1, 1, 1))),
    ],
    "avgpool": [
        lambda: _image(op_with("avgpool", kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1))),
        lambda: _image(op_with("avgpool", kernel=(2, 2), padding=(1, 1, 1, 1), include_padding=True)),
        lambda: _image(op_with("avgpool", kernel=(3, 3), stride=(2, 2), padding=(0,) * 4, ceil=True)),
    ],
    "pad": [
        lambda: _image(op("pad", (1, 2, 0, 3))),
        lambda: _image(op("pad", (1, 1, 1, 1), "reflect")),
        lambda: _image(op("pad", (0, 2, 1, 0, 0, 1, 0, 2), "constant", 1.5)),
        lambda: _image(op("pad", (1, 1, 1, 1), "edge")),
    ],
    "resize": [
        lambda: _image(op("resize", "nearest", (2, 2))),
        lambda: _image(op("resize", "lin", (2, 3))),
        lambda: _image(op_with("resize", mode="lin", scale=(1, 1), size=(11, 5), coordinates="corners")),
        lambda: _image(op_with("resize", mode="cubic", scale=(2, 2))),
        lambda: _image(op_with("resize", mode="nearest", scale=(1, 1), size=(5, 12), rounding="floor")),
    ],
    "depth2space": [lambda: _image(op("depth2space", 2)), lambda: _image(op("depth2space", 2, True))],
    "space2depth": [lambda: _image(op("space2depth", 2))],
    "shuffle": [lambda: _image(op("shuffle", 2))],
    "softmax": [lambda: _image(op("softmax", 1)), lambda: _image(op("softmax", 3))],
    "logsoftmax": [lambda: _image(op("logsoftmax", 2))],
    "gelu": [lambda: _image(op("gelu")), lambda: _image(op("gelu", True))],
    "clip": [lambda: _image(op("clip", -1.0, 0.5)), lambda: _image(op("clip", 0.1, None))],
    "matmul": [lambda: one(op("matmul"), (2, 5, 4), (2, 4, 3))],
    "concat": [lambda: one(op("concat", 2), (4, 8), (4, 3))],
    "slice": [lambda: one(op("slice", 1, 1, 4), (6,)), lambda: one(op("slice", 2, 0, 7, 3), (4, 8))],
    "reshape": [lambda: one(op("reshape", (1, 2, 16)), (4, 8))],
    "expand": [lambda: one(op("expand", (1, 3, 4, 8)), (4, 1))],
    "transpose": [lambda: _image(op("transpose", (0, 2, 3, 1)))],
    "gather": [_gather],
    "embedding": [_embedding],
    "weight": [_constants],
    "value": [_constants],
    "literal": [_constants],
    "const": [_const],
    "layernorm": [
        lambda: one(op("layernorm"), (5, 8)),
        lambda: one(op("layernorm", 2, 1e-6, True, False), (5, 8)),
        lambda: one(op("layernorm", 1, 1e-5, False, False), (5, 8)),
    ],
    "rmsnorm": [lambda: one(op("rmsnorm"), (5, 8)), lambda: one(op("rmsnorm", 1, 1e-6, False), (5, 8))],
    "attention": [
        lambda: _attention(op("attention"), False),
        lambda: _attention(op("attention", 0.3), True),
        lambda: _attention(op("attention", None, True), False),
    ],
    "heads": [lambda: _attention(op("attention"), False)],
    "merge": [lambda: _attention(op("attention"), False)],
    "lstm": [
        lambda: several(op("lstm", 6), (7, 1, 4)),
        lambda: several(op("lstm", 6, "both", False), (7, 1, 4)),
        lambda: several(op("lstm", 6, "backward"), (7, 1, 4), (1, 1, 6), (1, 1, 6)),
    ],
    "gru": [lambda: several(op("gru", 6), (7, 1, 4)), lambda: several(op("gru", 6, "both", True, False), (7, 1, 4))],
    "rnn": [lambda: several(op("rnn", 6), (7, 1, 4))],
    "item": [lambda: several(op("rnn", 6, "both"), (7, 1, 4))],
}
"""Networks by the operator that they are about."""

ALL = [(name, k) for name, made in CASES.items() for k in range(len(made))]


def missing() -> set[str]:
    """Operators without a case."""
    return set(SPECS) - set(CASES) - NOT_WRITTEN - {"onnx"}

"""Each pass on the formulas that exporters write; the result is the text of the same network said plainly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nasrlm.graph import Graph, GraphBuilder, to_text
from nasrlm.graph.ops import op, op_with
from nasrlm.graph.passes import PASSES, simplified


class Formula:
    """A builder with short words for arithmetic on one input."""

    def __init__(self, *shape: int) -> None:
        self.b = GraphBuilder()
        self.x = self.b.input(shape or (4, 8, 8))

    def __call__(self, name: str, *operands: int | float, **attributes: object) -> int:
        values = [self.b.constant(v) if isinstance(v, float) else v for v in operands]
        return self.b.apply(op_with(name, **attributes), *values)

    def lines(self, y: int) -> str:
        self.b.output(y)
        return " ".join(to_text(self.b.build()).split("\n")[2:])


def _gelu(f: Formula) -> int:
    return f("mul", f("mul", f.x, f("add", f("erf", f("div", f.x, 1.4142135381698608)), 1.0)), 0.5)


def _gelu_halved_first(f: Formula) -> int:
    half = f("mul", 0.5, f.x)
    return f("mul", half, f("add", 1.0, f("erf", f("mul", f.x, 0.7071067690849304))))


def _approximate_gelu(f: Formula) -> int:
    cubed = f("mul", f("mul", f.x, f.x), f.x)
    inner = f("mul", f("add", f.x, f("mul", cubed, 0.044715)), 0.7978845834732056)
    return f("mul", f("mul", 0.5, f.x), f("add", 1.0, f("tanh", inner)))


def _approximate_gelu_with_power(f: Formula) -> int:
    inner = f("mul", 0.7978845608, f("add", f.x, f("mul", 0.044715, f("pow", f.x, 3.0))))
    return f("mul", 0.5, f("mul", f.x, f("add", f("tanh", inner), 1.0)))


ACTIVATIONS: dict[str, tuple[Callable[[Formula], int], str]] = {
    "gelu": (_gelu, "gelu"),
    "gelu, halved first": (_gelu_halved_first, "gelu"),
    "approximate gelu": (_approximate_gelu, "gelu approx"),
    "approximate gelu with pow": (_approximate_gelu_with_power, "gelu approx"),
    "silu": (lambda f: f("mul", f("sigmoid", f.x), f.x), "silu"),
    "hard-swish": (
        lambda f: f("div", f("mul", f.x, f("clip", f("add", f.x, 3.0), low=0.0, high=6.0)), 6.0),
        "hardswish",
    ),
    "hard-swish by its gate": (lambda f: f("mul", f.x, f("hardsigmoid", f.x)), "hardswish"),
    "hard-sigmoid": (lambda f: f("div", f("relu6", f("add", f.x, 3.0)), 6.0), "hardsigmoid"),
    "hard-sigmoid by a factor": (lambda f: f("mul", f("relu6", f("add", 3.0, f.x)), 1 / 6), "hardsigmoid"),
    "mish": (lambda f: f("mul", f.x, f("tanh", f("softplus", f.x))), "mish"),
    "softplus": (lambda f: f("log", f("add", f("exp", f.x), 1.0)), "softplus"),
    "sigmoid": (lambda f: f("div", 1.0, f("add", 1.0, f("exp", f("neg", f.x)))), "sigmoid"),
    "relu by max": (lambda f: f("max", f.x, 0.0), "relu"),
    "relu by where": (lambda f: f("where", f("greater", f.x, 0.0), f.x, 0.0), "relu"),
    "relu6 by min and max": (lambda f: f("min", f("max", f.x, 0.0), 6.0), "relu6"),
    "relu6 by clip": (lambda f: f("clip", f.x, low=0.0, high=6.0), "relu6"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_known_by_their_values(name: str) -> None:
    formula, expected = ACTIVATIONS[name]
    f = Formula()
    assert f.lines(formula(f)) == expected


def test_a_formula_on_an_activation_keeps_the_activation() -> None:
    f = Formula()
    y = f("relu", f.x)
    assert f.lines(f("mul", y, f("sigmoid", y))) == "relu silu"


def test_other_formulas_stay() -> None:
    f = Formula()
    assert f.lines(f("mul", f.x, f("sigmoid", f("mul", f.x, 1.702)))) == "mul #1.702 sigmoid mul @3"
    f = Formula()
    assert f.lines(f("clip", f.x, low=-1.0, high=1.0)) == "clip lo-1 hi1"
    f = Formula()
    assert f.lines(f("mul", f.x, f("sigmoid", f("relu", f.x)))) == "relu sigmoid mul @3"


def _layer_norm(f: Formula, root: str = "div", squared: str = "pow", axes: int = 1) -> int:
    last = tuple(range(len(f.b.shape(f.x)) - axes, len(f.b.shape(f.x))))
    centred = f("sub", f.x, f("mean", f.x, axes=last))
    square = f("pow", centred, 2.0) if squared == "pow" else f("mul", centred, centred)
    deviation = f("sqrt", f("add", f("mean", square, axes=last), 1e-6))
    return f("div", centred, deviation) if root == "div" else f("mul", centred, f("reciprocal", deviation))


@pytest.mark.parametrize("root", ["div", "mul"])
@pytest.mark.parametrize("squared", ["pow", "mul"])
def test_layer_norm(root: str, squared: str) -> None:
    f = Formula(5, 16)
    y = f("add", f("mul", _layer_norm(f, root, squared), f.b.weight(16)), f.b.weight(16))
    assert f.lines(y) == "layernorm e1e-06"


def test_layer_norm_over_two_dimensions_and_without_weights() -> None:
    f = Formula(5, 16)
    assert f.lines(_layer_norm(f, axes=2)) == "layernorm a2 e1e-06 noscale noshift"


@pytest.mark.parametrize("root", ["div", "reciprocal", "one", "pow"])
def test_rms_norm(root: str) -> None:
    f = Formula(5, 16)
    total = f("add", f("mean", f("pow", f.x, 2.0), axes=(2,)), 1e-5)
    y = {
        "div": lambda: f("div", f.x, f("sqrt", total)),
        "reciprocal": lambda: f("mul", f.x, f("reciprocal", f("sqrt", total))),
        "one": lambda: f("mul", f.x, f("div", 1.0, f("sqrt", total))),
        "pow": lambda: f("mul", f.x, f("pow", total, -0.5)),
    }[root]()
    assert f.lines(f("mul", f.b.weight(16), y)) == "rmsnorm"


def test_group_norm() -> None:
    f = Formula()
    apart = f("instancenorm", f("reshape", f.x, shape=(1, 2, 128)))
    y = f("mul", f("reshape", apart, shape=(1, 4, 8, 8)), f.b.weight(4, 1, 1))
    assert f.lines(f("add", y, f.b.weight(4, 1, 1))) == "groupnorm g2"


def test_products_and_sums_with_weights_are_linear_layers_and_biases() -> None:
    f = Formula(5, 16)
    assert f.lines(f("add", f.b.weight(32), f("matmul", f.x, f.b.weight(16, 32)))) == "linear *2"
    f = Formula()
    assert f.lines(f("add", f.b.conv(f.x, 8, 3), f.b.weight(8, 1, 1))) == "conv *2 k3"


def test_a_sum_with_a_learned_tensor_of_another_form_stays() -> None:
    f = Formula(5, 16)
    assert f.lines(f("add", f.x, f.b.weight(1, 5, 16))) == "add %1x5x16"


def test_a_bias_of_a_layer_that_others_read_stays_a_sum() -> None:
    f = Formula(5, 16)
    y = f.b.linear(f.x, 32, bias=False)
    f.b.output(y)
    assert f.lines(f("add", y, f.b.weight(32))) == "linear *2 nobias add %32 out @2 @1"


def test_a_linear_layer_between_reshapes() -> None:
    f = Formula(5, 16)
    y = f("reshape", f.b.linear(f("reshape", f.x, shape=(5, 16)), 8), shape=(1, 5, 8))
    assert f.lines(y) == "linear /2"


def test_what_does_nothing_goes() -> None:
    f = Formula()
    y = f("cast", f("pad", f("identity", f.x), padding=(0, 0, 0, 0)), dtype="float32")
    y = f("add", f("mul", f("reshape", y, shape=(1, 4, 8, 8)), 1.0), 0.0)
    y = f("transpose", f("transpose", y, order=(0, 2, 3, 1)), order=(0, 3, 1, 2))
    assert f.lines(f("relu", f("dropout", y))) == "relu"


def test_numbers_in_a_row_become_one() -> None:
    f = Formula()
    assert f.lines(f("mul", f("mul", f.x, 2.0), 3.0)) == "mul #6"


def test_reshapes_and_transposes_in_a_row_become_one() -> None:
    f = Formula()
    assert f.lines(f("reshape", f("reshape", f.x, shape=(1, 8, 32)), shape=(1, 256))) == "flatten"
    f = Formula()
    turned = f("transpose", f("transpose", f.x, order=(0, 2, 3, 1)), order=(0, 2, 1, 3))
    assert f.lines(turned) == "transpose 0,3,2,1"


def test_a_transpose_of_single_entries_is_a_reshape() -> None:
    f = Formula(1, 8)
    assert f.lines(f("transpose", f.x, order=(0, 2, 1))) == "reshape 1x8x1"


def test_channel_shuffle_and_global_pools() -> None:
    f = Formula()
    turned = f("transpose", f("reshape", f.x, shape=(1, 2, 2, 8, 8)), order=(0, 2, 1, 3, 4))
    y = f("reshape", turned, shape=(1, 4, 8, 8))
    assert f.lines(f("mean", y, axes=(2, 3), keep=False)) == "shuffle gap flatten"
    f = Formula()
    f.b.output(f.b.apply(op("maxpool", (8, 8), (1, 1), (0,) * 4), f.x))
    assert [o.text for o in simplified(f.b.build()).ops] == ["in 1x4x8x8", "gmp"]


def _attention(f: Formula, *, scale: str, mask: bool, turned: bool = False) -> int:
    b = f.b
    q, k, v = (b.reshape(b.linear(f.x, 16), (1, 5, 2, 8)) for _ in range(3))
    q, v = b.transpose(q, (0, 2, 1, 3)), b.transpose(v, (0, 2, 1, 3))
    k = b.transpose(k, (0, 2, 3, 1)) if turned else b.transpose(b.transpose(k, (0, 2, 1, 3)), (0, 1, 3, 2))
    if scale == "both":
        q, k = f("mul", q, 8**-0.25), f("mul", k, 8**-0.25)
    elif scale == "queries":
        q = f("mul", q, 8**-0.5)
    scores = b.binary("matmul", q, k)
    if scale == "scores":
        scores = f("div", scores, 8**0.5)
    if mask:
        scores = f("add", scores, b.weight(1, 1, 5, 5))
    weights = b.softmax(scores, axis=3)
    return b.reshape(b.transpose(b.binary("matmul", weights, v), (0, 2, 1, 3)), (1, 5, 16))


@pytest.mark.parametrize("scale", ["both", "queries", "scores"])
@pytest.mark.parametrize("turned", [False, True])
def test_attention_wherever_the_scale_stands(scale: str, turned: bool) -> None:
    b = GraphBuilder()
    x = b.input((5, 16))
    q, k, v = (b.split_heads(b.linear(x, 16), 2) for _ in range(3))
    b.output(b.merge_heads(b.attention(q, k, v)))
    f = Formula(5, 16)
    y = _attention(f, scale=scale, mask=False, turned=turned)
    f.b.output(y)
    assert to_text(f.b.build()) == to_text(b.build())


def test_attention_with_a_mask() -> None:
    f = Formula(5, 16)
    assert f.lines(_attention(f, scale="scores", mask=True)).endswith("attention of @5 @3 @1 %1x1x5x5 merge")


def _all_idioms() -> Graph:
    f = Formula(5, 16)
    y = f("add", f("mul", _layer_norm(f), f.b.weight(16)), f.b.weight(16))
    f.x = y
    f.x = _attention(f, scale="both", mask=True)
    f.b.output(_gelu(f))
    return f.b.build()


def test_passes_are_idempotent_and_named() -> None:
    once = simplified(_all_idioms())
    again = simplified(once)
    assert (again.ops, again.refs, again.shapes) == (once.ops, once.refs, once.shapes)
    assert all(run.__doc__ for run in PASSES.values())

"""Blocks that search spaces share."""

from __future__ import annotations

import pytest

from nasrlm.errors import UnknownNameError
from nasrlm.graph import GraphBuilder, costs, to_text
from nasrlm.graph.blocks import (
    ACTIVATIONS,
    activation,
    conv_bn,
    inverted_residual,
    round_channels,
    squeeze_excite,
)


def image(channels: int = 8) -> tuple[GraphBuilder, int]:
    b = GraphBuilder()
    return b, b.input((channels, 8, 8))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_keeps_the_shape(name: str) -> None:
    b, x = image()
    assert b.shape(activation(b, x, name)) == (1, 8, 8, 8)


def test_an_unknown_activation_is_refused_with_the_nearest() -> None:
    b, x = image()
    with pytest.raises(UnknownNameError, match="hard_swish"):
        activation(b, x, "hardswish")


def test_silu_is_the_product_with_its_sigmoid() -> None:
    texts = []
    for own in (True, False):
        b, x = image()
        x = b.conv(x, 8, 3)
        b.output(activation(b, x, "silu") if own else b.mul(x, b.unary("sigmoid", x)))
        texts.append(to_text(b.build()))
    assert texts[0] == texts[1]


def test_conv_bn_counts_as_its_parts() -> None:
    b, x = image()
    b.output(conv_bn(b, x, 16, 3, 2))
    graph = b.build()
    assert costs(graph).params == 8 * 16 * 9 + 2 * 16
    assert costs(graph).macs == 8 * 16 * 9 * 4 * 4


def test_an_inverted_residual_counts_as_in_mobilenetv2() -> None:
    b, x = image()
    b.output(inverted_residual(b, x, 8, 24, 3))
    assert costs(b.build()).params == (8 * 24 + 48) + (24 * 9 + 48) + (24 * 8 + 16)


def test_the_shortcut_is_there_only_where_shapes_are_equal() -> None:
    adds = []
    for out, stride, wanted in ((8, 1, True), (8, 2, True), (16, 1, True), (8, 1, False)):
        b, x = image()
        b.output(inverted_residual(b, x, out, 24, 3, stride, shortcut=wanted))
        adds.append(costs(b.build()).operators.get("add", 0))
    assert adds == [1, 0, 0, 0]


def test_without_expansion_the_first_convolution_goes() -> None:
    b, x = image()
    b.output(inverted_residual(b, x, 16, 8, 3, expand=False))
    assert costs(b.build()).operators["conv"] == 2


def test_squeeze_excite_has_two_biased_convolutions() -> None:
    b, x = image()
    b.output(squeeze_excite(b, x, 2, gate="sigmoid"))
    assert costs(b.build()).params == 8 * 2 + 2 + 2 * 8 + 8
    assert "sigmoid" in to_text(b.build())


@pytest.mark.parametrize(("channels", "rounded"), [(1, 8), (8, 8), (11, 16), (12, 16), (18.5, 24), (20, 24), (84, 88)])
def test_round_channels(channels: float, rounded: int) -> None:
    assert round_channels(channels) == rounded


def test_squeeze_excite_of_an_inverted_residual_takes_its_activations_by_name() -> None:
    texts = []
    for act, gate in (("relu", "hard_sigmoid"), ("silu", "sigmoid")):
        b, x = image()
        b.output(inverted_residual(b, x, 8, 24, 3, act="relu6", squeeze=4, squeeze_act=act, gate=gate))
        texts.append(set(to_text(b.build()).splitlines()))
    assert {"relu", "hardsigmoid"} <= texts[0]
    assert {"silu", "sigmoid"} <= texts[1]
    assert not {"relu", "hardsigmoid"} & texts[1]

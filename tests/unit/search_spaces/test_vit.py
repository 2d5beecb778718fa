"""Vision transformers: published parameter counts, relative positions against AutoFormer's formula, encodings."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from nasrlm import costs, get_space, parse_text, to_text
from nasrlm.errors import SpaceError
from nasrlm.graph import GraphBuilder, to_onnx, to_torch
from search_spaces import vit
from search_spaces.vit import ViT
from tests.unit.search_spaces.one_step import train_one_step

SPACE = ViT()
SMALL = ViT(image_size=16, patch=4, num_classes=10, widths=(48, 96), depths=(1, 2), heads=(1, 2), ratios=(2,))
PUBLISHED = {
    "tiny": (192, [3.5, 3.5, 3, 3.5, 3, 3, 4, 4, 3.5, 4, 3.5, 4, 3.5], [3] * 10 + [4, 3, 3]),
    "small": (384, [3, 3.5, 3, 3.5, 4, 4, 4, 4, 4, 4, 4, 3.5, 4], [6, 6, 5, 7, 5, 5, 5, 6, 6, 7, 7, 6, 7]),
    "base": (
        576,
        [3.5, 3.5, 4, 3.5, 4, 3.5, 3.5, 3, 4, 4, 3, 4, 3, 3.5],
        [9, 9, 9, 9, 9, 10, 9, 9, 10, 9, 10, 9, 9, 10],
    ),
}
"""Width, ratios and heads of AutoFormer-T, -S and -B."""
PARAMETERS = {"tiny": 5_867_944, "small": 22_891_432, "base": 53_691_688}


@pytest.mark.parametrize("size", PUBLISHED)
def test_parameters_of_the_published_networks(size: str) -> None:
    width, ratios, heads = PUBLISHED[size]
    space = ViT(size=size, ratios=(3.0, 3.5, 4.0))
    depth = len(ratios)
    a = space.from_dict({"num_heads": heads, "mlp_ratio": ratios, "embed_dim": [width] * depth, "layer_num": depth})
    assert costs(a).params == PARAMETERS[size]
    text = to_text(a)
    assert costs(parse_text(text)).macs == costs(a).macs  # what weights alone make is one weight in the text
    assert to_text(parse_text(text)) == text
    assert len(text.split()) < 700


def test_macs_by_hand() -> None:
    a = SMALL.architecture({"depth": 1, "width": 48, "heads_1": 2, "ratio_1": 2.0})
    n, d, inner = 17, 48, 128
    block = n * d * 3 * inner + n * inner * d + 2 * n * d * 96 + 2 * n * n * inner
    tables = 2 * n * n * inner
    assert costs(a).macs == 16 * 48 * 3 * 16 + block + tables + 10 * d
    without = ViT(image_size=16, patch=4, num_classes=10, relative_positions=False, **SMALL.lists)  # type: ignore[arg-type]
    assert costs(without.architecture(a.params)).macs == costs(a).macs - tables
    assert costs(without.architecture(a.params)).params == costs(a).params - 7_680


@pytest.mark.parametrize(("size", "expected"), [("tiny", 1.1e9), ("small", 7.7e13), ("base", 1.0e13)])
def test_size_as_published(size: str, expected: float) -> None:
    assert f"{ViT(size=size).size():.1e}" == f"{expected:.1e}"


def test_small_size_is_enumerated() -> None:
    assert len(set(SMALL.enumerate())) == SMALL.size() == 2 * (2 + 4)


# --- against the published formula -----------------------------------------------------------------------------------


def table_rows(grid: int) -> tuple[Tensor, Tensor]:
    """Row of the vertical and of the horizontal table for every query and key, clipped, the class token first."""
    place = torch.arange(grid * grid)
    axes = (place // grid, place % grid)
    rows = [(p[None] - p[:, None]).clamp(-vit.REACH, vit.REACH) + vit.REACH + 1 for p in axes]
    return F.pad(rows[0], (1, 0, 1, 0)), F.pad(rows[1], (1, 0, 1, 0))


@pytest.mark.parametrize("grid", [1, 2, 7, 14, 15, 16, 18])
def test_relative_positions_are_rows_of_the_tables(grid: int) -> None:
    b = GraphBuilder()
    b.input((1,))
    b.output(*vit._positions(b, grid))
    module = to_torch(b.build())
    tables, rows = list(module.parameters()), table_rows(grid)
    for found, vertical, horizontal in zip(module(torch.zeros(1, 1)), tables[:2], tables[2:], strict=True):
        assert torch.equal(found[:, 0], vertical[rows[0]] + horizontal[rows[1]])


def attention(x: Tensor, p: list[Tensor], heads: int, grid: int) -> Tensor:
    """AutoFormer's attention with relative positions on keys and values."""
    qkv_weight, qkv_bias, kv, vv, kh, vh, weight, bias = p
    n = x.shape[1]
    q, k, v = F.linear(x, qkv_weight, qkv_bias).reshape(len(x), n, 3, heads, vit.HEAD).permute(2, 0, 3, 1, 4)
    rows = table_rows(grid)
    keys, values = kv[rows[0]] + kh[rows[1]], vv[rows[0]] + vh[rows[1]]
    logits = (q @ k.transpose(-2, -1) + torch.einsum("bhqc,qkc->bhqk", q, keys)) * vit.HEAD**-0.5
    weights = logits.softmax(-1)
    found = weights @ v + torch.einsum("bhqk,qkc->bhqc", weights, values)
    return F.linear(found.transpose(1, 2).reshape(len(x), n, -1), weight, bias)


def test_a_whole_network_computes_what_is_published() -> None:
    torch.manual_seed(0)
    module = to_torch(SMALL.architecture({"depth": 1, "width": 48, "heads_1": 2, "ratio_1": 2.0}).graph()).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    p = [(name.partition(".")[0].rpartition("_")[0], value) for name, value in module.named_parameters()]

    def take(kind: str, count: int = 2) -> list[Tensor]:
        found = [i for i, (word, _) in enumerate(p) if word == kind][:count]
        return [p.pop(i - k)[1] for k, i in enumerate(found)]

    image = torch.randn(3, 3, 16, 16, dtype=torch.float64)

    def norm(x: Tensor) -> Tensor:
        scale, shift = take("layernorm")
        return F.layer_norm(x, (48,), scale, shift)

    kernel, bias = take("conv")
    x = F.conv2d(image, kernel, bias, stride=4).flatten(2).transpose(1, 2)
    token, positions = take("weight")
    x = torch.cat([token.expand(3, -1, -1), x], 1) + positions
    tables = take("weight", 4)
    x = x + attention(norm(x), [*take("linear"), *tables, *take("linear")], 2, 4)
    y = F.linear(norm(x), *take("linear"))
    x = x + F.linear(F.gelu(y), *take("linear"))
    x = F.linear(norm(x)[:, 1:].mean(1), *take("linear"))
    assert not p
    torch.testing.assert_close(module(image), x)


def test_text_of_the_exported_model_is_the_same() -> None:
    # With relative positions the reader of ONNX joins the tables and all that is made of them alone to one weight.
    space = ViT(image_size=16, patch=4, num_classes=10, relative_positions=False, widths=(96,), depths=(2,))
    for a in space.sample(3, seed=0):
        assert to_text(to_onnx(a.graph())) == to_text(a)


@pytest.mark.parametrize("relative", [True, False])
def test_small_transformers_train(relative: bool) -> None:
    space = ViT(image_size=32, patch=4, num_classes=10, relative_positions=relative, widths=(96,), depths=(3,))
    train_one_step(space.sample(1, seed=0)[0])


# --- encodings and options -------------------------------------------------------------------------------------------


def test_encodings_round_trip() -> None:
    a = SPACE.architecture(vit.EXAMPLE)
    assert a.string == vit.EXAMPLE
    assert SPACE.from_dict(SPACE.to_dict(a)) == a
    assert all(SPACE.architecture(x.string) == x for x in SPACE.sample(50, seed=0))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d.pop("num_heads"), "key 'num_heads' is missing"),
        (lambda d: d.update(head=3), "unknown key"),
        (lambda d: d.update(layer_num=11), "'layer_num' is 11. Nearest: 12, 13, 14. Allowed: 12, 13, 14."),
        (lambda d: d["num_heads"].pop(), "'num_heads' has 11 entries"),
        (lambda d: d.update(mlp_ratio=4.0), "'mlp_ratio' is 4.0, not a list"),
        (lambda d: d["mlp_ratio"].__setitem__(2, 3.0), "'mlp_ratio[2]' is 3.0. Nearest: 3.5"),
        (lambda d: d["num_heads"].__setitem__(11, 5), "'num_heads[11]' is 5"),
        (lambda d: d["embed_dim"].__setitem__(5, 216), "'embed_dim[5]' is 216."),
        (lambda d: d["embed_dim"].__setitem__(0, 200), "'embed_dim[0]' is 200."),
    ],
)
def test_foreign_strings_are_refused(change: Callable[[dict[str, Any]], object], expected: str) -> None:
    data = copy.deepcopy(json.loads(vit.EXAMPLE))
    change(data)
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(json.dumps(data))
    message = str(caught.value)
    assert expected in message or expected.split(" Nearest")[0] in message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"size": "tny"}, "'size' is 'tny'. Nearest: tiny"),
        ({"image_size": 30}, "option 'image_size' of vit is 30. Allowed: multiples of 'patch', 16."),
        ({"patch": 0}, "option 'patch' of vit is 0"),
        ({"num_classes": True}, "option 'num_classes' of vit is True"),
        ({"widths": []}, "option 'widths' of vit is []. Allowed: a list of integers above 0."),
        ({"heads": 3}, "option 'heads' of vit is 3"),
        ({"depths": [2.5]}, "option 'depths' of vit is [2.5]"),
        ({"ratios": [0]}, "option 'ratios' of vit is [0]. Allowed: a list of numbers above 0."),
        ({"relative_positions": "no"}, "'relative_positions' is 'no'. Allowed: True, False."),
    ],
)
def test_options_outside_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        get_space("vit", **options)
    message = str(caught.value)
    assert expected in message or all(part in message for part in expected.split(". ", 1))

"""SNAS: counts by hand, the largest network, images that cannot be halved any more, options."""

from __future__ import annotations

from typing import Any

import pytest

from nasrlm import costs, get_space, to_text
from nasrlm.graph import GraphBuilder
from nasrlm.spaces import SpaceError

PLAIN: dict[str, Any] = {
    "width": 8, "kernel": 3, "stride": 1, "groups": 1, "residual": False, "squeeze_excite": False,
}  # fmt: skip


def architecture(*blocks: dict[str, Any], head: str = "avg", activation: str = "relu", **options: int) -> Any:
    params: dict[str, Any] = {"depth": len(blocks), "stem_width": 4, "activation": activation, "head": head}
    for i, block in enumerate(blocks, 1):
        whole = {**PLAIN, **block}
        if whole["stride"] == 2:
            whole.setdefault("pool", "none")
        params |= {f"{name}_{i}": value for name, value in whole.items()}
    return get_space("snas", **options).architecture(params)


def test_costs_of_a_plain_network_by_hand() -> None:
    found = costs(architecture({"groups": 2}, {"stride": 2}, head="flatten"))
    stem, grouped, strided = 4 * 9, 8 * (4 // 2) * 9, 16 * 8 * 9  # the second block's 8 channels become 16
    linear = 16 * 4 * 4 * 10
    assert found.params == stem + grouped + strided + 2 * (4 + 8 + 16) + linear + 10
    assert found.macs == 64 * (stem + grouped) + 16 * strided + linear


def test_costs_of_a_network_with_everything_by_hand() -> None:
    a = architecture(
        {"width": 12, "kernel": 5, "stride": 2, "pool": "max", "groups": "depthwise", "residual": True,
         "squeeze_excite": True},
        activation="hard_swish",
    )  # fmt: skip
    channels = 24  # 12, once halved
    depthwise, pointwise, shortcut = 4 * 25, 4 * channels, 4 * channels
    hidden = channels // 4
    excite = channels * hidden + hidden * channels
    found = costs(a)
    norms = 2 * (4 + 4 + channels + channels)
    assert found.params == 4 * 9 + depthwise + pointwise + shortcut + excite + hidden + channels + norms + 25 * 10
    assert found.macs == 64 * 4 * 9 + 16 * (depthwise + pointwise + shortcut) + excite + channels * 10


def test_the_largest_network_keeps_training_short() -> None:
    block = {"width": 32, "kernel": 5, "residual": True, "squeeze_excite": True}
    largest = architecture(*[block] * 6, head="flatten")
    assert costs(largest).macs < 10e6
    halved = architecture(*[{**block, "stride": 2}] * 2, *[block] * 4)
    assert costs(halved).macs < 10e6
    assert 1e6 < costs(halved).params < 3e6


@pytest.mark.parametrize("pool", ["none", "max", "avg"])
def test_six_halvings_end_at_one_pixel(pool: str) -> None:
    a = architecture(*[{"stride": 2, "pool": pool, "residual": True}] * 6)
    sizes = [shape[2:] for shape in a.graph().shapes if len(shape) == 4]
    assert min(sizes) == (1, 1)
    plain = architecture(*[{"stride": 2, "pool": pool}] * 6)
    assert costs(plain).params == costs(architecture(*[{"stride": 2}] * 6)).params


def test_a_small_network_is_what_it_says() -> None:
    b = GraphBuilder()
    x = b.input((1, 8, 8))
    x = b.relu6(b.batch_norm(b.conv(x, 4, 3)))
    y = b.relu6(b.batch_norm(b.conv(x, 4, 1)))
    squeezed = b.conv(b.relu(b.conv(b.global_avg_pool(y), 1, 1, bias=True)), 4, 1, bias=True)
    x = b.add(b.mul(y, b.hard_sigmoid(squeezed)), x)
    b.output(b.linear(b.flatten(b.global_max_pool(x)), 10))
    block = {"width": 4, "kernel": 1, "residual": True, "squeeze_excite": True}
    assert to_text(architecture(block, head="max", activation="relu6")) == to_text(b.build())


def test_size_and_spread() -> None:
    space = get_space("snas")
    block = 6 * 3 * (1 + 3) * 4 * 2 * 2
    assert space.size() == 6 * 3 * 3 * sum(block**depth for depth in range(1, 7))
    params = sorted(costs(a).params for a in space.sample(300, seed=0))
    assert params[0] < 1_000
    assert params[-1] > 200_000


def test_options() -> None:
    graph = architecture({}, image_size=32, in_channels=3, num_classes=100).graph()
    assert graph.shapes[0] == (1, 3, 32, 32)
    assert graph.shapes[-1] == (1, 100)
    with pytest.raises(SpaceError, match="'image_size' of snas is 0. Allowed: integers >= 1"):
        get_space("snas", image_size=0)

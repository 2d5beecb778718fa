"""One-dimensional networks for sound: counts by hand, options, training."""

from __future__ import annotations

from typing import Any

import pytest

from nasrlm import costs, get_space, parse_text, to_text
from nasrlm.errors import SpaceError
from nasrlm.spaces import Params
from search_spaces.conv1d_audio import EXAMPLE
from tests.unit.search_spaces.one_step import train_one_step

SPACE = get_space("conv1d_audio")
FEATURES = get_space("conv1d_audio", input="features")


def test_size_counts_the_stages() -> None:
    stage = 3 * 3 * 7 * 4 * 3 * 3 * 2
    front = 3 * 3 * 3 * 3 * 2
    assert SPACE.size() == front * sum(stage**n for n in (2, 3, 4, 5))
    assert FEATURES.size() * 9 == SPACE.size() * 8


def test_the_example_by_hand() -> None:
    a = SPACE.architecture(EXAMPLE)
    assert a.string == EXAMPLE

    def conv(before: int, out: int, kernel: int) -> int:
        return before * out * kernel + 2 * out

    front = conv(1, 32, 80)
    first = conv(32, 48, 9) + conv(48, 48, 9) + conv(32, 48, 1) + 2 * conv(48, 48, 9)
    excite = 2 * 96 * 24 + 24 + 96
    second = 15 * 48 + 2 * 48 + conv(48, 96, 1) + conv(48, 96, 1) + 2 * (17 * 96 + conv(96, 96, 1)) + 3 * excite
    found = costs(a)
    assert found.params == front + first + second + 96 * 35 + 35
    assert a.graph().shapes[-1] == (1, 35)
    frames = 500  # 16,000 / 8 / 4
    first_macs = frames * (32 * 48 * 9 + 3 * 48 * 48 * 9 + 32 * 48)
    squeezed = 3 * 2 * 96 * 24
    second_macs = frames // 2 * (48 * 15 + 2 * 48 * 96 + 2 * (96 * 15 + 96 * 96)) + squeezed
    assert found.macs == 2000 * 32 * 80 + first_macs + second_macs + 96 * 35


@pytest.mark.parametrize("space", [SPACE, FEATURES], ids=["waveform", "features"])
def test_text_and_training(space: Any) -> None:
    for a in space.sample(20, seed=1):
        text = to_text(a)
        again = parse_text(text)
        assert to_text(again) == text
        assert costs(again).macs == costs(a).macs  # parameters of BatchNorm are folded away
    for a in get_space("conv1d_audio", input=space.input, length=200).sample(4, seed=2):
        train_one_step(a)


def changed(**changes: object) -> Params:
    return {**SPACE.architecture(EXAMPLE).params, **changes}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (changed(stages=3), "parameter 'block_3' is missing"),
        (changed(width_3=16), "parameter 'width_3' is given, but it exists only if 'stages'"),
        (changed(block_1="residul"), "'block_1' is 'residul'. Nearest: residual"),
        (changed(kernel_2=4), "'kernel_2' is 4."),
        (changed(squeeze_excite_1=1), "'squeeze_excite_1' is 1."),
        (changed(pool=1), "unknown parameter 'pool'"),
    ],
)
def test_foreign_parameters_are_refused(params: Params, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(params)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"channels": 0}, {"length": 1}, {"num_classes": 2.0}, {"input": "wave form"}, {"length": "16000"}]
)
def test_options_outside_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=f"'{next(iter(options))}'"):
        get_space("conv1d_audio", **options)

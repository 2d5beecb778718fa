"""NATS-Bench: sizes, and topology as another name of NAS-Bench-201."""

from __future__ import annotations

from typing import Any

import pytest

from nasrlm import costs, get_space, registry, to_text
from nasrlm.errors import SpaceError

SPACE: Any = get_space("nats_sss")


def test_the_topology_space_is_nasbench201() -> None:
    assert registry.alias_of("spaces", "nats_tss") == "nasbench201"
    assert type(get_space("nats_tss")) is type(get_space("nasbench201"))


def test_published_counts() -> None:
    a = SPACE.from_index(284)
    assert a.string == "8:8:40:32:40"
    assert (costs(a).params, costs(a).macs) == (144_834, 21_827_984)


def test_strings_and_indices_round_trip() -> None:
    for index, a in enumerate(SPACE.enumerate()):
        if index % 7 == 0:
            assert SPACE.architecture(a.string) == a
            assert SPACE.to_index(a) == index
            assert SPACE.from_index(index) == a
    assert index == SPACE.size() - 1 == 32_767


def test_equal_widths_are_nasbench201_with_one_cell_a_stage() -> None:
    cell = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
    other = get_space("nasbench201", cells=1).architecture(cell)
    assert to_text(SPACE.architecture("16:32:32:64:64")) == to_text(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8:8:40:32", "it has 4 parts between ':'. The form is 5 widths, each one of: 8, 16, 24"),
        ("hello", "'hello' is no architecture of nats_sss: it has 1 parts"),
        ("8:8:40:32:40:8", "it has 6 parts"),
        ("8:8:41:32:40", "'width_cell_2' is 41. Allowed: 8, 16, 24"),
        ("8:8:-8:32:40", "'width_cell_2' is '-8'. Nearest: 8"),
        ("8:8::32:40", "'width_cell_2' is ''. Allowed: 8"),
    ],
)
def test_foreign_strings_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize("index", [-1, 32_768])
def test_indices_outside_are_refused(index: int) -> None:
    with pytest.raises(SpaceError, match="Allowed: 0 to 32767"):
        SPACE.from_index(index)


def test_options_outside_are_refused() -> None:
    with pytest.raises(SpaceError, match="option 'image_size' of nats_sss is 30. Allowed: multiples of 4"):
        get_space("nats_sss", image_size=30)
    with pytest.raises(SpaceError, match="option 'num_classes' of nats_sss is '10'"):
        get_space("nats_sss", num_classes="10")

"""NAS-Bench-201: strings, indices, and counts against the paper's and the published tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from nasrlm import Architecture, SearchSpace, costs, get_space
from nasrlm.errors import SpaceError

SPACE = get_space("nasbench201")
INDEX_0 = "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|"
INDEX_6111 = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
DEAD = "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"


def test_the_string_names_the_edges() -> None:
    assert SPACE.architecture(INDEX_0).params == {
        "edge_0_1": "avg_pool_3x3",
        "edge_0_2": "nor_conv_1x1",
        "edge_1_2": "skip_connect",
        "edge_0_3": "nor_conv_1x1",
        "edge_1_3": "skip_connect",
        "edge_2_3": "skip_connect",
    }


def test_all_strings_and_indices_round_trip() -> None:
    for index, a in enumerate(SPACE.enumerate()):
        assert SPACE.architecture(a.string) == a
        assert SPACE.to_index(a) == index
    assert index == SPACE.size() - 1
    assert all(SPACE.to_index(SPACE.from_index(i)) == i for i in (0, 1, 5, 6110, 15_624))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "'hello' is no architecture of nasbench201. The form is |op~0|+|op~0|op~1|+"),
        (INDEX_0[1:], "Example: |avg_pool_3x3~0|+"),
        (INDEX_0.replace("~2", "~1"), "is no architecture"),
        (INDEX_0 + "x", "is no architecture"),
        ("", "is no architecture"),
        (INDEX_0.replace("avg_pool_3x3", "avg_pool3x3"), "'edge_0_1' is 'avg_pool3x3'. Nearest: avg_pool_3x3"),
        (INDEX_0.replace("avg_pool_3x3", ""), "'edge_0_1' is ''. Allowed: none, skip_connect"),
    ],
)
def test_foreign_strings_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize("index", [-1, 15_625])
def test_indices_outside_are_refused(index: int) -> None:
    with pytest.raises(SpaceError, match="Allowed: 0 to 15624"):
        SPACE.from_index(index)


@pytest.mark.parametrize(
    "options", [{"num_classes": 0}, {"cells": 1.5}, {"channels": True}, {"image_size": 30}, {"image_size": "32"}]
)
def test_options_outside_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(SpaceError, match=f"option '{next(iter(options))}' of nasbench201 is"):
        get_space("nasbench201", **options)


def test_official_indices_come_from_a_table() -> None:
    by_index, index_of = SPACE.indices(pd.DataFrame({"index": [0, 6111], "arch": [INDEX_0, INDEX_6111]}))
    assert by_index[6111].string == INDEX_6111
    assert index_of[SPACE.architecture(INDEX_0)] == 0
    with pytest.raises(SpaceError, match="comes twice"):
        SPACE.indices({"index": [0, 1], "arch": [INDEX_0, INDEX_0]})


@pytest.mark.parametrize(
    ("text", "params", "macs"),
    [(INDEX_0, 129_306, 15_647_360), (INDEX_6111, 1_073_466, None), (DEAD, 73_306, None)],
)
def test_published_counts(text: str, params: int, macs: int | None) -> None:
    found = costs(SPACE.architecture(text))
    assert found.params == params
    assert macs is None or found.macs == macs


def test_options_change_the_network() -> None:
    small = get_space("nasbench201", num_classes=120, image_size=16, channels=8, cells=2)
    found = costs(small.architecture(DEAD))
    reductions = sum(c * c // 2 * 9 + c * c * 9 + c * c // 2 + 4 * c for c in (16, 32))
    assert found.params == (3 * 8 * 9 + 16) + reductions + 2 * 32 + (32 + 1) * 120


def published(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "nasbench201.csv.gz")


@pytest.mark.data
def test_official_indices_of_the_published_table(data_folder: Path) -> None:
    by_index, index_of = SPACE.indices(published(data_folder))
    assert len(by_index) == len(index_of) == SPACE.size()
    assert by_index[0].string == INDEX_0
    assert by_index[6111].string == INDEX_6111


def check_counts(rows: pd.DataFrame, ten: SearchSpace, hundred: SearchSpace) -> int:
    """Check parameters on every row; return on how many the MACs are another number."""
    other = 0
    for row in rows.itertuples():
        a: Architecture = ten.architecture(row.arch)
        assert costs(a).params == round(row.params_millions * 1e6), row.arch
        difference = costs(hundred.architecture(row.arch)).macs / 1e6 - row.flops_millions
        if abs(difference) > 0.0051:
            # Published with one 1x1 (3.93 M) or 3x3 edge (35.39 M) too many or too few.
            assert min(abs(abs(difference) - 3.93216), abs(abs(difference) - 35.38944)) < 0.0051, row.arch
            other += 1
    return other


@pytest.mark.data
def test_published_counts_of_a_sample(data_folder: Path) -> None:
    rows = published(data_folder).sample(400, random_state=0)
    assert check_counts(rows, SPACE, get_space("nasbench201", num_classes=100)) <= 15


@pytest.mark.data
@pytest.mark.slow
def test_published_counts_of_every_row(data_folder: Path) -> None:
    rows = published(data_folder)
    assert check_counts(rows, SPACE, get_space("nasbench201", num_classes=100)) == 150

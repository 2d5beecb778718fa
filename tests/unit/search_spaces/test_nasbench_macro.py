"""NAS-Bench-Macro: strings, equal networks, and counts against every row of the published table."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nasrlm import costs, get_space, to_text
from nasrlm.errors import SpaceError

SPACE: Any = get_space("nasbench_macro")


@pytest.mark.parametrize(
    ("text", "params", "macs"), [("00000000", 387_882, 7_713_280), ("22212202", 1_985_514, 85_164_544)]
)
def test_published_counts(text: str, params: int, macs: int) -> None:
    found = costs(SPACE.architecture(text))
    assert (found.params, found.macs) == (params, macs)


def test_all_strings_round_trip() -> None:
    strings = [a.string for a in SPACE.enumerate()]
    assert len(set(strings)) == SPACE.size() == 6_561
    for text in strings[::13]:
        assert SPACE.architecture(text).string == text
        assert SPACE.architecture("-".join(text)).string == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0201222", "'0201222' is no architecture of nasbench_macro: it has 7 digits. The form is 8 digits"),
        ("020122201", "it has 9 digits"),
        ("", "it has 0 digits"),
        ("02013220", "digit 5 is '3'. Allowed: 0 (identity), 1 (k3_e3), 2 (k5_e6)"),
        ("0201x220", "digit 5 is 'x'"),
    ],
)
def test_foreign_strings_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(text)
    assert expected in str(caught.value)


def test_options_outside_are_refused() -> None:
    with pytest.raises(SpaceError, match="option 'image_size' of nasbench_macro is 36. Allowed: multiples of 8"):
        get_space("nasbench_macro", image_size=36)


def test_layers_that_do_nothing_may_stand_anywhere_in_their_stage() -> None:
    same = [to_text(SPACE.architecture(text)) for text in ("02101201", "02110201")]
    assert len(set(same)) == 1
    assert to_text(SPACE.architecture("02011201")) != same[0]  # the first layer of a stage changes shapes


@pytest.mark.slow
def test_the_strings_are_3969_networks() -> None:
    networks = defaultdict(list)
    for a in SPACE.enumerate():
        networks[to_text(a)].append(a.string)
    assert len(networks) == 3_969
    for strings in networks.values():
        assert len({canonical(text) for text in strings}) == 1


def canonical(text: str) -> str:
    """Digits with the layers that do nothing at the end of their stage."""
    stages = (text[:2], text[2:5], text[5:])
    return "".join(s[0] + s[1:].replace("0", "").ljust(len(s) - 1, "0") for s in stages)


@pytest.mark.data
def test_published_counts_of_every_row(data_folder: Path) -> None:
    rows = pd.read_csv(data_folder / "nas_bench_macro.csv.gz")
    assert len(rows) == SPACE.size()
    for row in rows.itertuples():
        found = costs(SPACE.architecture(row.arch))
        assert (found.params, found.macs) == (row.params, row.flops), row.arch

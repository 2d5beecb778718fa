"""The three Once-for-all spaces: dictionaries, ends of the counts, and the published tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nasrlm import Architecture, costs, get_space, to_text
from nasrlm.errors import SpaceError
from search_spaces import ofa_mobilenetv3, ofa_proxyless, ofa_resnet50
from search_spaces._ofa import OnceForAll

SPACES: dict[str, OnceForAll] = {
    "ofa_mobilenetv3": ofa_mobilenetv3.OFAMobileNetV3(),
    "ofa_proxyless": ofa_proxyless.OFAProxyless(),
    "ofa_resnet50": ofa_resnet50.OFAResNet50(),
}
EXAMPLES = {module.SPACE.name: module.EXAMPLE for module in (ofa_mobilenetv3, ofa_proxyless, ofa_resnet50)}
every_space = pytest.mark.parametrize("name", SPACES)
RESOLUTIONS = 25


def extreme(space: OnceForAll, largest: bool) -> Architecture:
    """The largest or smallest network at 224 pixels."""
    if space.name == "ofa_resnet50":
        entries = {"d": 2, "e": 0.35, "w": 2} if largest else {"d": 0, "e": 0.2, "w": 0}
    else:
        entries = {"ks": 7, "e": 6, "d": 4} if largest else {"ks": 3, "e": 3, "d": 2}
    return space.from_dict({**{key: [entries[key]] * n for key, n in space.layout.lengths.items()}, "r": 224})


def changed(name: str, key: str, value: Any) -> dict[str, Any]:
    return {**json.loads(EXAMPLES[name]), key: value}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("ofa_mobilenetv3", 7371**5),
        ("ofa_proxyless", 7371**5 * 9),
        ("ofa_resnet50", 2 * 117**3 * 1053 * 3**6),
    ],
)
def test_size(name: str, size: int) -> None:
    assert SPACES[name].size() == size * RESOLUTIONS
    assert get_space(name, resolution=160).size() == size


@every_space
def test_strings_and_dictionaries_round_trip(name: str) -> None:
    space = SPACES[name]
    assert space.architecture(EXAMPLES[name]).string == EXAMPLES[name]
    for a in space.sample(50, seed=0):
        assert space.architecture(a.string) == a
        assert space.from_dict(space.to_dict(a)) == a
        assert json.loads(a.string) == space.to_dict(a)
    fixed = get_space(name, resolution=224)
    assert fixed.architecture(EXAMPLES[name]).string == EXAMPLES[name]


@every_space
def test_entries_of_blocks_that_are_not_there_are_ignored(name: str) -> None:
    space, given = SPACES[name], json.loads(EXAMPLES[name])
    other = {key: [v or 6 for v in values] if key in ("ks", "e") else values for key, values in given.items()}
    assert other != given
    assert space.from_dict(other).string == EXAMPLES[name]


@every_space
def test_the_words_of_the_authors_tools_are_read(name: str) -> None:
    space, given = SPACES[name], json.loads(EXAMPLES[name])
    a = space.from_dict(given)
    pixels = given.pop("r")
    arrays = {key: np.array(values) for key, values in given.items()}
    assert space.from_dict({**arrays, "r": np.int64(pixels)}) == a
    assert space.from_dict({"wid": None, **given, "r": [pixels]}) == a
    assert space.from_dict({**{key: tuple(values) for key, values in given.items()}, "image_size": pixels}) == a
    fixed = get_space(name, resolution=pixels)
    assert fixed.from_dict(given).string == a.string  # type: ignore[attr-defined]


@every_space
def test_foreign_texts_are_refused(name: str) -> None:
    for text in ("hello", "", "[1]", "{", '"ks"', EXAMPLES[name][1:]):
        with pytest.raises(SpaceError, match=f"is no architecture of {name}. The form is JSON such as"):
            SPACES[name].architecture(text)
    with pytest.raises(SpaceError, match=f"3 is no architecture of {name}"):
        SPACES[name].from_dict(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "key", "value", "expected"),
    [
        ("ofa_mobilenetv3", "ks", [3] * 19, "'ks' has 19 entries"),
        ("ofa_mobilenetv3", "ks", 3, "'ks' is 3, not a list. Give a list of 20 numbers."),
        ("ofa_mobilenetv3", "ks", "3-3", "'ks' is '3-3', not a list"),
        ("ofa_mobilenetv3", "ks", [3] * 4 + [4] + [3] * 15, "'ks[4]' is 4. Allowed: 3, 5, 7."),
        ("ofa_mobilenetv3", "e", [3] * 16 + [0] + [3] * 3, "'e[16]' is 0. Allowed: 3, 4, 6."),
        ("ofa_mobilenetv3", "e", ["x"] + [3] * 19, "'e[0]' is 'x'. Allowed: 3, 4, 6."),
        ("ofa_mobilenetv3", "d", [2, 2, 5, 2, 2], "'d[2]' is 5. Allowed: 2, 3, 4."),
        ("ofa_mobilenetv3", "r", 130, "'r' is 130. Allowed: 128 to 224 by 4."),
        ("ofa_mobilenetv3", "r", None, "'r', the resolution, is missing. Give it, or the option 'resolution'"),
        ("ofa_mobilenetv3", "r", "big", "'r' is 'big'. Allowed: 128 to 224 by 4."),
        ("ofa_mobilenetv3", "kss", [3] * 20, "unknown key: parameter 'key' is 'kss'. Nearest: ks."),
        ("ofa_mobilenetv3", "w", [2] * 6, "'key' is 'w'. Allowed: ks, e, d, r."),
        ("ofa_mobilenetv3", "wid", 1.0, "'key' is 'wid'."),
        ("ofa_proxyless", "ks", [3] * 20, "'ks' has 20 entries"),
        ("ofa_proxyless", "d", [2, 2, 2, 2, 2, 0], "'d[5]' is 0. Allowed: 1, 2, 3, 4."),
        ("ofa_resnet50", "d", [1, 0, 0, 0, 0], "'d[0]' is 1. Allowed: 0, 2."),
        ("ofa_resnet50", "d", [0, 0, 3, 0, 0], "'d[2]' is 3. Allowed: 0, 1, 2."),
        ("ofa_resnet50", "e", [0.2] * 17 + [0.3], "'e[17]' is 0.3."),
        ("ofa_resnet50", "w", [0, 0, 0, 3, 0, 0], "'w[3]' is 3. Allowed: 0, 1, 2."),
        ("ofa_resnet50", "ks", [3] * 18, "'key' is 'ks'."),
    ],
)
def test_foreign_dictionaries_are_refused(name: str, key: str, value: Any, expected: str) -> None:
    given = changed(name, key, value)
    if key == "e" and name == "ofa_resnet50":
        given["d"] = [2] * 5
    with pytest.raises(SpaceError) as caught:
        SPACES[name].from_dict(given)
    assert expected in str(caught.value)


@every_space
def test_missing_keys_are_named(name: str) -> None:
    for key in SPACES[name].layout.lengths:
        given = json.loads(EXAMPLES[name])
        del given[key]
        with pytest.raises(SpaceError, match=f"key '{key}' is missing. An architecture of {name} has: "):
            SPACES[name].from_dict(given)


def test_another_resolution_than_the_option_is_refused() -> None:
    fixed = get_space("ofa_mobilenetv3", resolution=160)
    with pytest.raises(SpaceError, match="'r' is 224, but the option 'resolution' of ofa_mobilenetv3 is 160"):
        fixed.architecture(EXAMPLES["ofa_mobilenetv3"])


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("ofa_mobilenetv3", {"width": 1.1}, "option 'width' of ofa_mobilenetv3 is 1.1. Allowed: 1.0, 1.2."),
        ("ofa_mobilenetv3", {"width": True}, "option 'width' of ofa_mobilenetv3 is True"),
        (
            "ofa_mobilenetv3",
            {"resolution": 16},
            "option 'resolution' of ofa_mobilenetv3 is 16. Allowed: integers >= 32",
        ),
        ("ofa_proxyless", {"resolution": 224.0}, "option 'resolution' of ofa_proxyless is 224.0"),
        ("ofa_resnet50", {"num_classes": 0}, "option 'num_classes' of ofa_resnet50 is 0. Allowed: integers >= 1"),
    ],
)
def test_options_outside_are_refused(name: str, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpaceError, match=expected):
        get_space(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "largest", "smallest"),
    [
        ("ofa_mobilenetv3", {}, (7_664_760, 566.2), (3_410_792, 121.3)),
        ("ofa_mobilenetv3", {"width": 1.2}, (10_701_632, 843.1), (4_602_456, 193.1)),
        ("ofa_proxyless", {}, (7_942_056, 1_004.9), (3_718_832, 265.5)),
        ("ofa_resnet50", {}, (48_105_992, 7_491.6), None),
    ],
)
def test_ends_of_the_counts(name: str, options: dict[str, Any], largest: Any, smallest: Any) -> None:
    space: Any = get_space(name, **options)
    for big, expected in ((True, largest), (False, smallest)):
        found = costs(extreme(space, big))
        assert expected is None or (found.params, round(found.macs / 1e6, 1)) == expected


def test_published_example() -> None:
    found = costs(SPACES["ofa_mobilenetv3"].architecture(ofa_mobilenetv3.EXAMPLE))
    assert (found.params, found.macs) == (4_819_200, 265_450_224)


def test_resnet50_d_is_a_point_of_the_space() -> None:
    found = costs(SPACES["ofa_resnet50"].architecture(ofa_resnet50.RESNET50_D))
    assert (found.params, round(found.macs / 1e9, 2)) == (25_576_264, 4.33)


def test_resolution_is_the_inputs() -> None:
    space = SPACES["ofa_mobilenetv3"]
    a = space.from_dict({**json.loads(EXAMPLES["ofa_mobilenetv3"]), "r": 132})
    assert a.graph().shapes[0] == (1, 3, 132, 132)
    assert costs(a).params == 4_819_200
    assert get_space("ofa_proxyless", resolution=32).sample(1, 0)[0].graph().shapes[0] == (1, 3, 32, 32)


def test_proxyless_reads_a_last_depth_as_its_one_block() -> None:
    given = json.loads(EXAMPLES["ofa_proxyless"])
    given["d"][5] = 3
    assert SPACES["ofa_proxyless"].from_dict(given).string == EXAMPLES["ofa_proxyless"]


def test_texts_name_what_the_papers_name() -> None:
    lines = {name: set(to_text(SPACES[name].architecture(EXAMPLES[name])).splitlines()) for name in SPACES}
    assert {"hardswish", "relu", "hardsigmoid", "conv 1280 nobias"} <= lines["ofa_mobilenetv3"]
    assert "relu6" in lines["ofa_proxyless"]
    assert not {"relu", "hardswish", "hardsigmoid"} & lines["ofa_proxyless"]
    assert any(line.startswith("avgpool k2 s2") for line in lines["ofa_resnet50"])


@every_space
def test_text_is_compact(name: str) -> None:
    for a in SPACES[name].sample(10, seed=1):
        assert to_text(a).count("\n") < 160


def official(row: Any) -> dict[str, Any]:
    """A row of the shared tables as the authors' dictionary."""
    lists = {"ks": row.kernel_sizes, "e": row.expand_ratios, "d": row.depths}
    return {**{key: [int(v) for v in text.split("-")] for key, text in lists.items()}, "r": int(row.resolution)}


def round_trip(given: dict[str, Any]) -> Architecture:
    space = SPACES["ofa_mobilenetv3"]
    a = space.from_dict(given)
    again = space.to_dict(a)
    assert space.architecture(a.string) == a
    assert (again["d"], again["r"]) == (given["d"], given["r"])
    for key in ("ks", "e"):
        for i, (written, read) in enumerate(zip(again[key], given[key], strict=True)):
            assert written == (read if i % 4 < given["d"][i // 4] else 0)
    return a


@pytest.mark.data
def test_published_counts_of_every_row(data_folder: Path) -> None:
    rows = pd.read_csv(data_folder / "ofa_mbv3_accuracy.csv.gz")
    assert len(rows) == 2_223
    for row in rows.itertuples():
        found = costs(round_trip(official(row)))
        assert (found.params, found.macs) == (row.params, row.macs), row


@pytest.mark.data
def test_every_published_latency_row_round_trips(data_folder: Path) -> None:
    rows = pd.read_csv(data_folder / "ofa_mbv3_latency.csv.gz")
    assert len({round_trip(official(row)) for row in rows.itertuples()}) == len(rows) == 5_000

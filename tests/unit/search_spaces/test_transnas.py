"""TransNAS-Bench-101, micro and macro: codes, tasks, and encoders against counts made apart from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nasrlm import costs, get_space, to_text
from nasrlm.errors import SpaceError
from search_spaces._transnas import TASKS

MICRO: Any = get_space("transnas_micro")
MACRO: Any = get_space("transnas_macro")
SCENES = 47


@pytest.mark.parametrize(
    ("text", "params", "gmacs"), [("64-41414-1_02_333", 22_520_608, 3.511), ("64-41414-3_33_333", 41_411_616, 6.485)]
)
def test_counts_of_micro_encoders(text: str, params: int, gmacs: float) -> None:
    found = costs(MICRO.architecture(text))
    assert found.params - (512 + 1) * SCENES == params
    assert (found.macs - 512 * SCENES) / 1e9 == pytest.approx(gmacs, abs=5e-4)


def test_counts_of_a_macro_encoder() -> None:
    assert costs(MACRO.architecture("64-1234-basic")).params - (256 + 1) * SCENES == 3_400_224


def test_codes_round_trip() -> None:
    strings = [a.string for a in MICRO.enumerate()]
    assert len(set(strings)) == MICRO.size() == 4_096
    assert all(MICRO.architecture(text).string == text for text in strings[::5])
    assert MICRO.architecture("1-0-2-3-3-3").string == "64-41414-1_02_333"
    strings = [a.string for a in MACRO.enumerate()]
    assert len(set(strings)) == MACRO.size() == 3_256
    assert all(MACRO.architecture(text).string == text for text in strings)


def test_macro_counts_by_modules() -> None:
    lengths = [len(a.string.split("-")[1]) for a in MACRO.enumerate()]
    assert [lengths.count(n) for n in (4, 5, 6)] == [210, 750, 2_296]
    for a in MACRO.enumerate():
        digits = a.string.split("-")[1]
        assert 1 <= sum(d in "24" for d in digits) <= 3
        assert 1 <= sum(d in "34" for d in digits) <= 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "'hello' is no architecture of transnas_micro. The form is 64-41414-a_bc_def"),
        ("64-41414-1_02_33", "Example: 64-41414-1_02_333"),
        ("64-41413-1_02_333", "is no architecture of transnas_micro"),
        ("1-0-2-3-3", "is no architecture of transnas_micro"),
        ("64-41414-1_42_333", "the digit of 'edge_0_2' is '4'. Allowed: 0 (none), 1 (skip_connect), 2 (conv_1x1)"),
        ("64-41414-1_02_33x", "the digit of 'edge_2_3' is 'x'"),
    ],
)
def test_foreign_micro_codes_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        MICRO.architecture(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "'hello' is no architecture of transnas_macro. The form is 64-<4 to 6 digits from 1 to 4>-basic"),
        ("64-1234", "Example: 64-1234-basic"),
        ("64-123-basic", "there are 3 modules. Allowed: 4, 5, 6."),
        ("64-1234111-basic", "there are 7 modules"),
        ("64-1204-basic", "digit 3 is '0'. Allowed: 1 (no change), 2 (twice the channels)"),
        ("64-1133-basic", "0 modules double the channels (digits 2 and 4). Allowed: 1 to 3."),
        ("64-2222-basic", "4 modules double the channels"),
        ("64-1222-basic", "0 modules halve the resolution (digits 3 and 4). Allowed: 1 to 4."),
        ("64-333334-basic", "6 modules halve the resolution"),
    ],
)
def test_foreign_macro_codes_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        MACRO.architecture(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize("name", ["transnas_micro", "transnas_macro"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"task": "jigsav"}, "'task' is 'jigsav'. Nearest: jigsaw. Allowed: class_scene, class_object"),
        ({"image_size": 0}, "option 'image_size' of {name} is 0. Allowed: integers >= 1"),
        ({"outputs": "17"}, "option 'outputs' of {name} is '17'"),
    ],
)
def test_options_outside_are_refused(name: str, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        get_space(name, **options)
    assert expected.format(name=name) in str(caught.value)


SHAPES = {
    "class_scene": (1, 47),
    "class_object": (1, 75),
    "room_layout": (1, 9),
    "jigsaw": (1, 1000),
    "segmentsemantic": (1, 17, 256, 256),
    "normal": (1, 3, 256, 256),
    "autoencoder": (1, 3, 256, 256),
}


@pytest.mark.parametrize("task", SHAPES)
def test_tasks_have_their_outputs(task: str) -> None:
    assert set(SHAPES) == set(TASKS)
    micro, macro = get_space("transnas_micro", task=task), get_space("transnas_macro", task=task)
    for a in (micro.architecture("64-41414-1_02_333"), macro.architecture("64-1234-basic")):
        graph = a.graph()
        assert [graph.shapes[node] for node in graph.outputs] == [SHAPES[task]]


def test_one_to_four_halvings_all_lead_back_to_the_size_of_the_label() -> None:
    for task, convolutions in (("segmentsemantic", 8), ("normal", 14)):
        space = get_space("transnas_macro", task=task)
        for code in ("1124", "1134", "1334", "12333", "343311"):
            a = space.architecture(f"64-{code}-basic")
            graph = a.graph()
            assert graph.shapes[graph.outputs[0]][2:] == (256, 256)
            counted = costs(a).operators
            assert counted["deconv"] == 2 + sum(digit in "34" for digit in code)
            encoder = 2 + 4 * len(code) + sum(digit != "1" for digit in code)
            assert counted["conv"] + counted["deconv"] == encoder + convolutions


def test_nine_tiles_share_one_encoder() -> None:
    tiles, scenes = get_space("transnas_micro", task="jigsaw"), get_space("transnas_micro", image_size=64)
    code = "64-41414-1_02_333"
    one, nine = costs(scenes.architecture(code)), costs(tiles.architecture(code))
    assert nine.macs - 9 * 512 * 1000 == 9 * (one.macs - 512 * SCENES)
    assert nine.params - (9 * 512 + 1) * 1000 == one.params - (512 + 1) * SCENES


def test_a_cell_without_a_path_is_a_constant() -> None:
    assert to_text(MICRO.architecture("64-41414-0_00_000")).splitlines()[1:] == ["in 1x3x224x224", "const 1x47"]
    dead = MICRO.architecture("64-41414-3_00_000")
    assert costs(dead).params > costs(MICRO.architecture("64-41414-0_00_000")).params


def test_repeated_modules_are_written_once() -> None:
    assert "} x3" in to_text(MICRO.architecture("64-41414-1_02_333"))


@pytest.mark.data
def test_the_published_table_is_the_micro_space(data_folder: Path) -> None:
    rows = pd.read_csv(data_folder / "transnas101_micro.csv.gz")
    found = [MICRO.architecture(arch) for arch in rows["arch"]]
    assert len(set(found)) == len(found) == MICRO.size()
    for arch, a in zip(rows["arch"], found, strict=True):
        assert a.string == "64-41414-{}_{}{}_{}{}{}".format(*arch.split("-"))
    best = rows.loc[rows["class_scene_val_top1"].idxmax()]
    assert MICRO.architecture(best["arch"]).string == "64-41414-3_32_132"
    assert round(best["class_scene_val_top1"], 2) == 54.94

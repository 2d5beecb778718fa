"""MnasNet as in Accel-NASBench: the compact text, EfficientNet-B0, and the published counts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from nasrlm import costs, get_space, to_text
from nasrlm.errors import SpaceError
from search_spaces.mnasnet import EFFICIENTNET_B0, EXAMPLE, MnasNet

SPACE = MnasNet()


def test_size() -> None:
    assert SPACE.size() == 36**6 * 48


def test_text_and_configspace_dictionary_are_the_same_architecture() -> None:
    a = SPACE.architecture(EXAMPLE)
    assert list(a.params)[:4] == ["block0_e", "block0_k", "block0_l", "block0_se"]
    assert list(a.params.values())[:4] == [6, 3, 1, False]
    assert SPACE.architecture(dict(reversed(a.params.items()))) == a
    for other in SPACE.sample(50, seed=0):
        assert SPACE.architecture(other.string) == other


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "'hello' is no architecture of mnasnet: it has 1 blocks, not 7. The form of a block is e6k3l1n"),
        (EXAMPLE[:-8], "it has 6 blocks, not 7"),
        (EXAMPLE + "_e1k3l1n", "it has 8 blocks, not 7"),
        (EXAMPLE.replace("e4k5l2n", "e4k5l2"), "block 1 of"),
        (EXAMPLE.replace("e4k5l2n", "e4k5l2x"), "is 'e4k5l2x'. The form is e6k3l1n: expansion 1, 4, 6; kernel 3, 5"),
        (EXAMPLE.replace("e4k5l2n", "k5e4l2n"), "is 'k5e4l2n'"),
        (EXAMPLE.replace("e4", "e3"), "parameter 'block1_e' is 3. Allowed: 1, 4, 6."),
        (EXAMPLE.replace("e4k5", "e4k7"), "parameter 'block1_k' is 7. Allowed: 3, 5."),
        (EXAMPLE.replace("e4k5l2n", "e4k5l4n"), "parameter 'block1_l' is 4. Allowed: 1, 2, 3."),
        (EXAMPLE.replace("e4k5l2n", "e4k5l0n"), "parameter 'block1_l' is 0."),
    ],
)
def test_foreign_strings_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(text)
    assert expected in str(caught.value)


def test_only_block_5_may_have_four_layers() -> None:
    assert SPACE.architecture(EFFICIENTNET_B0).params["block5_l"] == 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"num_classes": 0}, "option 'num_classes' of mnasnet is 0. Allowed: integers >= 1"),
        ({"image_size": "224"}, "option 'image_size' of mnasnet is '224'"),
        ({"activation": "relu6"}, "option 'activation' of mnasnet is 'relu6'. Allowed: silu, relu."),
    ],
)
def test_options_outside_are_refused(options: dict[str, object], expected: str) -> None:
    with pytest.raises(SpaceError, match=expected):
        get_space("mnasnet", **options)


@pytest.mark.parametrize(("text", "params"), [(EXAMPLE, 2_501_160), (EFFICIENTNET_B0, 5_288_548)])
def test_parameters(text: str, params: int) -> None:
    assert costs(SPACE.architecture(text)).params == params


def test_macs() -> None:
    assert SPACE.published_macs(SPACE.architecture(EXAMPLE)) == 415_361_072
    assert round(costs(SPACE.architecture(EFFICIENTNET_B0)).macs / 1e6, 1) == 385.8


def test_activations() -> None:
    silu, relu = (to_text(get_space("mnasnet", activation=a).architecture(EFFICIENTNET_B0)) for a in ("silu", "relu"))
    assert {"silu", "sigmoid"} <= set(silu.splitlines())
    assert "relu" not in silu.splitlines()
    assert {"relu", "hardsigmoid"} <= set(relu.splitlines())
    assert "sigmoid" not in relu.splitlines()
    on_fpga = MnasNet(activation="relu")
    assert on_fpga.published_macs(on_fpga.architecture(EXAMPLE)) == 415_361_072


def test_classes_and_pixels() -> None:
    small = get_space("mnasnet", num_classes=10, image_size=32).architecture(EXAMPLE)
    assert costs(small).params == 2_501_160 - 990 * 1281
    assert small.graph().shapes[0] == (1, 3, 32, 32)


def test_text_is_compact() -> None:
    for a in SPACE.sample(20, seed=1):
        assert to_text(a).count("\n") < 150


@pytest.mark.data
def test_published_counts_of_every_row(data_folder: Path) -> None:
    rows = pd.read_csv(data_folder / "accel_nasbench.csv.gz")
    assert len(rows) == 5_138
    for arch, params, macs in zip(rows["arch"], rows["params_millions"], rows["macs_millions"], strict=True):
        a = SPACE.architecture(arch)
        assert a.string == arch
        assert costs(a).params == round(params * 1e6), arch
        assert SPACE.published_macs(a) == round(macs * 1e6), arch

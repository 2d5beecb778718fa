"""FBNet: names and indices, FBNet-C's and the published counts, the two variants."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nasrlm import costs, get_space, to_text
from nasrlm.errors import SpaceError
from search_spaces.fbnet import EXAMPLE, FBNET_C, LAYERS, OPERATIONS, FBNet

SPACE = FBNet()
IMAGENET = FBNet(variant="imagenet")
SHARED_WITHOUT = 1504 * 100
"""MACs of the classifier, which the shared table leaves out."""


def all_of(operation: str) -> str:
    return "-".join([operation] * LAYERS)


def test_size() -> None:
    assert SPACE.size() == 9**22


def test_names_and_indices_round_trip() -> None:
    for a in SPACE.sample(50, seed=0):
        assert SPACE.architecture(a.string) == a
        assert SPACE.from_indices(SPACE.to_indices(a)) == a
    first = [0, 3, 8, 0, 0, 7, 6, 7, 3, 7, 6, 7, 7, 7, 7, 7, 6, 7, 7, 7, 7, 3]
    assert SPACE.to_indices(SPACE.architecture(FBNET_C)) == first
    assert SPACE.from_indices(np.array(first)).string == FBNET_C


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "'hello' is no architecture of fbnet: it has 1 layers, not 22. Give 22 of: k3_e1, k3_e1_g2"),
        (EXAMPLE.removesuffix("-k3_e6"), "it has 21 layers, not 22"),
        (EXAMPLE + "-skip", "it has 23 layers, not 22"),
        (EXAMPLE.replace("skip", "k3_e2"), "'layer_3' is 'k3_e2'. Nearest: k3_e"),
        (EXAMPLE.replace("skip", ""), "'layer_3' is ''. Allowed: k3_e1"),
        ("", "it has 1 layers"),
    ],
)
def test_foreign_strings_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([0] * 21, "it has 21 layers, not 22"),
        ([0] * 21 + [9], "layer 22 of 22: parameter 'index' is 9.*Allowed: 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        ([0, -1] + [0] * 20, "layer 2 of 22: parameter 'index' is -1"),
        ([0, 0, "skip"] + [0] * 19, "layer 3 of 22: parameter 'index' is 'skip'"),
        ("skip", "'skip' is no list of indices. Give 22 integers of 0 to 8"),
        (3, "3 is no list of indices"),
        ([True] + [0] * 21, "layer 1 of 22: parameter 'index' is True"),
    ],
)
def test_indices_outside_are_refused(indices: Any, expected: str) -> None:
    with pytest.raises(SpaceError, match=expected):
        SPACE.from_indices(indices)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"variant": "cifar10"}, "option 'variant' of fbnet is 'cifar10'. Allowed: cifar, imagenet"),
        ({"num_classes": 0}, "option 'num_classes' of fbnet is 0. Allowed: integers >= 1"),
        ({"image_size": 32.0}, "option 'image_size' of fbnet is 32.0"),
        ({"head": True}, "option 'head' of fbnet is True"),
    ],
)
def test_options_outside_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpaceError, match=expected):
        get_space("fbnet", **options)


def test_imagenet_counts() -> None:
    largest, fbnet_c = (costs(IMAGENET.architecture(text)) for text in (all_of("k3_e6"), FBNET_C))
    assert (largest.params, round(largest.macs / 1e6, 1)) == (5_591_256, 502.1)
    assert (fbnet_c.params, fbnet_c.macs) == (5_572_200, 384_960_160)


def test_heads_and_classes() -> None:
    head = get_space("fbnet", variant="imagenet", head=1504, num_classes=10)
    fewer = costs(IMAGENET.architecture(FBNET_C)).params - costs(head.architecture(FBNET_C)).params
    assert fewer == (352 + 2) * 480 + (1985 * 1000 - 1505 * 10)


def test_skip_is_nothing_where_shapes_are_equal() -> None:
    found = costs(SPACE.architecture(all_of("skip")))
    # Six of the seven stages change width or resolution; then stem, head and classifier.
    assert found.operators == {"in": 1, "conv": 8, "bn": 8, "relu": 8, "gap": 1, "flatten": 1, "linear": 1}


def test_expansion_and_groups() -> None:
    stem, head, last = 3 * 16 * 9 + 32, 354 * 1504, 1505 * 100
    widths = (16, 16, 24, 32, 64, 112, 184, 352)
    skips = sum(a * b + 2 * b for a, b in pairwise(widths[1:]))
    for i, (kernel, expansion, groups) in enumerate([(3, 1, 1), (3, 1, 2), (3, 3, 1), (3, 6, 1)]):
        inner = 16 * expansion
        block = 2 * (16 * inner // groups) + inner * kernel**2 + 4 * inner + 32
        text = all_of("skip").replace("skip", OPERATIONS[i], 1)
        assert costs(SPACE.architecture(text)).params == stem + block + skips + head + last
    assert to_text(SPACE.architecture(all_of("skip").replace("skip", "k3_e1_g2", 1))).count("shuffle") == 1


def test_text_is_compact() -> None:
    for a in SPACE.sample(20, seed=1):
        assert to_text(a).count("\n") < 130
    assert to_text(SPACE.architecture(all_of("k3_e6"))).count("\n") < 60


@pytest.mark.parametrize(
    ("options", "pixels", "last"),
    [({}, 32, 4), ({"variant": "imagenet"}, 224, 7), ({"variant": "imagenet", "image_size": 64}, 64, 2)],
)
def test_strides_of_the_variants(options: dict[str, Any], pixels: int, last: int) -> None:
    graph = get_space("fbnet", **options).architecture(FBNET_C).graph()
    assert graph.shapes[0] == (1, 3, pixels, pixels)
    assert graph.shapes[-4][2:] == (last, last)  # the head, before pool, flatten and linear layer


@pytest.mark.data
def test_published_macs_of_every_row(data_folder: Path) -> None:
    rows = pd.read_csv(data_folder / "fbnet.csv.gz")
    found = []
    for arch, macs in zip(rows["arch"], rows["macs_cifar100_32px_computed"], strict=True):
        a = SPACE.architecture(arch)
        assert a.string == arch
        counted = costs(a)
        assert counted.macs - SHARED_WITHOUT == macs, arch
        found.append(counted.params)
    assert (len(found), min(found), max(found)) == (5_000, 976_596, 3_290_492)

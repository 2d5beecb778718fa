"""GENNAPE's families HiAML, Two-Path and Inception: counts, encodings, sampling."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from nasrlm import costs, get_space, parse_text, to_text
from nasrlm.errors import SpaceError, UsageError
from nasrlm.spaces import SearchSpace
from search_spaces import hiaml, inception, twopath
from tests.unit.search_spaces.one_step import train_one_step

HIAML, TWOPATH, INCEPTION = (get_space(name) for name in ("hiaml", "twopath", "inception"))
SPACES = pytest.mark.parametrize("space", [HIAML, TWOPATH, INCEPTION], ids=lambda s: s.name)
EXAMPLES = {"hiaml": hiaml.EXAMPLE, "twopath": twopath.EXAMPLE, "inception": inception.EXAMPLE}
ALIKE = {
    "hiaml_z": 2_714_698,
    "hiaml_a22": 1_895_498,
    "hiaml_b23": 2_390_090,
    "hiaml_j30": 2_756_426,
    "hiaml_g30": 2_597_194,
    "hiaml_r30": 2_638_922,
    "hiaml_l20": 1_688_394,
    "hiaml_t20": 1_281_098,
    "hiaml_t31": 2_638_922,
    "hiaml_src0": 3_861_578,
    "hiaml_src1": 2_939_594,
    "hiaml_src3": 1_999_818,
    "hiaml_src7": 2_637_386,
    "hiaml_src8": 1_611_082,
}
"""Parameters with the same block in all four stages: an independent count, see SPACES.md."""


@SPACES
def test_networks_text_and_training(space: SearchSpace) -> None:
    assert space.architecture(EXAMPLES[space.name]).string == EXAMPLES[space.name]
    for a in space.sample(5, seed=3):
        text = to_text(a)
        again = parse_text(text)
        assert to_text(again) == text
        assert costs(again).macs == costs(a).macs  # parameters of BatchNorm are folded away
        assert len(text.split()) < 1200
    train_one_step(space.sample(1, seed=1)[0])


@SPACES
def test_options(space: SearchSpace) -> None:
    small = get_space(space.name, image_size=16, num_classes=7).sample(1, seed=0)[0].graph()
    assert small.shapes[0] == (1, 3, 16, 16)
    assert small.shapes[-1] == (1, 7)
    for option, value in {"image_size": 7, "num_classes": 0}.items():
        with pytest.raises(SpaceError, match=f"option '{option}' of {space.name} is {value}"):
            get_space(space.name, **{option: value})


@SPACES
def test_samples_repeat_and_are_refused_below_zero(space: SearchSpace) -> None:
    assert space.sample(3, seed=5) == space.sample(8, seed=5)[:3]
    assert space.sample(0, seed=5) == []
    with pytest.raises(UsageError, match="cannot sample -1"):
        space.sample(-1, seed=5)


# --- HiAML -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", hiaml.BLOCKS)
def test_parameters_of_hiaml_blocks(block: str) -> None:
    assert costs(HIAML.architecture(json.dumps([block] * 4))).params == ALIKE[block]


def test_hiaml_has_every_list_of_four() -> None:
    assert HIAML.size() == 14**4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hiaml_z", "'hiaml_z' is no architecture of hiaml: it is no list"),
        ('["hiaml_z"]', "it has 1 names. Give a JSON list of 4"),
        ('{"a":1}', "it is no list"),
        ('["hiaml_z","hiaml_z","hiaml_zz","hiaml_z"]', "'stage_3' is 'hiaml_zz'. Nearest: hiaml_z"),
        ('["hiaml_z","hiaml_z",3,"hiaml_z"]', "'stage_3' is 3"),
    ],
)
def test_foreign_hiaml_strings_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        HIAML.architecture(text)
    assert expected in str(caught.value)


# --- Two-Path ----------------------------------------------------------------------------------------------------


def test_twopath_parameters_by_hand() -> None:
    block = {"op_names": ["conv3x3"], "op_types": ["conv"]}
    a = TWOPATH.from_dict(  # type: ignore[attr-defined]
        {"path1": [block] * 2, "path2": [block] * 2, "path1_reduce_inds": [0, 1], "path2_reduce_inds": [1, 0]}
    )

    def conv(before: int, out: int) -> int:
        return 9 * before * out + 2 * out

    path = conv(32, 64) + conv(64, 128)
    assert costs(a).params == conv(3, 32) + conv(32, 32) + 2 * path + conv(256, 512) + 512 * 10 + 10


@pytest.mark.parametrize(
    ("operation", "before", "out", "stride", "weights"),
    [
        ("conv5x5", 32, 64, 2, 25 * 32 * 64 + 2 * 64),
        ("double3x3", 32, 64, 2, 9 * 32 * 32 + 9 * 32 * 64 + 2 * (32 + 64)),
        ("bottleneck-r2-k3", 32, 64, 2, 9 * 32 * 16 + 9 * 16 * 64 + 2 * (16 + 64)),
        ("bottleneck-r4-k3", 32, 32, 1, 9 * 32 * 8 + 9 * 8 * 32 + 2 * (8 + 32)),
        ("bottleneck-e2-k1", 32, 32, 1, 32 * 64 + 64 * 32 + 2 * (64 + 32)),
        ("inception_s5x5", 32, 64, 2, 5 * 32 * 64 + 5 * 64 * 64 + 4 * 64),
        ("avgpool3x3", 32, 32, 1, 64),
        ("conv1x1", 32, 32, 1, 32 * 32 + 64),
    ],
)
def test_twopath_operations(operation: str, before: int, out: int, stride: int, weights: int) -> None:
    check_operation(twopath._operation, operation, before, out, stride, weights)


def check_operation(
    describe: Callable[..., int], operation: str, before: int, out: int, stride: int, weights: int
) -> None:
    from nasrlm.graph import GraphBuilder

    b = GraphBuilder()
    y = describe(b, b.input((before, 8, 8)), operation, out, stride)
    assert b.shape(y) == (1, out, 8 // stride, 8 // stride)
    b.output(y)
    assert costs(b.build()).params == weights


def test_twopath_size_is_that_of_its_blocks() -> None:
    rules = twopath.RULES
    blocks = [
        names for n in (1, 2, 3) for names in product(rules.names, repeat=n) if rules.repaired(names) == list(names)
    ]
    assert len(blocks) == 1624
    assert TWOPATH.size() == (1624**2 + 3 * 1624**3 + 6 * 1624**4) ** 2


def test_twopath_samples_as_the_authors_do() -> None:
    drawn = TWOPATH.sample(3000, seed=0)
    lengths = Counter(a.params["path1_1_ops"] for a in drawn)
    assert all(abs(lengths[n] / 3000 - 1 / 3) < 0.03 for n in (1, 2, 3))
    two = [a for a in drawn if a.params["path1_1_ops"] == 2]
    supp = sum("supp" in twopath.RULES.types(twopath.RULES.operations(a.params, "path1_1")) for a in two)
    assert abs(supp / len(two) - 5 / 13) < 0.05
    reducing = Counter(a.params.get("path2_reduce_of_4") for a in drawn)
    assert len(reducing) == 7


def test_twopath_repairs_blocks_without_convolution() -> None:
    a = TWOPATH.architecture(twopath.EXAMPLE)
    params = {**a.params, "path1_1_op1": "conv1x1", "path2_3_op1": "maxpool3x3"}
    repaired = TWOPATH.repaired(params)
    assert repaired.params["path1_1_op1"] == "conv3x3"
    assert repaired.params["path2_3_op1"] == "maxpool3x3"
    assert repaired.params["path2_3_op2"] == "conv3x3"
    with pytest.raises(SpaceError, match="no valid architecture of twopath: 'path1_1_op1' is 'conv1x1'"):
        TWOPATH.architecture(params)


Change = Callable[[dict[str, Any]], object]


def refusal(space: SearchSpace, example: str, change: Change) -> str:
    data = copy.deepcopy(json.loads(example))
    change(data)
    with pytest.raises(SpaceError) as caught:
        space.architecture(json.dumps(data))
    with pytest.raises(SpaceError):
        space.from_dict(data)  # type: ignore[attr-defined]
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d.pop("path2"), "key 'path2' is missing"),
        (lambda d: d.update(path3=[]), "unknown key"),
        (lambda d: d.update(path1=d["path1"][:1]), "'path1' has 1 blocks. Give a list of 2 to 4"),
        (lambda d: d.update(path1=3), "'path1' has 3. Give a list"),
        (lambda d: d["path1"][1].pop("op_types"), "key 'op_types' is missing"),
        (lambda d: d["path2"][0].update(op_names=["conv4x4"]), "'path2[0].op_names[0]' is 'conv4x4'. Nearest: conv"),
        (lambda d: d["path2"][0].update(op_names=[]), "'path2[0].op_names' has 0 entries. Give a list of 1 to 3"),
        (lambda d: d["path2"][0].update(op_names="conv3x3"), "'path2[0].op_names' has 'conv3x3'"),
        (lambda d: d["path2"][0].update(op_types=["supp"]), "'path2[0].op_types' is ['supp'], but the types of"),
        (lambda d: d["path1"][0].update(op_names=["conv1x1"], op_types=["supp"]), "with 0 of conv and 1 of supp"),
        (
            lambda d: d["path1"][0].update(
                op_names=["conv1x1", "conv3x3", "avgpool3x3"], op_types=["supp", "conv", "supp"]
            ),
            "with 1 of conv and 2 of supp. Allowed: at least one of conv3x3",
        ),
        (lambda d: d.update(path2_reduce_inds=[0, 3]), "'path2_reduce_inds' is '0,3'. Nearest"),
        (lambda d: d.update(path2_reduce_inds=[0]), "'path2_reduce_inds' is '0'."),
        (lambda d: d.update(path2_reduce_inds=2), "'path2_reduce_inds' is 2. Allowed: 0,1, 0,2, 1,2."),
    ],
)
def test_foreign_twopath_strings_are_refused(change: Change, expected: str) -> None:
    assert expected in refusal(TWOPATH, twopath.EXAMPLE, change)


# --- Inception ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "before", "out", "stride", "weights"),
    [
        ("conv3x3", 32, 64, 2, 9 * 32 * 64 + 3 * 64),
        ("double1x1", 32, 48, 1, 32 * 48 + 48 * 48 + 6 * 48),
        ("depthwise5x5", 32, 32, 2, 25 * 32 + 3 * 32),
        ("depthwise3x3", 32, 64, 2, 32 * 64 + 9 * 64 + 3 * 64),
        ("inception_s3x3", 32, 64, 2, 3 * 32 * 64 + 3 * 64 * 64 + 6 * 64),
        ("inception_p3x3", 32, 64, 1, 3 * 32 * 64 + 3 * 64),
        ("inception_p5x5", 32, 64, 2, 5 * 32 * 64 + 2 * 5 * 32 * 32 + 6 * 64),
        ("maxpool3x3", 32, 32, 1, 64),
    ],
)
def test_inception_operations(operation: str, before: int, out: int, stride: int, weights: int) -> None:
    check_operation(inception._operation, operation, before, out, stride, weights)


@pytest.mark.parametrize(
    ("operations", "inner", "out", "expected"),
    [
        # One operation that can change the width takes it whole; pools stay at the old width in front of it.
        (["maxpool3x3", "conv3x3"], 16, 16, [9 * 32 * 16 + 48]),
        # The supplementary operation goes to the inner width, the convolution to the path's.
        (["conv1x1", "conv3x3"], 16, 32, [32 * 16 + 48, 9 * 16 * 32 + 96]),
        (["conv3x3", "conv5x5", "conv1x1"], 64, 32, [9 * 32 * 64 + 192, 25 * 64 * 64 + 192, 64 * 32 + 96]),
    ],
)
def test_inception_widths_along_a_path(operations: list[str], inner: int, out: int, expected: list[int]) -> None:
    def describe(b: Any, x: int, names: list[str], width: int, stride: int) -> int:
        return inception._path(b, x, names, inner, width, stride)

    pools = sum(2 * 32 for name in operations if name.endswith("pool3x3"))
    check_operation(describe, operations, 32, out, 2, sum(expected) + pools)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stage", "paths", "wide", "expected"),
    [(1, 1, 1, [32]), (1, 3, 2, [16] * 3), (1, 4, 1, [16] * 4), (2, 3, 2, [16, 32, 16]), (4, 4, 1, [64] * 4)],
)
def test_widths_of_parallel_paths(stage: int, paths: int, wide: int, expected: list[int]) -> None:
    assert inception._widths(stage, paths, wide) == expected


@pytest.mark.parametrize(("length", "width"), [(1, 16), (1, 64), (2, 16), (2, 64), (3, 16), (3, 32)])
def test_paths_are_counted_as_they_are_enumerated(length: int, width: int) -> None:
    rules = inception.RULES
    paths = [names for names in product(rules.names, repeat=length) if rules.repaired(names) == list(names)]
    assert inception._path_size(length, width) == sum(len(inception._inner_words(names, width)) for names in paths)


def test_inception_size_of_a_stage() -> None:
    one = [inception._path_size(n, 16) for n in range(1, 5)]
    three = [(n, m, k) for n, m, k in product((2, 3, 4), repeat=3) if n + m + k <= 8]
    assert len(three) == 10
    first = sum(inception._path_size(n, 32) for n in (1, 2, 3))
    first += sum(one[n - 1] * one[m - 1] for n, m in product((1, 2, 3), repeat=2) if n + m <= 4)
    first += sum(one[n - 1] * one[m - 1] * one[k - 1] for n, m, k in three)
    four = [n for n in product((2, 3, 4), repeat=4) if sum(n) <= 10]
    first += sum(one[a - 1] * one[b - 1] * one[c - 1] * one[d - 1] for a, b, c, d in four)
    assert inception._stage_size(1) == 5 * first


def test_inception_samples_as_the_authors_do() -> None:
    drawn = INCEPTION.sample(2000, seed=0)
    paths = Counter(a.params["paths_2"] for a in drawn)
    assert all(abs(paths[n] / 2000 - 1 / 4) < 0.04 for n in (1, 2, 3, 4))
    words = Counter(
        a.params["path_4_1_inner"]
        for a in drawn
        if len(inception._inner_words(inception.RULES.operations(a.params, "path_4_1"), 64)) == 3
    )
    assert abs(words["same"] / words.total() - 0.6) < 0.05
    assert abs(words["half"] / words.total() - 0.3) < 0.05


def test_inception_repairs_lengths_and_widths() -> None:
    a = INCEPTION.architecture(inception.EXAMPLE)
    lost = {name for name in a.params if name.startswith("path_1_")}
    params = {name: value for name, value in a.params.items() if name not in lost} | {"paths_1": 3}
    for p in (1, 2, 3):
        params |= inception.RULES.values(f"path_1_{p}", ["conv1x1"] if p == 1 else ["conv5x5"] * 4)
        params[f"path_1_{p}_inner"] = "half"
    found = INCEPTION.repaired(params).params
    assert [found[f"path_1_{p}_ops"] for p in (1, 2, 3)] == [2, 4, 2]
    assert (found["path_1_1_op1"], found["path_1_1_op2"]) == ("conv1x1", "conv3x3")
    assert found["path_1_1_inner"] == "same"  # half of 16 is still 16


def first_path(data: dict[str, Any], **changes: Any) -> None:
    data["stages"][0]["block"]["paths"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d.update(stages=d["stages"][:3]), "'stages' has 3 entries"),
        (lambda d: d.update(stages=1), "'stages' is 1, not a list"),
        (lambda d: d["stages"][2].pop("n_blocks"), "key 'n_blocks' is missing"),
        (lambda d: d["stages"][2].update(n_blocks=7), "'stages[2].n_blocks' is 7. Allowed: 2 to 6."),
        (lambda d: d["stages"][1].update(stride=1), "'stages[1].stride' is 1. Allowed: 2."),
        (lambda d: d["stages"].__setitem__(3, "x"), "'x' is no architecture of stages[3]"),
        (lambda d: d["stages"][1]["block"].update(paths=[]), "'stages[1].block.paths' has 0 paths. Give a list of 1"),
        (lambda d: first_path(d, ops=["conv4x4"]), "'stages[0].block.paths[0].ops[0]' is 'conv4x4'. Nearest: conv"),
        (lambda d: first_path(d, C_out=48), "the C_out of 'stages[0].block.paths' are 48. Allowed for 1 paths: 32."),
        (lambda d: first_path(d, C_internal=16), "'stages[0].block.paths[0].C_internal' is 16. Allowed: 32."),
        (
            lambda d: first_path(d, ops=["conv3x3"] * 4, op_types=["conv"] * 4),
            "'stages[0].block.paths' has paths of 4 operations, 4 in all. Allowed for 1 paths: at least 1 each and at",
        ),
    ],
)
def test_foreign_inception_strings_are_refused(change: Change, expected: str) -> None:
    assert expected in refusal(INCEPTION, inception.EXAMPLE, change)

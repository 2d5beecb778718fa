"""DARTS cells in NAS-Bench-301's networks: both encodings, and counts of published networks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nasrlm import costs, get_space, parse_text, to_text
from nasrlm.errors import SpaceError
from search_spaces import darts
from search_spaces.darts import DARTS, EXAMPLE, PREFIX

SPACE = DARTS()
DARTS_V2 = (
    "DARTS_V2 = Genotype(\n    normal=[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), "
    "('sep_conv_3x3', 1), ('sep_conv_3x3', 1), ('skip_connect', 0), ('skip_connect', 0), ('dil_conv_3x3', 2)],\n"
    "    normal_concat=[2, 3, 4, 5],\n    reduce=[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), "
    "('max_pool_3x3', 1), ('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('max_pool_3x3', 1)],\n"
    "    reduce_concat=[2, 3, 4, 5])"
)
# The record that comes with NAS-Bench-301's code (surrogate_models/test/results_fidelity_0/results_0.json).
RECORD = {
    "ImageAugmentation:augment": "True",
    "CreateImageDataLoader:batch_size": 96,
    "NetworkSelectorDatasetInfo:network": "darts",
    **{PREFIX + key: value for key, value in {"drop_path_prob": 0.2, "auxiliary": "True"}.items()},
    **{PREFIX + key: value for key, value in {"init_channels": 50, "layers": 20}.items()},
    **{
        PREFIX + key: value
        for key, value in {
            "edge_normal_0": "skip_connect",
            "edge_normal_1": "sep_conv_3x3",
            "edge_reduce_0": "max_pool_3x3",
            "edge_reduce_1": "avg_pool_3x3",
            "inputs_node_normal_3": "0_1",
            "inputs_node_normal_4": "0_2",
            "inputs_node_normal_5": "1_2",
            "inputs_node_reduce_3": "0_1",
            "inputs_node_reduce_4": "1_2",
            "inputs_node_reduce_5": "2_3",
            "edge_normal_10": "sep_conv_3x3",
            "edge_normal_11": "skip_connect",
            "edge_normal_2": "sep_conv_3x3",
            "edge_normal_3": "skip_connect",
            "edge_normal_5": "dil_conv_3x3",
            "edge_normal_7": "dil_conv_5x5",
            "edge_reduce_11": "sep_conv_3x3",
            "edge_reduce_12": "dil_conv_3x3",
            "edge_reduce_2": "skip_connect",
            "edge_reduce_3": "dil_conv_5x5",
            "edge_reduce_6": "sep_conv_3x3",
            "edge_reduce_7": "sep_conv_5x5",
        }.items()
    },
}


def auxiliary_head(channels: int) -> int:
    """Parameters of the head that is trained along: 1x1 to 128, 2x2 to 768, both with BatchNorm, linear to 10."""
    return channels * 128 + 2 * 128 + 128 * 768 * 4 + 2 * 768 + 769 * 10


def test_size() -> None:
    assert SPACE.size() == (7**8 * 1 * 3 * 6 * 10) ** 2 == 1_076_746_950_455_072_400


def test_published_counts_on_cifar() -> None:
    space = get_space("darts", channels=36, layers=20)
    found = costs(space.architecture(DARTS_V2))
    assert found.params == 3_349_342
    assert found.macs == 528_359_040
    assert found.params + auxiliary_head(4 * 4 * 36) == 3_825_768


def test_published_counts_on_imagenet() -> None:
    found = costs(get_space("darts", channels=48, layers=14, stem="imagenet").architecture(DARTS_V2))
    assert found.params == 4_718_752
    assert round(found.macs / 1e6, 1) == 529.9


def test_parameters_in_nasbench301() -> None:
    assert costs(SPACE.architecture(DARTS_V2)).params == 919_722


def test_parameters_of_a_published_record() -> None:
    a = DARTS(channels=50, layers=20).from_configspace(RECORD)
    assert costs(a).params + auxiliary_head(4 * 4 * 50) == 6_369_358


def test_descriptions_are_written_by_state() -> None:
    assert SPACE.architecture(DARTS_V2).string == EXAMPLE
    assert SPACE.architecture(EXAMPLE).params["reduce_3_op_1"] == "max_pool_3x3"
    assert SPACE.architecture(EXAMPLE).params["reduce_3_inputs"] == "1_2"


def test_both_encodings_round_trip() -> None:
    for a in SPACE.sample(100, seed=0):
        assert SPACE.architecture(a.string) == a
        config = SPACE.to_configspace(a)
        assert len(config) == 22
        assert SPACE.from_configspace(config) == a
        assert SPACE.architecture(json.dumps(config)) == a


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("[2, 3, 4, 5]", "range(2, 6)"),
        lambda text: text.replace("[2, 3, 4, 5]", "(2, 3, 4, 5)"),
        lambda text: text.replace("[2, 3, 4, 5]", "[5, 4, 3, 2]"),
        lambda text: text.replace("'", '"'),
        lambda text: text.replace(", ", ",\n\t"),
        lambda text: f"DARTS_V2 = {text}\n",
        lambda text: text.replace("normal=", "").replace("normal_concat=", ""),
    ],
)
def test_other_ways_to_write_a_description(change: Any) -> None:
    assert SPACE.architecture(change(EXAMPLE)).string == EXAMPLE


FIRST = "[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), "


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("'sep_conv_3x3', 0", "'sep_conv_9x9', 0", "'normal[0][0]' is 'sep_conv_9x9'. Nearest: sep_conv_"),
        ("'sep_conv_3x3', 0", "'none', 0", "'normal[0][0]' is 'none'."),
        ("'sep_conv_3x3', 0", "7, 0", "'normal[0][0]' is 7."),
        ("'sep_conv_3x3', 0", "'sep_conv_3x3', 2", "'normal[0][1]' is 2. Allowed: 0 to 1."),
        ("'dil_conv_3x3', 2", "'dil_conv_3x3', 5", "'normal[7][1]' is 5. Allowed: 0 to 4."),
        ("'dil_conv_3x3', 2", "'dil_conv_3x3', True", "'normal[7][1]' is True. Allowed: 0 to 4."),
        ("'dil_conv_3x3', 2", "'dil_conv_3x3', 0", "'normal[7]' is ('dil_conv_3x3', 0), on the same state as"),
        ("('sep_conv_3x3', 0)", "'sep_conv_3x3'", "'normal[0]' is 'sep_conv_3x3'. Give pairs of operation and state"),
        (FIRST, "[", "'normal' has 6 entries. Give 8 pairs of operation and state"),
        (
            "normal_concat=[2, 3, 4, 5]",
            "normal_concat=[2, 3, 4]",
            "'normal_concat' is [2, 3, 4]. Allowed: [2, 3, 4, 5]",
        ),
        ("reduce_concat=[2, 3, 4, 5]", "reduce_concat=range(9)", "'reduce_concat' is [0, 1, 2, 3, 4, 5, 6, 7, 8]."),
        ("reduce_concat=[2, 3, 4, 5]", "reduce_concat=7", "'reduce_concat' is 7. Allowed: [2, 3, 4, 5], all nodes."),
        (
            "reduce_concat=",
            "reduced_concat=",
            "unknown key: parameter 'key' is 'reduced_concat'. Nearest: reduce_concat",
        ),
        (", reduce_concat=[2, 3, 4, 5]", "", "key 'reduce_concat' is missing."),
        ("normal_concat=[2, 3, 4, 5]", "normal_concat=list(x)", "'normal_concat' is list(x). Give a list, such as in"),
        ("normal_concat=[2, 3, 4, 5]", "normal_concat=range(2, 6, 0)", "'normal_concat' is range(2, 6, 0)."),
        ("reduce_concat=[2, 3, 4, 5]", "reduce_concat={[]: 1}", "'reduce_concat' is {[]: 1}."),
        (")", "", "is no architecture of darts. The form is Genotype(normal=["),
        ("Genotype", "genotype", "is no architecture of darts."),
        ("Genotype(", "Genotype(x)(", "is no architecture of darts."),
        ("'sep_conv_3x3'", "'sep\\_conv'", "is no architecture of darts."),
        ("normal=[", "1, 2, 3, 4, 5, normal=[", ""),
        ("Genotype(", "Genotype([], normal=[], ", ""),
    ],
)
def test_foreign_descriptions_are_refused(old: str, new: str, expected: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(EXAMPLE.replace(old, new))
    assert expected in str(caught.value)


@pytest.mark.parametrize("text", ["", "hello", "Genotype()", "Genotype(*x)", "Genotype(**x)", "{}", "{", "[1]"])
def test_foreign_texts_are_refused(text: str) -> None:
    with pytest.raises(SpaceError):
        SPACE.architecture(text)


@pytest.mark.parametrize(
    "inside", ["-" * 3_900 + "1", "(" * 1_900 + ")" * 1_900, "[" * 80 + "]" * 80, "1" * 3_900, "\0"]
)
def test_texts_that_trouble_a_parser_are_refused(inside: str) -> None:
    with pytest.raises(SpaceError):
        SPACE.architecture(f"Genotype({inside})")


def test_descriptions_are_not_run(tmp_path: Any) -> None:
    file = tmp_path / "made"
    text = EXAMPLE.replace("normal_concat=[2, 3, 4, 5]", f"normal_concat=open('{file}', 'w')")
    with pytest.raises(SpaceError, match="'normal_concat' is open"):
        SPACE.architecture(text)
    assert not file.exists()


def config(**changes: Any) -> dict[str, Any]:
    """DARTS_V2 without prefixes; None takes a key away."""
    plain = {k.removeprefix(PREFIX): v for k, v in SPACE.to_configspace(SPACE.architecture(EXAMPLE)).items()}
    return {key: value for key, value in {**plain, **changes}.items() if value is not None}


def test_configurations_name_edges_by_node_and_source() -> None:
    assert SPACE.from_configspace(config()).string == EXAMPLE
    assert [config()[f"edge_normal_{i}"] for i in (9, 11)] == ["skip_connect", "dil_conv_3x3"]
    assert config()["inputs_node_normal_5"] == "0_2"
    assert "edge_normal_10" not in config()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"edge_normal_0": "none"}, "'edge_normal_0' is 'none'."),
        ({"edge_normal_0": "sep_conv"}, "'edge_normal_0' is 'sep_conv'. Nearest: sep_conv_"),
        ({"edge_normal_0": None}, "key 'edge_normal_0' is missing: node 2 of the normal cell reads the states [0, 1]."),
        (
            {"edge_reduce_11": None},
            "key 'edge_reduce_11' is missing: node 5 of the reduce cell reads the states [1, 2].",
        ),
        ({"edge_normal_10": "skip_connect"}, "key 'edge_normal_10' is given, but node 5 of the normal cell reads the"),
        ({"inputs_node_normal_3": "1_0"}, "'inputs_node_normal_3' is '1_0'. Nearest: 1_2. Allowed: 0_1, 0_2, 1_2."),
        ({"inputs_node_normal_3": "0_3"}, "Allowed: 0_1, 0_2, 1_2."),
        ({"inputs_node_normal_4": None}, "key 'inputs_node_normal_4' is missing."),
        ({"inputs_node_normal_2": "0_1"}, "is 'inputs_node_normal_2'. Nearest: inputs_node_normal_"),
        (
            {"edge_normal_14": "skip_connect"},
            "unknown key: parameter 'key' is 'edge_normal_14'. Nearest: edge_normal_",
        ),
        ({PREFIX + "edges": 1}, "unknown key: parameter 'key' is 'edges'."),
    ],
)
def test_foreign_configurations_are_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.from_configspace(config(**changes))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"channels": 3}, {"layers": 0}, {"stem": "mnist"}, {"image_size": 30}, {"num_classes": True}]
)
def test_options_outside_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=f"option '{next(iter(options))}' of darts"):
        get_space("darts", **options)


def test_the_imagenet_stem_has_its_own_sizes() -> None:
    graph = get_space("darts", channels=4, layers=3, stem="imagenet").architecture(EXAMPLE).graph()
    assert graph.shapes[0] == (1, 3, 224, 224)
    assert graph.shapes[-1] == (1, 1000)
    with pytest.raises(SpaceError, match="'image_size' of darts is 48. Allowed: multiples of 32"):
        get_space("darts", stem="imagenet", image_size=48)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_shallow_networks(layers: int) -> None:
    space = get_space("darts", channels=4, layers=layers, image_size=4)
    for a in space.sample(5, seed=layers):
        assert to_text(parse_text(to_text(a))) == to_text(a)


def test_texts_are_short_and_read_back() -> None:
    for a in SPACE.sample(20, seed=1):
        text = to_text(a)
        assert text.count("\n") < 220
        assert to_text(parse_text(text)) == text
    assert to_text(SPACE.architecture(EXAMPLE)).count("\n") < 180


def test_the_file_is_the_registered_space() -> None:
    assert darts.SPACE is type(get_space("darts"))

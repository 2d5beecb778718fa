"""NDS's four spaces of staged networks: the published dictionary, and counts of published examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nasrlm import Architecture, costs, get_space, to_text
from nasrlm.errors import SpaceError
from search_spaces import nds_resnet, nds_resnext_a, nds_resnext_b, nds_vanilla
from search_spaces._nds_stages import StagedNetworks

MODULES = (nds_resnet, nds_resnext_a, nds_resnext_b, nds_vanilla)
SPACES: dict[str, StagedNetworks] = {module.SPACE.name: module.SPACE() for module in MODULES}
EXAMPLES = {module.SPACE.name: module.EXAMPLE for module in MODULES}
every_space = pytest.mark.parametrize("name", SPACES)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("nds_resnet", 1_259_712),
        ("nds_vanilla", 1_259_712),
        ("nds_resnext_a", 11_390_625),
        ("nds_resnext_b", 52_734_375),
    ],
)
def test_size(name: str, size: int) -> None:
    assert SPACES[name].size() == size


@pytest.mark.parametrize(
    ("name", "params", "flops"),
    [
        ("nds_resnet", 594_138, 184_519_578),
        ("nds_vanilla", 689_770, 208_363_930),
        ("nds_resnext_a", 83_002, 69_890_986),
    ],
)
def test_published_counts(name: str, params: int, flops: int) -> None:
    a = SPACES[name].architecture(EXAMPLES[name])
    assert costs(a).params == params
    assert SPACES[name].published_flops(a) == flops


def test_plain_macs_of_the_published_resnext() -> None:
    assert costs(SPACES["nds_resnext_a"].architecture(EXAMPLES["nds_resnext_a"])).macs == 61_044_896


def test_resnet_56_has_its_known_counts() -> None:
    stages = {f"{key}_{s}": v for s, width in enumerate((16, 32, 64), 1) for key, v in (("depth", 9), ("width", width))}
    found = costs(SPACES["nds_resnet"].build(stages))  # nine blocks are not among the space's depths
    assert (found.params, found.macs + 10) == (855_770, 125_747_850)


def test_resnext_b_by_hand() -> None:
    net = {"ds": [1, 1, 2, 1], "ws": [16, 64, 64, 128], "ss": [1, 1, 2, 2]}
    a = SPACES["nds_resnext_b"].from_dict({**net, "bot_muls": [0, 0.25, 0.5, 1], "num_gs": [1, 16, 4, 8]})

    def block(before: int, inner: int, groups: int, width: int, shortcut: bool) -> int:
        convolutions = before * inner + inner * inner // groups * 9 + inner * width
        return convolutions + 4 * inner + 2 * width + shortcut * (before * width + 2 * width)

    blocks = block(16, 16, 16, 64, True) + block(64, 32, 4, 64, True) + block(64, 32, 4, 64, False)
    blocks += block(64, 128, 8, 128, True)
    assert costs(a).params == 3 * 16 * 9 + 32 + blocks + 129 * 10


@every_space
def test_strings_and_dictionaries_round_trip(name: str) -> None:
    space = SPACES[name]
    assert space.architecture(EXAMPLES[name]).string == EXAMPLES[name]
    for a in space.sample(50, seed=0):
        assert space.architecture(a.string) == a
        assert space.from_dict(space.to_dict(a)) == a
        assert json.loads(a.string) == space.to_dict(a)


def test_the_dictionary_begins_with_the_stem() -> None:
    params = SPACES["nds_resnext_a"].architecture(EXAMPLES["nds_resnext_a"]).params
    assert [params[f"depth_{s}"] for s in (1, 2, 3)] == [16, 1, 4]
    assert [params[f"width_{s}"] for s in (1, 2, 3)] == [64, 128, 16]
    assert [params[f"ratio_{s}"] for s in (1, 2, 3)] == [0.25] * 3
    assert [params[f"groups_{s}"] for s in (1, 2, 3)] == [2, 1, 2]


@every_space
def test_the_block_and_what_it_has_not_may_be_left_out(name: str) -> None:
    space, net = SPACES[name], json.loads(EXAMPLES[name])
    del net["block_type"]
    assert space.from_dict({key: values for key, values in net.items() if values}).string == EXAMPLES[name]
    if not net["num_gs"]:
        neutral = {**net, "bot_muls": [0.0] * 4, "num_gs": [1] * 4}
        assert space.from_dict(neutral).string == EXAMPLES[name]


@every_space
def test_foreign_texts_are_refused(name: str) -> None:
    for text in ("hello", "", "[1]", EXAMPLES[name][1:]):
        with pytest.raises(SpaceError, match=f"is no architecture of {name}. The form is JSON such as"):
            SPACES[name].architecture(text)


@pytest.mark.parametrize(
    ("name", "key", "value", "expected"),
    [
        ("nds_resnet", "ds", [1, 12, 12], "'ds' has 3 entries: [1, 12, 12]. Give 4."),
        ("nds_resnet", "ds", [1, 12, 5, 12], "'ds[2]' is 5. Allowed: 1, 2, 3, 4, 6, 8, 12, 16, 24."),
        ("nds_resnet", "ds", [2, 12, 12, 12], "'ds[0]' is 2. Allowed: 1."),
        ("nds_resnet", "ws", [16, 24, 24, 41], "'ws[3]' is 41."),
        ("nds_resnet", "ws", "16", "'ws' is '16', not a list"),
        ("nds_resnet", "ss", [1, 1, 2, 1], "'ss[3]' is 1. Allowed: 2."),
        ("nds_resnet", "dss", [1], "unknown key: parameter 'key' is 'dss'. Nearest: ss, ds."),
        ("nds_resnet", "num_gs", [1, 2, 1, 1], "'num_gs' is [1, 2, 1, 1], but blocks of nds_resnet have none."),
        ("nds_resnet", "num_gs", 2, "'num_gs' is 2, but blocks of nds_resnet have none."),
        ("nds_resnet", "block_type", "double_plain_block", "is 'double_plain_block'. Allowed in nds_resnet: res_basic"),
        ("nds_vanilla", "block_type", "res_basic_block", "Allowed in nds_vanilla: double_plain_block"),
        ("nds_resnext_a", "bot_muls", [0.0, 0.25, 0.3, 0.25], "'bot_muls[2]' is 0.3."),
        ("nds_resnext_a", "num_gs", [1, 8, 1, 1], "'num_gs[1]' is 8. Allowed: 1, 2, 4."),
        ("nds_resnext_a", "num_gs", [], "'num_gs' has 0 entries: []. Give 4."),
    ],
)
def test_foreign_dictionaries_are_refused(name: str, key: str, value: Any, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACES[name].from_dict({**json.loads(EXAMPLES[name]), key: value})
    assert expected in str(caught.value)


@pytest.mark.parametrize(("name", "key"), [("nds_resnet", "ss"), ("nds_resnet", "ds"), ("nds_resnext_b", "num_gs")])
def test_missing_keys_are_named(name: str, key: str) -> None:
    net = json.loads(EXAMPLES[name])
    del net[key]
    with pytest.raises(SpaceError, match=f"key '{key}' is missing. An architecture of {name} has: ds, ws"):
        SPACES[name].from_dict(net)


@pytest.mark.parametrize("options", [{"num_classes": 0}, {"image_size": "32"}])
def test_options_outside_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=f"option '{next(iter(options))}' of nds_vanilla is"):
        get_space("nds_vanilla", **options)


def test_options_change_the_network() -> None:
    other = get_space("nds_vanilla", num_classes=100, image_size=64)
    a = other.architecture(EXAMPLES["nds_vanilla"])
    assert costs(a).params == 689_770 + 90 * 41
    assert a.graph().shapes[0] == (1, 3, 64, 64)


def deepest(space: StagedNetworks) -> Architecture:
    return space.architecture({p.name: p.options[-1] for p in space.parameters})


@every_space
def test_repeated_blocks_are_written_once(name: str) -> None:
    space = SPACES[name]
    assert to_text(deepest(space)).count("\n") < 60
    for a in space.sample(20, seed=1):
        assert to_text(a).count("\n") < 90

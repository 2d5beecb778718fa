"""NDS's five spaces of cell networks: the published dictionary, a published network's counts, one text a network."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from nasrlm import GraphBuilder, costs, get_space, parse_text, to_text
from nasrlm.errors import SpaceError
from search_spaces import nds_amoeba, nds_darts, nds_enas, nds_nasnet, nds_pnas
from search_spaces._cells import OPERATIONS, Cell, Images, loose_ends, network, output_order
from search_spaces._nds_cells import NDSCells
from search_spaces.darts import DARTS
from search_spaces.darts import EXAMPLE as DARTS_V2

MODULES = (nds_amoeba, nds_darts, nds_enas, nds_nasnet, nds_pnas)
SPACES: dict[str, NDSCells] = {module.SPACE.name: module.SPACE() for module in MODULES}
EXAMPLES = {module.SPACE.name: module.EXAMPLE for module in MODULES}
SMALL = Images("cifar", 8, 10)
every_space = pytest.mark.parametrize("name", SPACES)
Nodes = tuple[tuple[tuple[str, int], ...], ...]


# One cell has the product over nodes of (operations x states)^2.
@pytest.mark.parametrize(
    ("name", "cells", "published"),
    [
        ("nds_nasnet", 71_465_842_174_521_600, 71_465_842),
        ("nds_amoeba", 556_627_761_561_600, 556_628),
        ("nds_pnas", 556_627_761_561_600, 556_628),
        ("nds_enas", 5_062_500_000_000, 5_063),
        ("nds_darts", 241_591_910_400, 242),
    ],
)
def test_size(name: str, cells: int, published: int) -> None:
    space = SPACES[name]
    assert cells == np.prod(
        [(len(space.operations) * states) ** 2 for states in range(2, 2 + space.nodes)], dtype=object
    )
    assert abs(cells / 1e9 - published) <= 0.5
    assert space.size() == cells**2 * 3 * 5
    assert get_space(name, width=16).size() == cells**2 * 5
    assert get_space(name, width=16, depth=20).size() == cells**2


def test_counts_of_the_published_amoeba() -> None:
    space = SPACES["nds_amoeba"]
    found = costs(space.architecture(EXAMPLES["nds_amoeba"]))
    assert found.params == 4_190_314
    assert found.macs == 654_774_016


def test_darts_v2_is_the_same_network_in_both_spaces() -> None:
    a = nds_darts.SPACE(width=36, depth=20).from_dict({"genotype": json.loads(EXAMPLES["nds_darts"])["genotype"]})
    b = DARTS(channels=36, layers=20).architecture(DARTS_V2)
    assert to_text(a) == to_text(b)
    assert costs(a).params == costs(b).params == 3_349_342


def by_hand(name: str, c: int, size: int, stride: int) -> tuple[int, int]:
    """Parameters and MACs of an operation on c channels of size x size pixels."""
    k, after = int((re.search(r"\d", name) or "0")[0]), (size // stride) ** 2
    separable, once = c * k * k + c * c, c * c * k * k
    if "sep" in name:
        return 2 * (separable + 2 * c), 2 * separable * after
    if "dil" in name:
        return separable + 2 * c, separable * after
    if name.startswith("conv") and name.count("x") == 2:
        return 2 * c * c * k + 2 * c, c * c * k * (size * size // stride + after)
    if name.startswith("conv"):
        return once + 2 * c, once * after
    return (c * c + 2 * c, c * c * after) if name == "skip_connect" and stride == 2 else (0, 0)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_by_hand(name: str, stride: int) -> None:
    b = GraphBuilder()
    b.output(OPERATIONS[name](b, b.input((6, 8, 8)), stride))
    graph = b.build()
    assert graph.shapes[-1] == (1, 6, 8 // stride, 8 // stride)
    found = costs(graph)
    assert (found.params, found.macs) == by_hand(name, 6, 8, stride)


@every_space
def test_dictionaries_round_trip(name: str) -> None:
    space = SPACES[name]
    assert space.architecture(EXAMPLES[name]).string == EXAMPLES[name]
    for a in space.sample(50, seed=0):
        assert space.architecture(a.string) == a
        assert space.from_dict(space.to_dict(a)) == a
        assert json.loads(a.string) == space.to_dict(a)


@every_space
def test_fixed_width_and_depth_are_no_parameters(name: str) -> None:
    net = {**json.loads(EXAMPLES[name]), "width": 16, "depth": 20}
    free, fixed = SPACES[name].from_dict(net), type(SPACES[name])(width=16, depth=20).from_dict(net)
    assert list(free.params)[-2:] == ["width", "depth"]
    assert len(fixed.params) == len(free.params) - 2
    assert (fixed.string, to_text(fixed)) == (free.string, to_text(free))
    only = type(SPACES[name])(depth=8)
    assert list(only.sample(1, seed=0)[0].params)[-1] == "width"
    assert only.to_dict(only.sample(1, seed=0)[0])["depth"] == 8


def test_training_settings_are_no_part_of_the_network() -> None:
    space, net = SPACES["nds_enas"], json.loads(EXAMPLES["nds_enas"])
    assert space.from_dict({**net, "aux": True, "drop_prob": 0.2}).string == EXAMPLES["nds_enas"]
    assert space.from_dict({key: net[key] for key in ("genotype", "width", "depth")}).string == EXAMPLES["nds_enas"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("width", 20, "'width' is 20. Allowed: 16, 24, 32."),
        ("depth", 5, "'depth' is 5. Allowed: 4, 8, 12, 16, 20."),
        ("depth", "8", "'depth' is '8'."),
        ("aux", 1, "'aux' is 1. Allowed: true, false."),
        ("drop_prob", 2, "'drop_prob' is 2. Allowed: a number from 0 to 1."),
        ("drop_prob", float("nan"), "'drop_prob' is nan."),
        ("dept", 8, "unknown key: parameter 'key' is 'dept'. Nearest: depth"),
        ("genotype", [], "'genotype' is []. Give an object, as in {"),
    ],
)
def test_foreign_dictionaries_are_refused(key: str, value: Any, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACES["nds_amoeba"].from_dict({**json.loads(EXAMPLES["nds_amoeba"]), key: value})
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("name", "key", "at", "value", "expected"),
    [
        ("nds_amoeba", "normal", 3, ["sep_conv_9x9", 0], "'normal[3][0]' is 'sep_conv_9x9'. Nearest: sep_conv_"),
        ("nds_amoeba", "normal", 3, ["none", 0], "'normal[3][0]' is 'none'. Allowed: skip_connect, sep_conv_3x3"),
        ("nds_amoeba", "reduce", 9, ["skip_connect", 6], "'reduce[9][1]' is 6. Allowed: 0 to 5."),
        ("nds_amoeba", "reduce", 0, ["skip_connect", -1], "'reduce[0][1]' is -1. Allowed: 0 to 1."),
        ("nds_amoeba", "reduce", 0, ["skip_connect"], "'reduce[0]' is ['skip_connect']. Give pairs of operation"),
        ("nds_amoeba", "reduce", 0, "skip_connect", "'reduce[0]' is 'skip_connect'. Give pairs of operation"),
        ("nds_amoeba", "normal_concat", None, [4, 5, 6], "'normal_concat' is [4, 5, 6]. Allowed: [3, 5, 6], the nodes"),
        ("nds_amoeba", "reduce_concat", None, [3, 6, 6], "'reduce_concat' is [3, 6, 6]. Allowed: [3, 6], the nodes"),
        ("nds_amoeba", "reduce_concat", None, [3, 6.0], "'reduce_concat' is [3, 6.0]."),
        ("nds_pnas", "normal_concat", None, [5, 6], "Allowed: [2, 3, 4, 5, 6], all nodes."),
        ("nds_darts", "normal", None, [["none", 0]] * 10, "'normal' has 10 entries. Give 8 pairs of operation and"),
        ("nds_darts", "normal", None, {"none": 0}, "'normal' is {'none': 0}, not a list. Give 8 pairs"),
        ("nds_darts", "normals", None, [], "unknown key: parameter 'key' is 'normals'. Nearest: normal"),
    ],
)
def test_foreign_cells_are_refused(name: str, key: str, at: int | None, value: Any, expected: str) -> None:
    net = json.loads(EXAMPLES[name])
    if at is None:
        net["genotype"][key] = value
    else:
        net["genotype"][key][at] = value
    with pytest.raises(SpaceError) as caught:
        SPACES[name].from_dict(net)
    assert expected in str(caught.value)


def test_missing_keys_are_named() -> None:
    space, net = SPACES["nds_pnas"], json.loads(EXAMPLES["nds_pnas"])
    for key in ("width", "depth", "genotype"):
        with pytest.raises(SpaceError, match=f"key '{key}' is missing"):
            space.from_dict({k: v for k, v in net.items() if k != key})
    del net["genotype"]["reduce_concat"]
    with pytest.raises(SpaceError, match="key 'reduce_concat' is missing"):
        space.from_dict(net)


def test_a_fixed_width_must_agree() -> None:
    net = json.loads(EXAMPLES["nds_pnas"])
    with pytest.raises(SpaceError, match="'width' is 16, but the option 'width' of nds_pnas is 32"):
        nds_pnas.SPACE(width=32).from_dict(net)


@every_space
def test_foreign_texts_are_refused(name: str) -> None:
    for text in ("hello", "", "[1]", EXAMPLES[name][1:]):
        with pytest.raises(SpaceError, match=f"is no architecture of {name}. The form is JSON such as"):
            SPACES[name].architecture(text)


@pytest.mark.parametrize(
    "options", [{"width": 15}, {"depth": 0}, {"stem": "x"}, {"image_size": 6}, {"num_classes": "3"}]
)
def test_options_outside_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=f"option '{next(iter(options))}' of nds_enas"):
        get_space("nds_enas", **options)


def test_the_imagenet_variant() -> None:
    a = get_space("nds_nasnet", width=16, depth=4, stem="imagenet").sample(1, seed=0)[0]
    assert a.graph().shapes[0] == (1, 3, 224, 224)
    assert a.graph().shapes[-1] == (1, 1000)


# --- one text a network -------------------------------------------------------------------------------------------


def draw(rng: np.random.Generator, operations: tuple[str, ...], nodes: int) -> Nodes:
    """Two uniform operations and states a node."""
    return tuple(
        tuple((operations[int(rng.integers(len(operations)))], int(rng.integers(states))) for _ in range(2))
        for states in range(2, 2 + nodes)
    )


def reordered(rng: np.random.Generator, nodes: Nodes) -> Nodes:
    """The same cell: nodes in another order, inputs swapped, and `none` on other states."""
    order: list[int] = []
    while len(order) < len(nodes):
        ready = [i for i, node in enumerate(nodes) if i not in order and all(x < 2 or x - 2 in order for _, x in node)]
        order.append(int(rng.choice(ready)))
    new = {0: 0, 1: 1, **{i + 2: position + 2 for position, i in enumerate(order)}}
    found = []
    for position, i in enumerate(order):
        terms = [(name, int(rng.integers(position + 2)) if name == "none" else new[x]) for name, x in nodes[i]]
        found.append(tuple(terms[::-1] if rng.random() < 0.5 else terms))
    return tuple(found)


def text(normal: Nodes, reduction: Nodes, loose: bool) -> str:
    cells = {
        kind: Cell(nodes, loose_ends(nodes) if loose else tuple(range(2, 2 + len(nodes))))
        for kind, nodes in (("normal", normal), ("reduce", reduction))
    }
    return to_text(network(cells, SMALL, 8, 3))


@pytest.mark.parametrize(
    ("operations", "nodes", "loose"),
    [
        *((space.operations, space.nodes, space.loose) for space in SPACES.values()),
        (("none", "skip_connect"), 4, False),
        (("none", "skip_connect", "max_pool_3x3", "sep_conv_3x3"), 5, False),
        (("skip_connect", "max_pool_3x3", "conv_1x1"), 5, True),
        (("skip_connect", "conv_1x1"), 5, True),
    ],
)
def test_node_order_and_swapped_inputs_do_not_matter(operations: tuple[str, ...], nodes: int, loose: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        cells = [draw(rng, operations, nodes) for _ in range(2)]
        same = [reordered(rng, cell) for cell in cells]
        assert text(cells[0], cells[1], loose) == text(same[0], same[1], loose), cells


def test_other_cells_have_other_texts() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw(rng, SPACES["nds_enas"].operations, 5) for _ in range(60)]
    assert len({text(nodes, drawn[0], loose=True) for nodes in drawn}) == 60


def test_many_equal_nodes_are_ordered_quickly() -> None:
    twins = Cell(((("conv_1x1", 0), ("conv_1x1", 0)),) * 5, (2, 3, 4, 5, 6))
    assert sorted(output_order(twins, 1)) == [2, 3, 4, 5, 6]


def test_a_network_of_zeros() -> None:
    a = nds_darts.SPACE(width=4, depth=4).from_dict(
        {
            "genotype": {
                **{kind: [["none", 0]] * 8 for kind in ("normal", "reduce")},
                **{f"{kind}_concat": [2, 3, 4, 5] for kind in ("normal", "reduce")},
            }
        }
    )
    assert to_text(parse_text(to_text(a))) == to_text(a)
    assert "const" in to_text(a)
    assert costs(a).params > 0


@every_space
def test_texts_are_short_and_read_back(name: str) -> None:
    for a in get_space(name, width=32, depth=20).sample(6, seed=0):
        written = to_text(a)
        assert written.count("\n") < 500
        assert to_text(parse_text(written)) == written

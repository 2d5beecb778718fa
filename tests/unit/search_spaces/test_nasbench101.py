"""NAS-Bench-101: texts, matrices, pruning, sampling, and counts and hashes against the published table."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nasrlm import costs, get_space, to_text
from nasrlm.errors import SpaceError, UsageError
from nasrlm.evaluators import get_evaluator
from search_spaces import _nasbench101_cells as cells

SPACE: Any = get_space("nasbench101")
C3, C1, MP = cells.OPERATIONS
EXAMPLE = f"100110100001001010101:{C3},{MP},{C3},{C3},{C1}"
BEST = f"110011000101000100101:{C1},{C3},{MP},{C3},{C3}"
ALL_EDGES = "1" * 21 + f":{C3},{C3},{C3},{C3},{C3}"


def test_the_text_is_matrix_and_operations() -> None:
    a = SPACE.architecture(EXAMPLE)
    assert a.string == EXAMPLE
    assert a.params["vertices"] == 7
    edges = [name for name, value in a.values if name.startswith("edge") and value]
    assert edges == [f"edge_{e}" for e in ("0_1", "0_4", "0_5", "1_2", "2_3", "2_6", "3_5", "4_5", "5_6")]
    assert [a.params[f"op_{i}"] for i in range(1, 6)] == [C3, MP, C3, C3, C1]


@pytest.mark.parametrize(
    ("text", "params"),
    [(EXAMPLE, 8_555_530), (BEST, 32_426_634), ("1:", 882_570), (f"110101:{MP},{MP}", 1_756_298)],
)
def test_published_counts(text: str, params: int) -> None:
    assert costs(SPACE.architecture(text)).params == params


def test_channels_are_divided_and_remainders_go_to_the_first() -> None:
    five = cells.Cell(7, frozenset({(0, i) for i in range(1, 6)} | {(i, 6) for i in range(2, 6)} | {(1, 2)}), (C3,) * 5)
    assert cells.widths(five, 130) == [0, 33, 33, 33, 32, 32, 130]


def test_the_text_of_a_network_is_short() -> None:
    text = to_text(SPACE.architecture(EXAMPLE))
    assert "} x3" in text
    assert "\nA" in text
    assert len(text.split()) < 160


def test_matrices_round_trip() -> None:
    for a in SPACE.sample(100, seed=0):
        matrix, operations = SPACE.to_matrix(a.params)
        assert operations[0] == "input" and operations[-1] == "output"
        assert SPACE.from_matrix(matrix, operations) == a
        assert SPACE.from_matrix(np.array(matrix), operations) == a
        bits, names = a.string.split(":")
        assert SPACE.from_table(bits, "-".join(n.removesuffix("-bn-relu") for n in names.split(",") if n)) == a


def test_a_matrix_with_vertices_on_no_path_is_pruned() -> None:
    matrix = np.zeros((5, 5), int)
    matrix[0, 1] = matrix[1, 4] = matrix[0, 2] = matrix[3, 4] = 1  # 2 leads nowhere, nothing leads to 3
    assert SPACE.from_matrix(matrix, ["input", C3, C1, MP, "output"]).string == f"101:{C3}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "'hello' is no architecture of nasbench101. The form is rows of the matrix above its diagonal:"),
        ("101", "Example: 100110100001001010101:conv3x3-bn-relu"),
        (EXAMPLE[1:], "the matrix has 20 entries. Allowed: 1 (2 vertices), 3 (3 vertices)"),
        (":", "the matrix has 0 entries"),
        (f"102:{C3}", "character 3 of the matrix is '2'. Allowed: 0, 1"),
        (f"1 01:{C3}", "character 2 of the matrix is ' '"),
        ("101:", "there are 0 operations. Allowed: 1, one for each interior vertex, since the matrix has 3 entries"),
        (f"101:{C3},{C3}", "there are 2 operations. Allowed: 1"),
        ("101:conv3x3", "parameter 'op_1' is 'conv3x3'. Nearest: conv3x3-bn-relu"),
        (EXAMPLE.replace(MP, "maxpool5x5"), "parameter 'op_2' is 'maxpool5x5'. Nearest: maxpool3x3"),
        (
            f"100:{C3}",
            "no path leads from the input (vertex 0) to the output (vertex 2); the input reaches vertices 0",
        ),
        (f"011:{C3}", "vertex 1 is on no path: no edge leads to it from the input"),
        (f"110:{C3}", "vertex 1 is on no path: no edge leads from it to the output (vertex 2)"),
        (f"100011:{C3},{C3}", "vertex 2 is on no path: no edge leads to it"),
        (f"1111111111:{C3},{C3},{C3}", "it has 10 edges: 0-1, 0-2, 0-3, 0-4, 1-2"),
        (ALL_EDGES, "Allowed: at most 9"),
    ],
)
def test_foreign_texts_are_refused(text: str, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.architecture(text)
    assert expected in str(caught.value)


GOOD = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("matrix", "operations", "expected"),
    [
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], ["input", C3, "output"], "entry (2, 0) of the matrix is 1. Allowed: 0."),
        ([[0, 1, 0], [0, 1, 1], [0, 0, 0]], ["input", C3, "output"], "entry (1, 1) of the matrix is 1. Allowed: 0. An"),
        ([[0, 2, 0], [0, 0, 1], [0, 0, 0]], ["input", C3, "output"], "entry (0, 1) of the matrix is 2. Allowed: 0, 1."),
        ([[0, 1], [0, 0, 1], [0, 0, 0]], ["input", C3, "output"], "row 0 of the matrix has 2 entries. Allowed: 3"),
        ([[0]], ["input"], "the matrix has 1 rows. Allowed: 2 to 7"),
        (np.zeros((8, 8), int).tolist(), [], "the matrix has 8 rows"),
        (GOOD, ["input", "output"], "there are 2 operations. Allowed: 3"),
        (GOOD, ["input", "output", C3], "'operation of vertex 1' is 'output'. Allowed: conv3x3-bn-relu"),
        (GOOD, [C3, C3, "output"], "'operation of vertex 0' is 'conv3x3-bn-relu'. Allowed: input"),
        ([[0, 1, 0], [0, 0, 0], [0, 0, 0]], ["input", C3, "output"], "no path leads from the input"),
        (np.triu(np.ones((5, 5), int), 1), ["input", C3, C3, C3, "output"], "it has 10 edges"),
    ],
)
def test_foreign_matrices_are_refused(matrix: Any, operations: list[str], expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SPACE.from_matrix(matrix, operations)
    assert expected in str(caught.value)


def test_a_table_that_lost_leading_zeros_is_refused() -> None:
    with pytest.raises(SpaceError, match="the matrix has 5 entries"):
        SPACE.from_table(str(int("010111")), "conv3x3-conv3x3")
    with pytest.raises(SpaceError, match="'operation of vertex 2' is 'conv5x5'. Nearest: conv"):
        SPACE.from_table("110111", "conv3x3-conv5x5")


@pytest.mark.parametrize(
    "options", [{"num_classes": 0}, {"image_size": 30}, {"channels": 4}, {"modules": True}, {"channels": 1.5}]
)
def test_options_outside_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=f"option '{next(iter(options))}' of nasbench101 is"):
        get_space("nasbench101", **options)


def test_options_change_the_network() -> None:
    small = get_space("nasbench101", num_classes=3, image_size=8, channels=16, modules=1)
    found = costs(small.architecture("1:"))
    assert found.params == 3 * 9 * 16 + 32 + sum(a * b + 2 * b for a, b in ((16, 16), (16, 32), (32, 64))) + 65 * 3


def described(edges: set[tuple[int, int]], vertices: int = 7) -> cells.Cell:
    return cells.Cell(vertices, frozenset(edges), (C3,) * (vertices - 2))


def test_repair_prunes() -> None:
    kept = cells.repair(described({(0, 2), (2, 6), (2, 3), (1, 6)}))
    assert (kept.vertices, sorted(kept.edges)) == (3, [(0, 1), (1, 2)])


def test_repair_joins_dead_ends_to_an_output_without_path() -> None:
    kept = cells.repair(described({(0, 1), (1, 2), (0, 3)}))
    assert (kept.vertices, sorted(kept.edges)) == (5, [(0, 1), (0, 3), (1, 2), (2, 4), (3, 4)])
    assert cells.repair(described(set())) == cells.Cell(2, frozenset({(0, 1)}), ())


def test_repair_drops_the_last_edges_that_no_vertex_needs() -> None:
    everything = {(i, j) for j in range(5) for i in range(j)}
    kept = cells.repair(described(everything, 5))
    assert (kept.vertices, everything - kept.edges) == (5, {(2, 4)})
    star = {(0, i) for i in range(1, 6)} | {(i, 6) for i in range(1, 6)}  # all ten are needed: a vertex goes
    assert len(cells.repair(described(star)).edges) == 8


def test_repair_is_stable_and_gives_valid_cells() -> None:
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(7) for j in range(i + 1, 7)]
    for share in rng.random(500):
        kept = cells.repair(described({pair for pair in pairs if rng.random() < share}))
        assert cells.problem(kept) is None
        assert cells.repair(kept) == kept


def test_the_size_is_what_enumeration_yields() -> None:
    assert SPACE.size() == cells.count() == 423_624


def test_enumeration_yields_one_cell_a_hash_and_no_hash_twice() -> None:
    small = list(takewhile(lambda a: a.params["vertices"] < 6, SPACE.enumerate()))
    assert all(SPACE.architecture(a.string) == a for a in small)
    assert len(small) == len({SPACE.module_hash(a.params) for a in small}) == 1 + 6 + 84 + 2441


def test_the_hash_does_not_see_the_order_of_vertices() -> None:
    one = SPACE.architecture(f"110010010101101:{C3},{C1},{MP},{C3}")
    matrix, operations = SPACE.to_matrix(one.params)
    order = [0, 2, 1, 3, 4, 5]
    other = SPACE.from_matrix(np.array(matrix)[order][:, order], [operations[i] for i in order])
    assert other != one
    assert SPACE.module_hash(other.params) == SPACE.module_hash(one.params)


def test_cells_of_one_hash_name_each_other() -> None:
    several = 0
    for a in SPACE.sample(60, seed=2):
        others = [SPACE.architecture(params) for params in SPACE.same_row(a.params)]
        assert a not in others and len(set(others)) == len(others)
        several += bool(others)
        for other in others[:3]:
            assert SPACE.module_hash(other.params) == SPACE.module_hash(a.params)
            back = {SPACE.architecture(params) for params in SPACE.same_row(other.params)}
            assert back | {other} == {a, *others}
    assert several > 5


def test_a_cell_of_another_order_finds_the_row_of_the_table() -> None:
    stored = SPACE.architecture(f"110011:{MP},{C1}")
    other, unknown = SPACE.architecture(f"110011:{C1},{MP}"), SPACE.architecture(f"110011:{C1},{C1}")
    frame = pd.DataFrame({"arch": [stored.string], "acc": [93.0]})
    table = get_evaluator("table", SPACE, path=frame, metrics={"acc": "accuracy/cifar10"})
    values = table.evaluate([other, unknown, stored], ["accuracy/cifar10"])
    np.testing.assert_array_equal(values["accuracy/cifar10"], [93.0, np.nan, 93.0])


def exact_shares() -> dict[tuple[int, int], float]:
    """Of (vertices, edges) among the valid ones of all 2^21 matrices, pruned: what the usual draw gives."""
    pairs = [(i, j) for i in range(7) for j in range(i + 1, 7)]
    numbers = np.arange(2**21, dtype=np.int32)
    edge = {pair: (numbers >> k & 1).astype(bool) for k, pair in enumerate(pairs)}
    reached, leading = [np.ones(2**21, bool)], {6: np.ones(2**21, bool)}
    for j in range(1, 7):
        reached.append(np.any([edge[i, j] & reached[i] for i in range(j)], axis=0))
    for i in range(5, -1, -1):
        leading[i] = np.any([edge[i, j] & leading[j] for j in range(i + 1, 7)], axis=0)
    living = [reached[v] & leading[v] for v in range(7)]
    edges = sum((edge[i, j] & living[i] & living[j]).astype(int) for i, j in pairs)
    vertices = sum(alive.astype(int) for alive in living)
    valid = living[0] & living[6] & (edges <= 9)
    kinds, counts = np.unique(np.stack([vertices, edges])[:, valid], axis=1, return_counts=True)
    return {(int(v), int(e)): n / valid.sum() for (v, e), n in zip(kinds.T, counts, strict=True)}


def test_sampling_is_uniform_over_valid_descriptions() -> None:
    drawn = SPACE.sample(4_000, seed=3)
    assert drawn[:5] == SPACE.sample(5, seed=3)
    found = Counter((a.params["vertices"], a.string.split(":")[0].count("1")) for a in drawn)
    shares = exact_shares()
    assert set(found) <= set(shares)
    often = [kind for kind, share in shares.items() if share * len(drawn) >= 5]
    observed = [found[kind] for kind in often] + [sum(n for kind, n in found.items() if kind not in often)]
    expected = [shares[kind] * len(drawn) for kind in often]
    expected.append(len(drawn) - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    operations = Counter(value for a in drawn for name, value in a.values if name.startswith("op"))
    assert stats.chisquare([operations[operation] for operation in cells.OPERATIONS]).pvalue > 1e-6
    with pytest.raises(UsageError, match="cannot sample -1"):
        SPACE.sample(-1, seed=0)


def test_moves_stay_inside() -> None:
    rng = np.random.default_rng(0)
    for a in SPACE.sample(30, seed=1):
        b = SPACE.mutate(a, rng)
        assert b != a
        assert SPACE.architecture(b.string) == b
        around = SPACE.neighbours(a)
        assert len(set(around)) == len(around) >= 1
        assert a not in around


def published(folder: Path, name: str = "nasbench101_sample20k") -> pd.DataFrame:
    return pd.read_csv(folder / f"{name}.csv.gz", dtype={"adjacency": str, "ops": str}).fillna({"ops": ""})


def check_rows(rows: pd.DataFrame, space: Any) -> None:
    for row in rows.itertuples():
        a = space.from_table(row.adjacency, row.ops)
        assert costs(a).params == row.trainable_params, row
        assert space.module_hash(a.params) == row.nb101_hash, row


@pytest.mark.data
def test_published_counts_and_hashes_of_a_sample(data_folder: Path) -> None:
    check_rows(published(data_folder).sample(300, random_state=0), SPACE)


@pytest.mark.data
@pytest.mark.slow
def test_published_counts_and_hashes_of_every_row(data_folder: Path) -> None:
    check_rows(published(data_folder), SPACE)


@pytest.mark.data
@pytest.mark.slow
def test_enumeration_yields_the_cells_of_the_published_table(data_folder: Path) -> None:
    rows = published(data_folder, "nasbench101")
    short = {operation: operation.removesuffix("-bn-relu") for operation in cells.OPERATIONS}
    expected = set(zip(rows["adjacency"], rows["ops"], strict=True))
    for cell in cells.all_cells():
        pairs = [(i, j) for i in range(cell.vertices) for j in range(i + 1, cell.vertices)]
        bits = "".join(str(int(pair in cell.edges)) for pair in pairs)
        expected.remove((bits, "-".join(short[operation] for operation in cell.operations)))
    assert not expected


@pytest.mark.data
@pytest.mark.slow
def test_every_sample_has_a_row_of_the_published_table(data_folder: Path) -> None:
    rows = published(data_folder, "nasbench101")
    arch = [SPACE.from_table(*pair).string for pair in zip(rows["adjacency"], rows["ops"], strict=True)]
    frame = pd.DataFrame({"arch": arch, "acc": np.arange(len(rows), dtype=float)})
    table = get_evaluator("table", SPACE, path=frame, metrics={"acc": "accuracy/cifar10"})
    samples = list(dict.fromkeys(SPACE.sample(1000, seed=0)))
    found = table.evaluate(samples, ["accuracy/cifar10"])["accuracy/cifar10"]
    assert found.notna().all()
    for a, row in zip(samples, found, strict=True):
        assert SPACE.module_hash(SPACE.architecture(arch[int(row)]).params) == SPACE.module_hash(a.params)

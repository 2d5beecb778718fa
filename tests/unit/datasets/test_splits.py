"""Splits: parts share nothing they must not share, sizes are kept, seeds are kept, files are checked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.datasets import (
    Table,
    device_labels,
    graph_groups,
    hold_out_networks,
    load_split,
    load_table,
    save_split,
    split_by_device,
    split_by_graph,
    split_by_seed,
    unseen_graphs,
)
from nasrlm.errors import MetricError, TableError
from nasrlm.spaces import get_space

SPACE = get_space("tiny")


def table(n: int = 100) -> Table:
    values = np.arange(n, dtype=float) + 1
    data = pd.DataFrame({"arch": [a.string for a in SPACE.enumerate()][:n], "a": values, "b": values, "c": values})
    return load_table(data, space=SPACE, metrics=["a", "b", "c"])


def test_sizes_of_a_split_by_seed_and_nothing_twice() -> None:
    split = split_by_seed(table(), {"train": 0.33, "rest": "rest", "test": 12}, seed=5)
    assert list(split) == ["train", "rest", "test"]
    assert {name: len(rows) for name, rows in split.items()} == {"train": 33, "rest": 55, "test": 12}
    assert sorted(np.concatenate(list(split.values()))) == list(range(100))
    assert all((np.diff(rows) > 0).all() for rows in split.values())


def test_seeds_of_splits() -> None:
    one, same, other = (split_by_seed(table(), {"train": 50}, seed=s)["train"] for s in (1, 1, 2))
    assert one.tolist() == same.tolist() != other.tolist()
    # A smaller training part is part of the larger one: learning curves compare like with like.
    assert set(split_by_seed(table(), {"train": 10}, seed=1)["train"]) < set(one)


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ({"train": 101}, "100 rows"),
        ({"train": 0.9, "test": 0.2}, "100 rows"),
        ({"train": 0}, "'train'"),
        ({"train": 1.5}, "'train'"),
        ({"train": True}, "'train'"),
        ({"train": "all"}, "'rest'"),
        ({"train": "rest", "test": "rest"}, "more than one"),
        ({"train": 1.0, "test": "rest"}, "100 rows"),
    ],
)
def test_sizes_that_are_none(parts: dict[str, float], word: str) -> None:
    for split in (split_by_seed, lambda t, p, seed: split_by_graph(t, p, seed, groups=np.arange(len(t)))):
        with pytest.raises(TableError, match=word):
            split(table(), parts, seed=0)


def test_groups_never_straddle_and_parts_reach_their_size() -> None:
    groups = np.arange(100) % 40
    split = split_by_graph(table(), {"test": 30, "valid": 20, "train": "rest"}, seed=3, groups=groups)
    assert 30 <= len(split["test"]) <= 32 and 20 <= len(split["valid"]) <= 22
    assert sorted(np.concatenate(list(split.values()))) == list(range(100))
    seen = [set(groups[rows]) for rows in split.values()]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    with pytest.raises(TableError, match="groups"):
        split_by_graph(table(), {"test": 30}, seed=0, groups=groups[:-1])
    with pytest.raises(TableError, match="'b' of the split stays empty"):
        split_by_graph(table(), {"a": 10, "b": 10}, seed=0, groups=np.zeros(100, dtype=int))


def test_networks_are_held_out_one_row_each_and_their_copies_with_them() -> None:
    groups = np.minimum(np.arange(100), 30)  # thirty single rows and one network with seventy
    held: set[int] = set()
    for seed in range(20):
        split = hold_out_networks(table(), 10, seed, groups=groups)
        assert sorted(np.concatenate(list(split.values()))) == list(range(100))
        assert len(split["test"]) == len(set(groups[split["test"]])) == 10
        assert set(groups[split["copies"]]) <= set(groups[split["test"]])
        assert not set(groups[split["train"]]) & set(groups[split["test"]])
        assert len(split["copies"]) == (69 if 30 in groups[split["test"]] else 0)
        held.update(split["test"].tolist())
    assert len([row for row in held if row >= 30]) > 1, "the row that stands for a network is drawn"
    with pytest.raises(TableError, match="31 networks out of 31"):
        hold_out_networks(table(), 31, 0, groups=groups)


def test_isomorphic_networks_stay_together() -> None:
    space = get_space("nasbench201")
    # The same cell twice: a skip to node 1 makes node 1 the input, so the convolution may start at either.
    texts = [
        "|skip_connect~0|+|none~0|none~1|+|none~0|nor_conv_3x3~1|none~2|",
        "|none~0|+|none~0|none~1|+|nor_conv_3x3~0|none~1|none~2|",
        "|none~0|+|none~0|none~1|+|nor_conv_1x1~0|none~1|none~2|",
    ]
    groups = graph_groups([space.architecture(text) for text in texts])
    assert groups[0] == groups[1] != groups[2]
    data = pd.DataFrame({"arch": texts, "a": [1.0, 2.0, 3.0]})
    for seed in range(5):
        parts = split_by_graph(load_table(data, space=space, metrics=["a"]), {"one": 1, "two": "rest"}, seed)
        assert [0, 1] in [rows.tolist() for rows in parts.values()]


def test_unseen_graphs() -> None:
    groups = np.array([0, 0, 1, 2, 2])
    assert unseen_graphs(groups, np.array([0, 3]), np.array([1, 2, 4])).tolist() == [2]


def test_split_by_device_and_its_labels() -> None:
    t = table()
    t.values.iloc[:10, 0] = np.nan  # not measured on the source device
    split = split_by_device(t, ["a", "b"], ["c"], source_rows=60, target_rows=5, seed=2)
    assert {name: len(rows) for name, rows in split.items()} == {"source": 60, "target": 5, "test": 35}
    assert len(np.unique(np.concatenate(list(split.values())))) == 100
    assert split["source"].min() >= 10
    labels = device_labels(t, split, ["a", "b"], ["c"])
    assert np.flatnonzero(labels["a"].notna()).tolist() == split["source"].tolist()
    assert np.flatnonzero(labels["c"].notna()).tolist() == split["target"].tolist()
    assert t.values["c"].notna().all()  # the table itself stays as it is


def test_split_by_device_refuses() -> None:
    with pytest.raises(MetricError, match="'d'"):
        split_by_device(table(), ["a"], ["d"], seed=0)
    with pytest.raises(MetricError, match="source and a target"):
        split_by_device(table(), ["a"], ["a"], seed=0)
    with pytest.raises(TableError, match="at most 100"):
        split_by_device(table(), ["a"], ["b"], source_rows=900, seed=0)


def test_splits_survive_on_disk(tmp_path: Path) -> None:
    t = table()
    split = split_by_seed(t, {"train": 60, "test": "rest"}, seed=0)
    path = save_split(split, t, tmp_path / "deep" / "split.json")
    read = load_split(path, t)
    assert {name: rows.tolist() for name, rows in read.items()} == {n: r.tolist() for n, r in split.items()}
    assert [p.name for p in path.parent.iterdir()] == ["split.json"]


def test_split_files_are_checked(tmp_path: Path) -> None:
    t = table()
    path = save_split({"train": np.arange(50)}, t, tmp_path / "split.json")
    with pytest.raises(TableError, match="another table"):
        load_split(path, table(99))
    with pytest.raises(TableError, match="cannot be read"):
        load_split(tmp_path / "none.json", t)
    content = json.loads(path.read_text())
    for change, word in (
        ({"format": "other@2"}, "other@2"),
        ({"parts": {"train": [100]}}, "outside"),
        ({"parts": [1]}, "damaged"),
        ({"fingerprint": None}, "another table"),
    ):
        path.write_text(json.dumps(content | change))
        with pytest.raises(TableError, match=word):
            load_split(path, t)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(TableError, match="damaged"):
        load_split(path, t)
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot be written"):
        save_split({}, t, tmp_path / "file" / "split.json")

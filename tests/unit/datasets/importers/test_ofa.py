"""Accuracies of Once-for-all sub-networks: dictionaries, lists and tables."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from nasrlm.datasets import load_table
from nasrlm.datasets.importers import import_table

# Blocks beyond a stage's depth have an entry, which changes nothing.
ELASTIC = {"ks": [3, 5, 7, 3] * 5, "e": [3, 4, 6, 3] * 5, "d": [2, 3, 4, 2, 2], "r": 224}
OFFICIAL = {
    "ks": [3, 5, 0, 0, 3, 5, 7, 0, 3, 5, 7, 3, 3, 5, 0, 0, 3, 5, 0, 0],
    "e": [3, 4, 0, 0, 3, 4, 6, 0, 3, 4, 6, 3, 3, 4, 0, 0, 3, 4, 0, 0],
    "d": [2, 3, 4, 2, 2],
    "r": 224,
}


def test_once_for_all_dictionaries(imported, tmp_path: Path) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    for size in (160, 224):
        key = json.dumps({"wid": None, "ks": ELASTIC["ks"], "e": ELASTIC["e"], "d": ELASTIC["d"], "image_size": size})
        (folder / f"{size}.dict").write_text(json.dumps({key: 0.75 + size / 10_000}))
    (tmp_path / "net_id.dict").write_text(json.dumps([key]))
    table = imported("ofa", tmp_path)
    assert [json.loads(arch) for arch in table["arch"]] == [{**OFFICIAL, "r": 160}, OFFICIAL]
    assert list(table["accuracy/imagenet"]) == pytest.approx([76.6, 77.24])


def test_once_for_all_lists_and_tables(imported, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{**ELASTIC, "top1": 75.5, "macs": 265_450_224}]))
    table = imported("ofa", tmp_path / "a.json")
    assert table.to_dict("list") == {
        "arch": [json.dumps(OFFICIAL, separators=(",", ":"))],
        "accuracy/imagenet": [75.5],
        "macs": [265_450_224.0],
    }
    resnet = {"d": [2, 1, 2, 2, 1], "e": [0.25] * 18, "w": [2] * 6, "r": [224], "top1": 0.79}
    (tmp_path / "a.json").write_text(json.dumps([resnet]))
    table = imported("ofa", tmp_path / "a.json")
    assert json.loads(table["arch"][0])["r"] == 224
    assert list(table["accuracy/imagenet"]) == [79.0]


def test_damaged_once_for_all_files(refused, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for data, message in (
        ({"hello": 0.7}, "a.json, entry 1: it has another structure"),
        ([{"ks": [3]}], "a.json, item 1: .*without the list 'e'"),
        ([{**ELASTIC, "d": [2]}], "a.json: the lengths of its lists fit no space"),
        ([], "it holds no sub-network"),
        (3, "neither a list nor an object"),
    ):
        file.write_text(json.dumps(data))
        refused("ofa", file, message=message)
    (tmp_path / "a.csv").write_text("")
    refused("ofa", tmp_path / "a.csv", message="a.csv: No columns")


@pytest.mark.data
@pytest.mark.parametrize(("name", "repeated"), [("ofa_mbv3_accuracy", 61), ("ofa_mbv3_latency", 0)])
def test_once_for_all_tables(tmp_path: Path, data_folder: Path, name: str, repeated: int) -> None:
    """The shared tables as they are: every row and value comes back, and through the space as well.

    Rows of the table of accuracies that differ in blocks beyond the depth alone are one architecture.
    """
    rows = pd.read_csv(data_folder / f"{name}.csv.gz")
    done = import_table("ofa", [data_folder / f"{name}.csv.gz"], tmp_path / "t.parquet")
    columns = {f"latency_ms/{c.removesuffix('_ms')}": c for c in rows if c.endswith("_ms")}
    columns |= {m: c for m, c in (("accuracy/imagenet", "imagenet_top1_acc"), ("macs", "macs"), ("params", "params"))
                if c in rows}  # fmt: skip
    assert set(done.metrics) == set(columns)
    found = pd.read_parquet(done.file)
    table = load_table(done.file, space=done.space, metrics=list(done.metrics))
    ids = [table.space.architecture(arch).id for arch in found["arch"]]
    assert (len(found), len(table), table.duplicates) == (len(rows), len(rows) - repeated, repeated)
    for metric, column in columns.items():
        assert list(found[metric]) == list(rows[column]), metric
        means = rows.groupby(pd.Index(ids), sort=False)[column].mean()
        assert list(table.values[metric]) == pytest.approx(list(means), rel=1e-12), metric
        assert list(table.values.index) == list(means.index)

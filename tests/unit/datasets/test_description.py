"""Describing a file of labels: columns, blanks, ranges, and how a space reads its strings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.datasets import description
from nasrlm.datasets.description import describe_file, read_values
from nasrlm.datasets.importers import import_table
from nasrlm.datasets.metric_names import name_and_unit
from nasrlm.errors import MetricError, TableError, UnknownNameError
from nasrlm.spaces import get_space

ARCHS = [a.string for a in get_space("nasbench201").sample(4, seed=0)]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Five rows, of which one repeats an architecture."""
    return pd.DataFrame(
        {
            "arch": [*ARCHS, ARCHS[0]],
            "accuracy/cifar10": [90.0, 91.0, np.nan, 93.5, 90.0],
            "latency_ms/pixel3": [1.0, 2.0, 4.0, 8.0, np.nan],
            "nothing": [np.nan] * 5,
        }
    )


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_what_a_file_holds(tmp_path: Path, frame: pd.DataFrame, name: str) -> None:
    file = tmp_path / name
    frame.to_parquet(file) if name.endswith("parquet") else frame.to_csv(file, index=False)
    found = describe_file(file, space="nasbench201")
    assert (found.rows, found.space, found.importer) == (5, "nasbench201", "")
    row = found.metrics.loc["accuracy/cifar10"]
    assert list(row[["unit", "values", "blanks", "distinct"]]) == ["%", 4, 1, 3]
    assert list(row[["minimum", "median", "maximum"]]) == [90.0, 90.5, 93.5]
    assert list(found.metrics.loc["nothing", ["values", "blanks", "distinct"]]) == [0, 5, 0]
    assert np.isnan(found.metrics.loc["nothing", "median"])
    assert list(found.texts.loc["arch"]) == [5, 0, 4]
    assert found.strings is not None
    assert (found.strings.looked_at, found.strings.refused, found.strings.distinct) == (5, 0, 4)
    assert list(read_values(file, ["latency_ms/pixel3"])["latency_ms/pixel3"][:4]) == [1.0, 2.0, 4.0, 8.0]


def test_an_imported_table_names_its_space(tmp_path: Path) -> None:
    macro = '{"22212202": {"mean_acc": 92.9, "params": 1985514, "flops": 85164544}}'
    (tmp_path / "a.json").write_text(macro, encoding="utf-8")
    import_table("nasbench_macro", [tmp_path / "a.json"], tmp_path / "t.parquet")
    found = describe_file(tmp_path / "t.parquet")
    assert (found.rows, found.space, found.importer) == (1, "nasbench_macro", "nasbench_macro")
    assert found.strings is not None
    assert found.strings.refused == 0


def test_strings_that_the_space_does_not_read_are_counted_and_quoted(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.loc[[1, 2], "arch"] = ["|none~0|", None]
    frame.to_parquet(tmp_path / "t.parquet")
    found = describe_file(tmp_path / "t.parquet", space="nasbench201")
    assert found.strings is not None
    assert (found.strings.refused, found.strings.distinct) == (2, 2)
    assert [problem.partition(":")[0] for problem in found.strings.problems] == ["row 2", "row 3"]
    assert list(found.texts.loc["arch"]) == [4, 1, 3]


def test_long_tables_are_looked_at_here_and_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description, "LOOKED_AT", 3)
    monkeypatch.setattr(description, "_BATCH", 3)
    monkeypatch.setattr(description, "_HASHES", 2)
    space = get_space("nasbench201")
    archs = [a.string for a in space.sample(10, seed=1)]
    pd.DataFrame({"arch": [*archs, "bad"], "x": range(11)}).to_parquet(tmp_path / "t.parquet")
    found = describe_file(tmp_path / "t.parquet", space="nasbench201")
    assert found.strings is not None
    assert (found.strings.looked_at, found.strings.refused) == (3, 0)  # rows 1, 5 and 9
    assert list(found.texts.loc["arch"]) == [11, 0, len(set(archs)) + 1]


def test_digits_that_begin_with_a_zero_are_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("adjacency,x\n0101,1\n1100,na\n", encoding="utf-8")
    found = describe_file(tmp_path / "t.csv")
    assert list(found.texts.index) == ["adjacency"]
    assert list(found.metrics.loc["x", ["values", "blanks"]]) == [1, 1]
    assert found.strings is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "arch,x\n", "has no rows"),
        ("t.csv", "", "No columns"),
        ("t.csv.gz", "no gzip", "Is the file complete"),
        ("t.parquet", "no parquet", "Is the file complete"),
        ("t.txt", "x", "Its name must end in .csv, .csv.gz, .parquet"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        describe_file(tmp_path / name)


def test_mistakes_are_told(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="there is no file or folder .*Nearest in .*: t.parquet"):
        describe_file(tmp_path / "u.parquet")
    with pytest.raises(UnknownNameError, match="nasbench202"):
        describe_file(tmp_path / "t.parquet", space="nasbench202")
    with pytest.raises(MetricError, match="unknown metric 'acuracy/cifar10'.*Nearest: accuracy/cifar10"):
        read_values(tmp_path / "t.parquet", ["acuracy/cifar10"])
    (tmp_path / "t.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-100])
    with pytest.raises(TableError, match="Is the file complete"):
        describe_file(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("energy_mj/fpga", "mJ"), ("train_time_s/cifar10", "s"), ("memory_bytes", "bytes"), ("ms", ""), ("loss/x", "")],
)
def test_units_come_from_names(metric: str, expected: str) -> None:
    assert name_and_unit(metric)[1] == expected

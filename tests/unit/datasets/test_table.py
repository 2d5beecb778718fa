"""load_table: what a table may hold, and what is said about one that cannot be used."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.datasets import Table, describe, load_table
from nasrlm.errors import MetricError, TableError
from nasrlm.spaces import get_space

SPACE = get_space("tiny")
METRICS = {"acc": "accuracy/toy", "ms": "latency_ms/toy"}


def strings(n: int) -> list[str]:
    return [a.string for a in list(SPACE.enumerate())[:n]]


def frame(n: int = 4) -> pd.DataFrame:
    return pd.DataFrame({"arch": strings(n), "acc": np.arange(n) + 90.0, "ms": np.arange(n) + 1.0, "note": ["x"] * n})


def load(source: object, **options: object) -> Table:
    return load_table(source, **({"space": SPACE, "metrics": METRICS} | options))  # type: ignore[arg-type]


def message(source: object, **options: object) -> str:
    with pytest.raises(TableError) as caught:
        load(source, **options)
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_files_and_frames_give_the_same_table(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    data = frame()
    data.loc[1, "ms"] = np.nan
    if suffix == ".parquet":
        data.to_parquet(path)
    else:
        data.to_csv(path, index=False)
    from_file, from_frame = load(path), load(data)
    assert from_file.architectures == from_frame.architectures
    pd.testing.assert_frame_equal(from_file.values, from_frame.values)
    assert from_file.values["accuracy/toy"].tolist() == [90.0, 91.0, 92.0, 93.0]
    assert np.isnan(from_file.values["latency_ms/toy"].iloc[1])
    assert from_file.fingerprint == from_frame.fingerprint
    assert from_file.values.index.tolist() == [a.id for a in from_file.architectures]


@pytest.mark.parametrize("word", ["", "nan", "NaN", "NA", "n/a", "null", "  "])
def test_blank_words_are_not_known(word: str) -> None:
    data = frame().astype({"acc": object})
    data.loc[2, "acc"] = word
    assert load(data).values["accuracy/toy"].isna().tolist() == [False, False, True, False]


def test_text_for_a_number_names_column_line_and_value(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    data = frame().astype({"acc": object})
    data.loc[2, "acc"] = "ninety"
    data.to_csv(path, index=False)
    text = message(path)
    assert "'acc'" in text and "line 4 of t.csv" in text and "'ninety'" in text
    data.loc[3, "acc"] = "x"
    data.to_csv(path, index=False)
    assert "1 more such cells" in message(path)


def test_lines_count_blank_lines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    body = frame(3).to_csv(index=False).splitlines()
    path.write_text("\n".join([body[0], "", body[1], "", body[2].replace("91.0", "oops"), ""]))
    assert "line 5 of t.csv" in message(path)


@pytest.mark.parametrize("value", ["inf", "-inf", "Infinity", np.inf])
def test_infinities_are_refused(value: object) -> None:
    data = frame().astype({"ms": object})
    data.loc[0, "ms"] = value
    text = message(data)
    assert "'ms'" in text and "row 1" in text and "finite" in text


def test_booleans_are_no_measurements() -> None:
    assert "'acc'" in message(frame().assign(acc=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arch_column": "archi"}, ["'archi'", "Nearest: arch"]),
        ({"metrics": {"accc": "accuracy/toy"}}, ["'accc'", "Nearest: acc"]),
        ({"metrics": {}}, ["no metric columns"]),
        ({"metrics": {"acc": "a/b", "ms": "a/b"}}, ["'acc' and 'ms'", "'a/b'"]),
        ({"metrics": {"acc": {"metric": "a/b", "scal": 2}}}, ["'scal'", "Nearest: scale"]),
        ({"metrics": {"acc": {"scale": 2}}}, ["'acc'", "metric"]),
        ({"metrics": {"acc": {"metric": "a/b", "scale": "big"}}}, ["'acc'", "scale"]),
        ({"arch_column": "archi", "where": "train.yaml:7"}, ["train.yaml:7"]),
    ],
)
def test_wrong_columns_are_explained(options: dict[str, object], words: list[str]) -> None:
    text = message(frame(), **options)
    assert all(word in text for word in words), text


def test_scale_and_plain_list_of_columns() -> None:
    scaled = load(frame(), metrics={"ms": {"metric": "macs", "scale": 1e6}})
    assert scaled.values["macs"].tolist() == [1e6, 2e6, 3e6, 4e6]
    assert load(frame(), metrics=["ms"]).metrics == ("ms",)


def test_unknown_architectures_are_counted_and_five_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    data = frame(12)
    data.loc[range(3, 11), "arch"] = [f"wrong{i}" for i in range(8)]
    data.to_csv(path, index=False)
    text = message(path)
    assert "8 of 12 rows" in text and "tiny" in text
    assert "line 5 of t.csv" in text and "line 9 of t.csv" in text and "line 10" not in text
    assert "wrong4" in text and "wrong5" not in text and "and 3 more" in text


def test_duplicates_become_one_row_with_the_mean() -> None:
    data = pd.concat([frame(3), frame(1).assign(acc=80.0, ms=np.nan)], ignore_index=True)
    table = load(data)
    assert (len(table), table.duplicates) == (3, 1)
    assert table.values.iloc[0].tolist() == [85.0, 1.0]
    assert any("1 row repeats" in note for note in table.notes)
    assert load(frame()).duplicates == 0


def test_rows_without_anything_are_left_out_and_no_rows_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("arch,acc,ms\n")
    assert "no rows" in message(path)
    path.write_text("arch,acc,ms\n\n\n")
    assert "no rows" in message(path)
    assert "no rows" in message(frame(0))
    path.write_text("")
    assert "cannot be read" in message(path)


def test_a_metric_without_any_value_is_an_error() -> None:
    assert "'latency_ms/toy'" in message(frame().assign(ms=np.nan))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no file" in message(tmp_path / "missing.csv")
    (tmp_path / "nearby.csv").write_text("arch\n")
    assert "nearby.csv" in message(tmp_path / "missing.csv")
    assert ".parquet" in message(tmp_path / "t.xlsx")
    damaged = tmp_path / "t.csv.gz"
    damaged.write_bytes(gzip.compress(frame().to_csv(index=False).encode())[:-20])
    assert "cannot be read" in message(damaged)
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    assert "cannot be read" in message(tmp_path / "t.parquet")
    (tmp_path / "ragged.csv").write_text("arch,acc,ms\na,1,2,3,4\n")
    assert "more fields" in message(tmp_path / "ragged.csv")
    (tmp_path / "later.csv").write_text("arch,acc,ms\na,1,2\nb,1,2,3\n")
    assert "cannot be read" in message(tmp_path / "later.csv")
    twice = frame()
    assert "2 columns called 'acc'" in message(pd.concat([twice, twice[["acc"]]], axis=1))


@pytest.mark.parametrize("as_text", [False, True])
def test_parameter_columns(tmp_path: Path, as_text: bool) -> None:
    architectures = SPACE.sample(12, seed=3)
    data = pd.DataFrame([a.params for a in architectures]).assign(ms=np.arange(12) + 1.0)
    source: object = data
    if as_text:
        source = tmp_path / "t.csv"
        data.to_csv(source, index=False)
    columns = [p.name for p in SPACE.parameters]
    table = load(source, metrics={"ms": "latency_ms/toy"}, params_columns=columns[::-1])
    assert table.architectures == list(dict.fromkeys(architectures))
    renamed = data.rename(columns={"depth": "d"})
    mapped = {("d" if name == "depth" else name): name for name in columns}
    assert load(renamed, metrics=["ms"], params_columns=mapped).architectures == table.architectures


def test_wrong_parameters_are_explained() -> None:
    data = pd.DataFrame([a.params for a in SPACE.sample(3, seed=0)]).assign(ms=1.0)
    assert "Nearest: depth" in message(data, metrics=["ms"], params_columns={"depth": "dept"})
    columns = [p.name for p in SPACE.parameters]
    text = message(data.assign(depth=[1, 99, 1]), metrics=["ms"], params_columns=columns)
    assert "1 of 3 rows" in text and "row 2" in text and "99" in text
    assert "row 1" in message(data.assign(depth=["x", 1, 1]), metrics=["ms"], params_columns=columns)


def test_notes_on_values_that_are_hardly_meant() -> None:
    notes = load(frame().assign(ms=[0.0, -1.0, 1.0, 1.0], acc=[0.1, 0.9, 0.5, 1.0])).notes
    assert any("latency_ms/toy" in note and "2 rows" in note for note in notes)
    assert any("accuracy/toy" in note and "percent" in note for note in notes)
    assert load(frame()).notes == ()


def test_subset_select_frame_and_with_metrics() -> None:
    table = load(frame(5))
    part = table.subset([3, 1])
    assert part.values["accuracy/toy"].tolist() == [93.0, 91.0]
    assert part.architectures == [table.architectures[3], table.architectures[1]]
    assert table.subset(np.array([True, False, False, False, True])).values.index.tolist() == [
        table.architectures[i].id for i in (0, 4)
    ]
    assert part.fingerprint != table.fingerprint
    assert list(table.frame().columns) == ["architecture_id", "arch", "accuracy/toy", "latency_ms/toy"]
    assert table.frame()["arch"].tolist() == strings(5)
    assert table.select(["latency_ms/toy"]).metrics == ("latency_ms/toy",)
    with pytest.raises(MetricError, match=r"Nearest: latency_ms/toy"):
        table.select(["latency_ms/to"])
    extra = pd.DataFrame({"params": range(5)}, index=table.values.index)
    assert table.with_metrics(extra).values["params"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TableError, match="order"):
        table.with_metrics(extra.iloc[::-1])
    with pytest.raises(TableError, match="already"):
        table.with_metrics(extra.rename(columns={"params": "accuracy/toy"}))


def test_describe_counts_and_summarises() -> None:
    data = frame().astype({"acc": float})
    data.loc[0, "acc"] = np.nan
    row = describe(load(data)).loc["accuracy/toy"]
    assert row.tolist() == [3, 1, 3, 91.0, 92.0, 93.0]


@pytest.mark.data
def test_the_published_nasbench201_table(data_folder: Path) -> None:
    metrics = {
        "cifar10_test_acc": "accuracy/cifar10",
        "nnmeter_myriadvpu_ncs2_ms": "latency_ms/ncs2",
        "flops_millions": {"metric": "macs", "scale": 1e6},
    }
    table = load_table(data_folder / "nasbench201.csv.gz", space="nasbench201", metrics=metrics)
    assert (len(table), table.duplicates, table.notes) == (15_625, 0, ())
    facts = describe(table)
    assert facts.loc["accuracy/cifar10", "maximum"] == pytest.approx(94.373, abs=1e-3)
    assert facts.loc["latency_ms/ncs2", "rows"] == 1999
    assert table.architectures[0].string.startswith("|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+")
    assert table.values["macs"].iloc[0] == pytest.approx(15.65e6)

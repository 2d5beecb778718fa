"""nasrlm data: formats, import and describe, end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from nasrlm import registry
from nasrlm.cli import main
from nasrlm.datasets import load_table

MACRO = {
    "22212202": {
        "test_acc": [92.8, 92.9, 93.0],
        "mean_acc": 92.9,
        "std": 0.1,
        "params": 1_985_514,
        "flops": 85_164_544,
    },
    "00000000": {"test_acc": [45.0] * 3, "mean_acc": 45.0, "std": 0.0, "params": 387_882, "flops": 7_713_280},
    "11111111": {"test_acc": [90.0] * 3, "mean_acc": 90.0, "std": 0.0, "params": 1_234_567, "flops": 105_660_352},
}


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published file in the folder that is the working folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "nas-bench-macro_cifar10.json"
    file.write_text(json.dumps(MACRO), encoding="utf-8")
    return file


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["data", *words]) == 0
    text = capsys.readouterr().out
    assert "--json" in words or max(map(len, text.splitlines())) <= 80
    return text


def test_formats(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "formats")
    rows = json.loads(output(capsys, "formats", "--json"))
    assert [row["name"] for row in rows] == list(registry.names("importers"))
    assert all(row["name"] in text and row["path"] and row["source"] for row in rows)


def test_import_writes_a_table_that_is_read(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    text = output(capsys, "import", "nasbench_macro", published.name, "-o", "t.parquet")
    assert text == "t.parquet: 3 rows, 3 metrics, space nasbench_macro\n"
    table = load_table("t.parquet", space="nasbench_macro", metrics=["accuracy/cifar10", "params", "macs"])
    assert [a.string for a in table.architectures] == list(MACRO)
    assert list(table.values["macs"]) == [entry["flops"] for entry in MACRO.values()]


def test_import_keeps_what_is_there(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    words = ["data", "import", "nasbench_macro", published.name, "-o", "t.parquet"]
    assert main(words) == 0
    capsys.readouterr()
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert len(pd.read_parquet("t.parquet")) == 3
    facts = json.loads(output(capsys, *words[1:], "--force", "--limit", "2", "--json"))
    assert (facts["rows"], facts["space"], facts["left_out"]) == (2, "nasbench_macro", 0)
    assert len(pd.read_parquet("t.parquet")) == 2
    assert sorted(file.name for file in published.parent.iterdir()) == [published.name, "t.parquet"]


def test_rows_left_out_are_told(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    columns = ("uid", "arch_str", "val_accuracy", "flops", "params", "metadata")
    good = "graph g (\n  %x[FLOAT, 1x3x8x8]\n) {\n  %y = Relu(%x)\n  return %y\n}"
    rows = [{**dict.fromkeys(columns), "identifier": f"X_{i}", "space": "X", "input": "bad"} for i in range(7)]
    pd.DataFrame([*rows, {**rows[0], "input": good}]).to_parquet("a.parquet")
    assert main(["data", "import", "graph_arch_regression", "a.parquet", "-o", "t.parquet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "t.parquet: 1 rows, 7 left out, 3 metrics, no search space\n"
    assert captured.err.count("left out: row ") == 5
    assert "left out: 2 more rows" in captured.err


def test_describe(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    output(capsys, "import", "nasbench_macro", published.name, "-o", "t.parquet")
    text = output(capsys, "describe", "t.parquet")
    assert "t.parquet: 3 rows, space nasbench_macro\nimported by nasbench_macro\n" in text
    assert "3 of 3 strings are architectures of nasbench_macro, 3 distinct" in text
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith(" ")}
    assert lines["accuracy/cifar10"] == ["%", "0", "3", "45", "90", "92.9"]
    assert lines["macs"] == ["0", "3", "7.713e6", "8.516e7", "1.057e8"]
    facts = json.loads(output(capsys, "describe", "t.parquet", "--json"))
    assert facts["metrics"]["macs"]["maximum"] == 105_660_352
    assert facts["strings"]["distinct"] == 3
    assert facts["texts"]["arch"] == {"values": 3, "blanks": 0, "distinct": 3}


def test_describe_shows_wide_tables_whole(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    """Long names, large numbers and blanks: no line is longer than 80 letters, and no number is cut."""
    names = ["latency_ms/onnxruntime_int8@0.25", "imagenet16_120_test_acc", "arithmetic_intensity/eyeriss_cifar100"]
    values = [987_654_321.0, 0.000012345, -1.5e12]
    frame = pd.DataFrame({name: [value, value, None] for name, value in zip(names, values, strict=True)})
    frame["words"] = ["a", "b", None]
    frame.to_csv("t.csv", index=False)
    text = output(capsys, "describe", "t.csv")
    assert "3 rows, it names no space" in text
    assert "words: 2 distinct texts, 1 blank" in text
    for number in ("9.877e8", "1.234e-5", "-1.500e12"):
        assert text.count(number) == 3, number
    frame[names[0]] = [1.5, 2.5, None]
    frame.drop(columns=names[1:]).to_csv("t.csv", index=False)
    lines = [line.split() for line in output(capsys, "describe", "t.csv").splitlines()]
    assert lines[-4:-1] == [["latency_ms/", "ms", "1", "2", "1.5", "2", "2.5"], ["onnxruntime_int8@"], ["0.25"]]


def test_describe_says_what_a_space_does_not_read(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    pd.DataFrame({"arch": ["22212202", "3"], "x": [1.0, 2.0]}).to_csv("t.csv", index=False)
    text = output(capsys, "describe", "t.csv")
    assert "are architectures" not in text
    assert main(["data", "describe", "t.csv", "--space", "nasbench_macro"]) == 0
    text = capsys.readouterr().out
    assert "1 of 2 strings are architectures of nasbench_macro, 1 distinct" in text
    assert "  not read: row 2: " in text


def test_plots(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    output(capsys, "import", "nasbench_macro", published.name, "-o", "t.parquet")
    facts = json.loads(output(capsys, "describe", "t.parquet", "--plots", "p", "--json"))
    assert facts["plots"] == ["p/histograms.png", "p/pairs.png"]
    assert all(Path(file).read_bytes().startswith(b"\x89PNG") for file in facts["plots"])
    facts = json.loads(output(capsys, "describe", "t.parquet", "--plots", "q", "--metric", "params", "--json"))
    assert facts["plots"] == ["q/histograms.png"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "params"], "no --plots FOLDER is given"),
        (["--plots", "p", "--metric", "parms"], "unknown metric 'parms' in t.parquet. Nearest: params"),
        (["--space", "nasbench_marco"], "Nearest: nasbench_macro"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], published: Path, words: list[str], message: str) -> None:
    output(capsys, "import", "nasbench_macro", published.name, "-o", "t.parquet")
    assert main(["data", "describe", "t.parquet", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_a_table_without_values_has_nothing_to_draw(capsys: pytest.CaptureFixture[str], published: Path) -> None:
    pd.DataFrame({"arch": ["22212202"]}).to_csv("t.csv", index=False)
    assert "no metric: no column holds numbers" in output(capsys, "describe", "t.csv")
    assert main(["data", "describe", "t.csv", "--plots", "p"]) == 2
    assert "there is nothing to draw" in capsys.readouterr().err

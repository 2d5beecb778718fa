"""Help texts and error texts, word for word at 80 columns.

`NASRLM_UPDATE_GOLDEN=1 pytest tests/golden` rewrites them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nasrlm.cli import main

GOLDEN = Path(__file__).parent / "cli"
VERBS = (
    "list", "new", "check", "search", "show", "plot", "predict", "export", "train", "evaluate", "label", "benchmark",
    "data", "data formats", "data import", "data describe",
)  # fmt: skip

EXPERIMENT = """\
schema: nasrlm/experiment@1
kind: search
name: small
space: {name: tiny}
evaluators:
  - {name: cost}
objectives:
  - {metric: params, direction: minimize}
  - {metric: accuracy/cifar10, direction: maximise}
study:
  n_trails: 20
outputs: {folder: runs}
"""

ERRORS = {
    "no_such_file": ["search", "quickstrat.yaml"],
    "mistakes": ["check", "a.yaml"],
    "unknown_names": [
        "check", "a.yaml", "--set", "objectives.1.direction=maximize", "--set", "study={n_trials: 20}",
        "--set", "space.name=tinny",
    ],
    "metric_without_evaluator": [
        "search", "a.yaml", "--set", "objectives.1.direction=maximize", "--set", "study={n_trials: 20}",
    ],
    "wrong_kind": ["train", "a.yaml", "--set", "objectives.1.direction=maximize", "--set", "study={n_trials: 20}"],
    "wrong_set": ["search", "a.yaml", "--set", "study.n_trials"],
    "unknown_verb": ["serch", "a.yaml"],
    "unknown_option": ["search", "a.yaml", "--sett", "a=1"],
    "missing_argument": ["search"],
    "unknown_list": ["list", "spacs"],
    "unknown_template": ["new", "serach", "b.yaml"],
    "not_an_architecture": ["show", "abc"],
    "no_run_folder": ["show", "."],
    "no_network": ["export"],
    "unknown_format": ["data", "import", "nasbench11", "a.tfrecord", "-o", "a.parquet"],
    "no_published_file": ["data", "import", "nasbench101", "b.yaml", "-o", "a.parquet"],
    "not_the_published_file": ["data", "import", "nasbench_macro", "a.yaml", "-o", "a.parquet"],
    "not_a_table": ["data", "describe", "a.yaml"],
    "bad_quantile": ["predict", "x", "--quantiles", "0.1,1.9"],
}  # fmt: skip


def compare(name: str, text: str) -> None:
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("NASRLM_UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"no golden file {file}; make it with NASRLM_UPDATE_GOLDEN=1"
    assert text == file.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb.split(), "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert max(map(len, captured.out.splitlines())) <= 80
    compare(f"help_{verb.replace(' ', '_') or 'nasrlm'}", captured.out)


@pytest.mark.parametrize("name", list(ERRORS))
def test_errors(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(EXPERIMENT, encoding="utf-8")
    assert main(ERRORS[name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "Traceback" not in captured.err
    compare(f"error_{name}", captured.err)
    assert [file.name for file in tmp_path.iterdir()] == ["a.yaml"]

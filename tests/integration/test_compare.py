"""kind: compare, from the YAML file to the table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from nasrlm.cli import main
from nasrlm.errors import ConfigError
from nasrlm.experiment import run_experiment
from nasrlm.graph import costs
from nasrlm.spaces import get_space

YAML = """\
schema: nasrlm/experiment@1
kind: compare
name: race
space: {name: tiny}
evaluators:
  - {name: table, options: {path: t.csv, metrics: {score: accuracy/toy, macs: macs}}}
objectives:
  - {metric: accuracy/toy, direction: maximize, reference: 0}
  - {metric: macs, direction: minimize, reference: 100000}
samplers:
  - {name: random}
  - {title: ours, name: rlm, options: {checkpoint: none, candidates: 40, startup_trials: 6}}
evaluations: [10, 30]
seeds: 2
outputs: {folder: run}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    networks = list(get_space("tiny").enumerate())
    rows = [
        {"arch": a.string, "score": costs(a).depth + 1e-5 * costs(a).params, "macs": costs(a).macs} for a in networks
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    made = tmp_path / "race.yaml"
    made.write_text(YAML, encoding="utf-8")
    return made


def test_samplers_side_by_side(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", str(file)]) == 0
    assert "ours" in capsys.readouterr().out
    folder = file.parent / "run"
    scores = pd.read_csv(folder / "results.csv")
    assert len(scores) == 2 * 2 * 2
    assert scores["share"].between(0, 1 + 1e-9).all()
    by = scores.pivot_table(index=["sampler", "seed"], columns="evaluations", values="share")
    assert (by[10] <= by[30]).all()
    assert by.loc["ours"][30].min() > 0.9
    assert "| ours |" in (folder / "results.md").read_text(encoding="utf-8")


def test_a_stopped_comparison_goes_on_with_what_is_missing(file: Path) -> None:
    first = run_experiment(file).scores
    cells = sorted((file.parent / "run" / "cells").iterdir())
    stamps = {cell.name: cell.stat().st_mtime_ns for cell in cells}
    cells[0].unlink()
    again = run_experiment(file).scores
    pd.testing.assert_frame_equal(first.drop(columns="batch_seconds"), again.drop(columns="batch_seconds"))
    kept = {cell.name for cell in cells[1:]}
    assert all((file.parent / "run" / "cells" / name).stat().st_mtime_ns == stamps[name] for name in kept)


def test_a_sampler_that_was_changed_is_run_again(file: Path) -> None:
    first = run_experiment(file, ["seeds=1"]).scores.groupby("sampler")["hypervolume"].apply(list)
    changed = "samplers.1={title: ours, name: random}"
    again = run_experiment(file, ["seeds=1", changed]).scores.groupby("sampler")["hypervolume"].apply(list)
    assert first["ours"] != first["random"]
    assert again["ours"] == again["random"] == first["random"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("objectives.0={metric: macs, direction: minimize}", "have no reference"),
        ("samplers.1={name: random}", "two samplers are called random"),
        ("samplers.0.name=randon", "Nearest: random"),
        ("samplers.1.options={candidate: 3}", "candidates"),
    ],
)
def test_mistakes(file: Path, change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run_experiment(file, [change])

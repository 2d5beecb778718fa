"""`baselines: [.., head]` in train and evaluate: a column more, also for a training that is done already."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from nasrlm.cli import main
from nasrlm.errors import ConfigError
from nasrlm.experiment.run import check, run
from nasrlm.graph import costs
from nasrlm.spaces import get_space

TRAIN = """\
schema: nasrlm/experiment@1
kind: train
name: toy
space: {name: tiny}
table: {path: t.csv, metrics: {acc: accuracy/toy, ms: latency_ms/toy}}
split: {by: graph, test: 30}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1}
train: {epochs: 2, batch_size: 32, precision: float32}
outputs: {folder: out}
"""

EVALUATE = """\
schema: nasrlm/experiment@1
kind: evaluate
name: toy
space: {name: tiny}
evaluators: [{name: rlm, options: {checkpoint: out/checkpoint, quantiles: []}}]
table: {path: t.csv, metrics: {acc: accuracy/toy, ms: latency_ms/toy}}
split: out/checkpoint/split.json
baselines: [macs, head]
outputs: {folder: evaluated}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    architectures = list(get_space("tiny").enumerate())
    macs = np.array([costs(a).macs for a in architectures])
    rows = {"arch": [a.string for a in architectures], "acc": 50 + np.log10(macs), "ms": macs / 1e5}
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "train.yaml").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "evaluate.yaml").write_text(EVALUATE, encoding="utf-8")
    return tmp_path


def test_a_finished_training_gets_the_column_without_training_again(place: Path) -> None:
    before = run(place / "train.yaml").scores
    assert "head_rho" not in before
    weights = (place / "out" / "checkpoint" / "model.safetensors").read_bytes()
    assert "regression head" not in (place / "out" / "checkpoint" / "README.md").read_text(encoding="utf-8")

    steps: list[str] = []
    sets = ["baselines=[macs, forest, head]"]
    after = run(place / "train.yaml", sets, progress=lambda step: steps.append(step.what)).scores
    assert after["head_rho"].between(-1, 1).all()
    pd.testing.assert_frame_equal(after[before.columns], before)
    assert (place / "out" / "checkpoint" / "model.safetensors").read_bytes() == weights
    log = [json.loads(line) for line in (place / "out" / "training" / "log.jsonl").read_text().splitlines()]
    numbers = [entry["step"] for entry in log if "loss" in entry]
    assert numbers == sorted(set(numbers))
    card = (place / "out" / "checkpoint" / "README.md").read_text(encoding="utf-8")
    assert "head rho" in card
    assert "regression head" in card


def test_evaluate_shows_the_head(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(place / "train.yaml")
    assert main(["evaluate", str(place / "evaluate.yaml")]) == 0
    assert "head" in capsys.readouterr().out
    scores = pd.read_csv(place / "evaluated" / "scores.csv")
    assert "forest_rho" not in scores
    assert scores["head_rho"].between(-1, 1).all()


def test_an_unknown_baseline_is_told(place: Path) -> None:
    with pytest.raises(ConfigError, match=r"baselines.*Nearest: forest"):
        check(place / "train.yaml", ["baselines=[macs, forrest]"])

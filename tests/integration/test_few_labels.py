"""The few-label benchmark end to end on the tiny space: all predictors, cells that are kept, honest rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from nasrlm.cli import main
from nasrlm.datasets import graph_groups
from nasrlm.errors import ConfigError, RunFolderError, TableError
from nasrlm.experiment.run import check, run
from nasrlm.graph import costs
from nasrlm.spaces import get_space

FEW = """\
schema: nasrlm/experiment@1
kind: few_labels
name: few
space: {name: tiny}
table: {path: t.csv, metrics: {acc: accuracy/toy}}
labels: [10, 40]
seeds: 2
reserve: {rows: 30}
pretrain: {costs: [params, depth], train: {epochs: 2, batch_size: 32, precision: float32}}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, dead_work: false}
train: {epochs: 2, batch_size: 16, precision: float32}
head: {epochs: 2, batch_size: 16, precision: float32}
outputs: {folder: out}
"""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    architectures = list(get_space("tiny").enumerate())
    accuracy = [50 + 10 * np.log10(costs(a).params) for a in architectures]
    pd.DataFrame({"arch": [a.string for a in architectures], "acc": accuracy}).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "few.yaml").write_text(FEW, encoding="utf-8")
    return tmp_path / "few.yaml"


def test_all_predictors_stand_side_by_side(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "rlm" in printed
    assert "±" in printed
    out = file.parent / "out"
    scores = pd.read_csv(out / "results.csv")
    assert len(scores) == 2 * 2 * 4
    assert set(scores["predictor"]) == {"rlm", "macs", "forest", "head"}
    groups = graph_groups(list(get_space("tiny").enumerate()))
    assert scores["n"].max() <= len(groups) - 30 - 10
    assert (scores["n"] - scores["unseen_n"] >= 0).all()
    assert (scores.groupby(["labels", "seed"])["n"].nunique() == 1).all()
    assert scores["tau"].between(-1, 1).all()
    markdown = (out / "results.md").read_text(encoding="utf-8")
    assert f"nasrlm benchmark {file}" in markdown
    assert "| accuracy/toy | rlm | unseen |" in markdown


def test_a_stopped_run_goes_on_and_gives_the_same(file: Path) -> None:
    whole = run(file, ["outputs.folder=whole"], kind="benchmark")
    trained: list[str] = []

    def stop(step: object) -> None:
        what = step.what  # type: ignore[attr-defined]
        if what not in trained:
            trained.append(what)
        if len(trained) > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(file, progress=stop)
    cells = file.parent / "out" / "cells"
    before = {cell.name: cell.stat().st_mtime_ns for cell in cells.iterdir()}
    assert 0 < len(before) < 4
    resumed = run(file)
    assert {name: (cells / name).stat().st_mtime_ns for name in before} == before
    pd.testing.assert_frame_equal(resumed.scores, whole.scores)


def test_more_seeds_use_the_cells_that_are_done(file: Path) -> None:
    few = run(file, ["seeds=1", "labels=[10]", "baselines=[macs]"])
    more = run(file, ["seeds=2", "labels=[10]", "baselines=[macs]"])
    assert more.scores[more.scores["seed"] == 0].reset_index(drop=True).equals(few.scores)
    with pytest.raises(RunFolderError, match=r"train\.epochs"):
        run(file, ["seeds=2", "labels=[10]", "baselines=[macs]", "train.epochs=3"])


def test_settings_are_chosen_on_reserved_rows_alone(file: Path) -> None:
    others = run(file, ["seeds=1", "labels=[10]", "baselines=[]", "outputs.folder=a"])
    reserved = run(file, ["seeds=1", "labels=[10]", "baselines=[]", "outputs.folder=b", "reserve.use=true"])
    rows = 144
    assert others.scores["n"][0] + reserved.scores["n"][0] == rows - 2 * 10
    assert "reserved for choosing settings" in (file.parent / "b" / "results.md").read_text(encoding="utf-8")


def test_without_pretraining_with_members_and_few_test_rows(file: Path) -> None:
    sets = ["seeds=1", "labels=[10]", "baselines=[]", "pretrain=null", "members=2", "test=20"]
    assert run(file, sets).scores["n"].tolist() == [20]


def test_folded_and_written_out_texts_stand_side_by_side(file: Path) -> None:
    networks = get_space("nasbench201").sample(90, seed=1)  # three stages of five equal cells: much to fold
    accuracy = [50 + 10 * np.log10(costs(a).params + 1) for a in networks]
    pd.DataFrame({"arch": [a.string for a in networks], "acc": accuracy}).to_csv(file.parent / "t.csv", index=False)
    common = ["space.name=nasbench201", "seeds=1", "labels=[30]", "baselines=[]"]
    done = run(file, [*common, "texts=[folded, written_out]"])
    assert done.scores["predictor"].tolist() == ["rlm", "rlm, written out"]
    assert 2 * done.tokens["rlm"] < done.tokens["rlm, written out"]
    assert {f.name for f in (done.folder / "pretrained").iterdir()} == {"member0", "written_out0"}
    markdown = (done.folder / "results.md").read_text(encoding="utf-8")
    assert f"| accuracy/toy | rlm, written out | unseen | {done.scores['unseen_rho'][1]:.3f} ± 0.000 |" in markdown
    # the short text's figures are those of a run without the long one: the two share no draw and no model
    alone = run(file, [*common, "outputs.folder=alone"])
    pd.testing.assert_frame_equal(alone.scores, done.scores[:1])
    assert done.scores["n"].nunique() == 1


def test_without_pretraining_the_written_out_text_gets_a_model_of_its_own(file: Path) -> None:
    sets = ["seeds=1", "labels=[40]", "baselines=[]", "pretrain=null", "texts=[written_out, folded]"]
    scores = run(file, sets).scores
    assert scores["predictor"].tolist() == ["rlm, written out", "rlm"]
    assert scores["tau"].nunique() == 2


def test_mistakes(file: Path) -> None:
    with pytest.raises(TableError, match="at most"):
        run(file, ["labels=[143]"])
    with pytest.raises(ConfigError, match="Nearest: epochs"):
        check(file, ["pretrain.train={epoch: 2}"])
    with pytest.raises(ConfigError, match="head.seed.*the experiment's seed"):
        check(file, ["head={seed: 2}"])
    with pytest.raises(ConfigError, match="texts"):
        check(file, ["texts=[short]"])
    with pytest.raises(ConfigError, match="labels"):
        check(file, ["labels=[1]"])

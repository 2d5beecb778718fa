"""The verbs in a row on a small space: train, evaluate, predict, search, show, plot, benchmark."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nasrlm.cli import main
from nasrlm.graph import costs, to_text
from nasrlm.rlm import RegressionLM
from nasrlm.spaces import get_space

METRICS = ("accuracy/toy", "latency_ms/toy", "params")

TRAIN = """\
schema: nasrlm/experiment@1
kind: train
name: toy
description: Made up.
space: {name: tiny}
table: {path: t.csv, metrics: {acc: accuracy/toy, ms: latency_ms/toy}}
costs: [params]
split: {by: graph, test: 40}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1}
train: {epochs: 3, batch_size: 32, precision: float32}
outputs: {folder: out, weights: float16}
"""

EVALUATE = """\
schema: nasrlm/experiment@1
kind: evaluate
name: toy
space: {name: tiny}
evaluators:
  - {name: rlm, options: {checkpoint: out/checkpoint, quantiles: []}}
table: {path: t.csv, metrics: {acc: accuracy/toy, ms: latency_ms/toy}}
split: out/checkpoint/split.json
outputs: {folder: runs/evaluate}
"""

SEARCH = """\
schema: nasrlm/experiment@1
kind: search
name: toy
space: {name: tiny}
evaluators:
  - {name: rlm, options: {checkpoint: out/checkpoint}}
  - {name: cost}
objectives:
  - {metric: accuracy/toy, direction: maximize, reference: 0}
  - {metric: macs, direction: minimize, reference: 1.0e7}
constraints:
  - {metric: params, at_most: 5.0e3}
study: {n_trials: 40, batch_size: 20}
confirm: {top: 2, evaluators: [{name: device, options: {device: onnxruntime_cpu}}]}
outputs: {folder: runs/search, plots: [png, html]}
"""

BENCHMARK = """\
schema: nasrlm/experiment@1
kind: benchmark
name: toy
space: {name: tiny}
checkpoint: out/checkpoint
metrics: [accuracy/toy]
measures: [median, throughput, linear, tokens]
repeats: 1
architectures: 20
outputs: {folder: runs/benchmark}
"""


def write_table(file: Path) -> pd.DataFrame:
    architectures = list(get_space("tiny").enumerate())
    counted = [costs(a) for a in architectures]
    table = pd.DataFrame(
        {
            "arch": [a.string for a in architectures],
            "acc": [50 + 10 * np.log10(c.params) for c in counted],
            "ms": [c.macs / 1e5 for c in counted],
        }
    )
    table.loc[0, "acc"] = np.nan
    table.to_csv(file, index=False)
    return table


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained checkpoint in out/checkpoint and the other experiments beside it."""
    folder = tmp_path_factory.mktemp("pipeline")
    write_table(folder / "t.csv")
    for name, text in (("train", TRAIN), ("evaluate", EVALUATE), ("search", SEARCH), ("benchmark", BENCHMARK)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert main(["train", str(folder / "train.yaml")]) == 0
    return folder


def json_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_a_checkpoint_has_its_files_split_and_card(place: Path) -> None:
    checkpoint = place / "out" / "checkpoint"
    names = {file.name for file in checkpoint.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.model", "README.md", "split.json"}
    split = json.loads((checkpoint / "split.json").read_text(encoding="utf-8"))["parts"]
    assert len(split["test"]) == 40
    assert sorted([*split["test"], *split["copies"], *split["train"]]) == list(range(144))
    texts = [to_text(a) for a in get_space("tiny").enumerate()]
    assert len({texts[i] for i in split["test"]}) == 40
    assert not {texts[i] for i in [*split["test"], *split["copies"]]} & {texts[i] for i in split["train"]}
    card = (checkpoint / "README.md").read_text(encoding="utf-8")
    assert f"nasrlm train {place / 'train.yaml'}" in card
    assert "| accuracy/toy | 40 |" in card
    assert "MACs rho" in card
    assert json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))["dtype"] == "float16"


def test_scores_are_those_of_the_checkpoint(place: Path) -> None:
    scores = pd.read_csv(place / "out" / "scores.csv").set_index("metric")
    assert tuple(scores.index) == METRICS
    split = json.loads((place / "out" / "checkpoint" / "split.json").read_text(encoding="utf-8"))["parts"]
    table = pd.read_csv(place / "t.csv").iloc[split["test"]]
    space = get_space("tiny")
    networks = [space.architecture(arch) for arch in table["arch"]]
    model = RegressionLM.from_pretrained(place / "out" / "checkpoint", precision="float32")
    again = model.score(networks, pd.DataFrame({"latency_ms/toy": table["ms"].to_numpy()}))
    # The weights were rounded to half precision after they were scored.
    assert again.loc["latency_ms/toy", "rho"] == pytest.approx(scores.loc["latency_ms/toy", "rho"], abs=0.1)
    assert scores.loc["latency_ms/toy", "macs_rho"] == pytest.approx(1.0)


def test_a_finished_training_only_reports(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = place / "out" / "checkpoint" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    summary = json_of(capsys, "train", str(place / "train.yaml"), "--json")
    assert weights.stat().st_mtime_ns == before
    copies = json.loads((place / "out" / "checkpoint" / "split.json").read_text(encoding="utf-8"))["parts"]["copies"]
    assert (summary["train_rows"], summary["test_rows"]) == (144 - 40 - len(copies), 40)


def test_a_killed_training_goes_on_and_gives_the_same_model(place: Path, tmp_path: Path) -> None:
    shutil.copy(place / "t.csv", tmp_path)
    file = tmp_path / "train.yaml"
    file.write_text(TRAIN.replace("epochs: 3,", "epochs: 12, checkpoint_seconds: 0,"), encoding="utf-8")
    whole = ["--set", "outputs.folder=whole", "--set", "train.checkpoint_seconds=0"]
    assert main(["train", str(file), *whole]) == 0
    process = subprocess.Popen([sys.executable, "-m", "nasrlm", "train", str(file)])
    state = tmp_path / "out" / "training" / "training_state.safetensors"
    until = time.monotonic() + 120
    while process.poll() is None and not state.is_file() and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert state.is_file()
    if (tmp_path / "out" / "scores.csv").exists():
        pytest.skip("the training was done before it could be killed")
    assert main(["train", str(file)]) == 0
    for name in ("scores.csv", "checkpoint/model.safetensors", "checkpoint/split.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_another_training_does_not_write_into_the_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(place / "train.yaml"), "--set", "train.epochs=4"]) == 2
    assert "train.epochs: 3 there, 4 here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ("", "no rows"),
        ("hello,1.0,2.0\n", "hello"),
        ('"{""depth"":1,""width"":4,""kernel"":1,""pool"":""avg"",""residual"":false}",good,2.0\n', "good"),
    ],
)
def test_a_table_that_cannot_be_used(rows: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("arch,acc,ms\n" + rows, encoding="utf-8")
    (tmp_path / "train.yaml").write_text(TRAIN, encoding="utf-8")
    assert main(["train", str(tmp_path / "train.yaml")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert part in error
    assert "t.csv" in error
    assert {file.name for file in tmp_path.iterdir()} == {"t.csv", "train.yaml"}


def test_a_table_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.yaml").write_text(TRAIN, encoding="utf-8")
    assert main(["train", str(tmp_path / "train.yaml")]) == 2
    assert str(tmp_path / "t.csv") in capsys.readouterr().err


def test_evaluate(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = json_of(capsys, "evaluate", str(place / "evaluate.yaml"), "--json")
    assert summary["rows"] == summary["unseen_rows"] == 40
    assert [row["metric"] for row in summary["scores"]] == list(METRICS)
    assert all(-1 <= row["forest_rho"] <= 1 for row in summary["scores"])
    files = {file.name for file in (place / "runs" / "evaluate").iterdir()}
    assert {"scores.csv", "scores.md", "predictions.csv", "accuracy_toy.png", "experiment.yaml"} <= files
    predictions = pd.read_csv(place / "runs" / "evaluate" / "predictions.csv")
    assert len(predictions) == 40
    assert {"arch", "accuracy/toy", "accuracy/toy true"} <= set(predictions.columns)


def test_evaluate_without_a_common_metric_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", str(place / "evaluate.yaml"), "--set", "table.metrics={acc: accuracy/other}"]
    assert main([*arguments, "--set", "outputs.folder=runs/other"]) == 2
    assert "give none of the table's metrics (accuracy/other)" in capsys.readouterr().err


def test_predict_as_csv_and_json(place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    strings = [a.string for a in get_space("tiny").sample(3, seed=5)]
    checkpoint = str(place / "out" / "checkpoint")
    options = ["--checkpoint", checkpoint, "--metrics", "accuracy/toy,params", "--quantiles", "0.1,0.9"]
    rows = json_of(capsys, "predict", *strings, *options, "--json")
    expected = ["architecture_id", "arch", "accuracy/toy", "params",
                "accuracy/toy@0.1", "params@0.1", "accuracy/toy@0.9", "params@0.9"]  # fmt: skip
    assert sorted(rows[0]) == sorted(expected)
    assert [row["arch"] for row in rows] == strings
    assert main(["predict", *strings, *options, "-o", str(tmp_path / "p.csv")]) == 0
    frame = pd.read_csv(tmp_path / "p.csv")
    assert frame["params"].tolist() == [row["params"] for row in rows]


def test_predict_names_an_unknown_metric(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arch = get_space("tiny").sample(1, seed=5)[0].string
    assert main(["predict", arch, "--checkpoint", str(place / "out" / "checkpoint"), "--metrics", "acuracy/toy"]) == 2
    assert "accuracy/toy" in capsys.readouterr().err


def test_search_writes_its_folder_and_show_and_plot_read_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(place / "search.yaml")]) == 0
    printed = capsys.readouterr()
    assert "Pareto front of toy" in printed.out
    assert "hypervolume" in printed.out
    assert "Confirmed" in printed.out
    assert max(map(len, printed.out.splitlines())) <= 80
    run = place / "runs" / "search"
    front = pd.read_csv(run / "front.csv")
    assert list(front.columns[:4]) == ["architecture_id", "arch", "accuracy/toy", "macs"]
    assert "accuracy/toy@0.9" in front.columns
    for name in ("experiment.yaml", "versions.json", "study.log", "trials.csv", "log.jsonl", "confirmed.csv"):
        assert (run / name).is_file(), name
    for name in ("front.png", "front.html", "history.png", "history.html"):
        assert (run / name).stat().st_size > 1000, name
    networks = {file.name for file in (run / "networks").iterdir()}
    confirmed = pd.read_csv(run / "confirmed.csv")
    best = {*front["architecture_id"], *confirmed.loc[confirmed["confirmed_front"], "architecture_id"]}
    assert networks == {f"{i}.{s}" for i in best for s in ("onnx", "txt")}
    first = get_space("tiny").architecture(front["arch"][0])
    assert first.id == front["architecture_id"][0]
    assert (run / "networks" / f"{first.id}.txt").read_text(encoding="utf-8") == to_text(first) + "\n"
    assert to_text(run / "networks" / f"{first.id}.onnx") == to_text(first)

    shown = json_of(capsys, "show", str(run), "--json")
    assert [row["architecture_id"] for row in shown["front"]] == front["architecture_id"].tolist()
    assert len(shown["confirmed"]) == 2  # the front, and where it is shorter what comes next
    assert main(["plot", str(run), "--format", "svg", "-o", str(place / "plots")]) == 0
    assert {file.name for file in (place / "plots").iterdir()} == {"front.svg", "history.svg"}


def test_a_search_that_is_stopped_while_confirming_has_its_networks(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nasrlm.experiment.run_search.confirm", stop)
    assert main(["search", str(place / "search.yaml"), "--set", f"outputs.folder={tmp_path / 'run'}"]) != 0
    front = pd.read_csv(tmp_path / "run" / "front.csv")
    assert all((tmp_path / "run" / "networks" / f"{i}.onnx").is_file() for i in front["architecture_id"])


def test_benchmark(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = json_of(capsys, "benchmark", str(place / "benchmark.yaml"), "--json")
    measured = {row["measure"] for row in summary["results"]}
    assert measured == {"median", "throughput", "linear", "tokens"}
    assert all(row["value"] > 0 for row in summary["results"])
    assert (place / "runs" / "benchmark" / "results.json").is_file()
    assert "| what | value |" in (place / "runs" / "benchmark" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "part"),
    [("cut", "model.safetensors"), ("missing", "tokenizer.model"), ("version", "text version")],
)
def test_a_damaged_checkpoint_is_one_message_with_its_line(
    place: Path, tmp_path: Path, damage: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "out" / "checkpoint"
    shutil.copytree(place / "out" / "checkpoint", checkpoint)
    if damage == "cut":
        file = checkpoint / "model.safetensors"
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "missing":
        (checkpoint / "tokenizer.model").unlink()
    else:
        config = checkpoint / "config.json"
        values = json.loads(config.read_text(encoding="utf-8"))
        config.write_text(json.dumps({**values, "text_version": 99}), encoding="utf-8")
    (tmp_path / "search.yaml").write_text(SEARCH, encoding="utf-8")
    assert main(["search", str(tmp_path / "search.yaml")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path / 'search.yaml'}:6: evaluators.0.options.checkpoint: ")
    assert part in error
    assert not (tmp_path / "runs").exists()

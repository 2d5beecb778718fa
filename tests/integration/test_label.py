"""`nasrlm label`: the table, its card, failures; killed, interrupted, a full disk, other experiments."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.cli import main
from nasrlm.datasets import load_table
from nasrlm.graph import costs
from nasrlm.spaces import get_space

NOISY = '''\
"""MACs as measured, with quartiles and two seeds; networks of one width fail."""
import time

from nasrlm.evaluators import value_frame
from nasrlm.graph import costs


class Noisy:
    name = "noisy"
    metrics = ("latency_ms/noisy", "accuracy/noisy", "accuracy/noisy_seed0", "accuracy/noisy_seed1")

    def __init__(self, space, seconds: float = 0.0, fails: int = 0):
        self.seconds, self.fails, self.failures = seconds, fails, {}

    def evaluate(self, architectures, metrics):
        time.sleep(self.seconds)
        macs = [float(costs(a).macs) for a in architectures]
        bad = [a.params["width"] == self.fails for a in architectures]
        self.failures |= {a.id: "the fuse is blown" for a, b in zip(architectures, bad) if b}
        macs = [float("nan") if b else m for m, b in zip(macs, bad)]
        values = {
            "latency_ms/noisy": macs,
            "accuracy/noisy": [m % 97 for m in macs],
            "accuracy/noisy_seed0": [m % 97 for m in macs],
            "accuracy/noisy_seed1": [-(m % 97) for m in macs],
        }
        values = {m: values[m] for m in metrics}
        if "latency_ms/noisy" in values:
            values["latency_ms/noisy@0.25"] = [0.9 * m for m in macs]
            values["latency_ms/noisy@0.75"] = [1.1 * m for m in macs]
        return value_frame(architectures, values)


EVALUATOR = Noisy
'''

LABEL = """\
schema: nasrlm/experiment@1
kind: label
name: mine
description: Made up.
seed: 3
space: {name: tiny}
evaluators:
  - {path: noisy.py, options: {seconds: SECONDS, fails: FAILS}}
  - {name: cost}
study: {n_trials: 60, batch_size: 4}
outputs: {folder: runs, table: tiny.parquet}
"""


def write(folder: Path, seconds: float = 0.0, fails: int = 0) -> Path:
    (folder / "noisy.py").write_text(NOISY, encoding="utf-8")
    file = folder / "label.yaml"
    file.write_text(LABEL.replace("SECONDS", str(seconds)).replace("FAILS", str(fails)), encoding="utf-8")
    return file


def table(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "runs" / "tiny.parquet")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which 60 trials were labelled without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    assert main(["label", str(write(folder))]) == 0
    return folder


def test_the_table_holds_each_architecture_once_with_true_values(whole: Path) -> None:
    labels = table(whole)
    assert list(labels.columns) == [
        "arch", "architecture_id", "latency_ms/noisy", "accuracy/noisy", "accuracy/noisy_seed0",
        "accuracy/noisy_seed1", "params", "macs", "activation_bytes", "depth",
        "latency_ms/noisy@0.25", "latency_ms/noisy@0.75",
    ]  # fmt: skip
    assert labels["architecture_id"].is_unique
    assert len(labels) == 60  # of 144 architectures, of which draws repeat some
    space = get_space("tiny")
    for row in labels.to_dict("records"):
        a = space.architecture(row["arch"])
        assert row["architecture_id"] == a.id
        assert row["params"] == costs(a).params
        assert row["latency_ms/noisy"] == row["macs"] == costs(a).macs


def test_the_table_is_read_as_labels(whole: Path) -> None:
    space = get_space("tiny")
    found = load_table(whole / "runs" / "tiny.parquet", space=space, metrics={"accuracy/noisy": "accuracy/noisy"})
    assert len(found) == len(table(whole))
    assert found.duplicates == 0


def test_the_card_says_how_on_what_and_how_noisy(whole: Path) -> None:
    card = (whole / "runs" / "README.md").read_text(encoding="utf-8")
    assert f"nasrlm label {whole / 'label.yaml'}" in card
    assert "| accuracy/noisy | 2 | -1.0000 | -1.0000 |" in card  # the seeds are each other's opposite
    assert "| latency_ms/noisy | 20.0000 | 20.0000 | 100 |" in card
    assert "Processor: " in card
    assert "numpy " in card
    assert "Made up." in card
    assert "## Failures\n\nNone." in card
    smallest = table(whole)["params"].min()
    assert f"| params | {smallest:g} |" in card


def test_what_is_printed(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", str(whole / "label.yaml")]) == 0
    printed = capsys.readouterr()
    rows = len(table(whole))
    assert f"mine: {rows} rows, 0 failures" in printed.out
    assert "noise ceiling" in printed.out
    assert str(whole / "runs" / "tiny.parquet") in printed.err
    assert max(map(len, printed.out.splitlines())) <= 80
    assert main(["label", str(whole / "label.yaml"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["rows"], summary["failures"]) == (rows, 0)
    assert summary["seeds"][0]["tau"] == pytest.approx(-1)


def start(file: Path) -> subprocess.Popen[str]:
    """`nasrlm label`, once it has stored some trials but not all."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nasrlm", "label", str(file)],
        stderr=subprocess.PIPE,
        text=True,
        # Tests that a shell started in the background inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    log = file.parent / "runs" / "study.log"
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        if log.is_file() and log.stat().st_size > 60_000:
            return process
        time.sleep(0.01)
    process.kill()
    raise AssertionError(f"the run ended too early ({process.returncode}): {process.communicate()}")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_same_command_goes_on_and_gives_the_uninterrupted_table(
    how: signal.Signals, tmp_path: Path, whole: Path
) -> None:
    file = write(tmp_path, seconds=0.2)
    process = start(file)
    os.kill(process.pid, how)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), err
    stopped = table(tmp_path)
    assert 0 < len(stopped) < len(table(whole))
    if how == signal.SIGINT:
        assert f"nasrlm label {file}" in err
        assert "Traceback" not in err
    assert main(["label", str(file)]) == 0
    pd.testing.assert_frame_equal(table(tmp_path), table(whole))
    events = [json.loads(line)["event"] for line in (tmp_path / "runs" / "log.jsonl").read_text().splitlines()]
    assert events == (["start", "stopped"] if how == signal.SIGINT else ["start"]) + ["resume", "done"]


def test_failures_are_listed_with_their_reason_and_the_study_goes_on(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["label", str(write(tmp_path, fails=8))]) == 0
    labels, failures = table(tmp_path), pd.read_csv(tmp_path / "runs" / "failures.csv")
    assert not any('"width":8' in arch for arch in labels["arch"])
    assert all('"width":8' in arch for arch in failures["arch"])
    assert set(failures["failure"]) == {"evaluator noisy has no latency_ms/noisy: the fuse is blown"}
    every = {*labels["architecture_id"], *failures["architecture_id"]}
    assert every == set(table(whole)["architecture_id"])
    assert len(every) == len(labels) + len(failures)
    card = (tmp_path / "runs" / "README.md").read_text(encoding="utf-8")
    assert f"- {len(failures)} times: evaluator noisy has no latency_ms/noisy: the fuse is blown" in card
    assert f"{len(labels)} rows, {len(failures)} failures" in capsys.readouterr().out


@pytest.mark.parametrize("limit", [20_000, 61_000])
def test_a_full_disk_is_one_message_and_nothing_is_lost(limit: int, tmp_path: Path, whole: Path) -> None:
    """A limit on the size of files stands for the disk: writing beyond it fails just as suddenly."""
    file = write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "nasrlm", "label", str(file)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert f"{tmp_path / 'runs' / 'study.log'}' failed: [Errno 27] File too large" in done.stderr
    assert "run the same again" in done.stderr
    assert main(["label", str(file)]) == 0
    pd.testing.assert_frame_equal(table(tmp_path), table(whole))


def test_some_metrics_alone(tmp_path: Path) -> None:
    file = write(tmp_path)
    assert main(["label", str(file), "--set", "metrics=[params, accuracy/noisy]"]) == 0
    assert list(table(tmp_path).columns) == ["arch", "architecture_id", "params", "accuracy/noisy"]
    card = (tmp_path / "runs" / "README.md").read_text(encoding="utf-8")
    assert "Nothing was measured twice." in card


def test_more_trials_go_on(tmp_path: Path, whole: Path) -> None:
    file = write(tmp_path)
    assert main(["label", str(file), "--set", "study.n_trials=20"]) == 0
    few = table(tmp_path)
    assert main(["label", str(file)]) == 0
    pd.testing.assert_frame_equal(table(tmp_path), table(whole))
    pd.testing.assert_frame_equal(table(tmp_path).head(len(few)), few)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("metrics=[parms]", "metrics.0: unknown metric 'parms'"),
        ("evaluators.1={name: rlm, options: {checkpoint: nasbench201}}", "predicts, and labels are measured"),
        ("study.storage=journl:a", "unknown storage 'journl:a'. Nearest: journal"),
        ("outputs.table=a.csv", "outputs.table"),
        ("study.sampler={name: tpe}", "sampler"),
    ],
)
def test_mistakes_are_found_before_anything_is_written(
    change: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["label", str(write(tmp_path)), "--set", change]) == 2
    assert part in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_another_experiment_does_not_write_into_the_folder(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (whole / "runs" / "tiny.parquet").read_bytes()
    assert main(["label", str(whole / "label.yaml"), "--set", "seed=4"]) == 2
    assert "seed: 3 there, 4 here" in capsys.readouterr().err
    assert (whole / "runs" / "tiny.parquet").read_bytes() == before


def test_training_and_a_device_label_networks_for_real(tmp_path: Path) -> None:
    text = """\
schema: nasrlm/experiment@1
kind: label
name: real
space: {name: snas}
evaluators:
  - {name: training, options: {data: things.npz, steps: 2, seeds: 2, per_seed: true, score_on: test}}
  - {name: device, options: {device: onnxruntime_cpu, repeats: 5}}
study: {n_trials: 3, batch_size: 3, storage: null}
outputs: {folder: real}
"""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "things.npz", x_train=rng.random((60, 1, 8, 8), np.float32), y_train=np.arange(60) % 10)
    file = tmp_path / "real.yaml"
    file.write_text(text, encoding="utf-8")
    assert main(["label", str(file)]) == 0  # data is found beside the file
    labels = pd.read_parquet(tmp_path / "real" / "labels.parquet")
    assert len(labels) == 3
    seeds = labels[["accuracy/things_seed0", "accuracy/things_seed1"]]
    assert labels["accuracy/things"].to_numpy() == pytest.approx(seeds.mean(axis=1).to_numpy())
    device = [labels[f"latency_ms/onnxruntime_cpu{at}"] for at in ("@0.25", "", "@0.75")]
    assert (device[0] <= device[1]).all()
    assert (device[1] <= device[2]).all()


@pytest.mark.skipif(shutil.which("pgrep") is None, reason="needs pgrep, to find a worker to kill")
def test_workers_share_the_labelling_and_one_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, seconds=0.2)
    process = subprocess.Popen([sys.executable, "-m", "nasrlm", "label", str(file), "--workers", "2"])
    notes = tmp_path / "runs" / "workers"
    until = time.monotonic() + 120
    victim = None
    while victim is None and time.monotonic() < until and process.poll() is None:
        if (tmp_path / "runs" / "study.log").exists():
            listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
            victim = next(iter(listed.stdout.split()), None)
        time.sleep(0.1)
    assert victim is not None
    os.kill(int(victim), signal.SIGKILL)
    assert process.wait(timeout=240) == 0
    assert len(list(notes.glob("*.log"))) == 2
    labels = table(tmp_path)
    assert labels["architecture_id"].is_unique
    assert labels.isna().sum().sum() == 0
    assert 30 < len(labels) <= 60

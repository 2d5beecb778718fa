"""Training as a whole: a killed run goes on as if nothing had happened; other runs' folders are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from nasrlm.errors import RunError, RunFolderError
from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig
from nasrlm.rlm.state import STATE_FILE

TINY = RLMConfig(width=16, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=16, dropout=0.1)
TRAIN = TrainConfig(
    epochs=12,
    batch_size=8,
    learning_rate=3e-3,
    validation_fraction=0.3,
    validate_every=2,
    average=0.9,
    segmentation_sampling=0.3,
    label_noise=0.001,
    precision="float32",
    checkpoint_seconds=0,
)

SCRIPT = """
import sys, torch
torch.set_num_threads(1)
sys.path.insert(0, {here!r})
from {module} import TINY, TRAIN, data
from nasrlm.rlm import RegressionLM
texts, values = data()
print("started", flush=True)
RegressionLM(TINY).fit(texts, values, train=TRAIN, folder={folder!r})
"""


def data() -> tuple[list[str], dict[str, list[float]]]:
    """100 texts and two metrics, one with blanks."""
    rng = np.random.default_rng(0)
    texts = [
        "nasrlm1\n" + "\n".join(rng.choice(["conv 8 k3", "relu", "add @2"], rng.integers(3, 9))) for _ in range(100)
    ]
    lines = [float(text.count("\n")) for text in texts]
    return texts, {"depth": lines, "accuracy/x": [50 + n if i % 3 else float("nan") for i, n in enumerate(lines)]}


def weights(model: RegressionLM) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.network.parameters()])


def steps(folder: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("settings", [{}, {"optimizer": "adafactor"}, {"precision": "bfloat16", "average": 0.0}])
def test_stopped_in_the_middle_equals_uninterrupted(tmp_path: Path, settings: dict) -> None:
    train = TrainConfig.from_dict({**TRAIN.to_dict(), **settings})
    texts, values = data()
    whole = RegressionLM(TINY).fit(texts, values, train=train, folder=tmp_path / "whole")

    def stop(entry: dict) -> None:
        if entry["step"] >= 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RegressionLM(TINY).fit(texts, values, train=train, folder=tmp_path / "parts", progress=stop)
    parts = RegressionLM(TINY).fit(texts, values, train=train, folder=tmp_path / "parts")
    assert torch.equal(weights(whole), weights(parts))
    assert steps(tmp_path / "parts") == steps(tmp_path / "whole")
    # a third call finds everything done
    again = RegressionLM(TINY).fit(texts, values, train=train, folder=tmp_path / "parts")
    assert torch.equal(weights(again), weights(parts))


@pytest.mark.slow
def test_kill_9_at_any_moment_equals_uninterrupted(tmp_path: Path) -> None:
    texts, values = data()
    whole = RegressionLM(TINY).fit(texts, values, train=TRAIN, folder=tmp_path / "whole")
    folder = tmp_path / "killed"
    code = SCRIPT.format(here=str(Path(__file__).parent), module=Path(__file__).stem, folder=str(folder))
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        seen = (folder / STATE_FILE).stat().st_mtime_ns if (folder / STATE_FILE).exists() else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if (folder / STATE_FILE).exists() and (folder / STATE_FILE).stat().st_mtime_ns > seen:
                break
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    resumed = RegressionLM(TINY).fit(texts, values, train=TRAIN, folder=folder)
    assert torch.equal(weights(whole), weights(resumed))


def test_the_seed_decides(tmp_path: Path) -> None:
    texts, values = data()
    short = TrainConfig.from_dict({**TRAIN.to_dict(), "epochs": 1})
    a, b = (RegressionLM(TINY).fit(texts, values, train=short) for _ in range(2))
    other = TrainConfig.from_dict({**short.to_dict(), "seed": 1})
    c = RegressionLM(TINY).fit(texts, values, train=other)
    assert torch.equal(weights(a), weights(b))
    assert not torch.equal(weights(a), weights(c))


def test_a_folder_of_another_training_is_refused(tmp_path: Path) -> None:
    texts, values = data()
    short = TrainConfig.from_dict({**TRAIN.to_dict(), "epochs": 1})
    RegressionLM(TINY).fit(texts, values, train=short, folder=tmp_path)
    with pytest.raises(RunFolderError, match="belongs to another training"):
        RegressionLM(TINY).fit(texts, {"depth": [1.0] * 100}, train=short, folder=tmp_path)
    (tmp_path / STATE_FILE).write_bytes(b"broken")
    with pytest.raises(RunFolderError, match="cannot be read as the state"):
        RegressionLM(TINY).fit(texts, values, train=short, folder=tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunFolderError, match="cannot be written"):
        RegressionLM(TINY).fit(texts, values, train=short, folder=tmp_path / "file")


def test_early_stop_keeps_the_best_weights() -> None:
    texts, values = data()
    log: list[dict] = []
    # a learning rate this high makes validation worse at once
    wild = TrainConfig.from_dict(
        {**TRAIN.to_dict(), "learning_rate": 1.0, "patience": 2, "epochs": 200, "average": 0.0}
    )
    model = RegressionLM(TINY).fit(texts, values, train=wild, progress=log.append)
    scores = [entry["validation_score"] for entry in log if "validation_score" in entry]
    assert len(scores) < 100
    assert max(scores) == max(scores[:-2])
    assert torch.isfinite(weights(model)).all()


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    texts, values = data()
    broken = TrainConfig.from_dict({**TRAIN.to_dict(), "learning_rate": 1e30, "clip": 0})
    with pytest.raises(RunError, match="Lower learning_rate"):
        RegressionLM(TINY).fit(texts, values, train=broken)

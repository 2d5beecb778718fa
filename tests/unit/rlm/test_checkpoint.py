"""Checkpoints: what is written is read back; what is broken says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.errors import CheckpointError, UsageError
from nasrlm.rlm import RegressionLM
from nasrlm.rlm.checkpoint import CONFIG, TOKENIZER, WEIGHTS


@pytest.fixture()
def folder(trained: RegressionLM, tmp_path: Path) -> Path:
    trained.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def edit(folder: Path, **changes: object) -> None:
    head = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**head, **changes}))


def test_round_trip(trained: RegressionLM, folder: Path, rule_texts: Callable[..., tuple]) -> None:
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", CONFIG, WEIGHTS, TOKENIZER]
    texts, _ = rule_texts(12, seed=20)
    model = RegressionLM.from_pretrained(folder, precision="float32")
    assert model.metrics == trained.metrics
    pd.testing.assert_frame_equal(model.predict(texts, quantiles=(0.2,)), trained.predict(texts, quantiles=(0.2,)))
    assert RegressionLM.from_pretrained(str(folder)).config == trained.config


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_the_size_predicts_alike(
    trained: RegressionLM, tmp_path: Path, dtype: str, rule_texts: Callable[..., tuple]
) -> None:
    trained.save_pretrained(tmp_path, dtype=dtype)
    texts, values = rule_texts(40, seed=21)
    model = RegressionLM.from_pretrained(tmp_path, precision="float32")
    assert (model.score(texts, values)["rho"] > 0.9).all()


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"has no {name}"):
        RegressionLM.from_pretrained(folder)


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_cut_short(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="is cut short or was changed"):
        RegressionLM.from_pretrained(folder)


def test_config_cut_short(folder: Path) -> None:
    text = (folder / CONFIG).read_text()
    (folder / CONFIG).write_text(text[: len(text) // 2])
    with pytest.raises(CheckpointError, match="is no JSON"):
        RegressionLM.from_pretrained(folder)


def test_another_text_version_or_format(folder: Path) -> None:
    edit(folder, text_version=99)
    with pytest.raises(CheckpointError, match="text version 99"):
        RegressionLM.from_pretrained(folder)
    edit(folder, text_version=1, format=7)
    with pytest.raises(CheckpointError, match="format 7"):
        RegressionLM.from_pretrained(folder)


def test_other_metrics_than_the_weights(folder: Path) -> None:
    model = json.loads((folder / CONFIG).read_text())["model"]
    edit(folder, model={**model, "metrics": ["accuracy/rule"]})
    with pytest.raises(CheckpointError, match="do not fit the model and the metrics"):
        RegressionLM.from_pretrained(folder)
    edit(folder, model={**model, "widht": 3})
    with pytest.raises(CheckpointError, match="Nearest: width"):
        RegressionLM.from_pretrained(folder)


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="unknown checkpoint 'nasbench2O1'"):
        RegressionLM.from_pretrained("nasbench2O1")
    with pytest.raises(CheckpointError, match="there is no checkpoint folder"):
        RegressionLM.from_pretrained(tmp_path / "nothing")


def test_unwritable_and_unknown_dtype(trained: RegressionLM, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot be written"):
        trained.save_pretrained(tmp_path / "file")
    with pytest.raises(UsageError, match="Allowed: float32, float16, bfloat16"):
        trained.save_pretrained(tmp_path, dtype="int8")


def test_weights_stay_float32_in_memory(folder: Path) -> None:
    model = RegressionLM.from_pretrained(folder)
    assert all(np.isfinite(p.detach().numpy()).all() for p in model.network.parameters())

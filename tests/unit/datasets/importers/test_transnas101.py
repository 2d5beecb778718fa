"""TransNAS-Bench-101's .pth, in the published structure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from nasrlm.datasets import load_table
from nasrlm.datasets.importers import import_table


def transnas() -> dict[str, Any]:
    names = {
        "class_scene": ["train_top1", "valid_top1", "valid_loss", "test_top1"],
        "room_layout": ["valid_loss", "valid_neg_loss"],
        "normal": ["valid_ssim"],
        "segmentsemantic": ["valid_acc", "valid_mIoU"],
    }
    tasks = {
        task: {
            "total_epochs": 2,
            "model_info": {"model_params": 1.0},
            "metrics": {name: [0.0, i + 0.5] for i, name in enumerate(metrics)},
        }
        for task, metrics in names.items()
    }
    micro = {"64-41414-1_02_333": tasks, "64-41414-0_00_000": {"normal": tasks["normal"]}}
    return {
        "metrics_dict": names,
        "info_names": ["inference_time", "model_params"],
        "task_list": list(names),
        "data": {"macro": {"64-1234-basic": tasks}, "micro": micro},
    }


def test_transnas(imported, tmp_path: Path) -> None:
    file = tmp_path / "transnas.pth"
    torch.save(transnas(), file)
    table = imported("transnas101", file, "micro")
    assert list(table["arch"]) == ["64-41414-1_02_333", "64-41414-0_00_000"]
    assert table["accuracy/class_scene"].tolist()[0] == 1.5
    assert table["accuracy/class_scene"].isna().tolist() == [False, True]
    assert table["neg_loss/room_layout"].tolist()[0] == 1.5
    assert table["ssim/normal"].tolist() == [0.5, 0.5]
    assert table["miou/segmentsemantic"].tolist()[0] == 1.5
    assert list(imported("transnas101", file, "macro")["arch"]) == ["64-1234-basic"]


def test_transnas_mistakes(refused, tmp_path: Path) -> None:
    file = tmp_path / "transnas.pth"
    data = transnas()
    data["data"]["micro"]["64-41414-1_02_333"]["normal"]["metrics"] = {"valid_ssim": []}
    torch.save(data, file)
    refused("transnas101", file, "micro", message="architecture 64-41414-1_02_333: .*index out of range")
    refused("transnas101", file, "micr", message="unknown search space 'micr'. Nearest: micro")
    refused("transnas101", file, message="expected two paths")


@pytest.mark.data
def test_published_rows_come_back_as_they_are(tmp_path: Path, data_folder: Path) -> None:
    """All 4,096 rows of the shared table as the published dictionary, and what comes of them."""
    rows = pd.read_csv(data_folder / "transnas101_micro.csv.gz")
    names = {column: column.partition("_val_") for column in rows if column != "arch"}
    data = {}
    for row in rows.to_dict("records"):
        a, b, c, d, e, f = row["arch"].split("-")
        data[f"64-41414-{a}_{b}{c}_{d}{e}{f}"] = {
            task: {"metrics": {f"valid_{name}": [0.0, row[column]]}} for column, (task, _, name) in names.items()
        }
    metrics = {task: [f"valid_{name}"] for task, _, name in names.values()}
    torch.save({"metrics_dict": metrics, "data": {"micro": data}}, tmp_path / "a.pth")
    done = import_table("transnas101", [tmp_path / "a.pth", "micro"], tmp_path / "t.parquet")
    table = load_table(done.file, space=done.space, metrics=list(done.metrics))
    assert len(table) == len(rows) == 4096
    assert len(done.metrics) == len(names) == 7
    assert [a.string for a in table.architectures] == list(data)
    ours = {"top1": "accuracy", "acc": "accuracy"}
    for column, (task, _, name) in names.items():
        assert list(table.values[f"{ours.get(name, name)}/{task}"]) == list(rows[column]), column

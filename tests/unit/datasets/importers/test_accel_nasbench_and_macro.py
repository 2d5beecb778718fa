"""Accel-NASBench's results, in a folder and in a tar, and NAS-Bench-Macro's JSON."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nasrlm.datasets import load_table
from nasrlm.datasets.importers import import_table

MNASNET = "e6k3l1n_e4k5l2n_e6k3l3n_e6k5l3n_e6k5l2n_e1k3l2n_e1k3l2s"


def result(arch: str, number: float, platforms: dict[str, Any]) -> dict[str, Any]:
    blocks = {}
    for i, block in enumerate(arch.split("_")):
        blocks |= {f"block{i}_e": int(block[1]), f"block{i}_k": int(block[3]), f"block{i}_l": int(block[5])}
        blocks[f"block{i}_se"] = block[6] == "s"
    return {
        "architecture": blocks,
        "metrics": {"val_top1": number, "val_top5": 82.0, "train_time": 2660.43},
        "model_info": {"macs": 415.361072, "params": 2.50116},
        "platform_perf": platforms,
    }


PLATFORMS = {
    "latency_zcu102": {"latency_mean": 5.02, "latency_std": None},
    "throughput_a100": {"throughput_mean": 7034.9, "throughput_std": 1.0},
    "throughput_tpuv2": {"throughput_mean": None, "throughput_std": None},
}
RESULTS = {0: result(MNASNET, 59.368, PLATFORMS), 2: result(MNASNET, 60.0, {}), 10: result(MNASNET, 61.0, {})}


def check_accel(table: pd.DataFrame) -> None:
    assert list(table["arch"]) == [MNASNET] * 3
    assert list(table["accuracy/imagenet_proxy"]) == [59.368, 60.0, 61.0]
    assert list(table["params"]) == [2501160] * 3
    assert list(table["macs/published"]) == [415361072] * 3
    assert table["latency_ms/zcu102"].tolist()[0] == 5.02
    assert list(table["throughput_per_s/a100"].isna()) == [False, True, True]
    assert "throughput_per_s/tpuv2" not in table


def packed(file: Path, mode: str) -> Path:
    with tarfile.open(file, mode) as archive:
        for number, data in RESULTS.items():
            content = json.dumps(data).encode()
            member = tarfile.TarInfo(f"anb_dataset/result_{number}.json")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file


def test_accel_nasbench(imported, tmp_path: Path) -> None:
    folder = tmp_path / "jsons"
    folder.mkdir()
    for number, data in RESULTS.items():
        (folder / f"result_{number}.json").write_text(json.dumps(data))
    check_accel(imported("accel_nasbench", folder))
    check_accel(imported("accel_nasbench", packed(tmp_path / "a.tar.gz", "w:gz")))
    check_accel(imported("accel_nasbench", packed(tmp_path / "a.tar", "w")))


def test_damaged_accel_files(refused, tmp_path: Path) -> None:
    file = packed(tmp_path / "a.tar.gz", "w:gz")
    file.write_bytes(file.read_bytes()[:300])
    refused("accel_nasbench", file, message="a.tar.gz, after [0-9]+ results")
    file.write_text("no tar")
    refused("accel_nasbench", file, message="a.tar.gz, after 0 results")
    broken = tmp_path / "x"
    broken.mkdir()
    (broken / "result_0.json").write_text(json.dumps({**RESULTS[0], "architecture": {}}))
    refused("accel_nasbench", broken, message="x, result_0.json: it has no 'block0_e'")


@pytest.mark.data
def test_the_published_rows_come_back_as_they_are(tmp_path: Path, data_folder: Path) -> None:
    """The 5,138 rows of the shared table as files; 13 of them repeat an architecture."""
    rows = pd.read_csv(data_folder / "accel_nasbench.csv.gz")
    columns = {c.removesuffix("_images_per_s"): c for c in rows if c.endswith("_images_per_s")}
    for row in rows.to_dict("records"):
        perf = {f"throughput_{d}": {"throughput_mean": none_or(row[c])} for d, c in columns.items()}
        perf |= {f"latency_{d}": {"latency_mean": none_or(row[f"{d}_ms"])} for d in ("zcu102", "vck190")}
        data = result(row["arch"], row["imagenet_val_top1"], perf)
        data["model_info"] = {"macs": row["macs_millions"], "params": row["params_millions"]}
        (tmp_path / f"result_{row['result_id']}.json").write_text(json.dumps(data))
    done = import_table("accel_nasbench", [tmp_path], tmp_path / "t.parquet")
    table = load_table(done.file, space=done.space, metrics=list(done.metrics))
    assert done.rows == len(rows) == 5138
    assert table.duplicates == 13
    means = rows.groupby("arch", sort=False).mean()
    assert [a.string for a in table.architectures] == list(means.index)
    expected = {"accuracy/imagenet_proxy": "imagenet_val_top1", "latency_ms/zcu102": "zcu102_ms"}
    expected |= {"latency_ms/vck190": "vck190_ms"} | {f"throughput_per_s/{d}": c for d, c in columns.items()}
    for metric, column in expected.items():
        assert list(table.values[metric]) == pytest.approx(list(means[column]), rel=1e-12, nan_ok=True), metric
    assert list(table.values["params"]) == pytest.approx(list(means["params_millions"] * 1e6), abs=0.6)


def none_or(value: float) -> float | None:
    return None if value != value else value


def test_nasbench_macro(refused, imported, tmp_path: Path) -> None:
    file = tmp_path / "nas-bench-macro_cifar10.json"
    entry = {"test_acc": [92.8, 92.9, 93.0], "mean_acc": 92.9, "std": 0.1, "params": 1_985_514, "flops": 85_164_544}
    file.write_text(json.dumps({"22212202": entry, "00000000": {**entry, "mean_acc": 45.0}}))
    table = imported("nasbench_macro", file)
    assert list(table["arch"]) == ["22212202", "00000000"]
    assert list(table["accuracy/cifar10"]) == [92.9, 45.0]
    assert list(table["macs"]) == [85_164_544] * 2
    file.write_text(json.dumps({"22212202": {"mean_acc": 1}}))
    refused("nasbench_macro", file, message="architecture 22212202: it has no 'params'")


@pytest.mark.data
def test_nasbench_macro_rows_are_read_by_load_table(space_or_skip, imported, tmp_path: Path, data_folder: Path) -> None:
    space = space_or_skip("nasbench_macro")
    rows = pd.read_csv(data_folder / "nas_bench_macro.csv.gz")
    data = {
        row.arch.replace("-", ""): {"mean_acc": row.cifar10_test_acc, "params": row.params, "flops": row.flops}
        for row in rows.itertuples()
    }
    (tmp_path / "m.json").write_text(json.dumps(data))
    done = import_table("nasbench_macro", [tmp_path / "m.json"], tmp_path / "t.parquet")
    table = load_table(done.file, space=space, metrics=list(done.metrics))
    assert len(table) == 6561
    assert [a.string for a in table.architectures] == list(data)
    for metric, column in {"accuracy/cifar10": "cifar10_test_acc", "params": "params", "macs": "flops"}.items():
        assert list(table.values[metric]) == list(rows[column]), metric

"""HW-NAS-Bench's pickle and HELP's folders, in the published structure."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from nasrlm.datasets import load_table
from nasrlm.datasets.importers import import_table
from nasrlm.datasets.importers.hw_nas_bench import OPERATIONS, layer_keys
from nasrlm.errors import TableError

CELLS = [
    "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
    "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|",
]
FBNET = ["-".join(["k3_e6"] * 22), "-".join(["skip"] * 22), "-".join(["k5_e1_g2", "k3_e3"] * 11)]
DEVICES = ("edgegpu_latency", "edgegpu_energy", "raspi4_latency", "pixel3_latency", "fpga_latency", "fpga_energy")
CELL_METRICS = (*DEVICES, "edgetpu_latency", "eyeriss_latency", "eyeriss_energy", "eyeriss_arithmetic_intensity")


def cells() -> dict[str, Any]:
    data: dict[str, Any] = {}
    for i, name in enumerate(("cifar10", "cifar100", "ImageNet16-120")):
        metrics = {metric: [10 * i + 0.25, np.float64(10 * i + 0.5)] for metric in CELL_METRICS}
        config = [{"name": "infer.tiny", "C": 16, "N": 5, "arch_str": arch, "num_classes": 10} for arch in CELLS]
        data[name] = {**metrics, "config": config}
    return data


def layers() -> dict[str, dict[str, float]]:
    """A value for each layer of each setting: 1 everywhere, but 100 for the stem and 0.5 for a skip."""

    def value(key: str) -> float:
        return 100.0 if "Cin3_" in key else 0.5 if key.startswith("Skip") else 1.0

    archs = ["-".join([operation] * 22) for operation in OPERATIONS]
    keys = [key for arch, ending in itertools.product(archs, ("", "_imagenet")) for key in layer_keys(arch, ending)]
    return {metric: {key: value(key) for key in keys} for metric in DEVICES}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    file = tmp_path / "HW-NAS-Bench-v1_0.pickle"
    file.write_bytes(pickle.dumps({"nasbench201": cells(), "fbnet": layers()}))
    return file


def test_the_cells(imported, published: Path) -> None:
    table = imported("hw_nas_bench", published)
    assert list(table["arch"]) == CELLS
    assert list(table["latency_ms/pixel3"]) == [0.25, 0.5]
    assert list(table["energy_mj/fpga"]) == [0.25, 0.5]
    assert list(table["latency_ms/pixel3_cifar100"]) == [10.25, 10.5]
    assert list(table["arithmetic_intensity/eyeriss_imagenet16_120"]) == [20.25, 20.5]
    assert len(table.columns) == 1 + 3 * len(CELL_METRICS)


def written(folder: Path, kind: str) -> Path:
    indices = [[OPERATIONS.index(name) for name in arch.split("-")] for arch in FBNET]
    file = folder / f"archs{kind}"
    if kind == ".csv":
        pd.DataFrame({"arch": FBNET, "x": 1}).to_csv(file)
    elif kind == ".txt":
        file.write_text("\n".join(FBNET))
    elif kind == ".json":
        file.write_text(json.dumps(indices))
    else:
        torch.save(indices, file)
    return file


@pytest.mark.parametrize("kind", [".csv", ".txt", ".json", ".pt"])
def test_sums_over_the_layers_of_given_architectures(imported, published: Path, tmp_path: Path, kind: str) -> None:
    table = imported("hw_nas_bench", published, written(tmp_path, kind))
    assert list(table["arch"]) == FBNET
    # stem, 22 layers, head, pool, classifier
    for metric in ("latency_ms/pixel3", "energy_mj/edgegpu", "latency_ms/pixel3_imagenet"):
        assert list(table[metric]) == [125.0, 114.0, 125.0]


def test_layers_are_named_as_published() -> None:
    keys = layer_keys(FBNET[2])
    assert keys[1] == "ConvBlock_H32_W32_Cin16_Cout16_exp1_kernel5_stride1_group2"
    assert keys[-4:] == [
        "ConvBlock_H4_W4_Cin184_Cout352_exp3_kernel3_stride1_group1",
        "ConvNorm_H4_W4_Cin352_Cout1504_kernel1_stride1_group1",
        "AvgP_H4_W4_Cin1504_Cout1504_kernel4_stride1",
        "FC_Cin1504_Cout100",
    ]
    assert layer_keys(FBNET[1], "_imagenet")[-2:] == [
        "AvgP_H7_W7_Cin1984_Cout1984_kernel7_stride1",
        "FC_Cin1984_Cout1000",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("k3_e6-skip", "architecture 2: it has 2 operations, not 22"),
        ("-".join(["k3_e5"] * 22), "unknown operation 'k3_e5' in .*architecture 2. Nearest: k3_e"),
    ],
)
def test_bad_architectures_are_refused(published: Path, tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(f"{FBNET[0]}\n{line}\n")
    with pytest.raises(TableError, match=message):
        import_table("hw_nas_bench", [published, tmp_path / "a.txt"], tmp_path / "t.parquet")
    (tmp_path / "a.json").write_text(json.dumps([[0] * 22, [9] * 22]))
    with pytest.raises(TableError, match="a.json, architecture 2: .*index"):
        import_table("hw_nas_bench", [published, tmp_path / "a.json"], tmp_path / "t.parquet")


def test_another_structure_is_told(tmp_path: Path, evil) -> None:
    file = tmp_path / "HW.pickle"
    data = cells()
    data["cifar10"]["pixel3_latency"].append(1.0)
    for value, message in (
        ({"nasbench201": data}, "latency_ms/pixel3: 3 values for 2 architectures"),
        ({"nasbench201": {}}, "it has no 'cifar10'"),
        ({"fbnet": {}}, "it has no 'nasbench201'"),
        ([], "another structure"),
        ({"nasbench201": evil}, "was refused: it holds .*system"),
    ):
        file.write_bytes(pickle.dumps(value))
        with pytest.raises(TableError, match=f"HW.pickle.*{message}"):
            import_table("hw_nas_bench", [file], tmp_path / "t.parquet")
    assert not evil.file.exists()
    assert not (tmp_path / "t.parquet").exists()


def help_folder(folder: Path, name: str) -> Path:
    (folder / name / "latency").mkdir(parents=True)
    if name == "nasbench201":
        torch.save({CELLS[1]: 1, CELLS[0]: 0}, folder / name / "str_arch2idx.pt")
        count = 2
    elif name == "fbnet":
        indices = [[OPERATIONS.index(op) for op in arch.split("-")] for arch in FBNET]
        torch.save(indices, folder / name / "arch.pt")
        count = 3
    else:
        arch = {"ks": [7, 5, 5, 5] * 5, "e": [6, 4, 4, 6] * 5, "d": [2, 2, 2, 2, 3], "r": np.int64(204)}
        torch.save({"dataset": "imagenet", "num_classes": 1000, "arch": [arch]}, folder / name / "ofa_archs.pt")
        count = 1
    torch.save([i + 0.5 for i in range(count)], folder / name / "latency" / "1080ti_1.pt")
    torch.save(list(range(count)), folder / name / "latency" / "pixel2.pt")
    return folder / name


def test_help_cells_and_fbnet(imported, tmp_path: Path) -> None:
    table = imported("help", help_folder(tmp_path, "nasbench201"))
    assert list(table["arch"]) == CELLS
    assert list(table["latency_ms/1080ti_1"]) == [0.5, 1.5]
    table = imported("help", help_folder(tmp_path, "fbnet"))
    assert list(table["arch"]) == FBNET
    assert list(table["latency_ms/pixel2"]) == [0.0, 1.0, 2.0]


def test_help_once_for_all(imported, tmp_path: Path) -> None:
    table = imported("help", help_folder(tmp_path, "ofa"))
    arch = json.loads(table["arch"][0])
    assert list(arch) == ["ks", "e", "d", "r"]
    assert arch["d"] == [2, 2, 2, 2, 3]
    assert arch["r"] == 204


def test_help_lists_must_fit(tmp_path: Path) -> None:
    folder = help_folder(tmp_path, "fbnet")
    torch.save([1.0], folder / "latency" / "pixel2.pt")
    with pytest.raises(TableError, match="pixel2.pt: 1 values for 3 architectures"):
        import_table("help", [folder], tmp_path / "t.parquet")
    (folder / "arch.pt").unlink()
    with pytest.raises(TableError, match="fbnet: none of str_arch2idx.pt, arch.pt, ofa_archs.pt is in it"):
        import_table("help", [folder], tmp_path / "t.parquet")


@pytest.mark.parametrize("value", ["fast", "1.5", [1.0], {}, 10**400])
def test_values_that_are_no_numbers_are_told(tmp_path: Path, value: object) -> None:
    folder = help_folder(tmp_path, "fbnet")
    torch.save([1.0, value, None], folder / "latency" / "pixel2.pt")
    with pytest.raises(TableError, match="latency_ms/pixel2 of 'skip-skip-.*which is no number"):
        import_table("help", [folder], tmp_path / "t.parquet")
    torch.save([1.0, float("nan"), None], folder / "latency" / "pixel2.pt")
    done = import_table("help", [folder], tmp_path / "t.parquet")
    assert pd.read_parquet(done.file)["latency_ms/pixel2"].isna().tolist() == [False, True, True]


@pytest.mark.data
def test_the_published_sums_come_of_values_for_the_layers(imported, tmp_path: Path, data_folder: Path) -> None:
    """The pixel3, raspi4, fpga and eyeriss columns of 5,000 networks are sums over layers as they are named here:
    values of the layers that fit 4,000 rows give the other 1,000."""
    rows = pd.read_csv(data_folder / "fbnet.csv.gz")
    keys = {key: i for i, key in enumerate(dict.fromkeys(k for arch in rows["arch"] for k in layer_keys(arch)))}
    counts = np.zeros((len(rows), len(keys)))
    for row, arch in enumerate(rows["arch"]):
        np.add.at(counts[row], [keys[key] for key in layer_keys(arch)], 1)
    devices = ("pixel3", "raspi4", "fpga", "eyeriss")
    solved, *_ = np.linalg.lstsq(counts[:4000], rows[[f"{d}_ms" for d in devices]].to_numpy()[:4000], rcond=None)
    tables = {f"{d}_latency": dict(zip(keys, solved[:, i], strict=True)) for i, d in enumerate(devices)}
    (tmp_path / "HW.pickle").write_bytes(pickle.dumps({"fbnet": tables}))
    rows[["arch"]].iloc[4000:].to_csv(tmp_path / "archs.csv")
    table = imported("hw_nas_bench", tmp_path / "HW.pickle", tmp_path / "archs.csv")
    for device in devices:
        found, published = table[f"latency_ms/{device}"].to_numpy(), rows[f"{device}_ms"].to_numpy()[4000:]
        assert np.abs(found / published - 1).max() < 2e-4, device


@pytest.mark.data
@pytest.mark.parametrize("name", ["nasbench201", "fbnet", "ofa"])
def test_the_published_latencies_come_back_as_they_are(tmp_path: Path, data_folder: Path, name: str) -> None:
    """Every row and device of a shared table as HELP's folder, and what comes of them."""
    file = {"nasbench201": "nasbench201", "fbnet": "fbnet", "ofa": "ofa_mbv3_latency"}[name]
    rows = pd.read_csv(data_folder / f"{file}.csv.gz")
    devices = [c.removesuffix("_ms") for c in rows if c.endswith("_ms") and not c.startswith("nnmeter")]
    folder = tmp_path / name
    (folder / "latency").mkdir(parents=True)
    for device in devices:
        torch.save(rows[f"{device}_ms"].tolist(), folder / "latency" / f"{device}.pt")
    if name == "nasbench201":
        torch.save({arch: i for i, arch in enumerate(rows["arch"])}, folder / "str_arch2idx.pt")
    elif name == "fbnet":
        torch.save([[OPERATIONS.index(op) for op in arch.split("-")] for arch in rows["arch"]], folder / "arch.pt")
    else:
        lists = {"ks": "kernel_sizes", "e": "expand_ratios", "d": "depths"}
        archs = [
            {key: [int(v) for v in row[column].split("-")] for key, column in lists.items()}
            | {"r": np.int64(row["resolution"])}
            for row in rows.to_dict("records")
        ]
        torch.save({"dataset": "imagenet", "num_classes": 1000, "arch": archs}, folder / "ofa_archs.pt")
    done = import_table("help", [folder], tmp_path / "t.parquet")
    assert len(done.metrics) == len(devices) == (12 if name == "ofa" else 27)
    table = load_table(done.file, space=done.space, metrics=list(done.metrics))
    assert len(table) == len(rows)
    for device in devices:
        assert list(table.values[f"latency_ms/{device}"]) == list(rows[f"{device}_ms"]), device

"""NAS-Bench-201's .pth and NATS-Bench's folders, in the published structure."""

from __future__ import annotations

import bz2
import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from nasrlm.datasets import load_table
from nasrlm.datasets.importers import import_table
from nasrlm.errors import TableError
from nasrlm.graph import costs

ARCHS = [
    "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
    "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|",
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|",
]
EVALUATIONS = {
    "cifar10-valid": ("x-valid", "ori-test"),
    "cifar10": ("ori-test",),
    "cifar100": ("x-valid", "x-test", "ori-test"),
    "ImageNet16-120": ("x-valid", "x-test", "ori-test"),
}
FIRST = {"cifar10-valid": 80.0, "cifar10": 90.0, "cifar100": 70.0, "ImageNet16-120": 40.0}


def run(data: str, epochs: int, value: float, seed: int) -> dict[str, Any]:
    """One training run; evaluations differ by 0.1, epochs before the last have another value."""
    names = EVALUATIONS[data]
    last = {f"{name}@{epochs - 1}": np.float64(value + i / 10) for i, name in enumerate(names)}
    earlier = {f"{name}@{epoch}": 1.0 for name in names for epoch in range(epochs - 1)}
    every = dict.fromkeys(range(epochs), 1.0)
    return {
        "name": "infer.tiny",
        "net_state_dict": None,
        "params": 0.129306,
        "flop": 15.64737,
        "seed": str(seed),
        "epochs": epochs,
        "latency": [0.01, np.float32(0.02)],
        "arch_config": {"name": "infer.tiny", "C": 16, "N": 5},
        "train_acc1es": every,
        "train_acc5es": None,
        "train_losses": every,
        "train_times": every,
        "eval_names": list(names),
        "eval_acc1es": {**last, **earlier},
        "eval_losses": dict.fromkeys([*last, *earlier], 0.5),
        "eval_times": dict.fromkeys([*last, *earlier], 1.0),
    }


def results(index: int, arch: str, epochs: int, seeds: tuple[int, ...]) -> dict[str, Any]:
    return {
        "arch_index": index,
        "arch_str": arch,
        "all_results": {
            (data, seed): run(data, epochs, FIRST[data] + index + i, seed)
            for data in EVALUATIONS
            for i, seed in enumerate(seeds)
        },
        "dataset_seed": {data: list(seeds) for data in EVALUATIONS},
        "clear_net_done": True,
    }


def everything() -> dict[str, Any]:
    infos = {
        i: {"less": results(i, arch, 12, (111,)), "full": results(i, arch, 200, (777, 888, 999))}
        for i, arch in enumerate(ARCHS)
    }
    return {"meta_archs": ARCHS, "total_archs": 3, "arch2infos": infos, "evaluated_indexes": list(infos)}


EXPECTED = {
    # the mean of three seeds is one above the first; evaluations are 0.1 apart
    "accuracy/cifar10": 91.0,
    "accuracy/cifar10_valid": 81.0,
    "accuracy/cifar100": 71.1,
    "accuracy/cifar100_valid": 71.0,
    "accuracy/imagenet16_120": 41.1,
    "accuracy/imagenet16_120_valid": 41.0,
    "accuracy/cifar10_12_epochs": 90.0,
    "params": 129_306,
    "macs": 15_647_360,
}


def check(table: pd.DataFrame) -> None:
    assert list(table["arch"]) == ARCHS
    for metric, value in EXPECTED.items():
        step = 1 if metric.startswith("accuracy") else 0
        assert list(table[metric]) == pytest.approx([value + step * i for i in range(3)]), metric


@pytest.mark.parametrize("zipped", [True, False], ids=["torch 1.6 and later", "torch before 1.6"])
def test_the_single_file(imported, tmp_path: Path, zipped: bool) -> None:
    file = tmp_path / "NAS-Bench-201-v1_1.pth"
    torch.save(everything(), file, _use_new_zipfile_serialization=zipped)
    check(imported("nasbench201", file))


def test_the_archive(imported, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    for index, info in everything()["arch2infos"].items():
        torch.save(info, folder / f"{index:06d}-FULL.pth")
    check(imported("nasbench201", folder))


def save(value: Any, file: Path) -> None:
    file.parent.mkdir(exist_ok=True, parents=True)
    with bz2.open(file, "wb") as stream:
        pickle.dump(value, stream, protocol=4)


def budgets(info: dict[str, Any]) -> dict[str, Any]:
    return {"12": info["less"], "200": info["full"]}


def test_a_nats_folder(imported, tmp_path: Path) -> None:
    folder = tmp_path / "NATS-tss-v1_0-3ffb9-simple"
    data = everything()
    save({**data, "arch2infos": None}, folder / "meta.pickle.pbz2")
    for index, info in data["arch2infos"].items():
        save(budgets(info), folder / f"{index:06d}.pickle.pbz2")
    check(imported("nats", folder))
    (folder / "meta.pickle.pbz2").unlink()
    check(imported("nats", folder))


def test_a_nats_single_file(imported, tmp_path: Path) -> None:
    file = tmp_path / "NATS-tss-v1_0-3ffb9-simple.pickle.pbz2"
    data = everything()
    save({**data, "arch2infos": {i: budgets(info) for i, info in data["arch2infos"].items()}}, file)
    check(imported("nats", file))


def test_the_size_space(imported, tmp_path: Path) -> None:
    folder = tmp_path / "NATS-sss-v1_0-50262-simple"
    text = "8:8:40:32:40"
    by_budget = {name: results(284, text, int(name), (777,)) for name in ("01", "12", "90")}
    by_budget["01"] = {**by_budget["12"]}
    save(by_budget, folder / "000284.pickle.pbz2")
    done = import_table("nats", [folder], tmp_path / "table.parquet")
    table = pd.read_parquet(done.file)
    assert done.space == "nats_sss"
    assert list(table["arch"]) == [text]
    assert table["accuracy/cifar10"][0] == table["accuracy/cifar10_1_epochs"][0] == 90.0 + 284


def test_the_table_is_read_by_load_table(tmp_path: Path) -> None:
    file = tmp_path / "a.pth"
    torch.save(everything(), file)
    done = import_table("nasbench201", [file], tmp_path / "table.parquet")
    table = load_table(done.file, space=done.space, metrics=["accuracy/cifar10", "params"])
    assert [a.string for a in table.architectures] == ARCHS
    assert table.values["params"].iloc[0] == costs(table.architectures[0]).params == 129_306


def test_a_program_in_a_pickle_is_refused_and_not_run(tmp_path: Path, evil) -> None:
    torch.save({"meta_archs": ARCHS, "arch2infos": evil}, tmp_path / "a.pth")
    save({"meta_archs": ARCHS, "arch2infos": evil}, tmp_path / "a.pickle.pbz2")
    for name, file in (("nasbench201", "a.pth"), ("nats", "a.pickle.pbz2")):
        with pytest.raises(TableError, match="was refused: it holds .*(posix|os).system") as caught:
            import_table(name, [tmp_path / file], tmp_path / "table.parquet")
        assert "Nothing in it was run" in str(caught.value)
    assert not evil.file.exists()


@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.98])
def test_files_cut_short_are_refused(tmp_path: Path, kept: float) -> None:
    torch.save(everything(), tmp_path / "a.pth")
    save(everything(), tmp_path / "a.pickle.pbz2")
    for name, file in (("nasbench201", tmp_path / "a.pth"), ("nats", tmp_path / "a.pickle.pbz2")):
        data = file.read_bytes()
        file.write_bytes(data[: int(kept * len(data)) if kept < 1 else int(kept)])
        with pytest.raises(TableError, match=f"{file.name}: .*Is the file complete"):
            import_table(name, [file], tmp_path / "table.parquet")
        assert not (tmp_path / "table.parquet").exists()


def test_another_structure_is_told(tmp_path: Path) -> None:
    data = everything()
    del data["arch2infos"][1]["full"]["all_results"]["cifar10", 777]["eval_acc1es"]
    torch.save(data, tmp_path / "a.pth")
    with pytest.raises(TableError, match="a.pth, architecture 1: it has no 'eval_acc1es'"):
        import_table("nasbench201", [tmp_path / "a.pth"], tmp_path / "table.parquet")
    torch.save([1, 2], tmp_path / "a.pth")
    with pytest.raises(TableError, match="a.pth: it has another structure"):
        import_table("nasbench201", [tmp_path / "a.pth"], tmp_path / "table.parquet")


@pytest.mark.skipif(importlib.util.find_spec("nas_201_api") is None, reason="nas-bench-201 is not installed")
def test_the_authors_package_reads_the_same_values(imported, tmp_path: Path) -> None:
    from nas_201_api import NASBench201API

    file = tmp_path / "a.pth"
    torch.save(everything(), file)
    table = imported("nasbench201", file)
    api = NASBench201API(everything(), verbose=False)
    for index, row in table.iterrows():
        for metric, data, key in (
            ("accuracy/cifar10", "cifar10", "test-accuracy"),
            ("accuracy/cifar10_valid", "cifar10-valid", "valid-accuracy"),
            ("accuracy/cifar100", "cifar100", "test-accuracy"),
            ("accuracy/imagenet16_120_valid", "ImageNet16-120", "valid-accuracy"),
        ):
            info = api.get_more_info(index, data, None, hp="200", is_random=False)
            assert row[metric] == pytest.approx(info[key]), metric


@pytest.mark.data
def test_published_values_come_back_as_they_are(tmp_path: Path, data_folder: Path) -> None:
    """All 15,625 rows of the shared table as a NATS file, and what comes of them."""
    rows = pd.read_csv(data_folder / "nasbench201.csv.gz")
    columns = {
        "accuracy/cifar10": ("cifar10", "ori-test", "cifar10_test_acc"),
        "accuracy/cifar10_valid": ("cifar10-valid", "x-valid", "cifar10_val_acc"),
        "accuracy/cifar100": ("cifar100", "x-test", "cifar100_test_acc"),
        "accuracy/imagenet16_120": ("ImageNet16-120", "x-test", "imagenet16_120_test_acc"),
        "accuracy/imagenet16_120_valid": ("ImageNet16-120", "x-valid", "imagenet16_120_val_acc"),
    }
    infos: dict[int, Any] = {}
    for row in rows.to_dict("records"):
        runs: dict[Any, Any] = {}
        for data, evaluation, column in columns.values():
            one = runs.setdefault((data, 777), {"params": row["params_millions"], "flop": 1.0, "eval_acc1es": {}})
            one["eval_acc1es"] |= {f"{evaluation}@198": 0.0, f"{evaluation}@199": row[column]}
        runs["cifar100", 777]["eval_acc1es"]["x-valid@199"] = row["cifar100_val_acc"]
        infos[row["index"]] = {"200": {"all_results": runs, "dataset_seed": {data: [777] for data, _ in runs}}}
    save({"meta_archs": list(rows["arch"]), "arch2infos": infos}, tmp_path / "a.pickle.pbz2")
    done = import_table("nats", [tmp_path / "a.pickle.pbz2"], tmp_path / "t.parquet")
    table = load_table(done.file, space=done.space, metrics=[*columns, "accuracy/cifar100_valid", "params"])
    assert [a.string for a in table.architectures] == list(rows["arch"])
    for metric, (_, _, column) in columns.items():
        assert list(table.values[metric]) == list(rows[column]), metric
    assert list(table.values["accuracy/cifar100_valid"]) == list(rows["cifar100_val_acc"])
    assert list(table.values["params"]) == [round(params * 1e6) for params in rows["params_millions"]]

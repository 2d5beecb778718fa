"""Architectures of every search space in its published files; the tables are read with the spaces."""

from __future__ import annotations

import bz2
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from nasrlm.datasets import load_table
from nasrlm.datasets.description import describe_file
from nasrlm.datasets.importers import import_table
from nasrlm.datasets.importers.hw_nas_bench import OPERATIONS
from nasrlm.spaces import Architecture, get_space

Paths = list["Path | str"]
Write = Callable[[Path, Sequence[Architecture]], Paths]


def write_json(file: Path, data: Any) -> Paths:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data), encoding="utf-8")
    return [file]


def nds(name: str) -> Write:
    def write(folder: Path, archs: Sequence[Architecture]) -> Paths:
        common = {"optim": {"base_lr": 0.1, "wd": 5e-4}, "params": 1, "flops": 1}
        models = [{**common, "net": json.loads(a.string), "test_ep_top1": [i + 0.5]} for i, a in enumerate(archs)]
        return write_json(folder / f"{name}.json", models)

    return write


def nasbench301(folder: Path, archs: Sequence[Architecture]) -> Paths:
    for i, a in enumerate(archs):
        config = {"CreateImageNode:epochs": "100", **a.space.to_configspace(a)}  # type: ignore[attr-defined]
        values = {"test_accuracy": 99.5 - i, "info": [{"val_accuracy": 90.0}], "runtime": 1.0}
        write_json(folder / "rs" / f"results_{i:03}.json", {"optimized_hyperparamater_config": config, **values})
    return [folder]


def ofa(folder: Path, archs: Sequence[Architecture]) -> Paths:
    items = [{**json.loads(a.string), "top1": (99.5 - i) / 100} for i, a in enumerate(archs)]
    return write_json(folder / "a.json", items)


def transnas(kind: str) -> Write:
    def write(folder: Path, archs: Sequence[Architecture]) -> Paths:
        data = {a.string: {"jigsaw": {"metrics": {"valid_top1": [0, 99.5 - i]}}} for i, a in enumerate(archs)}
        torch.save({"metrics_dict": {"jigsaw": ["valid_top1"]}, "data": {kind: data}}, folder / "t.pth")
        return [folder / "t.pth", kind]

    return write


def nats(largest: str, key: str | None) -> Write:
    """Everything in one file; with a key, NAS-Bench-201's."""

    def write(folder: Path, archs: Sequence[Architecture]) -> Paths:
        infos = {}
        for i, _ in enumerate(archs):
            last = f"ori-test@{int(largest) - 1}"
            run = {"params": 1.0, "flop": 1.0, "eval_acc1es": {last: 99.5 - i}}
            results = {"all_results": {("cifar10", 777): run}, "dataset_seed": {"cifar10": [777]}}
            infos[i] = {key or largest: results}
        everything = {"meta_archs": [a.string for a in archs], "arch2infos": infos}
        if key:
            torch.save(everything, folder / "a.pth")
            return [folder / "a.pth"]
        (folder / "a.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps(everything)))
        return [folder / "a.pickle.pbz2"]

    return write


def help_fbnet(folder: Path, archs: Sequence[Architecture]) -> Paths:
    (folder / "latency").mkdir()
    torch.save([[OPERATIONS.index(name) for name in a.string.split("-")] for a in archs], folder / "arch.pt")
    torch.save([99.5 - i for i in range(len(archs))], folder / "latency" / "pixel3.pt")
    return [folder]


def accel(folder: Path, archs: Sequence[Architecture]) -> Paths:
    for i, a in enumerate(archs):
        blocks: dict[str, Any] = {}
        for b, text in enumerate(a.string.split("_")):
            blocks |= {f"block{b}_{text[at]}": int(text[at + 1]) for at in (0, 2, 4)} | {f"block{b}_se": text[6] == "s"}
        metrics = {"val_top1": 99.5 - i, "val_top5": 1.0, "train_time": 1.0}
        sizes = {"macs": 1.0, "params": 1.0}
        result = {"architecture": blocks, "metrics": metrics, "model_info": sizes, "platform_perf": {}}
        write_json(folder / f"result_{i}.json", result)
    return [folder]


def macro(folder: Path, archs: Sequence[Architecture]) -> Paths:
    data = {a.string: {"mean_acc": 99.5 - i, "params": 1, "flops": 1} for i, a in enumerate(archs)}
    return write_json(folder / "m.json", data)


NDS = {
    "nds_amoeba": "Amoeba",
    "nds_darts": "DARTS_fix-w-d",
    "nds_enas": "ENAS",
    "nds_nasnet": "NASNet",
    "nds_pnas": "PNAS",
    "nds_resnet": "ResNet",
    "nds_resnext_a": "ResNeXt-A",
    "nds_resnext_b": "ResNeXt-B",
    "nds_vanilla": "Vanilla",
}
FILES: dict[str, tuple[str, str, Write]] = {
    # space: importer, metric, what writes the published file
    **{space: ("nds", "accuracy/cifar10", nds(name)) for space, name in NDS.items()},
    "darts": ("nasbench301", "accuracy/cifar10", nasbench301),
    **{f"ofa_{kind}": ("ofa", "accuracy/imagenet", ofa) for kind in ("mobilenetv3", "proxyless", "resnet50")},
    "transnas_micro": ("transnas101", "accuracy/jigsaw", transnas("micro")),
    "transnas_macro": ("transnas101", "accuracy/jigsaw", transnas("macro")),
    "nasbench201": ("nasbench201", "accuracy/cifar10", nats("200", "full")),
    "nats_sss": ("nats", "accuracy/cifar10", nats("90", None)),
    "fbnet": ("help", "latency_ms/pixel3", help_fbnet),
    "mnasnet": ("accel_nasbench", "accuracy/imagenet_proxy", accel),
    "nasbench_macro": ("nasbench_macro", "accuracy/cifar10", macro),
}


@pytest.mark.parametrize("name", list(FILES))
def test_tables_are_read_with_their_space(tmp_path: Path, name: str) -> None:
    importer, metric, write = FILES[name]
    space = get_space(name)
    archs = list(dict.fromkeys(space.sample(30, seed=5)))
    folder = tmp_path / "published"
    folder.mkdir()
    done = import_table(importer, write(folder, archs), tmp_path / "t.parquet")
    assert (done.space, done.rows) == (name, len(archs))
    plain = {m for m in done.metrics if not m.endswith(("_epochs", "_valid"))}
    assert plain <= set(space.metrics)
    table = load_table(done.file, space=done.space, metrics=[metric])
    assert [a.string for a in table.architectures] == [a.string for a in archs]
    assert list(table.values[metric]) == pytest.approx([99.5 - i for i in range(len(archs))])
    strings = describe_file(done.file).strings
    assert strings is not None
    assert (strings.looked_at, strings.refused, strings.distinct) == (len(archs), 0, len(archs))
    assert pd.read_parquet(done.file)["arch"].notna().all()

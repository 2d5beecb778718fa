"""NDS' and NAS-Bench-301's JSON, in the published structure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nasrlm.datasets.importers import import_table
from nasrlm.datasets.importers.json_files import stream_objects

CELL = {
    "genotype": {
        "normal": [["skip_connect", 0], ["max_pool_3x3", 1], ["sep_conv_5x5", 0], ["sep_conv_3x3", 2]] * 2
        + [["avg_pool_3x3", 1], ["sep_conv_3x3", 0]],
        "normal_concat": [3, 4, 5, 6],
        "reduce": [["max_pool_3x3", 0], ["max_pool_3x3", 1]] * 5,
        "reduce_concat": [2, 3, 4, 5, 6],
    },
    "width": 32,
    "depth": 12,
    "aux": False,
    "drop_prob": 0.0,
}
STAGES = {
    "block_type": "res_basic_block",
    "ds": [1, 12, 12, 12],
    "ws": [16, 16, 24, 40],
    "ss": [1, 1, 2, 2],
    "bot_muls": [0.0, 0.0, 0.0, 0.0],
    "num_gs": [1, 1, 1, 1],
}


def model(net: dict[str, Any], error: float = 9.5) -> dict[str, Any]:
    return {
        "net": net,
        "optim": {"base_lr": 0.1, "wd": 5e-4, "max_ep": 3},
        "rng_seed": 1,
        "params": 594138,
        "flops": 184519578,
        "iter_time": 0.1,
        "train_ep_top1": [50.0, 20.0, 10.0],
        "test_ep_top1": [60.0, error - 1, error],
        "train_ep_loss": [float("nan"), 1.0, 0.5],
        "min_test_top1": error - 1,
    }


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("name", "net"), [("ResNet", STAGES), ("Amoeba", CELL)])
def test_nds(space_or_skip, imported, tmp_path: Path, name: str, net: dict[str, Any], nested: bool) -> None:
    models = [model(net, 9.5), model(net, 8.5)]
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps({"top": models[:1], "mid": models[1:]} if nested else models, indent=1))
    table = imported("nds", file)
    assert list(table["arch"]) == [space_or_skip(f"nds_{name.lower()}").architecture(json.dumps(net)).string] * 2
    assert list(table["accuracy/cifar10"]) == [90.5, 91.5]
    assert list(table["accuracy/cifar10_best"]) == [91.5, 92.5]
    assert list(table["params"]) == [594138, 594138]
    assert list(table["flops/nds"]) == [184519578, 184519578]
    assert "base_lr" not in table


def test_nds_variants(refused, imported, tmp_path: Path) -> None:
    (tmp_path / "DARTS_lr-wd_in.json").write_text(json.dumps([model(CELL)]))
    table = imported("nds", tmp_path / "DARTS_lr-wd_in.json")
    assert list(table["accuracy/imagenet"]) == [90.5]
    assert list(table["weight_decay"]) == [5e-4]
    (tmp_path / "ResNetX.json").write_text("[]")
    refused("nds", tmp_path / "ResNetX.json", message="unknown design space 'ResNetX'.*Nearest: ResNet")


def test_nds_files_are_read_object_by_object(tmp_path: Path) -> None:
    """Objects that are larger than what is read at a time, and the places of all of them."""
    objects = [{"i": i, "text": "ä" * 700_000} for i in range(5)]
    text = json.dumps(objects, ensure_ascii=False, indent=2)
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    found = list(stream_objects(tmp_path / "a.json"))
    assert [value for _, _, value in found] == objects
    assert [number for number, _, _ in found] == [1, 2, 3, 4, 5]
    assert all(
        text[start] == "{" and text[start:].startswith(f'{{\n    "i": {i}') for i, (_, start, _) in enumerate(found)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-1], "object 2 at character [0-9,]+: the file ends"),
        (
            lambda text: text[: len(text) // 2 + 20],
            "object 2 at character [0-9,]+: Unterminated|Expecting|the file ends",
        ),
        (lambda text: text.replace('"wd"', '"w"'), "model 1 at character 1: it has no 'wd'"),
        (lambda text: text.replace("[60.0", "60.0, [60.0"), "object 1 at character 1: Expecting"),
        (lambda text: "3", "neither a list nor an object of lists"),
        (lambda text: "[]", "no row was found"),
        (lambda text: "[1, 2]", "no object begins where one should"),
        (lambda text: text + "x", "something follows the end of the list"),
        (lambda text: '{"top": 3}', r"'\[' is missing"),
        (lambda text: "", "neither a list"),
    ],
)
def test_damaged_nds_files(refused, tmp_path: Path, change, message: str) -> None:
    file = tmp_path / "ResNet.json"
    file.write_text(change(json.dumps([model(STAGES), model(STAGES)])))
    refused("nds", file, message=message)


def test_the_spaces_read_nds_nets(space_or_skip, imported, tmp_path: Path) -> None:
    space = space_or_skip("nds_resnet")
    (tmp_path / "ResNet.json").write_text(json.dumps([model(STAGES)]))
    table = imported("nds", tmp_path / "ResNet.json")
    assert space.architecture(table["arch"][0])


PREFIX = "NetworkSelectorDatasetInfo:darts:"
EDGES = ("skip_connect", "sep_conv_3x3")


def darts_config() -> dict[str, Any]:
    """Node 2 from 0 and 1; nodes 3, 4, 5 from 1_2, 0_1, 0_4."""
    config: dict[str, Any] = {"ImageAugmentation:augment": "True", f"{PREFIX}init_channels": 32, f"{PREFIX}layers": 8}
    for cell in ("normal", "reduce"):
        config |= {f"{PREFIX}edge_{cell}_{edge}": EDGES[edge % 2] for edge in (0, 1, 3, 4, 5, 6, 9, 13)}
        for node, sources in ((3, "1_2"), (4, "0_1"), (5, "0_4")):
            config[f"{PREFIX}inputs_node_{cell}_{node}"] = sources
    return config


def test_nasbench301(refused, imported, tmp_path: Path) -> None:
    for optimizer, accuracy in (("rs", 94.0), ("de", 93.0)):
        file = tmp_path / optimizer / "results_0.json"
        file.parent.mkdir()
        info = [{"train_loss": 0.1, "val_accuracy": accuracy - 1, "model_parameters": 1_000_000}]
        data = {"optimized_hyperparamater_config": darts_config(), "info": info, "budget": 100}
        file.write_text(json.dumps({**data, "test_accuracy": accuracy, "runtime": 3000}))
    table = imported("nasbench301", tmp_path)
    assert list(table["accuracy/cifar10"]) == [93.0, 94.0]
    assert list(table["accuracy/cifar10_valid"]) == [92.0, 93.0]
    assert list(table["train_time_s/cifar10"]) == [3000.0, 3000.0]
    assert table["arch"][0].startswith("Genotype(normal=[('skip_connect', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 1)")
    (tmp_path / "rs" / "results_0.json").write_text('{"info": [')
    refused("nasbench301", tmp_path, message="results_0.json, line 1, character 10: Expecting value")


def test_the_space_reads_nasbench301_configurations(space_or_skip) -> None:
    space = space_or_skip("darts")
    cells = {key: value for key, value in darts_config().items() if "edge" in key or "inputs" in key}
    assert space.architecture(json.dumps(cells, separators=(",", ":")))


def test_what_the_space_does_not_read_is_kept_and_counted(tmp_path: Path) -> None:
    """A width outside the declared ones, say, which the published sources leave open."""
    (tmp_path / "Amoeba.json").write_text(json.dumps([model(CELL), model({**CELL, "width": 48})]))
    done = import_table("nds", [tmp_path / "Amoeba.json"], tmp_path / "t.parquet")
    assert (done.rows, done.skipped, done.outside) == (2, 0, 1)
    assert len(done.outside_reasons) == 1
    assert done.outside_reasons[0].startswith("row 2: ")
    assert "48" in done.outside_reasons[0]
    assert json.loads(pd.read_parquet(done.file)["arch"][1])["width"] == 48

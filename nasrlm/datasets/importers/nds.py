"""The JSON files of NDS (Radosavovic et al., ICCV 2019; facebookresearch/nds): ten design spaces, errors by epoch.

Read object by object. Files with "top" and "mid" lists give the rows of both. Published FLOPs are MACs, classifier
biases and five operations an output element of BatchNorm, so they stand under ``flops/nds``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.json_files import stream_objects
from nasrlm.datasets.importers.protocol import STRUCTURE, Importer, Published, Row, not_published, one_path
from nasrlm.errors import TableError, unknown_name

_FILES = "one NDS file with its published name, such as DARTS.json or ResNeXt-A.json"
_SPACES = {
    "Amoeba": "nds_amoeba",
    "DARTS": "nds_darts",
    "ENAS": "nds_enas",
    "NASNet": "nds_nasnet",
    "PNAS": "nds_pnas",
    "ResNet": "nds_resnet",
    "ResNeXt-A": "nds_resnext_a",
    "ResNeXt-B": "nds_resnext_b",
    "Vanilla": "nds_vanilla",
}


def _open(paths: Sequence[Path]) -> Published:
    file = one_path(paths, _FILES)
    name, _, variant = file.name.partition(".")[0].partition("_")
    if name not in _SPACES:
        raise TableError(str(unknown_name("design space", name, _SPACES, where=str(file))))
    data = "imagenet" if "in" in variant.split("_") else "cifar10"
    metrics: tuple[str, ...] = (f"accuracy/{data}", f"accuracy/{data}_best", "params", "flops/nds")
    if "lr-wd" in variant:
        metrics += ("base_lr", "weight_decay")
    return Published(_SPACES[name], metrics, _rows(file, data), file.stat().st_size / 1e6, "MB")


def _rows(file: Path, data: str) -> Iterator[tuple[float, Row]]:
    for number, start, model in stream_objects(file):
        try:
            yield start / 1e6, _row(model, data)
        except STRUCTURE as error:
            raise not_published(file, f"model {number} at character {start:,}", error) from error


def _row(model: Mapping[str, Any], data: str) -> Row:
    return {
        "arch": json.dumps(model["net"], separators=(",", ":")),
        f"accuracy/{data}": 100 - float(model["test_ep_top1"][-1]),
        f"accuracy/{data}_best": 100 - float(min(model["test_ep_top1"])),
        "params": float(model["params"]),
        "flops/nds": float(model["flops"]),
        "base_lr": model["optim"]["base_lr"],
        "weight_decay": model["optim"]["wd"],
    }


IMPORTER = Importer(
    _FILES, "Radosavovic et al., On Network Design Spaces, ICCV 2019; github.com/facebookresearch/nds", _open
)

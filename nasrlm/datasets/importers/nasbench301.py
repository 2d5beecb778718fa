"""NAS-Bench-301's training results (Zela et al., ICLR 2022; automl/nasbench301): a folder of JSON files.

The architecture is the ConfigSpace dictionary of the file, as JSON and without the training settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.json_files import load_json
from nasrlm.datasets.importers.protocol import STRUCTURE, Importer, Published, Row, files_in, not_published, one_path

_FILES = "the folder of results_*.json, folders of optimizers in it or not"
_PREFIX = "NetworkSelectorDatasetInfo:darts:"
_CELLS = ("edge_", "inputs_node_")
_CONFIG = "optimized_hyperparamater_config"  # spelt as published
_METRICS = ("accuracy/cifar10", "accuracy/cifar10_valid", "train_time_s/cifar10")


def _open(paths: Sequence[Path]) -> Published:
    files = files_in(one_path(paths, _FILES), ["results_*.json"])
    return Published("darts", _METRICS, _rows(files), len(files), "files")


def _rows(files: Sequence[Path]) -> Iterator[tuple[float, Row]]:
    for i, file in enumerate(files):
        data = load_json(file)
        try:
            yield i, _row(data)
        except STRUCTURE as error:
            raise not_published(file, "", error) from error


def _row(data: Mapping[str, Any]) -> Row:
    cells = {key: value for key, value in data[_CONFIG].items() if key.removeprefix(_PREFIX).startswith(_CELLS)}
    if not cells:
        raise ValueError(f"no key of {_CONFIG} describes a cell")
    values = (data["test_accuracy"], data["info"][0]["val_accuracy"], data["runtime"])
    numbers = dict(zip(_METRICS, map(float, values), strict=True))
    return {"arch": json.dumps(dict(sorted(cells.items())), separators=(",", ":")), **numbers}


IMPORTER = Importer(_FILES, "Zela et al., Surrogate NAS Benchmarks, ICLR 2022; github.com/automl/nasbench301", _open)

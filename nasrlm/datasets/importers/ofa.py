"""Accuracies of Once-for-all sub-networks (Cai et al., ICLR 2020; mit-han-lab/once-for-all), measured by anyone.

Read are: the dictionaries that the authors' tools write, one a resolution (``src/224.dict``: JSON of an
architecture -> top-1); JSON lists of objects {ks, e, d, r, top1 ...}; and tables (.csv) with the columns ks, e, d,
r - or kernel_sizes, expand_ratios, depths, resolution - as lists joined by "-", and numbers in all others.
Accuracies are percent or 0..1. Widths 1.0 and 1.2 of MobileNetV3 look the same: keep their tables apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nasrlm.datasets.importers.json_files import load_json
from nasrlm.datasets.importers.protocol import (
    STRUCTURE,
    Importer,
    Published,
    Row,
    damaged,
    files_in,
    not_published,
    one_path,
)

_FILES = "a .dict, .json or .csv file of sub-networks, or the folder of .dict files"
_KEYS = {
    "ks": ("ks", "kernel_sizes"),
    "e": ("e", "expand_ratios"),
    "d": ("d", "depths"),
    "w": ("w", "width_indices"),
    "r": ("r", "resolution", "image_size"),
}
_TOP1 = "accuracy/imagenet"
_METRICS = dict.fromkeys(("top1", "imagenet_top1_acc", "accuracy"), _TOP1)
_COUNTS = ("params", "macs")
_SPACES = {(20, 5): "ofa_mobilenetv3", (21, 6): "ofa_proxyless", (18, 5): "ofa_resnet50"}  # by lengths of e and d

Item = tuple[dict[str, Any], Row]
"""Architecture and values."""
Found = tuple[str, Any, Any]
"""Place, architecture (an object, or JSON text of it), and what stands with it."""


def _open(paths: Sequence[Path]) -> Published:
    path = one_path(paths, _FILES)
    files = [file for file in files_in(path, ["*.dict"]) if not file.name.startswith("net_id")]
    items = [item for file in files for item in _items(file)]
    if not items:
        raise damaged(path, "", "it holds no sub-network")
    spaces = {_SPACES.get((len(arch["e"]), len(arch["d"])), "no space") for arch, _ in items}
    if len(spaces) > 1 or "no space" in spaces:
        raise damaged(path, "", f"the lengths of its lists fit {' and '.join(sorted(spaces))}")
    metrics = dict.fromkeys(metric for _, values in items for metric in values)
    in_percent = any(values.get(_TOP1, 0) > 1 for _, values in items)
    return Published(spaces.pop(), tuple(metrics), _rows(items, 1.0 if in_percent else 100.0), len(items))


def _rows(items: Sequence[Item], scale: float) -> Iterator[tuple[float, Row]]:
    for i, (arch, values) in enumerate(items):
        row: Row = {"arch": json.dumps(arch, separators=(",", ":")), **values}
        if _TOP1 in row:
            row[_TOP1] *= scale
        yield i, row


def once_for_all(arch: Mapping[str, Any]) -> dict[str, Any]:
    """An architecture with the authors' short keys, in their order, as plain integers and floats.

    >>> once_for_all({"d": [2, 2], "image_size": 224, "ks": [3, 5], "e": [3.0, 4]})
    {'ks': [3, 5], 'e': [3, 4], 'd': [2, 2], 'r': 224}
    """
    found: dict[str, Any] = {}
    for key, names in _KEYS.items():
        value = next((arch[name] for name in names if arch.get(name) is not None), None)
        if value is not None:
            found[key] = [_number(v) for v in value] if isinstance(value, list | tuple) else _number(value)
    for key in ("e", "d"):
        if not isinstance(found.get(key), list):
            raise ValueError(f"an architecture without the list {key!r}")
    if isinstance(found.get("r"), list):  # some tools write the resolution as a list of one
        found["r"] = found["r"][0]
    return found


def _number(value: Any) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() else number


def _items(file: Path) -> Iterator[Item]:
    resolution = {"r": int(file.stem)} if file.stem.isdigit() else {}
    for place, arch, values in _table(file) if file.name.endswith((".csv", ".csv.gz")) else _json(file):
        try:
            written = json.loads(arch) if isinstance(arch, str) else arch
            item = once_for_all({**resolution, **written}), _values(values)
        except STRUCTURE as error:
            raise not_published(file, place, error) from error
        yield item


def _json(file: Path) -> Iterator[Found]:
    data = load_json(file)
    if isinstance(data, dict):
        for i, (text, value) in enumerate(data.items(), start=1):
            yield f"entry {i}", text, {"top1": value}
    elif isinstance(data, list):
        for i, item in enumerate(data, start=1):
            yield f"item {i}", item, item
    else:
        raise damaged(file, "", "neither a list nor an object")


def _table(file: Path) -> Iterator[Found]:
    names = [name for synonyms in _KEYS.values() for name in synonyms]
    try:
        table = pd.read_csv(file, dtype=dict.fromkeys(names, str))
    except (OSError, EOFError, ValueError) as error:
        raise damaged(file, "", error) from error
    for i, row in enumerate(table.to_dict("records"), start=2):
        lists = {name: str(row[name]).split("-") for name in names if name in row}
        yield f"line {i}", {n: v if len(v) > 1 else v[0] for n, v in lists.items()}, row


def _values(item: Mapping[Any, Any]) -> Row:
    """The numbers of an item, under our names."""
    found: Row = {}
    for name, value in item.items():
        if name in _METRICS:
            found[_METRICS[name]] = float(value)
        elif name in _COUNTS or "/" in str(name):
            found[str(name)] = float(value)
        elif str(name).endswith("_ms"):
            found[f"latency_ms/{str(name)[:-3]}"] = float(value)
    return found


IMPORTER = Importer(_FILES, "Cai et al., Once-for-all, ICLR 2020; github.com/mit-han-lab/once-for-all", _open)

"""HW-NAS-Bench's pickle (Li et al., ICLR 2021): latency and energy of NAS-Bench-201 and of FBNet.

The file holds a value for each of the 15,625 networks of NAS-Bench-201. For FBNet's 9^22 it holds a value for each
layer, and a network's is their sum: give the architectures as a second path and their sums are written, at 32
pixels and 100 classes; ``_imagenet`` stands for 224 pixels and 1,000 classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nasrlm.datasets.importers.json_files import load_json
from nasrlm.datasets.importers.pickles import load_pickle, load_torch
from nasrlm.datasets.importers.protocol import (
    STRUCTURE,
    Importer,
    Published,
    Row,
    damaged,
    existing,
    not_published,
)
from nasrlm.errors import TableError, unknown_name

_FILES = "HW-NAS-Bench-v1_0.pickle; for FBNet also a file of architectures (.csv, .txt, .json, or HELP's arch.pt)"
_DATA = {"cifar10": "", "cifar100": "_cifar100", "ImageNet16-120": "_imagenet16_120"}
_QUANTITIES = {"latency": "latency_ms", "energy": "energy_mj", "arithmetic_intensity": "arithmetic_intensity"}

OPERATIONS = ("k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2", "k5_e3", "k5_e6", "skip")
_LAYERS, _WIDTHS, _STEM = (1, 4, 4, 4, 4, 4, 1), (16, 24, 32, 64, 112, 184, 352), 16
_SETTINGS = {
    # ending of the metric: pixels, stride of the stem, strides of the stages, width of the head, classes
    "": (32, 1, (1, 1, 2, 2, 1, 2, 1), 1504, 100),
    "_imagenet": (224, 2, (1, 2, 2, 2, 1, 2, 1), 1984, 1000),
}


def _open(paths: Sequence[Path]) -> Published:
    if len(paths) not in (1, 2):
        raise TableError(f"expected one or two paths: {_FILES}; given are {len(paths)}.")
    everything = load_pickle(existing(paths[0]))
    try:
        if len(paths) == 1:
            return _cells(paths[0], everything["nasbench201"])
        return _layers(paths[0], everything["fbnet"], fbnet_architectures(existing(paths[1])))
    except STRUCTURE as error:
        raise not_published(paths[0], "", error) from error


def _metric(key: str, ending: str = "") -> str:
    """`pixel3_latency` -> `latency_ms/pixel3`."""
    device, _, quantity = key.partition("_")
    return f"{_QUANTITIES[quantity]}/{device}{ending}"


def _cells(file: Path, by_data: Mapping[str, Mapping[str, Sequence[Any]]]) -> Published:
    columns = {
        _metric(key, ending): values
        for data, ending in _DATA.items()
        for key, values in by_data[data].items()
        if key != "config"
    }
    archs = [config["arch_str"] for config in by_data["cifar10"]["config"]]
    for metric, values in columns.items():
        if len(values) != len(archs):
            raise damaged(file, metric, f"{len(values)} values for {len(archs)} architectures")
    rows = (
        (i, {"arch": arch, **{metric: values[i] for metric, values in columns.items()}}) for i, arch in enumerate(archs)
    )
    return Published("nasbench201", tuple(columns), rows, len(archs))


def _layers(file: Path, tables: Mapping[str, Mapping[str, float]], archs: list[str]) -> Published:
    columns = {
        _metric(key, ending): (table, ending)
        for ending in _SETTINGS
        for key, table in tables.items()
        if layer_keys(archs[0], ending)[0] in table
    }
    return Published("fbnet", tuple(columns), _sums(file, columns, archs), len(archs))


def _sums(
    file: Path, columns: Mapping[str, tuple[Mapping[str, float], str]], archs: list[str]
) -> Iterator[tuple[float, Row]]:
    for i, arch in enumerate(archs):
        keys = {ending: layer_keys(arch, ending) for ending in _SETTINGS}
        row: Row = {"arch": arch}
        try:
            for metric, (table, ending) in columns.items():
                row[metric] = sum(float(table[key]) for key in keys[ending])
        except STRUCTURE as error:
            raise not_published(file, metric, error) from error
        yield i, row


def layer_keys(arch: str, ending: str = "") -> list[str]:
    """The layers of an FBNet architecture as the tables of layers name them.

    Args:
        arch: 22 operations joined by "-".
        ending: "" for CIFAR-100, "_imagenet" for ImageNet.

    >>> layer_keys("-".join(["skip"] * 22))[:2]
    ['ConvNorm_H32_W32_Cin3_Cout16_kernel3_stride1_group1', 'Skip_H32_W32_Cin16_Cout16_stride1']
    """
    size, stride, strides, head, classes = _SETTINGS[ending]
    keys = [f"ConvNorm_H{size}_W{size}_Cin3_Cout{_STEM}_kernel3_stride{stride}_group1"]
    size, width, operations = size // stride, _STEM, iter(arch.split("-"))
    for layers, out, first in zip(_LAYERS, _WIDTHS, strides, strict=True):
        for stride in (first, *[1] * (layers - 1)):
            keys.append(_layer_key(next(operations), size, width, out, stride))
            size, width = size // stride, out
    keys.append(f"ConvNorm_H{size}_W{size}_Cin{width}_Cout{head}_kernel1_stride1_group1")
    keys.append(f"AvgP_H{size}_W{size}_Cin{head}_Cout{head}_kernel{size}_stride1")
    return [*keys, f"FC_Cin{head}_Cout{classes}"]


def _layer_key(operation: str, size: int, width: int, out: int, stride: int) -> str:
    at = f"H{size}_W{size}_Cin{width}_Cout{out}"
    if operation == "skip":
        return f"Skip_{at}_stride{stride}"
    kernel, expansion, *groups = operation.split("_")
    return f"ConvBlock_{at}_exp{expansion[1:]}_kernel{kernel[1:]}_stride{stride}_group{groups[0][1:] if groups else 1}"


def fbnet_architectures(file: Path) -> list[str]:
    """The architectures of a file as strings: operations or their indices, one architecture a line or item.

    Raises:
        TableError: an unknown operation, or another number than 22; with its place.
    """
    if file.suffix == ".pt":
        found: Any = load_torch(file)
    elif file.suffix == ".json":
        found = load_json(file)
    elif file.name.endswith((".csv", ".csv.gz")):
        table = pd.read_csv(file, dtype=str)
        if "arch" not in table:
            raise TableError(str(unknown_name("column", "arch", map(str, table.columns), where=str(file))))
        found = list(table["arch"])
    else:
        found = file.read_text(encoding="utf-8").split()
    if not isinstance(found, list) or not found:
        raise damaged(file, "", "it holds no list of architectures")
    return [_fbnet_string(file, i, item) for i, item in enumerate(found, start=1)]


def _fbnet_string(file: Path, number: int, item: Any) -> str:
    operations = item.split("-") if isinstance(item, str) else item
    try:
        names = [op if isinstance(op, str) else OPERATIONS[op] for op in operations]
    except (TypeError, IndexError) as error:
        raise damaged(file, f"architecture {number}", error) from error
    if len(names) != sum(_LAYERS):
        raise damaged(file, f"architecture {number}", f"it has {len(names)} operations, not {sum(_LAYERS)}")
    for name in names:
        if name not in OPERATIONS:
            raise TableError(str(unknown_name("operation", name, OPERATIONS, where=f"{file}, architecture {number}")))
    return "-".join(names)


IMPORTER = Importer(_FILES, "Li et al., HW-NAS-Bench, ICLR 2021; github.com/GATECH-EIC/HW-NAS-Bench", _open)

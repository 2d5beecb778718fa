"""HELP's latencies (Lee et al., NeurIPS 2021): folders nasbench201, fbnet and ofa, one .pt file a device.

A list has a value an architecture, in the order of the architectures' own file beside it. Some devices report
whole milliseconds. The width of the Once-for-all networks is not stated by the source (1.2 is likely).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.hw_nas_bench import fbnet_architectures
from nasrlm.datasets.importers.ofa import once_for_all
from nasrlm.datasets.importers.pickles import load_torch
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

_FILES = "one of HELP's folders data/nasbench201, data/fbnet and data/ofa"


def _open(paths: Sequence[Path]) -> Published:
    folder = one_path(paths, _FILES)
    for name, (space, read) in _ARCHITECTURES.items():
        file = folder / name
        if file.is_file():
            try:
                archs = read(file)
            except STRUCTURE as error:
                raise not_published(file, "", error) from error
            columns = dict(_latencies(folder, len(archs)))
            return Published(space, tuple(columns), _rows(archs, columns), len(archs))
    raise damaged(folder, "", f"none of {', '.join(_ARCHITECTURES)} is in it")


def _latencies(folder: Path, architectures: int) -> Iterator[tuple[str, Sequence[float]]]:
    for file in files_in(folder / "latency", ["*.pt"]):
        values = load_torch(file)
        if not isinstance(values, list) or len(values) != architectures:
            found = f"{len(values)} values" if hasattr(values, "__len__") else "no list"
            raise damaged(file, "", f"{found} for {architectures} architectures")
        yield f"latency_ms/{file.stem}", values


def _rows(archs: Sequence[str], columns: Mapping[str, Sequence[float]]) -> Iterator[tuple[float, Row]]:
    for i, arch in enumerate(archs):
        yield i, {"arch": arch, **{metric: values[i] for metric, values in columns.items()}}


def _cells(file: Path) -> list[str]:
    index: Mapping[str, int] = load_torch(file)
    return sorted(index, key=lambda arch: index[arch])


def _elastic(file: Path) -> list[str]:
    found: Any = load_torch(file)
    return [json.dumps(once_for_all(arch), separators=(",", ":")) for arch in found["arch"]]


_ARCHITECTURES: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "str_arch2idx.pt": ("nasbench201", _cells),
    "arch.pt": ("fbnet", fbnet_architectures),
    "ofa_archs.pt": ("ofa_mobilenetv3", _elastic),
}

IMPORTER = Importer(_FILES, "Lee et al., HELP, NeurIPS 2021; github.com/HayeonLee/HELP", _open)

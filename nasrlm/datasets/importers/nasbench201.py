"""NAS-Bench-201's files (Dong & Yang, ICLR 2020): one .pth of everything, or the archive, one .pth an architecture.

They are read as the authors' package nas-bench-201 understands them, by torch's safe reader and without the
package; a test compares the two. The single file is read into memory at once, as the package does (version 1.1
needs tens of gigabytes); the unpacked archive is read file by file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers import nats_records
from nasrlm.datasets.importers.pickles import load_torch
from nasrlm.datasets.importers.protocol import (
    STRUCTURE,
    Importer,
    Published,
    Row,
    files_in,
    not_published,
    one_path,
)

_FILES = "NAS-Bench-201-v1_1-096897.pth, or the unpacked archive"
_BUDGETS = {"full": "200", "less": "12"}


def _open(paths: Sequence[Path]) -> Published:
    path = one_path(paths, _FILES)
    metrics = nats_records.metrics(tuple(_BUDGETS.values()))
    if path.is_dir():
        files = files_in(path, ["*.pth"])
        return Published("nasbench201", metrics, _archive(files), len(files), "files")
    everything = load_torch(path)
    try:
        infos, archs = everything["arch2infos"], everything["meta_archs"]
        return Published("nasbench201", metrics, _all(path, infos, archs), len(infos))
    except STRUCTURE as error:
        raise not_published(path, "", error) from error


def _all(file: Path, infos: dict[int, Any], archs: Sequence[str]) -> Iterator[tuple[float, Row]]:
    for count, index in enumerate(sorted(infos)):
        try:
            yield count, _row(infos[index], archs[index])
        except STRUCTURE as error:
            raise not_published(file, f"architecture {index}", error) from error


def _archive(files: Sequence[Path]) -> Iterator[tuple[float, Row]]:
    for count, file in enumerate(files):
        info = load_torch(file)
        try:
            yield count, _row(info, info["full"]["arch_str"])
        except STRUCTURE as error:
            raise not_published(file, "", error) from error


def _row(info: dict[str, Any], arch: str) -> Row:
    return nats_records.row(arch, {epochs: info[key] for key, epochs in _BUDGETS.items() if key in info}, "200")


IMPORTER = Importer(_FILES, "Dong & Yang, NAS-Bench-201, ICLR 2020; github.com/D-X-Y/NAS-Bench-201", _open)

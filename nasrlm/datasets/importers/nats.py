"""NATS-Bench's files (Dong et al., TPAMI 2021), topology (tss) and size (sss), as folders or single files.

The "simple" versions, bz2-compressed pickles. A folder is read file by file; a single file at once, as the
authors' package does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers import nats_records
from nasrlm.datasets.importers.pickles import load_pickle
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

_FILES = "NATS-tss-v1_0-3ffb9-simple, NATS-sss-v1_0-50262-simple, or either's .pickle.pbz2"
_META = "meta.pickle.pbz2"
_SPACES = {"200": "nasbench201", "90": "nats_sss"}  # by the largest budget
_BUDGETS = {"200": ("200", "12"), "90": ("90", "12", "01")}

Infos = Mapping[str, nats_records.Results]


def _open(paths: Sequence[Path]) -> Published:
    path = one_path(paths, _FILES)
    if path.is_dir():
        files = [file for file in files_in(path, ["[0-9]*.pickle.pbz2"]) if file.name != _META]
        archs = _archs(path / _META)
        return _published(files[0], load_pickle(files[0]), _folder(files, archs), len(files), "files")
    everything = load_pickle(path)
    try:
        infos = everything["arch2infos"]
        first = next(iter(infos.values()))
        return _published(path, first, _single(path, infos, everything["meta_archs"]), len(infos), "architectures")
    except (*STRUCTURE, StopIteration) as error:
        raise not_published(path, "", error) from error


def _published(file: Path, first: Infos, rows: Iterator[tuple[float, Row]], total: int, unit: str) -> Published:
    largest = next((budget for budget in _SPACES if budget in first), None)
    if largest is None:
        raise damaged(file, "", f"its budgets are {', '.join(map(str, first))}, expected 200 (tss) or 90 (sss)")
    return Published(_SPACES[largest], nats_records.metrics(_BUDGETS[largest]), rows, total, unit)


def _archs(meta: Path) -> Sequence[str] | None:
    """Architecture by index; without the file the records' own strings are used."""
    if not meta.is_file():
        return None
    try:
        archs: Sequence[str] = load_pickle(meta)["meta_archs"]
        return archs
    except STRUCTURE as error:
        raise not_published(meta, "", error) from error


def _folder(files: Sequence[Path], archs: Sequence[str] | None) -> Iterator[tuple[float, Row]]:
    for count, file in enumerate(files):
        infos = load_pickle(file)
        try:
            yield count, _row(infos, archs[int(file.name[:6])] if archs else None)
        except STRUCTURE as error:
            raise not_published(file, "", error) from error


def _single(file: Path, infos: Mapping[int, Infos], archs: Sequence[str]) -> Iterator[tuple[float, Row]]:
    for count, index in enumerate(sorted(infos)):
        try:
            yield count, _row(infos[index], archs[index])
        except STRUCTURE as error:
            raise not_published(file, f"architecture {index}", error) from error


def _row(infos: Infos, arch: str | None) -> Row:
    largest: Any = next(budget for budget in _SPACES if budget in infos)
    return nats_records.row(arch or infos[largest]["arch_str"], infos, largest)


IMPORTER = Importer(_FILES, "Dong et al., NATS-Bench, TPAMI 2021; github.com/D-X-Y/NATS-Bench", _open)

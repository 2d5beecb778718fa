"""TransNAS-Bench-101's .pth (Duan et al., CVPR 2021; yawen-d/TransNASBench): seven tasks, micro or macro space.

Values are those after the last epoch, on the validation set. The file is read at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.pickles import load_torch
from nasrlm.datasets.importers.protocol import STRUCTURE, Importer, Published, Row, existing, not_published
from nasrlm.errors import TableError, unknown_name

_FILES = "transnas-bench_v10141024.pth and one of the words micro and macro"
_SPACES = {"micro": "transnas_micro", "macro": "transnas_macro"}
_VALUES = {
    "class_scene": {"top1": "accuracy"},
    "class_object": {"top1": "accuracy"},
    "jigsaw": {"top1": "accuracy"},
    "room_layout": {"neg_loss": "neg_loss", "loss": "loss"},
    "segmentsemantic": {"acc": "accuracy", "mIoU": "miou"},
    "normal": {"ssim": "ssim"},
    "autoencoder": {"ssim": "ssim"},
}


def _open(paths: Sequence[Path]) -> Published:
    if len(paths) != 2:
        raise TableError(f"expected two paths, {_FILES}; given are {len(paths)}.")
    file, kind = existing(paths[0]), str(paths[1])
    if kind not in _SPACES:
        raise TableError(str(unknown_name("search space", kind, _SPACES)))
    everything = load_torch(file)
    try:
        by_arch = everything["data"][kind]
        columns = dict(_columns(everything["metrics_dict"]))
        return Published(_SPACES[kind], tuple(columns), _rows(file, by_arch, columns), len(by_arch))
    except STRUCTURE as error:
        raise not_published(file, "", error) from error


def _columns(names: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, tuple[str, str]]]:
    """metric -> (task, published name)."""
    for task, published in names.items():
        for name, quantity in _VALUES.get(task, {}).items():
            written = next((n for n in (f"valid_{name}", name) if n in published), None)
            if written is not None:
                yield f"{quantity}/{task}", (task, written)


def _rows(
    file: Path, by_arch: Mapping[str, Mapping[str, Any]], columns: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[float, Row]]:
    for i, (arch, tasks) in enumerate(by_arch.items()):
        try:
            yield (
                i,
                {
                    "arch": arch,
                    **{
                        m: float(tasks[task]["metrics"][name][-1])
                        for m, (task, name) in columns.items()
                        if task in tasks
                    },
                },
            )
        except STRUCTURE as error:
            raise not_published(file, f"architecture {arch}", error) from error


IMPORTER = Importer(_FILES, "Duan et al., TransNAS-Bench-101, CVPR 2021; github.com/yawen-d/TransNASBench", _open)

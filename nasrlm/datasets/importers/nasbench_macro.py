"""NAS-Bench-Macro's JSON (Su et al., CVPR 2021; xiusu/NAS-Bench-Macro): CIFAR-10 accuracy of all 6,561 strings.

The strings are 3,969 different networks, and the file repeats their values: split by network. Its FLOPs are MACs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.json_files import load_json
from nasrlm.datasets.importers.protocol import STRUCTURE, Importer, Published, Row, damaged, not_published, one_path

_FILES = "nas-bench-macro_cifar10.json"
_COLUMNS = {"accuracy/cifar10": "mean_acc", "params": "params", "macs": "flops"}


def _open(paths: Sequence[Path]) -> Published:
    file = one_path(paths, _FILES)
    data = load_json(file)
    if not isinstance(data, dict):
        raise damaged(file, "", "no object of architectures")
    return Published("nasbench_macro", tuple(_COLUMNS), _rows(file, data), len(data))


def _rows(file: Path, data: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[float, Row]]:
    for i, (arch, values) in enumerate(data.items()):
        try:
            yield i, {"arch": arch, **{metric: float(values[key]) for metric, key in _COLUMNS.items()}}
        except STRUCTURE as error:
            raise not_published(file, f"architecture {arch}", error) from error


IMPORTER = Importer(
    _FILES, "Su et al., Prioritized Architecture Sampling with Monte-Carlo Tree Search, CVPR 2021", _open
)

"""Code-Regression, the programs of the RLM paper (Hugging Face, akhauriyash): one parquet file of 7.5 million rows.

The texts are programs, not networks, and stay as they are, in the column ``text``; each row has one of two metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.protocol import STRUCTURE, Importer, Published, Row, damaged, not_published, one_path
from nasrlm.datasets.importers.rlm_files import open_parquet, read_rows

_FILES = "the parquet file of the data set"
_COLUMNS = ("identifier", "space", "input", "metric_type")
_TARGETS = ("target", "target_metric", "val_accuracy")  # the file's name for the value, then the card's
_METRICS = ("memory_bytes", "latency_ms")


def _open(paths: Sequence[Path]) -> Published:
    file = one_path(paths, _FILES)
    opened = open_parquet(file, _COLUMNS)
    target = next((name for name in _TARGETS if name in opened.schema_arrow.names), None)
    if target is None:
        raise damaged(file, "", f"it has none of the columns {', '.join(_TARGETS)}")
    total = opened.metadata.num_rows
    return Published("", _METRICS, _rows(file, opened, target), total, "programs", texts=("id", "space", "text"))


def _rows(file: Path, opened: Any, target: str) -> Iterator[tuple[float, Row]]:
    for number, row in read_rows(file, opened, (*_COLUMNS, target)):
        metric, value = row["metric_type"], row[target]
        if metric not in _METRICS:
            raise damaged(file, f"row {number:,}", f"unknown metric {metric!r}, expected {' or '.join(_METRICS)}")
        try:
            number_of = None if value is None else float(value)
        except STRUCTURE as error:
            raise not_published(file, f"row {number:,}", error) from error
        yield number, {"id": row["identifier"], "space": row["space"], "text": row["input"], metric: number_of}


IMPORTER = Importer(_FILES, "Akhauri et al., Code-Regression; huggingface.co/datasets/akhauriyash", _open)

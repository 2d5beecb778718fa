"""GraphArch-Regression, the networks of the RLM paper (Hugging Face, akhauriyash): ONNX in words, one parquet file.

The networks become canonical texts in the column ``text``; ids, space and architecture stand beside them as published.
Numbers of the ``metadata`` are columns: ``proxy/...`` for zcp_ and ``latency/...`` for lat_ (no unit is stated).
Rows whose network cannot be read are left out, counted, and named with the reason. See `onnx_words` for what the
words do not hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.protocol import Importer, Published, Row, Skipped, one_path
from nasrlm.datasets.importers.rlm_files import open_parquet, read_rows
from nasrlm.errors import NasrlmError

_FILES = "the parquet file of the data set"
_COLUMNS = ("identifier", "space", "uid", "arch_str", "input", "val_accuracy", "flops", "params", "metadata")
_TEXTS = {"id": "identifier", "space": "space", "uid": "uid", "arch": "arch_str"}
_NUMBERS = {"accuracy/valid": "val_accuracy", "params": "params", "flops/published": "flops"}
_METADATA = {"zcp_": "proxy/", "lat_": "latency/"}


def _open(paths: Sequence[Path]) -> Published:
    file = one_path(paths, _FILES)
    opened = open_parquet(file, _COLUMNS)
    # Spaces have other proxies and devices: the columns are known after all metadata have been read once.
    more = dict.fromkeys(key for _, row in read_rows(file, opened, ["metadata"]) for key in _numbers(row["metadata"]))
    skipped = Skipped()
    rows = _rows(file, opened, skipped)
    total = opened.metadata.num_rows
    return Published("", (*_NUMBERS, *more), rows, total, "networks", texts=(*_TEXTS, "text"), skipped=skipped)


def _rows(file: Path, opened: Any, skipped: Skipped) -> Iterator[tuple[float, Row | None]]:
    from nasrlm.datasets.importers.onnx_words import canonical_text

    for number, row in read_rows(file, opened, _COLUMNS):
        try:
            text = canonical_text(row["input"] or "")
        except NasrlmError as error:
            skipped.add(f"row {number:,} ({row['identifier']}): {error}")
            yield number, None
            continue
        found: Row = {name: _text(row[column]) for name, column in _TEXTS.items()}
        found |= {name: row[column] for name, column in _NUMBERS.items()}
        yield number, {**found, **_numbers(row["metadata"]), "text": text}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _numbers(metadata: str | None) -> Row:
    """The numbers in the text of a dictionary, under our names; {} where it is none.

    >>> _numbers("{'zcp_naswot': 1.5, 'lat_pixel3': 7, 'lat_x': None}")
    {'proxy/naswot': 1.5, 'latency/pixel3': 7.0}
    """
    try:
        values = ast.literal_eval(metadata or "{}")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    found: Row = {}
    for key, value in values.items() if isinstance(values, dict) else ():
        prefix = next((prefix for prefix in _METADATA if str(key).startswith(prefix)), None)
        if prefix and isinstance(value, int | float):
            found[_METADATA[prefix] + str(key).removeprefix(prefix)] = float(value)
    return found


IMPORTER = Importer(_FILES, "Akhauri et al., GraphArch-Regression; huggingface.co/datasets/akhauriyash", _open)

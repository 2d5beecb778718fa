"""Splits on disk: JSON lists of row positions, with the fingerprint of the table that they belong to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from nasrlm.datasets.splits import Split
from nasrlm.datasets.table import Table
from nasrlm.errors import TableError
from nasrlm.files import whole_file

FORMAT = "nasrlm/split@1"


def save_split(split: Split, table: Table, path: str | Path) -> Path:
    """Writes a split as JSON; the file appears whole or not at all.

    Raises:
        TableError: the file cannot be written there.
    """
    path = Path(path)
    parts = {name: [int(row) for row in rows] for name, rows in split.items()}
    content = {
        "format": FORMAT,
        "space": table.space.name,
        "fingerprint": table.fingerprint,
        "rows": len(table),
        "parts": parts,
    }
    try:
        with whole_file(path) as part:
            part.write_text(json.dumps(content, separators=(",", ":")) + "\n")
    except OSError as error:
        raise TableError(
            f"the split cannot be written to {path}: {error.strerror}. Name a folder you may write to."
        ) from error
    return path


def load_split(path: str | Path, table: Table) -> Split:
    """Reads a split that `save_split` wrote for the same architectures in the same order.

    Raises:
        TableError: no such file, damaged, of another format, or made for another table.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text())
        found, fingerprint, rows = content["format"], content["fingerprint"], int(content["rows"])
        parts = {str(name): np.array(positions, dtype=np.int64) for name, positions in content["parts"].items()}
    except OSError as error:
        raise TableError(f"the split file {path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TableError(f"{path} is no split file, or is damaged ({error}). Make it again with save_split.") from error
    if found != FORMAT:
        raise TableError(
            f"{path} has the format {found!r}; this version reads {FORMAT!r}. Make it again with save_split."
        )
    if fingerprint != table.fingerprint:
        raise TableError(
            f"{path} was made for another table (fingerprint {fingerprint}, {rows} rows; this one has "
            f"{table.fingerprint}, {len(table)} rows). Load the same file with the same space, or split "
            "again."
        )
    if any(len(p) and (p.min() < 0 or p.max() >= len(table)) for p in parts.values()):
        raise TableError(
            f"{path} names rows outside 0 .. {len(table) - 1}: it was changed. Make it again with save_split."
        )
    return parts

"""What the importers of the RLM papers' parquet files share: reading them in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.protocol import damaged
from nasrlm.errors import TableError, unknown_name

_BATCH = 200  # rows; a text may have a million characters


def open_parquet(file: Path, columns: Sequence[str]) -> Any:
    """The opened file.

    Raises:
        TableError: it is no parquet file, or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        opened = pq.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise damaged(file, "", error) from error
    for column in columns:
        if column not in opened.schema_arrow.names:
            raise TableError(str(unknown_name("column", column, opened.schema_arrow.names, where=str(file))))
    return opened


def read_rows(file: Path, opened: Any, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of an opened file, counted from 1, as column -> value.

    Raises:
        TableError: the file is damaged; with the row it was read to.
    """
    import pyarrow as pa

    number = 0
    try:
        for batch in opened.iter_batches(_BATCH, columns=list(columns)):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (OSError, pa.ArrowException) as error:
        raise damaged(file, f"after row {number:,}", error) from error

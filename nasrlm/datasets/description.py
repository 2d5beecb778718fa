"""What a file of labels holds: rows, metrics with unit and range, blanks, distinct texts, and how its space reads it.

A column is read at a time, and texts in batches, so that files of many gigabytes can be described. The DataFrame of
a loaded :class:`~nasrlm.datasets.Table` comes from :func:`nasrlm.datasets.describe`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nasrlm import registry
from nasrlm.datasets.importers.protocol import damaged, existing
from nasrlm.datasets.importers.write import IMPORTER_KEY, SPACE_KEY
from nasrlm.datasets.metric_names import name_and_unit
from nasrlm.datasets.read import BLANK_WORDS, PARQUET_SUFFIXES, TEXT_SUFFIXES, shipped_tables
from nasrlm.errors import MetricError, SpaceError, TableError, unknown_name
from nasrlm.spaces import SearchSpace, get_space

ARCH = "arch"
"""The column that holds official strings."""
LOOKED_AT = 50_000
"""Strings that a space is given at the most; of a longer table they are taken at even distances."""
_PROBLEMS = 3  # strings that a space refused which are quoted
_HASHES = 1 << 20  # that are collected before they are made distinct
_BATCH = 2_000  # rows of text in memory at a time


@dataclass(frozen=True)
class Strings:
    """How a space reads the column of official strings.

    Attributes:
        space: its name.
        looked_at: strings that were given to it.
        refused: those it did not read.
        distinct: distinct architectures among those it read.
        problems: the first reasons, each with its row.
    """

    space: str
    looked_at: int
    refused: int
    distinct: int
    problems: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Description:
    """What was found in a file.

    Attributes:
        file: the file.
        rows: all its rows.
        space: the space it names (an imported table does) or that was given; "" where it is not known.
        importer: the importer that wrote it, or "".
        metrics: index metric; columns unit, values, blanks, distinct, minimum, median, maximum.
        texts: index column; columns values, blanks, distinct.
        strings: how the space reads the column `arch`; None without that column or a space that is here.
    """

    file: Path
    rows: int
    space: str
    importer: str
    metrics: pd.DataFrame
    texts: pd.DataFrame
    strings: Strings | None


def describe_file(source: str | Path, *, space: str | None = None) -> Description:
    """Describe a table of labels.

    Args:
        source: a .parquet, .csv or .csv.gz file, or the name of a table that comes with nasrlm.
        space: the strings' space, a name or a .py file; default: the one the file names.

    Raises:
        TableError: no such file, another type, damaged, or without rows.
        UnknownNameError: no such space.

    >>> int(describe_file("snas_digits").metrics.loc["params", "blanks"])
    0
    """
    table = _Source.open(source)
    if not table.rows:
        raise TableError(f"{table.file} has no rows. A table needs at least one architecture.")
    named = space or table.note(SPACE_KEY)
    found = get_space(space) if space else get_space(named) if named in registry.names("spaces") else None
    metrics = [_numbers_row(name, table.numbers(name)) for name in table.metrics]
    texts = [_texts_row(name, table) for name in table.texts]
    return Description(
        table.file,
        table.rows,
        found.name if found else named,
        table.note(IMPORTER_KEY),
        pd.DataFrame(metrics, columns=_NUMBER_COLUMNS).set_index("metric"),
        pd.DataFrame(texts, columns=_TEXT_COLUMNS).set_index("column"),
        _strings(table, found) if found and ARCH in table.texts else None,
    )


def read_values(source: str | Path, metrics: Sequence[str]) -> pd.DataFrame:
    """The values of some metrics of a file, one float column a metric, NaN = blank.

    Raises:
        TableError: as `describe_file`.
        MetricError: a metric that the file does not have.
    """
    table = _Source.open(source)
    for metric in metrics:
        if metric not in table.metrics:
            raise MetricError(str(unknown_name("metric", metric, table.metrics, where=str(table.file))))
    return pd.DataFrame({metric: table.numbers(metric) for metric in metrics})


_NUMBER_COLUMNS = ["metric", "unit", "values", "blanks", "distinct", "minimum", "median", "maximum"]
_TEXT_COLUMNS = ["column", "values", "blanks", "distinct"]


def _numbers_row(metric: str, numbers: np.ndarray) -> tuple[Any, ...]:
    known = numbers[~np.isnan(numbers)]
    ranges = (known.min(), float(np.median(known)), known.max()) if len(known) else (np.nan,) * 3
    return (
        metric,
        name_and_unit(metric)[1],
        len(known),
        len(numbers) - len(known),
        len(np.unique(known)),
        *map(float, ranges),
    )


def _texts_row(name: str, table: _Source) -> tuple[str, int, int, int]:
    """Counts of a column of text; distinct ones by hashes, eight bytes each."""
    hashes, waiting = np.empty(0, np.uint64), [np.empty(0, np.uint64)]
    values = 0
    for batch in table.text_batches(name):
        known = batch[batch.notna() & (batch != "")]
        values += len(known)
        waiting.append(pd.util.hash_array(known.to_numpy(object), categorize=False))
        if sum(map(len, waiting)) > len(hashes) + _HASHES:
            hashes, waiting = np.unique(np.concatenate([hashes, *waiting])), []
    distinct = len(np.unique(np.concatenate([hashes, *waiting])))
    return name, values, table.rows - values, distinct


def _strings(table: _Source, space: SearchSpace) -> Strings:
    step = -(-table.rows // LOOKED_AT)
    seen: set[str] = set()
    problems: list[str] = []
    looked_at = refused = row = 0
    for batch in table.text_batches(ARCH):
        for i in range(-row % step, len(batch), step):
            looked_at += 1
            text = batch.iloc[i]
            try:
                seen.add(space.architecture("" if pd.isna(text) else text).string)
            except SpaceError as error:
                refused += 1
                if refused <= _PROBLEMS:
                    problems.append(f"row {row + i + 1:,}: {error}")
        row += len(batch)
    return Strings(space.name, looked_at, refused, len(seen), tuple(problems))


@dataclass(frozen=True, eq=False)
class _Source:
    """A file by its columns; a CSV is read at once, a parquet file column by column."""

    file: Path
    rows: int
    metrics: list[str]
    texts: list[str]
    opened: Any

    @staticmethod
    def open(source: str | Path) -> _Source:
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = _existing(Path(source))
        try:
            in_text = file.name.lower().endswith(TEXT_SUFFIXES)
            opened = pa.Table.from_pandas(_read_csv(file), preserve_index=False) if in_text else pq.ParquetFile(file)
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise damaged(file, "", error) from error
        rows = opened.num_rows if in_text else opened.metadata.num_rows
        schema = opened.schema if in_text else opened.schema_arrow
        kinds = {field.name: field.type for field in schema}
        is_number = {n for n, t in kinds.items() if any(is_kind(t) for is_kind in _number_kinds())}
        is_text = {n for n, t in kinds.items() if pa.types.is_string(t) or pa.types.is_large_string(t)}
        metrics, texts = ([name for name in kinds if name in names] for names in (is_number, is_text))
        return _Source(file, rows, metrics, texts, opened)

    def note(self, key: bytes) -> str:
        """What an importer wrote beside the columns."""
        metadata = getattr(self.opened, "schema_arrow", self.opened.schema).metadata or {}
        return (metadata.get(key) or b"").decode()

    def numbers(self, name: str) -> np.ndarray:
        """A column as floats, NaN where it is blank."""
        parts = [batch.column(0).to_pandas() for batch in self._batches(name, 1 << 20)]
        return np.concatenate([part.to_numpy(np.float64, na_value=np.nan) for part in parts])

    def text_batches(self, name: str) -> Iterator[pd.Series]:
        """A column of text in parts."""
        for batch in self._batches(name, _BATCH):
            yield batch.column(0).to_pandas()

    def _batches(self, name: str, size: int) -> Iterator[Any]:
        import pyarrow as pa

        try:
            if isinstance(self.opened, pa.Table):
                yield from self.opened.select([name]).to_batches(size)
            else:
                yield from self.opened.iter_batches(size, columns=[name])
        except (OSError, ValueError) as error:
            raise damaged(self.file, f"column {name}", error) from error


def _number_kinds() -> tuple[Any, ...]:
    from pyarrow import types

    return types.is_integer, types.is_floating, types.is_boolean


def _existing(path: Path) -> Path:
    shipped = shipped_tables()
    if path.name in shipped and not path.exists():
        return shipped[path.name]
    allowed = TEXT_SUFFIXES + PARQUET_SUFFIXES
    if not existing(path).is_file() or not path.name.lower().endswith(allowed):
        raise TableError(f"{path} is not a table that can be read. Its name must end in {', '.join(allowed)}.")
    return path


def _read_csv(file: Path) -> pd.DataFrame:
    """A CSV file: a column of numbers where every cell is one; digits that begin with a zero, and strings, are text."""
    cells = pd.read_csv(file, dtype=str, keep_default_na=False)
    for name in cells.columns:
        text = cells[name].str.strip()
        blank = text.str.lower().isin(BLANK_WORDS)
        numbers = pd.to_numeric(text.mask(blank), errors="coerce")
        is_text = name == ARCH or (numbers.isna() & ~blank).any() or text.str.match(r"0\d").any()
        cells[name] = text.mask(blank) if is_text else numbers.astype(np.float64)
    return cells

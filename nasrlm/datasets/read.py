"""Reads the wanted columns of a table as they stand, and remembers which line each row stood on."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from nasrlm.errors import TableError, unknown_name

TEXT_SUFFIXES = (".csv", ".csv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
BLANK_WORDS = ("", "nan", "na", "n/a", "null")


@dataclass(frozen=True)
class RawTable:
    """Cells as they were found: text for CSV, whatever the column holds otherwise.

    Attributes:
        cells: the wanted columns, rows 0 .. n-1; rows in which every cell is blank are left out.
        lines: where each row stood, counted from 1 (for CSV the line of the file, the header being line 1).
        label: the source in words, for messages.
        unit: "line" or "row", what `lines` counts.
    """

    cells: pd.DataFrame
    lines: np.ndarray
    label: str
    unit: str

    def place(self, row: int) -> str:
        """Words for the place of row number `row` of `cells`, such as "line 17 of table.csv"."""
        return f"{self.unit} {self.lines[row]} of {self.label}"


def read_columns(source: str | Path | pd.DataFrame, columns: Sequence[str], where: str | None = None) -> RawTable:
    """The named columns of a CSV (also .csv.gz) or parquet file, or of a DataFrame.

    Args:
        source: path or DataFrame.
        columns: column names that must be there.
        where: who asks, for messages (a YAML file and line, say).

    Raises:
        TableError: no such file, another file type, damaged, a column that is not there, or no rows.
    """
    if isinstance(source, pd.DataFrame):
        label, unit, first = "the DataFrame", "row", 1
        cells = source[_known(columns, list(source.columns), label, where)].reset_index(drop=True)
    else:
        path = _existing(Path(source), where)
        is_text = path.name.lower().endswith(TEXT_SUFFIXES)
        label, unit, first = path.name, "line" if is_text else "row", 2 if is_text else 1
        cells = _read_file(path, columns, where)
    kept = np.flatnonzero(~blank(cells).all(axis=1).to_numpy())
    if not len(kept):
        raise TableError(
            f"{label} has no rows{_at(where)}. A table needs a header and at least one architecture below it."
        )
    return RawTable(cells.iloc[kept].reset_index(drop=True), kept + first, label, unit)


def blank(cells: pd.DataFrame) -> pd.DataFrame:
    """True where a cell is empty: missing, or one of the words in BLANK_WORDS, whatever their case."""
    return cells.apply(lambda column: column.isna() | _words(column).isin(BLANK_WORDS))


def _words(column: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(column):
        return pd.Series("number", index=column.index)  # only missing cells of it can be blank
    return column.astype(str).str.strip().str.lower()


def shipped_tables() -> dict[str, Path]:
    """Tables that come with nasrlm: name -> file. Beside each is its data card, NAME.md.

    >>> sorted(shipped_tables())
    ['snas_digits']
    """
    folder = Path(__file__).parents[1] / "tables"
    return {file.stem: file for file in sorted(folder.glob("*.parquet"))}


def _existing(path: Path, where: str | None) -> Path:
    shipped = shipped_tables()
    if path.name in shipped and not path.exists():
        return shipped[path.name]
    allowed = TEXT_SUFFIXES + PARQUET_SUFFIXES
    if not path.name.lower().endswith(allowed):
        raise TableError(
            f"{path} is not a table that can be read{_at(where)}: its name must end in {', '.join(allowed)}, or "
            f"be that of a table that comes with nasrlm: {', '.join(shipped)}."
        )
    if not path.is_file():
        # glob gives nothing, without an error, for a folder that does not exist
        near = sorted(p.name for p in path.parent.glob("*") if p.name.lower().endswith(allowed))
        found = f"Tables in that folder: {', '.join(near[:8])}." if near else "No table is in that folder."
        raise TableError(f"there is no file {path}{_at(where)}. {found} Put the table there or correct the path.")
    return path


def _read_file(path: Path, columns: Sequence[str], where: str | None) -> pd.DataFrame:
    try:
        if path.name.lower().endswith(PARQUET_SUFFIXES):
            import pyarrow.parquet

            present = pyarrow.parquet.read_schema(path).names
            wanted = _known(columns, present, path.name, where)
            return pd.read_parquet(path, columns=wanted).reset_index(drop=True)
        present = list(pd.read_csv(path, nrows=0).columns)
        wanted = _known(columns, present, path.name, where)
        # Text first: a number column with a word in it must be reported with the word, not as "object".
        cells = pd.read_csv(path, dtype=str, keep_default_na=False, skip_blank_lines=False)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        # ValueError covers pandas' parser, Arrow and bytes that are no UTF-8.
        raise TableError(f"{path} cannot be read as a table{_at(where)}: {error}. Is the file complete?") from error
    if not isinstance(cells.index, pd.RangeIndex):  # pandas takes surplus leading fields for an index
        raise TableError(
            f"{path} has rows with more fields than its header has names{_at(where)}; is a header name missing?"
        )
    return cells[wanted]


def _known(columns: Sequence[str], present: Sequence[str], label: str, where: str | None) -> list[str]:
    names = [str(name) for name in present]
    for column in columns:
        if column not in names:
            place = f"{where} ({label})" if where else label
            raise TableError(str(unknown_name("column", column, names, where=place)))
        if names.count(column) > 1:
            raise TableError(f"{label} has {names.count(column)} columns called {column!r}{_at(where)}. Rename them.")
    return list(dict.fromkeys(columns))


def _at(where: str | None) -> str:
    return f" ({where})" if where else ""

"""Turns the cells of a table into architectures and numbers, or says which cell does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from nasrlm.datasets.read import RawTable, blank
from nasrlm.errors import SpaceError, TableError
from nasrlm.spaces import Architecture, Choice, SearchSpace

SHOWN = 5  # how many unknown architectures a message quotes


def read_numbers(raw: RawTable, column: str, where: str | None = None) -> np.ndarray:
    """One column as float64; blank cells are NaN.

    Raises:
        TableError: text or an infinity where a number should be: the column, the place and the value.
    """
    cells = raw.cells[column]
    empty = blank(raw.cells[[column]])[column].to_numpy()
    text = cells.astype(str).str.strip() if not pd.api.types.is_numeric_dtype(cells) else cells
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan).copy()
    if pd.api.types.is_bool_dtype(cells):
        numbers[:] = np.nan  # true and false are no measurements
    numbers[empty] = np.nan
    wrong = np.flatnonzero((np.isnan(numbers) & ~empty) | np.isinf(numbers))
    if len(wrong):
        row = int(wrong[0])
        more = f" ({len(wrong) - 1} more such cells in this column)" if len(wrong) > 1 else ""
        asked = f" ({where})" if where else ""
        raise TableError(
            f"column {column!r}, {raw.place(row)}{asked}: {str(cells.iloc[row])!r} is not a finite "
            f"number{more}. "
            "Write a number, or leave the cell empty where the value is not known."
        )
    return numbers


def read_architectures(
    raw: RawTable, space: SearchSpace, columns: str | Mapping[str, str], where: str | None = None
) -> list[Architecture]:
    """One architecture a row.

    Args:
        raw: the cells.
        space: what they must belong to.
        columns: the column of official strings, or column -> parameter name.
        where: who asks, for messages.

    Raises:
        TableError: rows outside the space: how many, and the first five with place, text and reason.
    """
    cells, make = _readers(raw, space, columns)
    found: list[Architecture] = []
    wrong: list[str] = []
    for row, cell in enumerate(cells):
        try:
            found.append(space.architecture(make(cell)))
        except SpaceError as error:
            wrong.append(f"{raw.place(row)}: {error}" if len(wrong) < SHOWN else "")
    if wrong:
        lines = "\n".join(f"  {text}" for text in wrong[:SHOWN])
        more = f"\n  ... and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        asked = f" ({where})" if where else ""
        raise TableError(
            f"{len(wrong)} of {len(raw.lines)} rows of {raw.label} hold no architecture of the search space "
            f"{space.name}{asked}:\n{lines}{more}\nCorrect these rows, or name another space or column."
        )
    return found


def _readers(
    raw: RawTable, space: SearchSpace, columns: str | Mapping[str, str]
) -> tuple[list[Any], Callable[[Any], Any]]:
    if isinstance(columns, str):
        return raw.cells[columns].fillna("").astype(str).str.strip().tolist(), lambda text: text
    parameters = {parameter.name: parameter for parameter in space.parameters}
    chosen = [parameters[columns[column]] for column in columns]
    texts = raw.cells[list(columns)].mask(blank(raw.cells[list(columns)]), None)
    rows = list(zip(*(texts[column].tolist() for column in columns), strict=True))
    # The order of declaration, whatever the order of the columns.
    order = sorted(range(len(chosen)), key=lambda i: list(parameters).index(chosen[i].name))

    def params(cells: tuple[Any, ...]) -> dict[str, Any]:
        return {chosen[i].name: _typed(chosen[i], cells[i]) for i in order if not _missing(cells[i])}

    return rows, params


def _missing(cell: Any) -> bool:
    return cell is None or cell is pd.NA or (isinstance(cell, float) and np.isnan(cell))


def _typed(parameter: Any, cell: Any) -> Any:
    """The parameter's own value for a cell: files hold text and floats for what a space calls 3 or True."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(parameter, Choice):
        return next((value for value in parameter.values if _same(value, cell)), cell)
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return cell  # the space says what is wrong with it
    return int(number) if number.is_integer() else cell


def _same(value: Any, cell: Any) -> bool:
    if isinstance(value, bool) or isinstance(cell, bool) or isinstance(value, str):
        return str(value).lower() == str(cell).strip().lower()
    try:
        return float(value) == float(cell)
    except (TypeError, ValueError):
        return False

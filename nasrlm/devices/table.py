"""A table of latencies, published or measured before, in place of the device itself."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nasrlm.devices.measurement import Measurement, summarise
from nasrlm.devices.networks import graph_of
from nasrlm.devices.options import check_label
from nasrlm.errors import DeviceError, SpaceError, TableError, nearest
from nasrlm.graph import to_text
from nasrlm.spaces import get_space


class TableDevice:
    """Looks a network's latency up in a table, by its canonical text.

    So a published device stands wherever one is asked for, and any file of the same network finds its row, whoever
    exported it. Architectures with one text (dead work counts) share their rows: minimum, quartiles and median are
    over those. Where architectures are at hand, the evaluator `table` is quicker and keeps such rows apart.

    Args:
        path: .csv, .csv.gz or .parquet file.
        column: the column of milliseconds; blanks are skipped.
        space: name of the search space that the rows are of.
        arch_column: the column of official strings.
        label: what stands behind "latency_ms/" in the metric; default the column's name.
        max_spread: distance of the quartiles divided by the median, up to which rows that share a text agree.

    Raises:
        TableError: a file that cannot be read, a column it does not have, or values that are no times.

    Example:
        >>> TableDevice("nasbench201.csv.gz", column="pixel3_ms", space="nasbench201")  # doctest: +SKIP
    """

    name = "table"

    def __init__(
        self,
        path: str,
        column: str,
        space: str,
        arch_column: str = "arch",
        label: str | None = None,
        max_spread: float = 0.1,
    ) -> None:
        self.where, self.path, self.max_spread = f"device {self.name}", path, max_spread
        self.metric = f"latency_ms/{check_label(self.where, column if label is None else label)}"
        self._space = get_space(space)
        self._rows = _read(path, arch_column, column, self.where)

    def measure(self, model: bytes) -> Measurement:
        """The table's times of a serialized ONNX model. The first call reads the text of every row.

        Raises:
            DeviceError: bytes that are no network, or one without a row.
            TableError: a row with a string outside the space.
        """
        text = to_text(graph_of(model, self.where), dead_work=True)
        times = self._times.get(text)
        if times is None:
            raise DeviceError(
                f"{self.where}: {self.path} has no row for this network. Its {len(self._rows)} rows are networks of "
                f"{self._space.name}; use a table that holds it."
            )
        return summarise(times, threads=1, max_spread=self.max_spread)

    @cached_property
    def _times(self) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for string, value in self._rows:
            try:
                architecture = self._space.architecture(string)
            except SpaceError as error:
                raise TableError(f"{self.where}: {self.path}: {error}") from error
            found.setdefault(to_text(architecture, dead_work=True), []).append(value)
        return found


def _read(path: str, arch_column: str, column: str, where: str) -> list[tuple[str, float]]:
    file = Path(path).expanduser()
    try:
        frame = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise TableError(f"{where}: {path} cannot be read: {error}. Give a .csv, .csv.gz or .parquet file.") from error
    for name in (arch_column, column):
        if name not in frame.columns:
            near = nearest(str(name), map(str, frame.columns))
            hint = f" Nearest: {', '.join(near)}." if near else ""
            raise TableError(
                f"{where}: {path} has no column {name!r}.{hint} Columns: {', '.join(map(str, frame.columns))}."
            )
    values = _milliseconds(frame[column], f"{where}: {path}, column {column!r}")
    return list(zip(frame.loc[values.index, arch_column].astype(str), values.tolist(), strict=True))


def _milliseconds(values: Any, where: str) -> Any:
    """The times that are there, each above zero."""
    numbers = pd.to_numeric(values.dropna(), errors="coerce")
    wrong = numbers.index[~(np.isfinite(numbers) & (numbers > 0))]
    if len(wrong) or numbers.empty:
        what = f"row {wrong[0]} holds {values[wrong[0]]!r}" if len(wrong) else "it is empty"
        raise TableError(f"{where}: {what}. Times are numbers above 0, in milliseconds.")
    return numbers.astype(float)


DEVICE = TableDevice

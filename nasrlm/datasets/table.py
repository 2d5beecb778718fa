"""Tables of labelled architectures: a column of architectures and one column a metric."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nasrlm.datasets.read import RawTable, read_columns
from nasrlm.datasets.rows import read_architectures, read_numbers
from nasrlm.errors import MetricError, TableError, nearest, unknown_name
from nasrlm.spaces import Architecture, SearchSpace, get_space

MetricColumns = Mapping[str, "str | Mapping[str, Any]"] | Sequence[str]


@dataclass(frozen=True, eq=False)
class Table:
    """Architectures of one search space and their metric values.

    Attributes:
        space: the search space all architectures belong to.
        architectures: distinct, in the order of their first row.
        values: one row an architecture, index `architecture_id`, one float column a metric; NaN = not known.
        duplicates: rows that repeated an architecture (their values were averaged into one row).
        notes: what a reader of the table should know (repeated rows, latencies that are not above zero ...).
    """

    space: SearchSpace
    architectures: list[Architecture]
    values: pd.DataFrame
    duplicates: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.architectures)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metric columns."""
        return tuple(self.values.columns)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when the architectures or their order do (not with the values)."""
        ids = "\n".join([self.space.name, *self.values.index])
        return hashlib.sha256(ids.encode()).hexdigest()[:16]

    def subset(self, indices: Sequence[int] | np.ndarray) -> Table:
        """The rows at `indices` (positions, or one bool a row), in that order."""
        positions = np.asarray(indices)
        if positions.dtype == bool:
            positions = np.flatnonzero(positions)
        positions = positions.astype(np.int64)
        chosen = [self.architectures[i] for i in positions]
        return replace(self, architectures=chosen, values=self.values.iloc[positions], duplicates=0, notes=())

    def select(self, metrics: Sequence[str]) -> Table:
        """The same rows with only these metric columns, in this order.

        Raises:
            MetricError: a metric the table does not have.
        """
        for metric in metrics:
            if metric not in self.values.columns:
                raise MetricError(str(unknown_name("metric", metric, list(self.metrics), where="this table")))
        return replace(self, values=self.values[list(metrics)])

    def with_metrics(self, values: pd.DataFrame) -> Table:
        """The same rows with further metric columns, given for the same architectures in the same order.

        Raises:
            TableError: another order, another number of rows, or a metric that is there already.
        """
        if list(values.index) != list(self.values.index):
            raise TableError(
                "the added metric values stand for other architectures, or in another order, than the table's."
            )
        clash = [metric for metric in values.columns if metric in self.values.columns]
        if clash:
            raise TableError(
                f"the table already has the metric {clash[0]!r}. Name the column differently or leave it out."
            )
        return replace(self, values=pd.concat([self.values, values.astype(np.float64)], axis=1))

    def frame(self) -> pd.DataFrame:
        """A DataFrame with the columns architecture_id, arch (official string) and one a metric."""
        frame = self.values.rename_axis("architecture_id").reset_index()
        frame.insert(1, "arch", [a.string for a in self.architectures])
        return frame


def load_table(
    source: str | Path | pd.DataFrame,
    *,
    space: SearchSpace | str,
    arch_column: str = "arch",
    metrics: MetricColumns,
    params_columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
) -> Table:
    """Reads a table of labelled architectures and checks every cell of it.

    Args:
        source: a .csv, .csv.gz or .parquet file, a DataFrame, or "snas_digits", which comes with nasrlm.
        space: the search space, or its name.
        arch_column: the column with the space's official strings.
        metrics: column -> metric name, or column -> {"metric": name, "scale": factor} where the value is
            multiplied by the factor (1e6 for a column in millions); a list of columns keeps their names.
        params_columns: column -> parameter name (or a list, where they are equal) for tables that hold
            parameters instead of strings; `arch_column` is not read then. A blank cell is an inactive one.
        where: who asks, for messages, such as "train.yaml:12".

    Returns:
        A Table. Rows that repeat an architecture become one row with the mean of their values, counted in
        `duplicates`. Blank cells (also nan, na, n/a, null) are NaN.

    Raises:
        TableError: no file, no rows, a missing column, architectures outside the space (how many, and the
            first five), text or an infinity where a number should be, a metric without a single value.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"arch": ["|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"], "acc": [10.0]})
        >>> load_table(frame, space="nasbench201", metrics={"acc": "accuracy/cifar10"}).metrics
        ('accuracy/cifar10',)
    """
    space = get_space(space) if isinstance(space, str) else space
    targets = _targets(metrics, where)
    params = _params_columns(params_columns, space, where)
    raw = read_columns(source, [*(params or [arch_column]), *targets], where)
    architectures = read_architectures(raw, space, params or arch_column, where)
    values = pd.DataFrame({name: read_numbers(raw, c, where) * scale for c, (name, scale) in targets.items()})
    return _merge(raw, space, architectures, values)


def _targets(metrics: MetricColumns, where: str | None) -> dict[str, tuple[str, float]]:
    """column -> (metric name, factor)."""
    place = f" ({where})" if where else ""
    columns = metrics if isinstance(metrics, Mapping) else {column: column for column in metrics}
    targets = {column: _target(column, spec, place) for column, spec in columns.items()}
    if not targets:
        raise TableError(
            f"no metric columns are named{place}. Give at least one, such as metrics={{'acc': 'accuracy/cifar10'}}."
        )
    names = [name for name, _ in targets.values()]
    for name in names:
        if names.count(name) > 1:
            givers = [column for column, (given, _) in targets.items() if given == name]
            raise TableError(
                f"the columns {' and '.join(map(repr, givers))} are both named {name!r}{place}. Keep one of them."
            )
    return targets


def _target(column: str, spec: str | Mapping[str, Any], place: str) -> tuple[str, float]:
    if isinstance(spec, str):
        return spec, 1.0
    allowed = ("metric", "scale")
    for key in spec:
        if key not in allowed:
            near = nearest(str(key), allowed) or ["metric"]
            raise TableError(
                f"unknown key {key!r} for the column {column!r}{place}. Nearest: {near[0]}. Allowed: metric, scale."
            )
    scale = spec.get("scale", 1.0)
    if "metric" not in spec or isinstance(scale, bool) or not isinstance(scale, int | float) or not np.isfinite(scale):
        raise TableError(
            f"the column {column!r} has {dict(spec)!r}{place}. "
            "Give a metric name, or a metric and a scale: {metric: macs, scale: 1e6}."
        )
    return str(spec["metric"]), float(scale)


def _params_columns(
    columns: Mapping[str, str] | Sequence[str] | None, space: SearchSpace, where: str | None
) -> dict[str, str]:
    """column -> parameter name; empty when the table holds strings."""
    if not columns:
        return {}
    named = dict(columns) if isinstance(columns, Mapping) else {name: name for name in columns}
    known = [parameter.name for parameter in space.parameters]
    for name in named.values():
        if name not in known:
            place = f"{where or 'params_columns'} (space {space.name})"
            raise TableError(str(unknown_name("parameter", name, known, where=place)))
    return named


def _merge(raw: RawTable, space: SearchSpace, architectures: list[Architecture], values: pd.DataFrame) -> Table:
    for metric in values.columns:
        if values[metric].isna().all():
            raise TableError(
                f"the metric {metric!r} has no value in any row of {raw.label}. Leave it out or correct the column."
            )
    first: dict[Architecture, int] = {}
    codes = np.array([first.setdefault(a, len(first)) for a in architectures])
    duplicates = len(architectures) - len(first)
    if duplicates:
        values = values.groupby(codes).mean()
    values.index = pd.Index([a.id for a in first], name="architecture_id")
    return Table(space, list(first), values, duplicates, _notes(values, duplicates, raw.label))


def _notes(values: pd.DataFrame, duplicates: int, label: str) -> tuple[str, ...]:
    notes = []
    if duplicates:
        rows = "row repeats" if duplicates == 1 else "rows repeat"
        notes.append(f"{label}: {duplicates} {rows} an architecture; the mean of its values was taken.")
    for metric in values.columns:
        if metric.startswith("latency_ms/") and (count := int((values[metric] <= 0).sum())):
            notes.append(f"{label}: {metric} is not above zero in {count} row{'s' * (count > 1)}.")
        if metric.startswith("accuracy/") and 0 < values[metric].max() <= 1:
            notes.append(f"{label}: {metric} is never above 1; accuracies are meant in percent (scale: 100).")
    return tuple(notes)

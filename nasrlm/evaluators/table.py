"""Looks metric values up in a table: published benchmarks, or what was measured before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nasrlm.datasets import load_table
from nasrlm.errors import ConfigError, RunError, nearest
from nasrlm.evaluators.protocol import check_metrics, value_frame
from nasrlm.spaces import Architecture, SearchSpace

MISSING = ("nan", "error")


class TableEvaluator:
    """Gives the values that a table holds.

    Args:
        space: where the architectures come from.
        path: .csv, .csv.gz or .parquet file (or a DataFrame).
        metrics: column -> metric name, as for `nasrlm.datasets.load_table`.
        arch_column: the column of official strings.
        params_columns: columns of parameters instead of strings, as for `load_table`.
        missing: what an architecture without a row gives: "nan" (no value) or "error".

    Raises:
        TableError: a table that cannot be used.
        ConfigError: another value for `missing`.

    Example:
        >>> metrics = {"pixel3_ms": "latency_ms/pixel3"}
        >>> evaluator = TableEvaluator(space, "nasbench201.csv.gz", metrics)  # doctest: +SKIP
    """

    name = "table"

    def __init__(
        self,
        space: SearchSpace,
        path: str | Path | pd.DataFrame,
        metrics: Mapping[str, str | Mapping[str, Any]] | Sequence[str],
        arch_column: str = "arch",
        params_columns: Mapping[str, str] | Sequence[str] | None = None,
        missing: str = "nan",
    ) -> None:
        if missing not in MISSING:
            near = nearest(str(missing), MISSING) or list(MISSING)
            raise ConfigError(
                f"evaluator table: missing is {missing!r}. Nearest: {near[0]}. Allowed: {', '.join(MISSING)}."
            )
        self.space, self.missing = space, missing
        self.table = load_table(
            path,
            space=space,
            arch_column=arch_column,
            metrics=metrics,
            params_columns=params_columns,
            where="evaluator table",
        )
        self.metrics = self.table.metrics
        self._row = {a: i for i, a in enumerate(self.table.architectures)}

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """The table's values, see `Evaluator.evaluate`; NaN for blanks and for architectures without a row.

        An architecture without a row of its own has the first row among :meth:`SearchSpace.same_row`.

        Raises:
            MetricError: a metric the table does not have.
            RunError: an architecture without a row, if `missing` is "error".
        """
        check_metrics(self, metrics)
        wanted = value_frame(architectures, {}).index
        # By architecture: among hundreds of thousands two ids may be equal.
        rows = np.array([self._row_of(a) for a in architectures], dtype=np.intp)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown) and self.missing == "error":
            string = architectures[int(unknown[0])].string
            raise RunError(
                f"evaluator table: {len(unknown)} of {len(wanted)} architectures have no row, the first "
                f"is {string}. "
                "Use a table of the whole space, or set missing: nan."
            )
        known = self.table.values[list(metrics)].to_numpy()
        values = np.where(rows[:, None] >= 0, known[rows], np.nan)
        return pd.DataFrame(values, index=wanted, columns=list(metrics))

    def _row_of(self, architecture: Architecture) -> int:
        """Its own row, or that of an architecture that the authors of the space hold equal; -1 without either."""
        row = self._row.get(architecture, -1)
        if row < 0:
            same = map(self.space.architecture, self.space.same_row(architecture.params))
            row = next((self._row[a] for a in same if a in self._row), -1)
        return row


EVALUATOR = TableEvaluator

"""What is in a table, in one DataFrame."""

from __future__ import annotations

import pandas as pd

from nasrlm.datasets.table import Table


def describe(table: Table) -> pd.DataFrame:
    """Per metric: rows with a value, blanks, distinct values, minimum, median and maximum in its unit.

    Distinct values matter for ranks: a device measured in whole milliseconds cannot be ranked finer.

    Example:
        >>> describe(table).loc["latency_ms/pixel3", "median"]  # doctest: +SKIP
        10.6756
    """
    values = table.values
    return pd.DataFrame(
        {
            "rows": values.notna().sum(),
            "blanks": values.isna().sum(),
            "distinct": values.nunique(),
            "minimum": values.min(),
            "median": values.median(),
            "maximum": values.max(),
        }
    ).rename_axis("metric")

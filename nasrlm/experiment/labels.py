"""Labelled rows of an experiment: the table, free costs beside it, and the split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, hold_out_networks, load_table, split_by_seed
from nasrlm.errors import TableError
from nasrlm.evaluators import get_evaluator
from nasrlm.experiment.schema import SplitSpec, TableSpec
from nasrlm.spaces import SearchSpace

Split = dict[str, np.ndarray]


def load_labels(spec: TableSpec, space: SearchSpace, costs: Sequence[str], seed: int) -> Table:
    """The table of an experiment, cut to `limit` rows and with costs as further metrics.

    Raises:
        TableError: See `nasrlm.datasets.load_table`.
    """
    metrics = {column: scaled.model_dump() for column, scaled in spec.metrics.items()}
    table = load_table(spec.path, space=space, arch_column=spec.arch_column, metrics=metrics)
    if spec.limit is not None and spec.limit < len(table):
        rows = np.random.default_rng(seed).permutation(len(table))[: spec.limit]
        table = table.subset(np.sort(rows))
    return with_costs(table, costs)


def with_costs(table: Table, costs: Sequence[str]) -> Table:
    """The table with exact costs as further columns; those it has already stay as they are."""
    wanted = [cost for cost in costs if cost not in table.metrics]
    if not wanted:
        return table
    counted: pd.DataFrame = get_evaluator("cost", table.space).evaluate(table.architectures, wanted)
    return table.with_metrics(counted[wanted])


def split_rows(table: Table, spec: SplitSpec, seed: int, groups: np.ndarray) -> Split:
    """The parts "train", "test" (held out), and with `by: graph` "copies" (equal to a test row, held out as well).

    Args:
        table: what to split.
        spec: by graph or by seed, and how many networks or rows.
        seed: of the split.
        groups: one label a row, equal for equal networks (`nasrlm.datasets.graph_groups`).

    Raises:
        TableError: The table is too small for the split.
    """
    if spec.test >= len(table):
        raise TableError(
            f"split.test holds {spec.test} rows out, but the table has {len(table)}. "
            f"Set split.test to less, such as {max(1, len(table) // 10)}."
        )
    if spec.by == "seed":
        return split_by_seed(table, {"test": spec.test, "train": spec.train or "rest"}, seed)
    split = hold_out_networks(table, spec.test, seed, groups=groups)
    if spec.train is not None:
        split["train"] = np.sort(np.random.default_rng(seed).permutation(split["train"])[: spec.train])
    return split

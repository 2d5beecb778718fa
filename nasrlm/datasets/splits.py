"""Ways to split a table: by seed, by unseen graph, by device.

A split is a dict, part name -> sorted row positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nasrlm.datasets.table import Table
from nasrlm.errors import MetricError, TableError, unknown_name
from nasrlm.spaces import Architecture

REST = "rest"
Size = int | float | str
Split = dict[str, np.ndarray]


def split_by_seed(table: Table, parts: Mapping[str, Size], seed: int) -> Split:
    """Random parts that share no row.

    Args:
        table: what to split.
        parts: part name -> size: an int is a number of rows, a float in (0, 1] a fraction of all rows,
            "rest" whatever the others leave (one part at most).
        seed: the same seed gives the same parts.

    Returns:
        part name -> sorted positions, in the order of `parts`.

    Raises:
        TableError: a size that is no size, or more rows than there are.

    Example:
        >>> split = split_by_seed(table, {"train": 0.8, "test": 1024}, seed=0)  # doctest: +SKIP
    """
    order = np.random.default_rng(seed).permutation(len(table))
    return _take([np.array([row]) for row in order], parts, len(table))


def split_by_graph(
    table: Table, parts: Mapping[str, Size], seed: int, *, groups: Sequence[int] | np.ndarray | None = None
) -> Split:
    """Random parts such that no network of one is isomorphic to a network of another.

    Whole groups of isomorphic networks are taken until a part has at least the size asked for; only the part
    that meets the end of the table can be smaller.

    Args:
        table: what to split.
        parts: as for `split_by_seed`.
        seed: the same seed gives the same parts.
        groups: one label a row, equal for rows that must stay together; default `graph_groups`.

    Raises:
        TableError: as `split_by_seed`; groups of another length; a part that stays without a row.
    """
    labels = graph_groups(table.architectures) if groups is None else np.asarray(groups)
    if len(labels) != len(table):
        raise TableError(f"groups has {len(labels)} labels, the table {len(table)} rows. Give one label a row.")
    _, codes = np.unique(labels, return_inverse=True)
    by_group = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    order = np.random.default_rng(seed).permutation(len(by_group))
    return _take([by_group[i] for i in order], parts, len(table))


def hold_out_networks(table: Table, n: int, seed: int, *, groups: Sequence[int] | np.ndarray | None = None) -> Split:
    """One row of each of `n` networks to test on; their isomorphic copies are held out as well.

    Some networks have hundreds of copies in a table (a cell that is but one convolution, with every kind of dead
    edge). Tested one row a network, none of them outweighs the others.

    Args:
        table: what to split.
        n: networks to hold out, drawn uniformly.
        seed: the same seed gives the same rows.
        groups: one label a row, equal for equal networks; default `graph_groups`.

    Returns:
        {"test": one row a network, "copies": their other rows, "train": all other rows}, positions sorted.

    Raises:
        TableError: not more than `n` different networks.
    """
    labels = graph_groups(table.architectures) if groups is None else np.asarray(groups)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(table))
    _, first = np.unique(labels[order], return_index=True)  # one random row of each network
    if n >= len(first):
        raise TableError(f"cannot hold {n} networks out of {len(first)} different ones. Hold out fewer.")
    test = order[rng.permutation(first)[:n]]
    held = np.isin(labels, labels[test])
    return {
        "test": np.sort(test),
        "copies": np.setdiff1d(np.flatnonzero(held), test),
        "train": np.flatnonzero(~held),
    }


def graph_groups(architectures: Sequence[Architecture]) -> np.ndarray:
    """One int an architecture, equal for networks that compute alike.

    Alike means: the same canonical text with dead work left out.
    """
    from nasrlm.graph import texts

    first: dict[str, int] = {}
    return np.array(
        [first.setdefault(text, len(first)) for text in texts(architectures, dead_work=False)], dtype=np.int64
    )


def unseen_graphs(groups: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The rows of `test` whose group has no row in `train`: where a predictor cannot just remember.

    Example:
        >>> unseen_graphs(np.array([0, 0, 1, 2]), np.array([0]), np.array([1, 2, 3]))
        array([2, 3])
    """
    return test[~np.isin(groups[test], groups[train])]


def split_by_device(
    table: Table,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    source_rows: int = 900,
    target_rows: int = 10,
    seed: int,
) -> Split:
    """Rows to learn known devices from, few rows to meet new devices with, and the others to be tested on.

    The protocol of HELP (Lee et al. 2021, https://arxiv.org/abs/2106.08630): a predictor learns from
    `source_rows` architectures measured on every source device, sees `target_rows` on the new ones, and is
    ranked on the rest.

    Args:
        table: has all the named metrics.
        sources: metric names of the known devices.
        targets: metric names of the new devices.
        source_rows: rows measured on the known devices; drawn among those with a value for every one of them.
        target_rows: rows measured on the new devices, drawn among the others in the same way.
        seed: the same seed gives the same rows.

    Returns:
        {"source": rows, "target": rows, "test": every other row with a value for some target}.

    Raises:
        MetricError: a metric the table does not have, or one that is source and target at once.
        TableError: fewer complete rows than asked for.
    """
    for metric in [*sources, *targets]:
        if metric not in table.values.columns:
            raise MetricError(str(unknown_name("metric", metric, list(table.metrics), where="this table")))
    if both := sorted(set(sources) & set(targets)):
        raise MetricError(f"{both[0]!r} is a source and a target device at once. Take it out of one of the lists.")
    order = np.random.default_rng(seed).permutation(len(table))
    known = table.values.notna().to_numpy()
    where = {metric: i for i, metric in enumerate(table.metrics)}
    complete = order[known[order][:, [where[m] for m in sources]].all(axis=1)]
    source = _first(complete, source_rows, "source")
    left = order[~np.isin(order, source)]
    has_target = known[:, [where[m] for m in targets]]
    target = _first(left[has_target[left].all(axis=1)], target_rows, "target")
    left = left[~np.isin(left, target)]
    return {
        "source": np.sort(source),
        "target": np.sort(target),
        "test": np.sort(left[has_target[left].any(axis=1)]),
    }


def device_labels(table: Table, split: Split, sources: Sequence[str], targets: Sequence[str]) -> pd.DataFrame:
    """What may be learnt from under a split by device: every other cell is NaN. Same rows as the table."""
    labels = table.values[[*sources, *targets]].copy()
    rows = np.arange(len(labels))
    labels.loc[~np.isin(rows, split["source"]), list(sources)] = np.nan
    labels.loc[~np.isin(rows, split["target"]), list(targets)] = np.nan
    return labels


def _first(rows: np.ndarray, count: int, part: str) -> np.ndarray:
    if count < 0 or count > len(rows):
        raise TableError(
            f"{part}_rows is {count}, but {len(rows)} rows have a value for every {part} device. Ask for "
            f"at most {len(rows)}."
        )
    return rows[:count]


def _take(groups: list[np.ndarray], parts: Mapping[str, Size], rows: int) -> Split:
    """Fills the parts with whole groups in turn; the "rest" comes last."""
    wanted = _sizes(parts, rows)
    taken: Split = {}
    at = 0
    for name in sorted(parts, key=lambda part: parts[part] == REST):
        got: list[np.ndarray] = []
        count = 0
        while at < len(groups) and count < wanted[name]:
            got.append(groups[at])
            count += len(groups[at])
            at += 1
        if not count:
            raise TableError(f"the part {name!r} of the split stays empty: {rows} rows are too few for {dict(parts)}.")
        taken[name] = np.sort(np.concatenate(got))
    return {name: taken[name] for name in parts}


def _sizes(parts: Mapping[str, Size], rows: int) -> dict[str, int]:
    if sum(size == REST for size in parts.values()) > 1:
        raise TableError(f"more than one part is {REST!r} in {dict(parts)}. Give the others a size.")
    sizes = {name: _size(name, size, rows) for name, size in parts.items() if size != REST}
    left = rows - sum(sizes.values())
    if left < 0 or (left == 0 and len(sizes) < len(parts)):
        raise TableError(
            f"the parts {dict(parts)} need more than the {rows} rows of the table. Make one smaller, or {REST!r}."
        )
    return {name: sizes.get(name, left) for name in parts}


def _size(name: str, size: Size, rows: int) -> int:
    if isinstance(size, int) and not isinstance(size, bool) and size >= 1:
        return size
    if isinstance(size, float) and 0 < size <= 1:
        return max(1, int(size * rows + 1e-9))
    raise TableError(
        f"the part {name!r} of the split has the size {size!r}. "
        f"Allowed: a number of rows (1024), a fraction of all rows (0.8), or {REST!r}."
    )

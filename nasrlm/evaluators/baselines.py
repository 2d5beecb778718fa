"""What a learned predictor must beat: MACs alone, and a random forest on operator counts.

MACs alone rank the latencies of NAS-Bench-201 at a rho of .79 (BENCHMARKS.md, "Traps"), so a rho without this
baseline beside it says little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from nasrlm.datasets import RankScores, Table, rank_scores
from nasrlm.evaluators.protocol import value_frame
from nasrlm.graph import as_graph, costs
from nasrlm.spaces import Architecture

BASELINES = ("macs", "forest")


def macs_baseline(architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
    """MACs in the place of every metric: only their order means anything, and more MACs stand for more.

    Returns:
        DataFrame like an evaluator's.
    """
    macs = [float(costs(architecture).macs) for architecture in architectures]
    return value_frame(architectures, dict.fromkeys(metrics, macs))


def operator_counts(architectures: Sequence[Architecture]) -> pd.DataFrame:
    """How often each operator with its attributes (such as "conv k3") stands in each network.

    Returns:
        DataFrame with one row an architecture (by position) and one column an operator, in sorted order.
    """
    counts = [Counter(op.text for op in as_graph(architecture).ops) for architecture in architectures]
    names = sorted(set().union(*counts))
    return pd.DataFrame([[count[name] for name in names] for count in counts], columns=names)


def forest_baseline(
    table: Table, train: np.ndarray, test: np.ndarray, metrics: Sequence[str], seed: int, trees: int = 100
) -> pd.DataFrame:
    """A random forest on operator counts (Breiman 2001, by scikit-learn), one a metric.

    Rows without a value are left out of the training.

    Args:
        table: architectures and their values.
        train: positions to learn from.
        test: positions to predict.
        metrics: what to predict.
        seed: of the forest.
        trees: how many.

    Returns:
        DataFrame like an evaluator's, one row a test position; NaN where nothing could be learnt.
    """
    from sklearn.ensemble import RandomForestRegressor  # half a second to load

    counts = operator_counts([table.architectures[i] for i in (*train, *test)]).to_numpy()
    learn, ask = counts[: len(train)], counts[len(train) :]
    columns: dict[str, np.ndarray] = {}
    for metric in metrics:
        y = table.values[metric].to_numpy()[train]
        known = ~np.isnan(y)
        columns[metric] = np.full(len(test), np.nan)
        if known.any():
            forest = RandomForestRegressor(n_estimators=trees, random_state=seed)
            columns[metric] = forest.fit(learn[known], y[known]).predict(ask)
    return value_frame([table.architectures[i] for i in test], columns)


def baseline_scores(
    table: Table,
    train: np.ndarray,
    test: np.ndarray,
    metrics: Sequence[str] | None = None,
    *,
    seed: int = 0,
    trees: int = 100,
) -> pd.DataFrame:
    """Rank correlations of the baselines on the test rows, to stand beside a predictor's.

    Args:
        table: architectures and their values.
        train: positions the forest learns from (MACs learn nothing).
        test: positions to score.
        metrics: default all of the table.
        seed: of the forest.
        trees: how many trees it has.

    Returns:
        DataFrame, one row a metric, columns n, macs_rho, macs_tau, forest_rho, forest_tau.
    """
    wanted = list(table.metrics if metrics is None else metrics)
    true = table.values.iloc[test]
    predictions = {
        "macs": macs_baseline([table.architectures[i] for i in test], wanted),
        "forest": forest_baseline(table, train, test, wanted, seed, trees),
    }
    scores = {m: {b: _scores(true[m], predictions[b][m]) for b in BASELINES} for m in wanted}
    rows = [
        {"n": s["macs"].n} | {f"{b}_{k}": getattr(s[b], k) for b in BASELINES for k in ("rho", "tau")}
        for s in scores.values()
    ]
    return pd.DataFrame(rows, index=pd.Index(wanted, name="metric"))


def _scores(true: pd.Series, predicted: pd.Series) -> RankScores:
    return rank_scores(true.to_numpy(), predicted.to_numpy())

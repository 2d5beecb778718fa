"""What a learned predictor must beat: MACs alone, a random forest on operator counts, a regression head.

MACs alone rank the latencies of NAS-Bench-201 at a rho of .79 (BENCHMARKS.md, "Traps"), so a rho without this
baseline beside it says little.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, rank_scores
from nasrlm.evaluators.protocol import value_frame
from nasrlm.graph import as_graph, costs
from nasrlm.spaces import Architecture

if TYPE_CHECKING:
    from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig

BASELINES = ("macs", "forest", "head")
USUAL = ("macs", "forest")  # those that cost no training of a network


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

    networks = [table.architectures[i] for i in (*train, *test)]
    counts = operator_counts(networks if len(train) else []).to_numpy()
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


def head_baseline(
    table: Table,
    train: np.ndarray,
    test: np.ndarray,
    metrics: Sequence[str],
    config: RLMConfig | None = None,
    settings: TrainConfig | None = None,
    *,
    init: RegressionLM | None = None,
) -> pd.DataFrame:
    """A regression head on the RLM's own encoder, trained on the same rows (`RegressionHead`).

    Args:
        table: architectures and their values.
        train: positions to learn from.
        test: positions to predict.
        metrics: what to predict.
        config: shape of the encoder; its metrics do not count.
        settings: how to train it.
        init: a trained model whose tokenizer and encoder it starts from; None = from scratch.

    Returns:
        DataFrame like an evaluator's, one row a test position; NaN where nothing could be learnt.
    """
    from nasrlm.rlm import RegressionHead, RLMConfig

    labels = table.values[list(metrics)].iloc[train]
    learnt = [metric for metric in metrics if labels[metric].notna().any()]
    networks = [table.architectures[i] for i in test]
    columns = {metric: np.full(len(test), np.nan) for metric in metrics}
    if learnt and networks:
        head = RegressionHead(dataclasses.replace(config or RLMConfig(), metrics=tuple(learnt)))
        head.fit([table.architectures[i] for i in train], labels[learnt], init=init, train=settings)
        found = head.predict(networks)
        columns |= {metric: found[metric].to_numpy() for metric in learnt}
    return value_frame(networks, columns)


def baseline_scores(
    table: Table,
    train: np.ndarray,
    test: np.ndarray,
    metrics: Sequence[str] | None = None,
    *,
    seed: int = 0,
    trees: int = 100,
    baselines: Sequence[str] = USUAL,
    config: RLMConfig | None = None,
    settings: TrainConfig | None = None,
) -> pd.DataFrame:
    """Rank correlations of the baselines on the test rows, to stand beside a predictor's.

    Args:
        table: architectures and their values.
        train: positions the forest and the head learn from (MACs learn nothing).
        test: positions to score.
        metrics: default all of the table.
        seed: of the forest.
        trees: how many trees it has.
        baselines: which, of "macs", "forest" and "head" (which costs a training).
        config: shape of the head's encoder.
        settings: how the head is trained.

    Returns:
        DataFrame, one row a metric, columns n, then rho and tau of each baseline, such as macs_rho, macs_tau.
    """
    wanted = list(table.metrics if metrics is None else metrics)
    true = table.values.iloc[test]
    ways = {
        "macs": lambda: macs_baseline([table.architectures[i] for i in test], wanted),
        "forest": lambda: forest_baseline(table, train, test, wanted, seed, trees),
        "head": lambda: head_baseline(table, train, test, wanted, config, settings),
    }
    scores = pd.DataFrame({"n": true[wanted].notna().sum()}).rename_axis("metric")
    for name in baselines:
        predicted = ways[name]()
        found = {metric: rank_scores(true[metric].to_numpy(), predicted[metric].to_numpy()) for metric in wanted}
        scores[f"{name}_rho"] = [found[metric].rho for metric in wanted]
        scores[f"{name}_tau"] = [found[metric].tau for metric in wanted]
    return scores

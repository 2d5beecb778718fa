"""How well predictions rank held-out rows, with the baselines beside them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, score_frame, unseen_graphs
from nasrlm.evaluators.baselines import baseline_scores

# Short column names for a table of 80 columns.
SHOWN = ("metric", "n", "rho", "tau", "unseen_rho", "macs_rho", "forest_rho")


def score_rows(
    table: Table, train: np.ndarray, test: np.ndarray, predicted: pd.DataFrame, groups: np.ndarray, seed: int
) -> pd.DataFrame:
    """Scores of predictions for the test rows.

    Args:
        table: true values.
        train: positions that were trained on (the forest learns from them; empty = no forest).
        test: positions that are scored.
        predicted: one row a test position; metrics as columns.
        groups: one label a row of the table, equal for equal networks.
        seed: of the forest.

    Returns:
        One row a metric: metric, n, rho, tau, mae over all test rows; unseen_n, unseen_rho, unseen_tau over those
        whose network (in any form) was not trained on; macs_rho, macs_tau: MACs alone; forest_rho, forest_tau: a
        random forest on operator counts.
    """
    metrics = [metric for metric in table.metrics if metric in predicted.columns]
    true = table.values[metrics]
    scores = score_frame(true.iloc[test], predicted[metrics])
    position = np.flatnonzero(np.isin(test, unseen_graphs(groups, train, test)))
    unseen = score_frame(true.iloc[test[position]], predicted[metrics].iloc[position])
    scores = scores.join(unseen[["n", "rho", "tau"]].add_prefix("unseen_"))
    return scores.join(_baselines(table, train, test, metrics, seed)).reset_index()


def _baselines(table: Table, train: np.ndarray, test: np.ndarray, metrics: list[str], seed: int) -> pd.DataFrame:
    if len(train):
        return baseline_scores(table, train, test, metrics, seed=seed).drop(columns="n")
    from nasrlm.evaluators.baselines import macs_baseline

    guess = macs_baseline([table.architectures[i] for i in test], metrics)
    scores = score_frame(table.values[metrics].iloc[test], guess)
    return scores[["rho", "tau"]].add_prefix("macs_").assign(forest_rho=np.nan, forest_tau=np.nan)

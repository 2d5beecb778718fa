"""How well predictions rank held-out rows, with the baselines beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, score_frame, unseen_graphs
from nasrlm.evaluators.baselines import USUAL, baseline_scores
from nasrlm.experiment.labels import Split
from nasrlm.rlm import RLMConfig, TrainConfig

# Short column names for a table of 80 columns.
SHOWN = ("metric", "rho", "tau", "all_rho", "macs_rho", "forest_rho", "head_rho")


def score_rows(
    table: Table,
    split: Split,
    predicted: pd.DataFrame,
    groups: np.ndarray,
    seed: int,
    *,
    baselines: Sequence[str] = USUAL,
    config: RLMConfig | None = None,
    settings: TrainConfig | None = None,
) -> pd.DataFrame:
    """Scores of predictions for the test rows.

    Args:
        table: true values.
        split: positions: "train" (baselines learn from them; none = those that learn are NaN), "test" (scored),
            "copies" (equal to a test row; scored only together with the test rows).
        predicted: one row a position of `scored(split)`; metrics as columns.
        groups: one label a row of the table, equal for equal networks.
        seed: of the forest.
        baselines: which stand beside.
        config: shape of the head's encoder, if "head" is among them.
        settings: how the head is trained.

    Returns:
        One row a metric: metric, n, rho, tau, mae over the test rows; unseen_n, unseen_rho, unseen_tau over those
        whose network (in any form) was not trained on; all_n, all_rho, all_tau over test rows and copies; macs_rho,
        macs_tau: MACs alone; forest_rho, forest_tau: a random forest on operator counts; head_rho, head_tau: a
        regression head on the RLM's encoder.
    """
    metrics = [metric for metric in table.metrics if metric in predicted.columns]
    true, train, test = table.values[metrics], split.get("train", np.array([], np.int64)), split["test"]
    every = score_frame(true.iloc[scored(split)], predicted[metrics])
    predicted = predicted.iloc[: len(test)]
    scores = score_frame(true.iloc[test], predicted[metrics])
    position = np.flatnonzero(np.isin(test, unseen_graphs(groups, train, test)))
    unseen = score_frame(true.iloc[test[position]], predicted[metrics].iloc[position])
    scores = scores.join(unseen[["n", "rho", "tau"]].add_prefix("unseen_"))
    scores = scores.join(every[["n", "rho", "tau"]].add_prefix("all_"))
    beside = baseline_scores(
        table, train, test, metrics, seed=seed, baselines=baselines, config=config, settings=settings
    )
    return scores.join(beside.drop(columns="n")).reset_index()


def shown(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores in few columns, for people."""
    return scores[[column for column in SHOWN if column in scores]]


def scored(split: Split) -> np.ndarray:
    """Positions of the test rows, then of their copies."""
    return np.concatenate([split["test"], split.get("copies", np.array([], np.int64))])

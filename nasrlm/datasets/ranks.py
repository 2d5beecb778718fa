"""How well predictions put architectures in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class RankScores:
    """Agreement of predictions with true values.

    Attributes:
        rho: Spearman's rank correlation, in [-1, 1]; NaN for less than two pairs or constant true values.
        tau: Kendall's tau-b, likewise.
        mae: mean absolute error in the metric's unit.
        n: pairs in which both values are known.
        constant: the predictions (two or more) are all alike, so that they rank nothing.
    """

    rho: float
    tau: float
    mae: float
    n: int
    constant: bool = False


def rank_scores(true: Sequence[float] | np.ndarray, predicted: Sequence[float] | np.ndarray) -> RankScores:
    """Rank correlations of predictions with true values; pairs with a NaN are left out.

    Constant predictions (a broken model gives them without a word) have no rank correlation in the strict sense;
    since they rank nothing, rho and tau are 0 and `constant` is set: a NaN would drop out of means unseen.

    Args:
        true: values, one an architecture.
        predicted: predictions for the same architectures.

    Raises:
        ValueError: arrays of different lengths.

    Example:
        >>> rank_scores([1.0, 2.0, 3.0], [10.0, 30.0, 20.0]).rho
        0.5
    """
    x, y = np.asarray(true, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"true has shape {x.shape}, predicted {y.shape}: two lists of the same length are needed")
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    n = len(x)
    mae = float(np.abs(x - y).mean()) if n else math.nan
    constant = n > 1 and bool((y == y[0]).all())
    if n < 2 or (x == x[0]).all():
        return RankScores(math.nan, math.nan, mae, n, constant)
    if constant:
        return RankScores(0.0, 0.0, mae, n, constant)
    from scipy import stats  # a second to load, and tables need none of it

    rho = round(float(stats.spearmanr(x, y).statistic), 12)  # 0.5, not 0.4999999999999999
    return RankScores(rho, round(float(stats.kendalltau(x, y).statistic), 12), mae, n)


def score_frame(true: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """`rank_scores` of every metric that both frames have: one row a metric, columns n, rho, tau, mae.

    Rows are compared by position.
    """
    shared = [metric for metric in true.columns if metric in predicted.columns]
    scores = [rank_scores(true[metric].to_numpy(), predicted[metric].to_numpy()) for metric in shared]
    rows = [{"n": s.n, "rho": s.rho, "tau": s.tau, "mae": s.mae} for s in scores]
    return pd.DataFrame(rows, index=pd.Index(shared, name="metric"), columns=["n", "rho", "tau", "mae"])

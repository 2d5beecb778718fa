"""How well predictions agree with true values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr


def score_table(true: NDArray[np.float64], predicted: NDArray[np.float64], metrics: Sequence[str]) -> pd.DataFrame:
    """rho, tau, mae and n of each metric, from arrays (N, M) in which NaN is blank."""
    rows = []
    for at in range(len(metrics)):
        known = ~np.isnan(true[:, at]) & ~np.isnan(predicted[:, at])
        a, b = true[known, at], predicted[known, at]
        mae = float(np.abs(a - b).mean()) if len(a) else math.nan
        rows.append({"rho": rank_rho(a, b), "tau": _tau(a, b), "mae": mae, "n": len(a)})
    return pd.DataFrame(rows, index=pd.Index(metrics, name="metric"))


def rank_rho(true: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Spearman's rho without blanks: NaN when the true values say nothing, 0 for constant predictions."""
    if len(true) < 3 or np.ptp(true) == 0:
        return math.nan
    return 0.0 if np.ptp(predicted) == 0 else float(spearmanr(true, predicted).statistic)


def _tau(true: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    if len(true) < 3 or np.ptp(true) == 0:
        return math.nan
    return 0.0 if np.ptp(predicted) == 0 else float(kendalltau(true, predicted).statistic)

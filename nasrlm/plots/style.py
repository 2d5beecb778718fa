"""What both ways of drawing share: colours that colour-blind readers tell apart, and the line of the
front."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

BLUE, ORANGE, GREEN, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#8C8C8C", "#333333"  # Okabe and Ito's
KIND_NAMES = {"infeasible": "infeasible", "dominated": "dominated", "front": "front (before confirming)"}


def kind_name(kind: str, measured: bool) -> str:
    """Return a kind of points for the legend.

    >>> kind_name("confirmed", measured=True)
    'confirmed by measurement'
    """
    if kind != "confirmed":
        return KIND_NAMES[kind] if measured or kind != "front" else "front"
    return "confirmed by measurement" if measured else "measured afterwards"


def step_line(
    front: pd.DataFrame, x: str, y: str, directions: Mapping[str, str], limits: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the corners of the line between what the front dominates and what it does not.

    Args:
        front: The front's points.
        x: Metric to the right.
        y: Metric upwards.
        directions: "maximize" or "minimize" by metric.
        limits: [[lowest x, highest x], [lowest y, highest y]]: the line is drawn to the worse of them.

    Returns:
        x and y of the corners, from small x to large.
    """
    points = front.sort_values([x, y])
    xs, ys = points[x].to_numpy(dtype=float), points[y].to_numpy(dtype=float)
    bad_x = limits[0, 1 if directions[x] == "minimize" else 0]
    bad_y = limits[1, 1 if directions[y] == "minimize" else 0]
    if directions[x] == "minimize":  # each point dominates what lies right of it: keep its y up to the next x
        corner_x = np.concatenate([np.repeat(xs, 2), [bad_x]])
        corner_y = np.concatenate([[bad_y], np.repeat(ys, 2)])
    else:
        corner_x = np.concatenate([[bad_x], np.repeat(xs, 2)])
        corner_y = np.concatenate([np.repeat(ys, 2), [bad_y]])
    return corner_x, corner_y


def rank_correlations(true: pd.Series, predicted: pd.Series) -> tuple[float, float]:
    """Return Spearman's rho and Kendall's tau-b; NaN when one side is constant."""
    if true.nunique() < 2 or predicted.nunique() < 2:
        return float("nan"), float("nan")
    return float(stats.spearmanr(true, predicted).statistic), float(stats.kendalltau(true, predicted).statistic)

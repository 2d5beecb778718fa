"""Predicts metrics as sums of what each parameter's value adds, fitted to a table of some of a space's architectures.

Right for look-up latencies, which are sums over layers, and a strong baseline elsewhere: see the scores that it logs.
In an experiment: evaluators: [{path: additive.py, options: {path: table.parquet, metrics: [latency_ms/fpga]}}]
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pandas as pd

from nasrlm.datasets import load_table, rank_scores
from nasrlm.evaluators import check_metrics, value_frame
from nasrlm.spaces import Architecture, SearchSpace

_log = logging.getLogger("nasrlm.evaluators")


class AdditiveEvaluator:
    """Least squares with a little shrinking (ridge) on which value each parameter has.

    Args:
        space: where the architectures come from.
        path: the table, as for the evaluator `table`.
        metrics: its columns, which are metrics.
        shrink: the ridge's weight.
        held_out: share of the rows on which the logged scores are measured; the fit that is used has all rows.

    Attributes:
        scores: metric -> Kendall's tau and Spearman's rho on the held-out rows.
    """

    name = "additive"
    predicts = True

    def __init__(
        self, space: SearchSpace, path: str, metrics: Sequence[str], shrink: float = 0.1, held_out: float = 0.1
    ) -> None:
        self.space, self.metrics = space, tuple(metrics)
        table = load_table(path, space=space, metrics=list(metrics), where=f"evaluator {self.name}")
        self._column: dict[tuple[str, object], int] = {}
        for parameter in space.parameters:
            for option in parameter.options:
                self._column[parameter.name, option] = len(self._column) + 1
        x = self._features(table.architectures)
        order = np.random.default_rng(0).permutation(len(x))
        test, train = np.split(order, [int(held_out * len(x))])
        self.scores: dict[str, dict[str, float]] = {}
        self._weights: dict[str, np.ndarray] = {}
        for metric in self.metrics:
            y = table.values[metric].to_numpy()
            scores = rank_scores(y[test], x[test] @ _fit(x[train], y[train], shrink))
            self.scores[metric] = {"tau": scores.tau, "rho": scores.rho}
            self._weights[metric] = _fit(x, y, shrink)
            _log.info("additive: %s, rho %.4f on %d held-out rows", metric, scores.rho, len(test))

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        """Values of the metrics, one row an architecture, in the order given."""
        check_metrics(self, metrics)
        x = self._features(architectures)
        return value_frame(architectures, {metric: x @ self._weights[metric] for metric in metrics})

    def _features(self, architectures: Sequence[Architecture]) -> np.ndarray:
        """One column a value of a parameter, after a column of ones."""
        x = np.zeros((len(architectures), len(self._column) + 1))
        x[:, 0] = 1.0
        for row, a in zip(x, architectures, strict=True):
            row[[self._column[name, value] for name, value in a.values]] = 1.0
        return x


def _fit(x: np.ndarray, y: np.ndarray, shrink: float) -> np.ndarray:
    known = ~np.isnan(y)
    x, middle = x[known], y[known].mean()
    weights = np.linalg.solve(x.T @ x + shrink * np.eye(x.shape[1]), x.T @ (y[known] - middle))
    weights[0] += middle
    return weights


EVALUATOR = AdditiveEvaluator

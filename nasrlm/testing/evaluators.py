"""The kit for an evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from nasrlm.errors import MetricError
from nasrlm.evaluators import Evaluator
from nasrlm.spaces import Architecture
from nasrlm.testing.common import ConformanceError, require, step

UNKNOWN = "no_such_metric/at_all"
VARYING = 5  # distinct architectures from which values must differ somewhere
TOLERANCE = 1e-2  # relative: a batch of other texts rounds differently in bfloat16


def check_evaluator(evaluator: Evaluator, architectures: Sequence[Architecture]) -> None:
    """Checks an evaluator on real architectures; returns when all is well.

    Index and columns, quantile columns, subsets of metrics, other orders, no architectures, unknown metrics, and
    that values are not all alike (a broken predictor gives constants without a word).

    Args:
        evaluator: the evaluator to check.
        architectures: five or more different ones that it can evaluate.

    Raises:
        ConformanceError: the first promise that is not kept.

    Example:
        >>> from nasrlm.evaluators import get_evaluator
        >>> from nasrlm.spaces import get_space
        >>> space = get_space("tiny")
        >>> check_evaluator(get_evaluator("cost", space), space.sample(6, seed=0))
    """
    require(isinstance(evaluator, Evaluator), f"{evaluator!r} lacks name, metrics or evaluate(...).")
    require(isinstance(evaluator.name, str) and evaluator.name != "", "the evaluator has no name.")
    metrics = tuple(evaluator.metrics)
    require(len(metrics) > 0 and len(set(metrics)) == len(metrics), f"metrics is {metrics}: empty, or one is twice.")
    require(all(isinstance(m, str) and "@" not in m for m in metrics), f"a metric's name has an '@': {metrics}.")
    with step(f"{evaluator.name}: evaluating {len(architectures)} architectures"):
        values = evaluator.evaluate(list(architectures), list(metrics))
        check_values(values, architectures, metrics)
        _check_variation(evaluator, values, metrics)
        _check_other_requests(evaluator, values, architectures, metrics)
    try:
        evaluator.evaluate(list(architectures), [UNKNOWN])
    except MetricError as error:
        require(UNKNOWN in str(error), "the MetricError should name the metric that is not known.")
    except Exception as error:  # whatever else it raises is the finding
        what = type(error).__name__
        raise ConformanceError(f"an unknown metric raises {what}; it must be a MetricError.") from error
    else:
        raise ConformanceError(f"{evaluator.name} gives the metric {UNKNOWN!r}, which it does not list.")


def check_values(values: pd.DataFrame, architectures: Sequence[Architecture], metrics: Sequence[str]) -> None:
    """Checks the DataFrame that `evaluate` returned: rows, columns, types and quantiles.

    Raises:
        ConformanceError: what does not hold.
    """
    require(isinstance(values, pd.DataFrame), f"evaluate gave a {type(values).__name__}, not a DataFrame.")
    require(
        values.index.name == "architecture_id", f"the index is called {values.index.name!r}, not 'architecture_id'."
    )
    require(
        list(values.index) == [a.id for a in architectures],
        "the rows are not the architectures, one each, in the order given.",
    )
    for metric in metrics:
        require(metric in values.columns, f"the metric {metric!r} is missing; columns: {', '.join(map(str, values))}.")
    for column in values.columns:
        require(values[column].dtype == np.float64, f"the column {column!r} holds {values[column].dtype}, not float64.")
        metric, _, level = str(column).rpartition("@")
        require(
            column in metrics or (metric in metrics and _is_level(level)),
            f"the column {column!r} is neither a metric asked for nor METRIC@LEVEL with a level between 0 and 1.",
        )
        require(not np.isinf(values[column]).any(), f"the column {column!r} holds an infinity; NaN means no value.")
    for metric in metrics:
        _check_quantiles(values, metric)


def _is_level(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _check_quantiles(values: pd.DataFrame, metric: str) -> None:
    levels = sorted((float(c.rpartition("@")[2]), c) for c in values.columns if c.startswith(f"{metric}@"))
    for (_, low), (_, high) in pairwise(levels):
        require(not (values[low] > values[high]).any(), f"{low} is above {high} in a row.")


def _check_variation(evaluator: Evaluator, values: pd.DataFrame, metrics: Sequence[str]) -> None:
    known = values[list(metrics)]
    require(bool(known.notna().any(axis=None)), f"{evaluator.name} has no value for any of these architectures.")
    if len(set(values.index)) >= VARYING:
        require(int(known.nunique().max()) > 1, f"{evaluator.name} gives every architecture the same values.")


def _check_other_requests(
    evaluator: Evaluator, values: pd.DataFrame, architectures: Sequence[Architecture], metrics: Sequence[str]
) -> None:
    none = evaluator.evaluate([], list(metrics))
    require(len(none) == 0 and set(metrics) <= set(none.columns), "no architectures should give columns without rows.")
    one = evaluator.evaluate(list(architectures), [metrics[-1]])
    check_values(one, architectures, [metrics[-1]])
    backwards = list(architectures)[::-1]
    turned = evaluator.evaluate(backwards, list(metrics))
    check_values(turned, backwards, metrics)
    for metric in metrics:
        require(
            _close(turned[metric][::-1], values[metric]),
            f"the values of {metric} depend on the order of the architectures.",
        )
    alone = _close(one[metrics[-1]], values[metrics[-1]])
    require(alone, f"the values of {metrics[-1]} depend on which other metrics are asked for.")


def _close(one: pd.Series, other: pd.Series) -> bool:
    return bool(np.allclose(one.to_numpy(), other.to_numpy(), rtol=TOLERANCE, atol=1e-6, equal_nan=True))

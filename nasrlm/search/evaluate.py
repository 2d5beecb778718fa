"""Asking the evaluators for a batch, and sorting what came back into values and failures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from nasrlm.errors import NasrlmError, RunError, UsageError
from nasrlm.evaluators import Evaluator, assign_metrics, evaluate_all
from nasrlm.spaces import Architecture

Row = Mapping[str, float]


@dataclass(frozen=True)
class Evaluation:
    """A batch's outcome, by architecture id.

    Attributes:
        rows: Metric and quantile columns of the candidates whose metrics are all finite numbers.
        failures: Why the others have none.
    """

    rows: Mapping[str, Row] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


def as_evaluators(evaluators: Evaluator | Iterable[Evaluator]) -> tuple[Evaluator, ...]:
    """Return one or several evaluators as a tuple.

    Raises:
        UsageError: None, or something that cannot evaluate.
    """
    items = tuple(evaluators) if isinstance(evaluators, Iterable) else (evaluators,)
    for item in items:
        if not isinstance(item, Evaluator):
            raise UsageError(f"{item!r} is no evaluator: it needs name, metrics and evaluate(architectures, metrics).")
    return items


def evaluate_batch(
    evaluators: Sequence[Evaluator], architectures: Sequence[Architecture], metrics: Sequence[str]
) -> Evaluation:
    """Evaluate different architectures, one call an evaluator.

    Args:
        evaluators: Each metric comes from the first that measures it, else from the first that predicts it.
        architectures: May be none.
        metrics: Those that every candidate must have.

    Raises:
        MetricError: No evaluator gives a metric.
        RunError: An evaluator failed, or gave something else than it promised.
    """
    if not architectures:
        return Evaluation()
    givers = assign_metrics(evaluators, metrics)
    table = _ask(evaluators, architectures, metrics)
    rows: dict[str, Row] = {}
    failures: dict[str, str] = {}
    for identity, row in zip(table.index, table.to_dict("records"), strict=True):
        bad = next((metric for metric in metrics if not math.isfinite(row[metric])), None)
        if bad is None:
            rows[str(identity)] = {str(name): value for name, value in row.items() if math.isfinite(value)}
        else:
            said = getattr(givers[bad], "failures", {}).get(str(identity))
            what = f"gave {row[bad]} for {bad}" if said is None else f"has no {bad}: {said}"
            failures[str(identity)] = f"evaluator {givers[bad].name} {what}"
    return Evaluation(rows, failures)


def _ask(
    evaluators: Sequence[Evaluator], architectures: Sequence[Architecture], metrics: Sequence[str]
) -> pd.DataFrame:
    try:
        return evaluate_all(evaluators, architectures, metrics).astype("float64")
    except NasrlmError:
        raise
    except Exception as error:  # an evaluator may be anybody's code
        names = ", ".join(evaluator.name for evaluator in evaluators)
        raise RunError(
            f"evaluating {len(architectures)} candidates (the first: {architectures[0].string}) with {names} "
            f"failed: {type(error).__name__}: {error}"
        ) from error

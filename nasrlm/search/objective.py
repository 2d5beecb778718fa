"""Objectives and constraints: what a study looks for, checked once, and the one place where signs are
flipped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from nasrlm.errors import UsageError, unknown_name

Direction = Literal["maximize", "minimize"]
DIRECTIONS: tuple[Direction, ...] = ("maximize", "minimize")
_SHORT = {"max": "maximize", "min": "minimize"}


@dataclass(frozen=True)
class Objective:
    """A metric and the direction in which it is better.

    Args:
        metric: Name of the metric with its unit, such as ``"latency_ms/pixel3"``.
        direction: ``"maximize"`` or ``"minimize"``.

    Raises:
        UsageError: An empty metric or another direction.

    >>> Objective("accuracy/cifar10", "maximize")
    Objective(metric='accuracy/cifar10', direction='maximize')
    """

    metric: str
    direction: Direction

    def __post_init__(self) -> None:
        _check_metric(self.metric, "an objective")
        if self.direction not in DIRECTIONS:
            raise unknown_name("direction", self.direction, DIRECTIONS, where=f"objective {self.metric!r}")

    @property
    def maximize(self) -> bool:
        """Whether larger is better."""
        return self.direction == "maximize"

    @classmethod
    def parse(cls, value: Objective | Mapping[str, Any] | str) -> Objective:
        """Make an objective from itself, a mapping with its fields, or ``"metric:direction"`` (max and min
        will do).

        >>> Objective.parse("accuracy/cifar10:max")
        Objective(metric='accuracy/cifar10', direction='maximize')
        """
        if isinstance(value, Objective):
            return value
        if isinstance(value, Mapping):
            _check_keys(value, ("metric", "direction"), ("metric", "direction"), "an objective")
            return cls(**value)
        metric, colon, direction = str(value).rpartition(":")
        if not colon:
            raise UsageError(
                f"objective {value!r} has no direction. Write it as 'metric:maximize' or 'metric:minimize', "
                f"for example {str(value) or 'params'}:minimize."
            )
        word = _SHORT.get(direction.strip(), direction.strip())
        return cls(metric.strip(), cast(Direction, word))  # checked by the constructor


@dataclass(frozen=True)
class Constraint:
    """A limit on a metric; a candidate that breaks it is infeasible and never on the front.

    Args:
        metric: Name of the metric.
        at_most: Largest allowed value, in the metric's unit.
        at_least: Smallest allowed value. One of the two must be given, both may.

    Raises:
        UsageError: No limit, a limit that is not a finite number, or limits that leave nothing.

    >>> Constraint("params", at_most=1.2e6).violations(1.5e6)
    {'params<=1200000.0': 0.25}
    """

    metric: str
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        _check_metric(self.metric, "a constraint")
        where = f"constraint on {self.metric!r}"
        if self.at_most is None and self.at_least is None:
            raise UsageError(f"{where} has no limit. Give at_most, at_least, or both.")
        for name in ("at_most", "at_least"):
            limit = getattr(self, name)
            if limit is not None and not is_finite_number(limit):
                raise UsageError(f"{where}: {name} is {limit!r}. It must be a finite number.")
        if self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            raise UsageError(f"{where}: at_least {self.at_least} is above at_most {self.at_most}. Nothing fits.")

    @classmethod
    def parse(cls, value: Constraint | Mapping[str, Any] | str) -> Constraint:
        """Make a constraint from itself, a mapping with its fields, or ``"metric<=limit"`` /
        ``"metric>=limit"``.

        >>> Constraint.parse("params<=1.2e6")
        Constraint(metric='params', at_most=1200000.0, at_least=None)
        """
        if isinstance(value, Constraint):
            return value
        if isinstance(value, Mapping):
            _check_keys(value, ("metric",), ("metric", "at_most", "at_least"), "a constraint")
            return cls(**value)
        for sign, side in (("<=", "at_most"), (">=", "at_least")):
            metric, found, limit = str(value).partition(sign)
            if found:
                return cls(metric.strip(), **{side: _number(limit, f"constraint {value!r}")})
        raise UsageError(f"constraint {value!r} has no limit. Write it as 'metric<=number' or 'metric>=number'.")

    def violations(self, value: float) -> dict[str, float]:
        """Return how far ``value`` is outside each limit, as a share of the limit; at or below 0 is feasible.

        The share (not the plain difference) keeps a limit on parameters from drowning one on milliseconds,
        since samplers add the violations of a trial up.
        """
        found: dict[str, float] = {}
        if self.at_most is not None:
            found[f"{self.metric}<={self.at_most}"] = (value - self.at_most) / _scale(self.at_most)
        if self.at_least is not None:
            found[f"{self.metric}>={self.at_least}"] = (self.at_least - value) / _scale(self.at_least)
        return found

    def holds(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return for each value whether it is within the limits; NaN is not."""
        array = np.asarray(values, dtype=float)
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return (array >= low) & (array <= high)


def parse_objectives(values: Iterable[Objective | Mapping[str, Any] | str]) -> tuple[Objective, ...]:
    """Return the objectives of a study: at least one, no metric twice.

    Raises:
        UsageError: None, or a metric given twice.
    """
    items = [values] if isinstance(values, (str, Objective, Mapping)) else list(values)
    objectives = tuple(Objective.parse(item) for item in items)
    if not objectives:
        raise UsageError("no objective. Give at least one, such as Objective('accuracy/cifar10', 'maximize').")
    _refuse_twice([objective.metric for objective in objectives])
    return objectives


def parse_constraints(values: Iterable[Constraint | Mapping[str, Any] | str]) -> tuple[Constraint, ...]:
    """Return the constraints of a study; none is fine."""
    items = [values] if isinstance(values, (str, Constraint, Mapping)) else list(values)
    return tuple(Constraint.parse(item) for item in items)


def to_minimize(values: npt.ArrayLike, objectives: Sequence[Objective]) -> npt.NDArray[np.float64]:
    """Return the values as costs: the columns of maximised objectives are negated. The only place that flips
    signs.

    Args:
        values: Shape (n, objectives) or (objectives,), in the metrics' own units and directions.
        objectives: One for each column.

    >>> to_minimize([[90.0, 3.0]], [Objective("accuracy", "maximize"), Objective("params", "minimize")])
    array([[-90.,   3.]])
    """
    array = np.asarray(values, dtype=float)
    if array.ndim == 0 or array.shape[-1] != len(objectives):
        raise UsageError(f"values of shape {array.shape} do not fit {len(objectives)} objectives: one column each.")
    return array * np.array([-1.0 if objective.maximize else 1.0 for objective in objectives])


def _check_metric(metric: object, what: str) -> None:
    if not isinstance(metric, str) or not metric.strip():
        raise UsageError(f"{what} needs the name of a metric, such as 'latency_ms/pixel3'; got {metric!r}.")


def _check_keys(value: Mapping[str, Any], required: Sequence[str], allowed: Sequence[str], what: str) -> None:
    for key in value:
        if key not in allowed:
            raise unknown_name("key", str(key), allowed, where=what)
    for key in required:
        if key not in value:
            raise UsageError(f"{what} lacks {key!r}: {dict(value)!r}. Allowed keys: {', '.join(allowed)}.")


def _refuse_twice(metrics: Sequence[str]) -> None:
    for metric in metrics:
        if metrics.count(metric) > 1:
            raise UsageError(f"objective {metric!r} is given twice. Give each metric once.")


def is_finite_number(value: object) -> bool:
    """Return whether a value is a number (not a bool), neither infinite nor NaN."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{where}: {text.strip()!r} is not a number.") from None


def _scale(limit: float) -> float:
    return abs(limit) or 1.0

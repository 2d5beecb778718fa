"""What a search space is made of: choices, integers, and parameters that exist only under a condition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nasrlm.errors import SpaceError, nearest

Value = str | int | float | bool
Params = Mapping[str, Value]
"""Only the active parameters, in declaration order."""


@dataclass(frozen=True)
class When:
    """A condition: the parameter is active only if ``params[parent] in values``.

    Args:
        parent: A parameter declared earlier.
        values: Values of the parent that make the parameter active.
    """

    parent: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values:
            raise SpaceError(f"the condition on {self.parent!r} has no values, so it is never met. Add one.")


@dataclass(frozen=True)
class Choice:
    """A categorical parameter.

    Args:
        name: The parameter's name, also Optuna's.
        values: What it may be: str, int, float or bool, no two equal.
        when: The condition under which it is active; always without one.

    >>> Choice("width", (8, 16)).options
    (8, 16)
    """

    name: str
    values: tuple[Value, ...]
    when: When | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values:
            raise SpaceError(f"parameter {self.name!r} has no values. Give one or more.")
        for value in self.values:
            if not isinstance(value, str | int | float) or value in (math.inf, -math.inf) or value != value:
                raise SpaceError(
                    f"parameter {self.name!r} has the value {value!r}. Allowed: str, int, finite float, bool."
                )
        if len(set(self.values)) < len(self.values):
            raise SpaceError(
                f"parameter {self.name!r} has equal values: {self.values} (1, 1.0 and True are equal). Leave one out."
            )

    @property
    def options(self) -> Sequence[Value]:
        """Every value, in order."""
        return self.values

    def check(self, value: object) -> Value:
        """Return the declared value that equals ``value`` (8 for 8.0 or ``numpy.int64(8)``).

        Raises:
            SpaceError: Not one of the values.
        """
        plain = _plain(value)
        for option in self.values:
            if option == plain and isinstance(option, bool) == isinstance(plain, bool):
                return option
        words = [str(option) for option in self.values]
        close = nearest(str(plain), words)
        raise SpaceError(
            f"parameter {self.name!r} is {plain!r}."
            + (f" Nearest: {', '.join(close)}." if close else "")
            + f" Allowed: {', '.join(words)}."
        )


@dataclass(frozen=True)
class Integer:
    """A whole number in ``low, low + step, ... <= high``.

    Args:
        name: The parameter's name, also Optuna's.
        low: The smallest value.
        high: The largest value; one that the steps miss is never reached.
        step: The distance between neighbouring values.
        when: The condition under which it is active; always without one.

    >>> list(Integer("depth", 1, 6, step=2).options)
    [1, 3, 5]
    """

    name: str
    low: int
    high: int
    step: int = 1
    when: When | None = None

    def __post_init__(self) -> None:
        for word in (self.low, self.high, self.step):
            if not isinstance(word, int) or isinstance(word, bool):
                raise SpaceError(f"parameter {self.name!r} has {word!r} where a whole number belongs.")
        if self.step < 1 or self.high < self.low:
            raise SpaceError(
                f"parameter {self.name!r} goes from {self.low} to {self.high} by {self.step}, which holds no "
                "number. Allowed: low <= high and step >= 1."
            )

    @property
    def options(self) -> Sequence[int]:
        """Every value, in order."""
        return range(self.low, self.high + 1, self.step)

    def check(self, value: object) -> int:
        """Return ``value`` as an int of the range.

        Raises:
            SpaceError: Not a whole number, or outside the range.
        """
        plain = _plain(value)
        if isinstance(plain, int | float) and not isinstance(plain, bool) and plain in self.options:
            return int(plain)
        by = f" by {self.step}" if self.step > 1 else ""
        raise SpaceError(f"parameter {self.name!r} is {plain!r}. Allowed: {self.low} to {self.options[-1]}{by}.")


Parameter = Choice | Integer


def _plain(value: object) -> object:
    """Return the Python value of a numpy or pandas scalar."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value


def check_parameters(parameters: Sequence[Parameter]) -> None:
    """Raise SpaceError unless names differ and each condition rests on an earlier parameter's values."""
    seen: dict[str, Parameter] = {}
    for parameter in parameters:
        if parameter.name in seen:
            raise SpaceError(f"two parameters are called {parameter.name!r}. Rename one.")
        if parameter.when is not None:
            _check_condition(parameter, seen)
        seen[parameter.name] = parameter


def _check_condition(parameter: Parameter, seen: Mapping[str, Parameter]) -> None:
    when = parameter.when
    if when is None:
        return
    if when.parent not in seen:
        raise SpaceError(
            f"parameter {parameter.name!r} depends on {when.parent!r}, which is not declared before it. "
            f"Declared before: {', '.join(seen) or 'nothing'}."
        )
    for value in when.values:
        try:
            seen[when.parent].check(value)
        except SpaceError as error:
            raise SpaceError(f"the condition of {parameter.name!r} cannot be met: {error}") from error


def is_active(parameter: Parameter, params: Params) -> bool:
    """Say whether a parameter is active, given those declared before it."""
    when = parameter.when
    return when is None or (when.parent in params and params[when.parent] in when.values)


def check_params(parameters: Sequence[Parameter], given: Mapping[str, object]) -> dict[str, Value]:
    """Return the given parameters as declared: right order, right types, all active ones, no other.

    Raises:
        SpaceError: A name is unknown, missing or inactive, or a value is not allowed.
    """
    params: dict[str, Value] = {}
    for parameter in parameters:
        if not is_active(parameter, params):
            if parameter.name in given:
                raise SpaceError(_inactive(parameter, params))
        elif parameter.name not in given:
            raise SpaceError(_missing(parameter, given))
        else:
            params[parameter.name] = parameter.check(given[parameter.name])
    if len(params) < len(given):
        raise SpaceError(_unknown(parameters, given))
    return params


def _inactive(parameter: Parameter, params: Params) -> str:
    when = parameter.when
    if when is None:
        return ""
    allowed = ", ".join(str(value) for value in when.values)
    now = f"it is {params[when.parent]!r}" if when.parent in params else "it is not active itself"
    return (
        f"parameter {parameter.name!r} is given, but it exists only if {when.parent!r} is one of: {allowed}; "
        f"here {now}. Leave it out."
    )


def _missing(parameter: Parameter, given: Mapping[str, object]) -> str:
    close = nearest(parameter.name, map(str, given))
    found = f" Nearest given: {', '.join(close)}." if close else ""
    return f"parameter {parameter.name!r} is missing.{found} Give one of: {_short(parameter.options)}."


def _unknown(parameters: Sequence[Parameter], given: Mapping[str, object]) -> str:
    names = [parameter.name for parameter in parameters]
    wrong = str(next(name for name in given if name not in names))
    close = nearest(wrong, names)
    found = f" Nearest: {', '.join(close)}." if close else ""
    return f"unknown parameter {wrong!r}.{found} Known parameters: {', '.join(names)}."


def _short(options: Sequence[Value]) -> str:
    head = ", ".join(str(option) for option in options[:20])
    return head if len(options) <= 20 else f"{head} ... {options[-1]}"


def size(parameters: Sequence[Parameter]) -> int:
    """Count the architectures exactly; every parameter has one parent at most, so conditions form trees."""
    children: dict[str, list[Parameter]] = {parameter.name: [] for parameter in parameters}
    for parameter in parameters:
        if parameter.when is not None:
            children[parameter.when.parent].append(parameter)

    def count(parameter: Parameter) -> int:
        below = [(child, count(child)) for child in children[parameter.name]]
        if not below:
            return len(parameter.options)
        return sum(
            math.prod(n for child, n in below if child.when is not None and value in child.when.values)
            for value in parameter.options
        )

    return math.prod(count(parameter) for parameter in parameters if parameter.when is None)


def enumerate_params(parameters: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
    """Yield every architecture's parameters; the last declared parameter changes fastest."""
    if all(parameter.when is None for parameter in parameters):
        names = [parameter.name for parameter in parameters]
        for values in itertools.product(*(parameter.options for parameter in parameters)):
            yield dict(zip(names, values, strict=True))
        return

    def walk(position: int, params: dict[str, Value]) -> Iterator[dict[str, Value]]:
        if position == len(parameters):
            yield dict(params)
            return
        parameter = parameters[position]
        if not is_active(parameter, params):
            yield from walk(position + 1, params)
            return
        for option in parameter.options:
            params[parameter.name] = option
            yield from walk(position + 1, params)
        del params[parameter.name]

    yield from walk(0, {})

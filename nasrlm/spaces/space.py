"""The search space, its architectures, and the moves between them."""

from __future__ import annotations

import hashlib
import importlib
from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nasrlm import registry
from nasrlm.errors import SpaceError, UsageError
from nasrlm.spaces.parameters import (
    Parameter,
    Params,
    Value,
    check_parameters,
    check_params,
    enumerate_params,
    is_active,
    size,
)
from nasrlm.spaces.strings import compact, parse_object, quote

if TYPE_CHECKING:
    # The graph room lies above this one; a space's own file imports it to build.
    from nasrlm.graph import Graph

Seed = int | np.random.Generator
_REMEMBERED = 512
"""Graphs of exported modules that a space keeps."""
_TRIES = 100
"""Moves that `mutate` tries until one of them changes the architecture, in a space that repairs."""


def generator(seed: Seed) -> np.random.Generator:
    """Return a numpy Generator for a seed; one that is a Generator already is used as it is, and moves on.

    Raises:
        UsageError: Neither an int >= 0 nor a Generator.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(seed)
    raise UsageError(f"seed is {seed!r}. Allowed: a whole number >= 0, or a numpy.random.Generator.")


@dataclass(frozen=True, eq=False, repr=False)
class Architecture:
    """A point of a search space: parameters, no weights. Two are equal if space name and values are.

    Made by a space, which has checked the values: ``space.architecture(...)``, ``space.sample(...)``.

    Args:
        space: Where it lives.
        values: The active parameters as (name, value), in declaration order.

    >>> from nasrlm import get_space
    >>> a = get_space("tiny").sample(1, seed=0)[0]
    >>> Architecture.from_json(a.to_json()) == a
    True
    """

    space: SearchSpace
    values: tuple[tuple[str, Value], ...]

    @property
    def params(self) -> dict[str, Value]:
        """The active parameters, in declaration order."""
        return dict(self.values)

    @cached_property
    def string(self) -> str:
        """The space's official encoding."""
        return self.space.to_string(self.params)

    @cached_property
    def id(self) -> str:
        """Space name and the first 10 hex digits of SHA-256 of the JSON: the same on every machine."""
        return f"{self.space.name}-{hashlib.sha256(self.to_json().encode()).hexdigest()[:10]}"

    def graph(self) -> Graph:
        """Build the network, without weights."""
        return self.space.build(self.params)

    def to_json(self) -> str:
        """Return canonical JSON: ``{"space": name, "params": {...}}``, without blanks."""
        return compact({"space": self.space.name, "params": self.params})

    @classmethod
    def from_json(cls, text: str, space: SearchSpace | None = None) -> Architecture:
        """Read what :meth:`to_json` wrote.

        Args:
            text: The JSON.
            space: The space, if it has options or comes from a user's file; by default the registered one.

        Raises:
            SpaceError: Not such JSON, another space's, or parameters outside the space.
            UnknownNameError: The space is not registered.
        """
        data = parse_object(text)
        if not isinstance(data.get("space"), str) or not isinstance(data.get("params"), dict):
            form = '{"space": name, "params": {...}}'
            raise SpaceError(f"{quote(text)} is not an architecture. Allowed: {form}.")
        if space is None:
            space = registry.get("spaces", data["space"])()
        if data["space"] != space.name:
            raise SpaceError(f"{quote(text)} is of the space {data['space']!r}, not of {space.name!r}.")
        return space.architecture(data["params"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Architecture):
            return NotImplemented
        return self.space.name == other.space.name and self.values == other.values

    def __hash__(self) -> int:
        return hash((self.space.name, self.values))

    def __repr__(self) -> str:
        return f"Architecture({self.space.name}: {self.string})"


class SearchSpace(ABC):
    """A set of architectures. A subclass gives ``name``, ``parameters``, ``source`` and :meth:`build`, or
    :meth:`build_module` if it has its networks in PyTorch.

    Attributes:
        name: The registered name, which is the file's.
        parameters: The choices, in order; a conditional one after its parent.
        source: The paper or repository that defines the space.
        metrics: Metrics published for it.
        example_shape: Of spaces with :meth:`build_module`: the shape of an input, without the batch.
    """

    name: ClassVar[str]
    parameters: tuple[Parameter, ...]
    source: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]] = ()
    example_shape: ClassVar[tuple[int, ...] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.build is SearchSpace.build and cls.build_module is SearchSpace.build_module:
            raise SpaceError(
                f"the search space {cls.__name__} describes no network. Give it build(self, params), which returns a "
                "Graph from GraphBuilder, or build_module(self, params), which returns a torch.nn.Module."
            )

    def build(self, params: Params) -> Graph:
        """Describe the network of these parameters with ``nasrlm.graph.GraphBuilder``, without weights.

        A space with :meth:`build_module` need not define this: the module is exported, which takes some tenths of a
        second a network, and its graph is remembered.
        """
        key = tuple(params.items())
        if key not in self._exported:
            # The exporter's room lies above this one, and most spaces never need it.
            exporters = importlib.import_module("nasrlm.graph.exporters")
            while len(self._exported) >= _REMEMBERED:
                self._exported.pop(next(iter(self._exported)))
            self._exported[key] = exporters.graph_of(self.build_module(params), self.example_shape)
        return self._exported[key]

    @cached_property
    def _exported(self) -> dict[tuple[tuple[str, Value], ...], Graph]:
        return {}

    def build_module(self, params: Params) -> Any:
        """Return the network of these parameters as a ``torch.nn.Module``, or as a pair (module, example inputs).

        A module alone is exported with an input of ``example_shape``.
        """
        raise NotImplementedError(f"{type(self).__name__} has no networks in PyTorch")

    def to_string(self, params: Params) -> str:
        """Return the official encoding; compact JSON unless the space has one."""
        return compact(dict(params))

    def from_string(self, text: str) -> Params:
        """Return the parameters of an official encoding.

        Raises:
            SpaceError: The text is not of the form, or outside the space.
        """
        return check_params(self._checked, parse_object(text, example=self._example))

    def architecture(self, x: Params | str | Architecture) -> Architecture:
        """Return the architecture of parameters, of an official string, or of an equal space's architecture.

        Raises:
            SpaceError: Outside the space.
        """
        if isinstance(x, Architecture):
            if x.space is self:
                return x
            if x.space.name != self.name:
                raise SpaceError(f"{x.string} is of the space {x.space.name!r}, not of {self.name!r}.")
            return self._strict(x.params)
        if isinstance(x, str):
            return self._strict(self.from_string(x))
        if isinstance(x, Mapping):
            return self._strict(x)
        raise SpaceError(
            f"{x!r} is no architecture of {self.name}. Allowed: a mapping of parameters, the official string "
            f"({self._example!r}), or an Architecture."
        )

    def repair(self, params: Params) -> Params:
        """Return the parameters of the valid architecture that stands for these; they themselves by default.

        A space overrides this if some of its parameters together describe no valid network. What is drawn or moved
        (``sample``, ``suggest``, ``mutate``, ``crossover``, ``neighbours``) is repaired; ``architecture`` and
        ``from_string`` refuse what would be changed. Such a space overrides :meth:`size` too, and for speed
        :meth:`enumerate`.

        Args:
            params: Declared values, all active ones; otherwise anything.

        Returns:
            Valid parameters, in declaration order; repaired again, they stay.
        """
        return params

    def repaired(self, params: Mapping[str, object]) -> Architecture:
        """Return the architecture of parameters as an Optuna trial holds them: declared values, repaired.

        Raises:
            SpaceError: A name is unknown, missing or inactive, or a value is not allowed.
        """
        return self._make(self.repair(check_params(self._checked, params)))

    def same_row(self, params: Params) -> Iterator[Params]:
        """Yield other parameters under which a published table may hold the row of these; by default none.

        For spaces whose authors keep one row of several architectures that they hold equal.
        """
        return iter(())

    def sample(self, n: int, seed: Seed) -> list[Architecture]:
        """Draw ``n`` architectures, with repetition; every parameter is uniform over its values.

        The first architectures do not depend on ``n``. In a space with conditions the draw is uniform over
        the parameters' values, not over architectures.

        Args:
            n: How many, at least 0.
            seed: int or numpy Generator.

        Raises:
            UsageError: ``n`` is negative, or the seed is of another kind.

        >>> from nasrlm import get_space
        >>> len(get_space("nasbench201").sample(3, seed=0))
        3
        """
        if n < 0:
            raise UsageError(f"cannot sample {n} architectures. Give a number of at least 0.")
        options = [parameter.options for parameter in self._checked]
        draws = generator(seed).random((n, len(options)))
        positions = (draws * np.array([len(values) for values in options])).astype(np.int64).tolist()
        return [self._drawn(lambda j, row=row: options[j][row[j]]) for row in positions]  # type: ignore[misc]

    def size(self) -> int:
        """Return the exact number of architectures.

        >>> from nasrlm import get_space
        >>> get_space("nasbench201").size()
        15625
        """
        return size(self._checked)

    def enumerate(self) -> Iterator[Architecture]:
        """Yield every architecture once; the last parameter changes fastest."""
        found = enumerate_params(self._checked)
        return (self._make(params) for params in found if not self._repairs or self.repair(params) == params)

    def neighbours(self, a: Architecture) -> list[Architecture]:
        """Return all architectures at one changed parameter, each once.

        Parameters that the change makes active take their first value; those it makes inactive go. What is no valid
        network is repaired (:meth:`repair`).
        """
        a = self.architecture(a)
        found: list[Architecture] = []
        for parameter in self._checked:
            if parameter.name in a.params:
                others = [option for option in parameter.options if option != a.params[parameter.name]]
                found += [self._changed(a.params, parameter.name, option, None) for option in others]
        return [n for n in dict.fromkeys(found) if n != a] if self._repairs else found

    def mutate(self, a: Architecture, seed: Seed) -> Architecture:
        """Change one active parameter, drawn uniformly, to another value, drawn uniformly.

        Parameters that the change makes active are drawn; those it makes inactive go. What is no valid network is
        repaired, and drawn again if that undoes the change. In a space of one architecture it is returned as it is.
        """
        a, rng = self.architecture(a), generator(seed)
        params = a.params
        free = [p for p in self._checked if p.name in params and len(p.options) > 1]
        for _ in range(_TRIES if free else 0):
            parameter = free[int(rng.integers(len(free)))]
            here = parameter.options.index(params[parameter.name])
            step = 1 + int(rng.integers(len(parameter.options) - 1))
            option = parameter.options[(here + step) % len(parameter.options)]
            moved = self._changed(params, parameter.name, option, rng)
            if moved != a:
                return moved
        return a

    def crossover(self, a: Architecture, b: Architecture, seed: Seed) -> Architecture:
        """Take every parameter from ``a`` or ``b`` by a fair coin; one that either lacks, from the other.

        The result is repaired.
        """
        first, second, rng = self.architecture(a).params, self.architecture(b).params, generator(seed)
        coins = (rng.random(len(self._checked)) < 0.5).tolist()

        def value(j: int) -> Value:
            name = self._checked[j].name
            source, other = (first, second) if coins[j] else (second, first)
            return source[name] if name in source else other[name]

        return self._drawn(value)

    def suggest(self, trial: Any) -> Architecture:
        """Ask an Optuna trial for an architecture: active parameters only, under their own names; then repair it.

        Args:
            trial: ``optuna.Trial`` or anything with ``suggest_categorical`` and ``suggest_int``.
        """

        def value(j: int) -> Value:
            parameter = self._checked[j]
            options = parameter.options
            if isinstance(options, range):
                return trial.suggest_int(parameter.name, options[0], options[-1], step=options.step)
            return trial.suggest_categorical(parameter.name, list(options))

        return self._drawn(value)

    @cached_property
    def _checked(self) -> tuple[Parameter, ...]:
        check_parameters(self.parameters)
        return tuple(self.parameters)

    @cached_property
    def _example(self) -> str:
        return next(iter(self.enumerate())).string

    @cached_property
    def _repairs(self) -> bool:
        return type(self).repair is not SearchSpace.repair

    def _strict(self, given: Mapping[str, object]) -> Architecture:
        params = check_params(self._checked, given)
        valid = self.repair(params) if self._repairs else params
        if valid != params:
            name = next(name for name in [*params, *valid] if params.get(name) != valid.get(name))
            there = f"{name!r} would be {valid[name]!r}" if name in valid else f"there would be no {name!r}"
            raise SpaceError(
                f"these parameters are no valid architecture of {self.name}: {name!r} is {params.get(name)!r}. Nearest "
                f"valid: {quote(self.to_string(valid))}, where {there}. space.repaired(params) gives that one."
            )
        return self._make(params)

    def _make(self, params: Params) -> Architecture:
        return Architecture(self, tuple(params.items()))

    def _drawn(self, value: Callable[[int], Value]) -> Architecture:
        """Make an architecture from ``value(j)``, parameter j's value; only active ones are asked. It is repaired."""
        params: dict[str, Value] = {}
        for j, parameter in enumerate(self._checked):
            if is_active(parameter, params):
                params[parameter.name] = value(j)
        return self._make(self.repair(params) if self._repairs else params)

    def _changed(self, params: Params, name: str, option: Value, rng: np.random.Generator | None) -> Architecture:
        """Set one parameter; newly active ones are drawn, or take their first value without a generator."""

        def value(j: int) -> Value:
            parameter = self._checked[j]
            if parameter.name == name:
                return option
            if parameter.name in params:
                return params[parameter.name]
            return parameter.options[0 if rng is None else int(rng.integers(len(parameter.options)))]

        return self._drawn(value)

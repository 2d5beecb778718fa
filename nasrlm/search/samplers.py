"""Samplers by name: Optuna's own, RLMSampler, any class by its dotted path, or an instance the user made."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler

from nasrlm.errors import UnknownNameError, UsageError, nearest, unknown_name

# name -> (class of optuna.samplers, options that suit architectures: categorical, conditional, asked in
# batches)
_SAMPLERS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("RandomSampler", {}),
    "tpe": ("TPESampler", {"multivariate": True, "group": True}),
    "nsga2": ("NSGAIISampler", {}),
    "nsga3": ("NSGAIIISampler", {}),
    "gp": ("GPSampler", {"warn_independent_sampling": False}),
    "qmc": ("QMCSampler", {"scramble": True, "warn_independent_sampling": False}),
    "rlm": ("nasrlm.search.rlm_sampler:RLMSampler", {}),
}
SAMPLERS = tuple(_SAMPLERS)

# Constraints are told trial by trial, and the seed has a place of its own.
_NOT_OPTIONS = {
    "self": "",
    "seed": "Give the seed of the study instead.",
    "constraints_func": "Give the study's constraints instead.",
    "space": "The space that is searched is taken.",
}


def make_sampler(
    sampler: str | BaseSampler,
    options: Mapping[str, Any] | None = None,
    *,
    seed: int | None = None,
    context: Mapping[str, Any] | None = None,
) -> BaseSampler:
    """Make an Optuna sampler.

    Args:
        sampler: One of ``SAMPLERS``, a dotted path (``"package.module:Class"`` or
            ``"package.module.Class"``), or an Optuna sampler, which is used as it is.
        options: Arguments of the sampler's constructor; they are checked against its signature.
        seed: Seed of the sampler, if its constructor takes one.
        context: What the search knows (space, batch_size, folder, reference_point): given to a constructor that takes
            it, unless the options say otherwise.

    Raises:
        UnknownNameError: A name or an option that does not exist.
        UsageError: A dotted path that leads to no sampler, or an option with a value that the sampler
            refuses.

    >>> type(make_sampler("nsga2", {"population_size": 20}, seed=0)).__name__
    'NSGAIISampler'
    """
    given = dict(options or {})
    if isinstance(sampler, BaseSampler):
        if given:
            raise UsageError("sampler options go with a sampler's name; the given sampler is already made.")
        return sampler
    kind, defaults = _find(sampler)
    parameters = inspect.signature(kind).parameters
    _check_options(sampler, given, parameters)
    known = {name: value for name, value in (context or {}).items() if name in parameters}
    arguments = {**defaults, **known, **given, **({"seed": seed} if "seed" in parameters else {})}
    try:
        with warnings.catch_warnings():
            # Some of Optuna's samplers and options are "experimental" for years; users chose them by name.
            warnings.simplefilter("ignore", ExperimentalWarning)
            return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"sampler {sampler!r} does not take the options {given!r}: {error}") from error


def sampler_class(name: str) -> type[BaseSampler]:
    """Return the class of a sampler by its name or dotted path.

    >>> sampler_class("tpe").__name__
    'TPESampler'
    """
    return _find(name)[0]


def sampler_key(sampler: str | BaseSampler, options: Mapping[str, Any] | None, seed: int | None) -> str:
    """Return a line that is equal for equal samplers, to know whether a saved state still fits."""
    name = sampler if isinstance(sampler, str) else f"{type(sampler).__module__}:{type(sampler).__qualname__}"
    return f"{name} {sorted((options or {}).items())} seed={seed}"


def _find(name: object) -> tuple[type[BaseSampler], dict[str, Any]]:
    if name in _SAMPLERS:
        attribute, defaults = _SAMPLERS[str(name)]
        return (_load(attribute) if ":" in attribute else getattr(optuna.samplers, attribute)), defaults
    if isinstance(name, str) and ("." in name or ":" in name):
        return _load(name), {}
    raise unknown_name(
        "sampler",
        str(name),
        SAMPLERS,
        hint="A sampler of your own is given by its dotted path, 'package.module:Class'.",
    )


def _load(path: str) -> type[BaseSampler]:
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise UsageError(
            f"sampler {path!r}: cannot import {module_name!r} ({error}). Known samplers: "
            f"{', '.join(SAMPLERS)}; one of your own must be importable as 'package.module:Class'."
        ) from error
    kind = getattr(module, attribute, None)
    if kind is None:
        close = nearest(attribute, vars(module))
        raise UsageError(
            f"sampler {path!r}: module {module_name!r} has no {attribute!r}."
            + (f" Nearest: {', '.join(close)}." if close else "")
        )
    if not (inspect.isclass(kind) and issubclass(kind, BaseSampler)):
        raise UsageError(f"sampler {path!r} is not a subclass of optuna.samplers.BaseSampler but {kind!r}.")
    return kind


def _check_options(name: str, given: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> None:
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    allowed = [option for option in parameters if option not in _NOT_OPTIONS]
    for option in given:
        if option in _NOT_OPTIONS:
            raise UnknownNameError(f"sampler {name!r} has no option {option!r} here. {_NOT_OPTIONS[option]}")
        if option not in allowed:
            raise unknown_name("option", option, allowed, where=f"sampler {name!r}")

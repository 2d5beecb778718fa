"""Checks the options of something that is chosen by name against what its constructor takes."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nasrlm.errors import ConfigError, nearest, unknown_name


def option_names(factory: Callable[..., Any], *, positional: int = 0) -> list[str]:
    """The options a class or function takes, without its first `positional` arguments."""
    return [p.name for p in _parameters(factory, positional) if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def check_options(factory: Callable[..., Any], options: Mapping[str, Any], what: str, *, positional: int = 0) -> None:
    """Sees that every option is known and none is missing. Values are the constructor's business.

    Args:
        factory: the class that will be called.
        options: option name -> value.
        what: words for messages, such as "device onnxruntime_cpu".
        positional: how many leading arguments are not options.

    Raises:
        ConfigError: an unknown option (nearest first), or one that must be given and is not.

    Example:
        >>> check_options(lambda threads=1: None, {"threads": 4}, "device mine")
    """
    parameters = _parameters(factory, positional)
    names = option_names(factory, positional=positional)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in options:
        if name not in names and not open_ended:
            hint = None if names else f"{what} takes no options; leave them out."
            error = ConfigError(str(unknown_name("option", name, names, where=what, hint=hint)))
            error.key = name  # a YAML loader finds the line by it
            raise error
    for p in parameters:
        if p.name in names and p.default is p.empty and p.name not in options:
            raise ConfigError(
                f"{what} needs the option {p.name!r}. Options: {', '.join(names)}. Add `{p.name}: ...` to its options."
            )


def _parameters(factory: Callable[..., Any], positional: int) -> list[inspect.Parameter]:
    return list(inspect.signature(factory).parameters.values())[positional:]


def check_whole(where: str, option: str, value: object, *, least: int = 1) -> None:
    """Sees that an option is a whole number, `least` or more.

    Raises:
        ConfigError: it is not; says what it is.

    Example:
        >>> check_whole("device mine", "threads", 2)
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{where}: {option} is {value!r}. Allowed: a whole number from {least} up.")


def check_positive(where: str, option: str, value: object) -> None:
    """Sees that an option is a finite number above zero.

    Raises:
        ConfigError: it is not; says what it is.

    Example:
        >>> check_positive("device mine", "seconds", 0.5)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ConfigError(f"{where}: {option} is {value!r}. Allowed: a number above 0.")


def check_choice(where: str, option: str, value: object, allowed: Sequence[str]) -> None:
    """Sees that an option is one of a few words.

    Raises:
        ConfigError: it is not; the nearest come first.

    Example:
        >>> check_choice("device mine", "unit", "ms", ("ms", "us", "s"))
    """
    if value not in allowed:
        near = nearest(str(value), allowed)
        hint = f" Nearest: {near[0]}." if near else ""
        raise ConfigError(f"{where}: {option} is {value!r}.{hint} Allowed: {', '.join(allowed)}.")


def check_label(where: str, label: object) -> str:
    """A device's label: what follows "latency_ms/" in its metric.

    Raises:
        ConfigError: no letters, or signs that a metric's name cannot hold.

    Example:
        >>> check_label("device remote", "pixel_8")
        'pixel_8'
    """
    if not isinstance(label, str) or not re.fullmatch(r"[\w.+-]+", label):
        raise ConfigError(f"{where}: label is {label!r}. Allowed: letters, digits and _ . + -, such as pixel_8.")
    return label

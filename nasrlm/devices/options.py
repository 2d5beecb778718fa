"""Checks the options of something that is chosen by name against what its constructor takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from nasrlm.errors import ConfigError, unknown_name


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

"""Texts of parameters: compact JSON, and what a space's own text gives one after another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from nasrlm.errors import SpaceError
from nasrlm.spaces.parameters import Parameter, Value


def compact(data: dict[str, Any]) -> str:
    """JSON without blanks."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def parse_object(text: str, example: str | None = None) -> dict[str, Any]:
    """The object that a JSON text holds; SpaceError for any other text."""
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        shown = f" such as {example}" if example else ""
        raise SpaceError(f"{quote(text)} is no architecture. Allowed: a JSON object of parameters{shown}.")
    return data


def quote(text: str, most: int = 120) -> str:
    """A text in quotes, cut where it is long."""
    return repr(text if len(text) <= most else text[:most] + "...")


def check_values(parameters: Sequence[Parameter], values: Iterable[object], text: str) -> dict[str, Value]:
    """Return the values of parameters in order, as declared; as many as there are parameters.

    Args:
        parameters: All active.
        values: What a text gives for each.
        text: The text, for messages.

    Raises:
        SpaceError: A value is not allowed; the message names the parameter, the nearest values, and the text.

    >>> from nasrlm.spaces import Choice
    >>> check_values((Choice("width", (8, 16)), Choice("kernel", (1, 3))), (8, 3), "8:3")
    {'width': 8, 'kernel': 3}
    """
    params = {}
    for parameter, value in zip(parameters, values, strict=True):
        try:
            params[parameter.name] = parameter.check(value)
        except SpaceError as error:
            raise SpaceError(f"in {text[:200]!r}: {error}") from error
    return params

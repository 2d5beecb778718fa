"""From a registered name, or the path of a user's file, to a search space."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from nasrlm import registry
from nasrlm.errors import UsageError, nearest
from nasrlm.spaces.space import SearchSpace


def get_space(name_or_path: str | Path, **options: Any) -> SearchSpace:
    """Return a search space.

    Args:
        name_or_path: A registered name, or the path of a ``.py`` file that defines ``SPACE``.
        **options: The space's own options, such as ``num_classes=100``.

    Raises:
        UnknownNameError: No such name; the message lists the nearest.
        UsageError: The file cannot be loaded, or the space does not know an option.

    >>> get_space("nasbench201", num_classes=100).size()
    15625
    """
    text = str(name_or_path)
    from_file = text.endswith(".py") or isinstance(name_or_path, Path) or "/" in text or "\\" in text
    found = registry.load_file("spaces", name_or_path) if from_file else registry.get("spaces", text)
    if not (isinstance(found, type) and issubclass(found, SearchSpace)):
        raise UsageError(f"SPACE of {text!r} is {found!r}. It must be a subclass of nasrlm.SearchSpace.")
    _check_class(found, text)
    _check_options(found, options)
    return found(**options)


def _check_class(space: type[SearchSpace], text: str) -> None:
    missing = [name for name in ("name", "source") if not isinstance(getattr(space, name, None), str)]
    if missing:
        raise UsageError(f"the space of {text!r} lacks: {', '.join(missing)}. Add it to {space.__name__}.")


def _check_options(space: type[SearchSpace], options: dict[str, Any]) -> None:
    known = inspect.signature(space).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
        return
    for option in options:
        if option not in known:
            close = nearest(option, known)
            found = f" Nearest: {', '.join(close)}." if close else ""
            allowed = f"Known options: {', '.join(known)}." if known else "It has no options."
            raise UsageError(f"the space {space.name!r} has no option {option!r}.{found} {allowed}")

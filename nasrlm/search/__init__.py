"""Search: Optuna studies over search spaces, the front they find, and how good it is.

Names are loaded on first use, since Optuna takes its time. The module can be called: ``nasrlm.search(...)``
is :func:`nasrlm.search.run.search`, whether or not something has imported this package before.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nasrlm.search.confirmation import confirm
    from nasrlm.search.front import (
        default_reference_point,
        hypervolume,
        hypervolume_history,
        knee_index,
        pareto_front,
    )
    from nasrlm.search.objective import Constraint, Objective
    from nasrlm.search.result import SearchResult, make_result
    from nasrlm.search.run import SearchInterrupted, search
    from nasrlm.search.samplers import SAMPLERS, make_sampler
    from nasrlm.search.storage import open_storage

_HOMES = {
    "confirmation": ("confirm",),
    "front": ("default_reference_point", "hypervolume", "hypervolume_history", "knee_index", "pareto_front"),
    "objective": ("Constraint", "Objective"),
    "result": ("SearchResult", "make_result"),
    "run": ("SearchInterrupted", "search"),
    "samplers": ("SAMPLERS", "make_sampler"),
    "storage": ("open_storage",),
}
__all__ = [  # noqa: RUF022 (in the order a reader wants)
    "search",
    "Objective",
    "Constraint",
    "SearchResult",
    "SearchInterrupted",
    "pareto_front",
    "hypervolume",
    "hypervolume_history",
    "default_reference_point",
    "knee_index",
    "confirm",
    "make_result",
    "make_sampler",
    "open_storage",
    "SAMPLERS",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Callable(ModuleType):
    """A package that stands for its main function when it is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> SearchResult:
        return __getattr__("search")(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable

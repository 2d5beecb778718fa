"""Evaluators give metric values: predicted (rlm), looked up (table), computed (cost) or measured (device).

One file an evaluator, with its class as `EVALUATOR`; `get_evaluator` finds them by name in this package, in
other installed packages (entry points in the group `nasrlm.evaluators`) and in a user's own .py file.
"""

from __future__ import annotations

from typing import Any

from nasrlm import registry
from nasrlm.devices import check_options
from nasrlm.evaluators.protocol import Evaluator, assign_metrics, check_metrics, evaluate_all, value_frame
from nasrlm.spaces import SearchSpace

__all__ = [
    "Evaluator",
    "assign_metrics",
    "check_metrics",
    "evaluate_all",
    "evaluator_class",
    "get_evaluator",
    "value_frame",
]


def evaluator_class(name: str) -> Any:
    """The class of an evaluator, by registered name or by the path of a .py file that defines `EVALUATOR`."""
    return registry.load_file("evaluators", name) if name.endswith(".py") else registry.get("evaluators", name)


def get_evaluator(name: str, space: SearchSpace, **options: Any) -> Evaluator:
    """An evaluator for architectures of a search space.

    Args:
        name: a registered name (`nasrlm list evaluators`), or the path of a .py file with an `EVALUATOR`.
        space: where the architectures come from.
        options: the evaluator's own, such as `checkpoint` for "rlm".

    Raises:
        UnknownNameError: no such evaluator; the nearest names come with it.
        ConfigError: an option it does not take, lacks, or cannot use.

    Example:
        >>> from nasrlm.spaces import get_space
        >>> get_evaluator("cost", get_space("tiny")).metrics
        ('params', 'macs', 'activation_bytes', 'depth')
    """
    evaluator = evaluator_class(name)
    check_options(evaluator, options, f"evaluator {name}", positional=1)
    return evaluator(space, **options)

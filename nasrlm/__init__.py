"""nasrlm: networks that are accurate and fast on your hardware, found without training thousands of them.

The public names load on first use (PEP 562): ``import nasrlm`` imports neither torch, onnx nor optuna.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nasrlm.datasets import load_table
    from nasrlm.devices import get_device
    from nasrlm.errors import NasrlmError
    from nasrlm.experiment import run_experiment
    from nasrlm.graph import GraphBuilder, costs, parse_text, to_onnx, to_text
    from nasrlm.plots import plot_pareto
    from nasrlm.rlm import RegressionLM
    from nasrlm.search import Constraint, Objective, SearchResult, hypervolume, pareto_front, search
    from nasrlm.spaces import Architecture, Choice, Integer, SearchSpace, When, get_space

_HOMES = {
    "Architecture": "nasrlm.spaces",
    "Choice": "nasrlm.spaces",
    "Constraint": "nasrlm.search",
    "GraphBuilder": "nasrlm.graph",
    "Integer": "nasrlm.spaces",
    "NasrlmError": "nasrlm.errors",
    "Objective": "nasrlm.search",
    "RegressionLM": "nasrlm.rlm",
    "SearchResult": "nasrlm.search",
    "SearchSpace": "nasrlm.spaces",
    "When": "nasrlm.spaces",
    "costs": "nasrlm.graph",
    "get_device": "nasrlm.devices",
    "get_space": "nasrlm.spaces",
    "hypervolume": "nasrlm.search",
    "load_table": "nasrlm.datasets",
    "pareto_front": "nasrlm.search",
    "parse_text": "nasrlm.graph",
    "plot_pareto": "nasrlm.plots",
    "run_experiment": "nasrlm.experiment",
    "search": "nasrlm.search",
    "to_onnx": "nasrlm.graph",
    "to_text": "nasrlm.graph",
}

__all__ = [
    "Architecture",
    "Choice",
    "Constraint",
    "GraphBuilder",
    "Integer",
    "NasrlmError",
    "Objective",
    "RegressionLM",
    "SearchResult",
    "SearchSpace",
    "When",
    "__version__",
    "costs",
    "get_device",
    "get_space",
    "hypervolume",
    "load_table",
    "pareto_front",
    "parse_text",
    "plot_pareto",
    "run_experiment",
    "search",
    "to_onnx",
    "to_text",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nasrlm' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    # The package nasrlm.search can be called; importing it puts it here in any case.
    value = home if name == "search" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

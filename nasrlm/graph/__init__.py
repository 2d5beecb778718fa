"""Networks as graphs: building, canonical text, costs, ONNX."""

from typing import TYPE_CHECKING

from nasrlm.graph.builder import GraphBuilder
from nasrlm.graph.costs import COST_METRICS, Costs
from nasrlm.graph.graph import Graph
from nasrlm.graph.sources import as_graph, costs, texts, to_text
from nasrlm.graph.text import TEXT_VERSION, parse_text

if TYPE_CHECKING:
    from nasrlm.graph.onnx_writer import to_onnx
    from nasrlm.graph.picture import draw
    from nasrlm.graph.torch_module import to_torch

__all__ = [
    "COST_METRICS",
    "TEXT_VERSION",
    "Costs",
    "Graph",
    "GraphBuilder",
    "as_graph",
    "costs",
    "draw",
    "parse_text",
    "texts",
    "to_onnx",
    "to_text",
    "to_torch",
]


def __getattr__(name: str) -> object:
    # text and costs need neither onnx nor torch
    if name == "to_onnx":
        from nasrlm.graph.onnx_writer import to_onnx

        return to_onnx
    if name == "draw":
        from nasrlm.graph.picture import draw

        return draw
    if name == "to_torch":
        from nasrlm.graph.torch_module import to_torch

        return to_torch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

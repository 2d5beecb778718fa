"""Whatever a user has - Architecture, Graph, ONNX model or file, torch module, text - as a Graph, text or costs."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from nasrlm.errors import ExportError
from nasrlm.graph.costs import Costs, graph_costs
from nasrlm.graph.graph import Graph
from nasrlm.graph.text import HEADER, graph_text, parse_text


def as_graph(x: Any) -> Graph:
    """The graph of a network in any form.

    Args:
        x: a Graph, an Architecture, an onnx.ModelProto, a path of an .onnx file, a canonical text, or a pair
            (torch.nn.Module, example input).

    Raises:
        ExportError: for anything else, or a network that cannot be read.
    """
    if isinstance(x, Graph):
        return x
    if callable(getattr(x, "graph", None)) and hasattr(x, "params"):
        return x.graph()
    if isinstance(x, str) and x.startswith(HEADER[:-1]):
        return parse_text(x)
    if isinstance(x, (str, PathLike)) or hasattr(x, "SerializeToString"):
        from nasrlm.graph.onnx_reader import from_onnx

        return from_onnx(x)
    if isinstance(x, tuple) and len(x) == 2 and callable(getattr(x[0], "state_dict", None)):
        from nasrlm.graph.exporters import from_torch

        return from_torch(*x)
    hint = (
        " A torch module needs an example input: (module, example)." if callable(getattr(x, "state_dict", None)) else ""
    )
    raise ExportError(
        f"cannot read a network from {type(x).__name__} {str(x)[:60]!r}. Allowed: an Architecture, a Graph, an ONNX "
        f"model or the path of an .onnx file, a canonical text, or a pair (torch module, example input).{hint}"
    )


def to_text(x: Any, *, dead_work: bool = False, folded: bool = True) -> str:
    """Canonical text of a network: the same bytes for the same network, whoever described it.

    Args:
        x: see `as_graph`.
        dead_work: also list operations that a framework runs although they cannot change the output
            (lines that begin with "-"); published latencies were measured with them.
        folded: write repetition once, with a count or a name; without it the text is several times longer.

    Example:
        >>> from nasrlm.graph import GraphBuilder
        >>> b = GraphBuilder()
        >>> b.output(b.relu(b.conv(b.input((3, 8, 8)), 4, kernel=3)))
        >>> print(to_text(b.build()))
        nasrlm1
        in 1x3x8x8
        conv 4 k3 nobias
        relu
    """
    return graph_text(as_graph(x), dead_work=dead_work, folded=folded)


def texts(xs: Sequence[Any], *, dead_work: bool = False, folded: bool = True) -> list[str]:
    """`to_text` of many; a canonical text passes through as it is."""
    options = {"dead_work": dead_work, "folded": folded}
    return [x if isinstance(x, str) and x.startswith(HEADER[:-1]) else to_text(x, **options) for x in xs]


def costs(x: Any) -> Costs:
    """Parameters, MACs, activation bytes, depth and operator counts of a network (see `Costs`, `as_graph`)."""
    return graph_costs(as_graph(x))

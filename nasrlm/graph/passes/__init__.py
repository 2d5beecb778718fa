"""Passes: a network with the idioms of exporters recognised, and nothing that does nothing.

Each pass is a function on a `Net` that changes what it finds, in one walk; `PASSES` names them in their order.
"""

from __future__ import annotations

from collections.abc import Callable

from nasrlm.graph.graph import Graph
from nasrlm.graph.passes.activations import activations
from nasrlm.graph.passes.attention import attention, heads, heads_apart
from nasrlm.graph.passes.clean import constants, expansions, no_operations, weights
from nasrlm.graph.passes.layers import biases, linear_shapes, linears
from nasrlm.graph.passes.net import Net
from nasrlm.graph.passes.norms import group_norms, norms, scales
from nasrlm.graph.passes.reshaping import reshapes, slices, turned_softmax
from nasrlm.graph.passes.spatial import global_pools, paddings, shuffles

PASSES: dict[str, Callable[[Net], None]] = {
    "no operations": no_operations,
    "weights": weights,
    "heads apart": heads_apart,
    "expansions": expansions,
    "paddings": paddings,
    "activations": activations,
    "constants": constants,
    "norms": norms,
    "group norms": group_norms,
    "scales": scales,
    "turned softmax": turned_softmax,
    "reshapes": reshapes,
    "slices": slices,
    "linears": linears,
    "biases": biases,
    "shuffles": shuffles,
    "attention": attention,
    "reshapes of keys": reshapes,
    "heads": heads,
    "linear shapes": linear_shapes,
    "global pools": global_pools,
    "reshapes at last": reshapes,
}

_SETTLED = frozenset(
    (
        *("in", "const", "conv", "deconv", "linear", "bn", "prelu", "maxpool", "avgpool", "gap", "gmp", "shuffle"),
        *(
            "softmax",
            "flatten",
            "add",
            "mul",
            "concat",
            "slice",
            "leakyrelu",
            "elu",
            "relu",
            "relu6",
            "sigmoid",
            "tanh",
        ),
        *("silu", "hardsigmoid", "hardswish", "gelu", "mish", "identity", "zeros", "blank", "after", "layernorm"),
        *("rmsnorm", "attention", "heads", "merge", "embedding"),
    )
)
"""Operators that no pass changes: networks of these alone are left as they are."""
_GATES = frozenset(("sigmoid", "hardsigmoid", "tanh"))


def simplified(graph: Graph, *, quickly: bool = False) -> Graph:
    """The graph with every idiom recognised; idempotent.

    Args:
        graph: any graph.
        quickly: look at the operators first and leave a graph alone that has none with an idiom, such as those that
            `GraphBuilder` makes; a thousand graphs of a search space cost nothing then.

    Example:
        >>> from nasrlm.graph import GraphBuilder
        >>> from nasrlm.graph.ops import op
        >>> b = GraphBuilder()
        >>> x = b.input((8,))
        >>> b.output(b.apply(op("mul"), x, b.unary("sigmoid", x)))
        >>> simplified(b.build()).ops
        (<in 1x8>, <silu>)
    """
    if quickly and _settled(graph):
        return graph
    net = Net(graph)
    for run in PASSES.values():
        run(net)
    return net.graph()


def _settled(graph: Graph) -> bool:
    names = {op.name for op in set(graph.ops)}
    return names <= _SETTLED and not ("mul" in names and names & _GATES and _multiplied(graph))


def _multiplied(graph: Graph) -> bool:
    """Whether a product may be an activation: of a value and a function of it."""
    return any(
        op.name == "mul" and any(graph.ops[x].name in _GATES and _reads(graph, x, operands) for x in operands)
        for _, op, operands in graph.nodes()
    )


def _reads(graph: Graph, gate: int, others: tuple[int, ...]) -> bool:
    return gate - graph.refs[gate][0] in others

"""Products with weights as linear layers, sums with weights as biases."""

from __future__ import annotations

from nasrlm.graph.dims import Shape
from nasrlm.graph.ops import op, relative_width
from nasrlm.graph.passes.net import Net
from nasrlm.graph.passes.reshaping import target


def linears(net: Net) -> None:
    """MatMul with a learned matrix."""
    for i in net.nodes():
        if net.name(i) != "matmul":
            continue
        x, w = net.operands[i]
        shape = net.shapes[w]
        if net.is_weight(w) and len(shape) == 2 and not net.is_weight(x):
            net.replace(i, op("linear", relative_width(*shape), False), x)


def biases(net: Net) -> None:
    """A learned vector added to a convolution or linear layer that nothing else reads."""
    for i in net.nodes():
        if net.name(i) != "add":
            continue
        for w, x in net.parted(i, "weight"):
            if _takes_bias(net, x) and net.shapes[x] == net.shapes[i] and _is_bias(net, x, net.shapes[w]):
                net.replace(i, net.ops[x].replace(bias=True), *net.operands[x])
                break


def _takes_bias(net: Net, x: int) -> bool:
    return net.name(x) in ("conv", "deconv", "linear") and net.alone(x)


def _is_bias(net: Net, x: int, shape: Shape) -> bool:
    """Whether a learned tensor has one number an output channel."""
    channels = len(net.shapes[x]) - 1 if net.name(x) == "linear" else 1
    full = (1,) * (len(net.shapes[x]) - len(shape)) + shape
    return all(n == (net.shapes[x][k] if k == channels else 1) for k, n in enumerate(full))


def linear_shapes(net: Net) -> None:
    """A reshape that leaves the last dimension alone goes behind the linear layer that reads it, to join others."""
    for i in net.nodes():
        x = net.operands[i][0] if net.name(i) == "linear" else i
        if x == i or net.name(x) != "reshape" or not net.alone(x):
            continue
        y = net.operands[x][0]
        before, after = net.shapes[y], net.shapes[x]
        if len(before) < 2 or before[-1] != after[-1] or not isinstance(before[-1], int):
            continue
        moved = (*before[:-1], net.shapes[i][-1])
        inner = net.add(i, net.ops[i], y, shape=moved)
        net.replace(i, op("reshape", target(moved, net.shapes[i])), inner)

"""Idioms on feature maps: global pooling, channel shuffle."""

from __future__ import annotations

from nasrlm.graph.ops import op
from nasrlm.graph.passes.net import Net

_GLOBAL = {"mean": "gap", "amax": "gmp"}


def global_pools(net: Net) -> None:
    """A mean or maximum over all dimensions after the channels, or a window that covers them."""
    for i in net.nodes():
        name, shape = net.name(i), net.shapes[net.operands[i][0]] if net.operands[i] else ()
        if name in _GLOBAL and net.ops[i]["axes"] == tuple(range(2, len(shape))) and len(shape) > 2:
            x = net.operands[i][0]
            if net.ops[i]["keep"]:
                net.replace(i, op(_GLOBAL[name]), x)
            else:
                net.replace(i, op("flatten"), net.add(i, op(_GLOBAL[name]), x))
        elif name in ("avgpool", "maxpool") and _covers(net, i):
            net.replace(i, op("gap" if name == "avgpool" else "gmp"), net.operands[i][0])


def _covers(net: Net, i: int) -> bool:
    made = net.ops[i]
    return not any(made["padding"]) and made["kernel"] == net.shapes[net.operands[i][0]][2:]


def shuffles(net: Net) -> None:
    """Reshape to (batch, groups, channels, ...), exchange of the two, and back: a channel shuffle."""
    for i in net.nodes():
        turned = net.operand(i, "transpose") if net.name(i) == "reshape" else None
        apart = net.operand(turned, "reshape") if turned is not None else None
        if turned is None or apart is None:
            continue
        x, shape = net.operands[apart][0], net.shapes[apart]
        rank = len(net.shapes[x])
        order = (0, 2, 1, *range(3, rank + 1))
        spatial = net.shapes[x][2:]
        if (
            rank >= 3
            and net.ops[turned]["order"] == order
            and shape[3:] == spatial
            and net.shapes[i] == net.shapes[x]
            and shape[1] * shape[2] == net.shapes[x][1]
        ):
            net.replace(i, op("shuffle", shape[1]), x)

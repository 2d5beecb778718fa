"""Idioms on feature maps: global pooling, channel shuffle."""

from __future__ import annotations

from nasrlm.graph.ops import op
from nasrlm.graph.passes.net import Net
from nasrlm.graph.passes.reshaping import target

_GLOBAL = {"mean": "gap", "amax": "gmp"}


def global_pools(net: Net) -> None:
    """A mean or maximum over all dimensions after the channels, or a window that covers them."""
    for i in net.nodes():
        name, shape = net.name(i), net.shapes[net.operands[i][0]] if net.operands[i] else ()
        if name in _GLOBAL and net.ops[i]["axes"] == tuple(range(2, len(shape))) and len(shape) > 2:
            x = net.operands[i][0]
            while net.name(x) == "reshape" and _same_channels(net, x):
                x = net.operands[x][0]
            if net.shapes[x] == shape and net.ops[i]["keep"]:
                net.replace(i, op(_GLOBAL[name]), x)
                continue
            pooled = net.add(i, op(_GLOBAL[name]), x)
            made = op("reshape", target(net.shapes[pooled], net.shapes[i]))
            net.replace(i, op("flatten") if not net.ops[i]["keep"] else made, pooled)
        elif name in ("avgpool", "maxpool") and _covers(net, i):
            net.replace(i, op("gap" if name == "avgpool" else "gmp"), net.operands[i][0])


def _same_channels(net: Net, x: int) -> bool:
    """Whether a reshape leaves batch and channels alone, so that all the rest is still all the rest."""
    before = net.shapes[net.operands[x][0]]
    return len(before) > 2 and before[:2] == net.shapes[x][:2]


def _covers(net: Net, i: int) -> bool:
    made = net.ops[i]
    return not any(made["padding"]) and made["kernel"] == net.shapes[net.operands[i][0]][2:]


def paddings(net: Net) -> None:
    """Zero padding before a convolution or a mean that can pad by itself."""
    for i in net.nodes():
        pad = net.operand(i, "pad") if net.name(i) in ("conv", "avgpool") else None
        if pad is None or net.ops[pad]["mode"] != "constant" or net.ops[pad]["value"] != 0:
            continue
        amounts, made = net.ops[pad]["padding"], net.ops[i]
        if len(amounts) != len(made["padding"]):
            continue  # channels are padded, too
        together = tuple(a + b for a, b in zip(amounts, made["padding"], strict=True))
        if made.name == "conv":
            net.replace(i, made.replace(padding=together), net.operands[pad][0])
        elif not made["ceil"] and (made["include_padding"] or not any(made["padding"])):
            net.replace(i, made.replace(padding=together, include_padding=True), net.operands[pad][0])


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

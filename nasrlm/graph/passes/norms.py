"""Layer, root-mean-square and group normalisation written as arithmetic."""

from __future__ import annotations

from nasrlm.graph.ops import op_with
from nasrlm.graph.passes.net import Net


def norms(net: Net) -> None:
    """(x - mean) / sqrt(variance + epsilon) and x / sqrt(mean of squares + epsilon), over the last dimensions."""
    for i in net.nodes():
        for x, root in _quotients(net, i):
            found = _deviation(net, root)
            if found is None:
                continue
            y, axes, epsilon = found
            centred = _centred(net, x, axes)
            if y == x and centred is not None:
                net.replace(i, op_with("layernorm", axes=axes, epsilon=epsilon, scale=False, shift=False), centred)
            elif y == x:
                net.replace(i, op_with("rmsnorm", axes=axes, epsilon=epsilon, scale=False), x)
            else:
                continue
            break


def _quotients(net: Net, i: int) -> list[tuple[int, int]]:
    """Ways to read node i as x / sqrt(y): pairs of x and the square root."""
    if net.name(i) == "div":
        x, below = net.operands[i]
        return [(x, below)] if net.name(below) == "sqrt" else []
    found: list[tuple[int, int]] = []
    if net.name(i) == "mul":
        for inverse, x in net.parted(i, "reciprocal"):
            found += [(x, root)] if (root := net.operand(inverse, "sqrt")) is not None else []
        for inverse, x in net.parted(i, "div"):
            one, below = net.operands[inverse]
            found += [(x, below)] if net.number(one) == 1 and net.name(below) == "sqrt" else []
        for inverse, x in net.parted(i, "pow"):
            _, power = net.operands[inverse]
            found += [(x, inverse)] if net.number(power) == -0.5 else []
    return found


def _deviation(net: Net, root: int) -> tuple[int, int, float] | None:
    """Of sqrt(mean(y * y) + epsilon): y, over how many last dimensions, and epsilon."""
    total = net.operands[root][0]
    epsilon, mean = 0.0, total
    if net.name(total) == "add":
        constant, mean = next(net.parted(total, "value"), (total, total))
        epsilon = net.number(constant) or 0.0
    axes = _last_axes(net, mean)
    if axes is None:
        return None
    square = net.operands[mean][0]
    y = net.operands[square][0] if net.operands[square] else -1
    squared = (net.name(square) == "pow" and net.number(net.operands[square][1]) == 2) or (
        net.name(square) == "mul" and net.operands[square] == [y, y]
    )
    return (y, axes, epsilon) if squared else None


def _last_axes(net: Net, mean: int) -> int | None:
    """How many last dimensions a mean goes over that keeps them with one entry; None for anything else."""
    if net.name(mean) != "mean" or not net.ops[mean]["keep"]:
        return None
    axes, rank = net.ops[mean]["axes"], len(net.shapes[mean])
    return len(axes) if axes == tuple(range(rank - len(axes), rank)) else None


def _centred(net: Net, d: int, axes: int) -> int | None:
    """The x of d = x - mean(x)."""
    if net.name(d) != "sub":
        return None
    x, mean = net.operands[d]
    return x if _last_axes(net, mean) == axes and net.operands[mean] == [x] else None


_AFFINE = {"layernorm": ("mul", "add"), "rmsnorm": ("mul",), "groupnorm": (), "instancenorm": ()}


def scales(net: Net) -> None:
    """Learned scale and shift behind a normalisation without them."""
    for i in net.nodes():
        if net.name(i) not in ("mul", "add"):
            continue
        field = "scale" if net.name(i) == "mul" else "shift"
        for w, x in net.parted(i, "weight"):
            made = net.ops[x]
            if net.name(i) not in _AFFINE.get(made.name, ()) or made[field] or not net.alone(x):
                continue
            if net.name(i) == "mul" and made.name == "layernorm" and made["shift"]:
                continue  # the scale comes before the shift
            if net.shapes[w] == net.shapes[x][-made["axes"] :]:
                net.replace(i, made.replace(**{field: True}), *net.operands[x])
                break


def group_norms(net: Net) -> None:
    """Instance normalisation over (batch, groups, rest), reshaped back, with a scale and shift a channel."""
    for i in net.nodes():
        back = i if net.name(i) == "reshape" else None
        inner = net.operand(i, "instancenorm") if back is not None else None
        apart = net.operand(inner, "reshape") if inner is not None else None
        if inner is None or apart is None or not net.alone(inner):
            continue
        x, parts = net.operands[apart][0], net.shapes[apart]
        if len(parts) != 3 or net.shapes[i] != net.shapes[x] or parts[0] != net.shapes[x][0]:
            continue
        made = op_with("groupnorm", groups=parts[1], epsilon=net.ops[inner]["epsilon"], affine=False)
        net.replace(i, made, x)
        _affine(net, i)


def _affine(net: Net, i: int) -> None:
    """Take a scale and a shift a channel into group normalisation i."""
    channel = (net.shapes[i][1], *(1,) * (len(net.shapes[i]) - 2))
    end = i
    for name in ("mul", "add"):
        if not net.alone(end):
            return
        user = next(iter(net.users[end]))
        weights = [w for w, x in net.parted(user, "weight") if x == end] if net.name(user) == name else []
        if not weights or net.shapes[weights[0]] not in (channel, (1, *channel)):
            return
        end = user
    net.replace(end, net.ops[i].replace(affine=True), *net.operands[i])

"""Scaled dot-product attention, and the reshapes around its heads."""

from __future__ import annotations

from math import isclose

from nasrlm.graph.ops import op, op_with
from nasrlm.graph.passes.net import Net


def attention(net: Net) -> None:
    """softmax(q k' scale + mask) v, wherever the scale stands."""
    for i in net.nodes():
        if net.name(i) != "matmul":
            continue
        weights, v = net.operands[i]
        found = _scores(net, weights)
        if found is None:
            continue
        q, k, scale, mask = found
        causal = mask is not None and net.name(mask) == "value" and net.ops[mask]["numbers"] == ("causal",)
        width = net.shapes[q][-1]
        usual = isinstance(width, int) and isclose(scale, width**-0.5, rel_tol=1e-5)
        made = op_with("attention", scale=None if usual else float(f"{scale:.7g}"), causal=causal)
        if len(net.shapes[q]) == len(net.shapes[k]) == len(net.shapes[v]):
            net.replace(i, made, q, k, v, *([] if mask is None or causal else [mask]))


def _scores(net: Net, weights: int) -> tuple[int, int, float, int | None] | None:
    """Queries, keys, scale and mask of softmax weights."""
    if net.name(weights) != "softmax" or net.ops[weights]["axis"] != len(net.shapes[weights]) - 1:
        return None
    scores, mask, scale = net.operands[weights][0], None, 1.0
    if net.name(scores) == "add" and len(net.operands[scores]) == 2:
        for product, other in (net.operands[scores], net.operands[scores][::-1]):
            if _product(net, product) is not None:
                scores, mask = product, other
                break
    found = _product(net, scores)
    if found is None:
        return None
    product, scale = found
    (q, first), (keys, second) = (_scaled(net, x) for x in net.operands[product])
    rank = len(net.shapes[keys])
    turned = net.add(weights, op("transpose", (*range(rank - 2), rank - 1, rank - 2)), keys)  # joins what made the keys
    k, third = _scaled(net, turned)
    return q, k, scale * first * second * third, mask


def _product(net: Net, x: int) -> tuple[int, float] | None:
    """The matrix product below a scale, and the scale."""
    y, scale = _scaled(net, x)
    return (y, scale) if net.name(y) == "matmul" else None


def _scaled(net: Net, x: int) -> tuple[int, float]:
    """A value without the numbers that it is multiplied by, and their product."""
    scale = 1.0
    while net.name(x) in ("mul", "div") and len(net.operands[x]) == 2:
        a, b = net.operands[x]
        number = net.number(b)
        if number is None and net.name(x) == "mul":
            a, number = b, net.number(a)
        if number is None or number == 0 or net.shapes[a] != net.shapes[x]:
            break
        scale = scale * number if net.name(x) == "mul" else scale / number
        x = a
    return x, scale


def heads_apart(net: Net) -> None:
    """Heads that a transpose reads, or made, as reshape and transpose: as exporters write them, so that these join."""
    for i in net.nodes():
        if net.name(i) == "heads" and any(net.name(user) == "transpose" for user in net.users[i]):
            (x,), (batch, count, length, width) = net.operands[i], net.shapes[i]
            parts = net.add(i, op("reshape", (batch, length, count, width)), x, shape=(batch, length, count, width))
            net.replace(i, op("transpose", (0, 2, 1, 3)), parts)
        elif net.name(i) == "merge" and net.operand(i, "transpose") is not None:
            turned = net.add(i, op("transpose", (0, 2, 1, 3)), *net.operands[i])
            net.replace(i, op("reshape", net.shapes[i]), turned)


def heads(net: Net) -> None:
    """(batch, length, heads width) to (batch, heads, length, width) and back."""
    for i in net.nodes():
        if net.name(i) == "transpose" and net.ops[i]["order"] == (0, 2, 1, 3):
            apart = net.operand(i, "reshape")
            if apart is not None:
                x, parts = net.operands[apart][0], net.shapes[apart]
                if net.shapes[x] == (*parts[:2], parts[2] * parts[3]):
                    net.replace(i, op("heads", parts[2]), x)
        elif net.name(i) == "reshape":
            turned = net.operand(i, "transpose")
            if turned is not None and net.ops[turned]["order"] == (0, 2, 1, 3):
                b, h, length, width = net.shapes[net.operands[turned][0]]
                merged = (b, length, h * width)
                if net.shapes[i] == merged:
                    net.replace(i, op("merge"), net.operands[turned][0])
                elif b == 1 and net.shapes[i] == merged[1:]:
                    inner = net.add(i, op("merge"), net.operands[turned][0])
                    net.replace(i, op("reshape", merged[1:]), inner)

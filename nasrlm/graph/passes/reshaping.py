"""Reshapes, transposes and slices: chains of them have one form.

Dimensions of one entry ("units") hold nothing: a transpose only orders the others. So a chain of transposes and of
reshapes that add or drop units is one transpose, of a reshape if need be.
"""

from __future__ import annotations

from nasrlm.graph.dims import Shape, is_dynamic, tidy
from nasrlm.graph.ops import op
from nasrlm.graph.passes.net import Net

_RESHAPES = ("reshape", "flatten")


def reshapes(net: Net) -> None:
    """Chains of reshapes and transposes; a transpose that moves only units is a reshape."""
    for i in net.nodes():
        if net.name(i) == "transpose":
            _transposed(net, i, i)
        elif net.name(i) in _RESHAPES:
            x = net.operands[i][0]
            while net.name(x) in _RESHAPES:
                x = net.operands[x][0]
            if net.name(x) != "transpose":
                _reshaped(net, i, x)
            elif (turned := _unmerged(net, i, x)) is not None:
                _transposed(net, i, turned)
            elif _others(net.shapes[x]) == _others(net.shapes[i]):
                _transposed(net, i, x)
            else:
                _reshaped(net, i, _units_first(net, i, x))


def _transposed(net: Net, i: int, turned: int) -> None:
    """Node i is transpose `turned`, but for units: make it one transpose of a reshape at most."""
    order, x = net.ops[turned]["order"], net.operands[turned][0]
    if net.name(x) == "transpose":
        order, x = tuple(net.ops[x]["order"][k] for k in order), net.operands[x][0]
    before, after = net.shapes[x], net.shapes[i]
    kept = [k for k in order if before[k] != 1]  # in the new order
    if kept == sorted(kept):
        while net.name(x) in _RESHAPES:
            x = net.operands[x][0]
        _reshaped(net, i, x)
        return
    while net.name(x) in _RESHAPES:
        x = net.operands[x][0]
    units = len(after) - len(kept)
    inner = (*(1,) * units, *(before[k] for k in sorted(kept)))
    place = {k: units + n for n, k in enumerate(sorted(kept))}
    unit, moved = iter(range(units)), iter(kept)
    made = op("transpose", tuple(next(unit) if d == 1 else place[next(moved)] for d in after))
    if net.shapes[x] != inner:
        x = net.add(i, op("reshape", target(net.shapes[x], inner)), x, shape=inner)
    if (net.ops[i], net.operands[i]) != (made, [x]):
        net.replace(i, made, x)


def _unmerged(net: Net, i: int, x: int) -> int | None:
    """Reshape i splits the first dimension again that a reshape before transpose x merged: one transpose of all."""
    merged, order = net.operands[x][0], net.ops[x]["order"]
    if net.name(merged) not in _RESHAPES or order[0] != 0:
        return None
    source, kept = net.operands[merged][0], len(order) - 1
    shape, after = net.shapes[source], _others(net.shapes[i])
    places = [k for k, d in enumerate(shape) if d != 1]
    before = [shape[k] for k in places]
    tail = list(net.shapes[merged][1:])
    if len(before) <= kept + 1 or before[-kept:] != tail or after[:-kept] != before[:-kept]:
        return None
    moved = [places[-kept:][k - 1] for k in order[1:]]
    if after[-kept:] != [shape[k] for k in moved]:
        return None
    units = [k for k, d in enumerate(shape) if d == 1]
    return net.add(i, op("transpose", (*units, *places[:-kept], *moved)), source)


def _units_first(net: Net, i: int, x: int) -> int:
    """Transpose x with its units in front, since the reshape i does not mind where they are."""
    shape = net.shapes[x]
    others = [d for d in shape if d != 1]
    wanted = (*(1,) * (len(shape) - len(others)), *others)
    if wanted == shape:
        return x
    turned = net.add(i, op("transpose", net.ops[x]["order"]), net.operands[x][0], shape=wanted)
    _transposed(net, turned, turned)
    return turned


def _others(shape: Shape) -> list[int]:
    return [d for d in shape if d != 1]


def _reshaped(net: Net, i: int, x: int) -> None:
    """Node i is the plainest reshape of x."""
    before, after = net.shapes[x], net.shapes[i]
    if before == after:
        net.bypass(i, x)
        return
    flat = len(before) > 2 and len(after) == 2 and after[0] == before[0]
    made = op("flatten") if flat else op("reshape", target(before, after))
    if (net.ops[i], net.operands[i]) != (made, [x]):
        net.replace(i, made, x)


def target(before: Shape, after: Shape) -> Shape:
    """The dimensions to write: numbers, dynamic dimensions that have a word, and at most one that follows (-1)."""
    if not is_dynamic(after):
        return after
    known = set(before)
    plain = tuple(n if isinstance(n, int) or (n in known and n.is_Symbol) else -1 for n in after)
    return plain if plain.count(-1) <= 1 else tuple(map(tidy, after))


def turned_softmax(net: Net) -> None:
    """A transpose before a softmax goes behind it (older opsets only know the last axis)."""
    for i in net.nodes():
        x = net.operand(i, "transpose") if net.name(i) in ("softmax", "logsoftmax") else None
        if x is not None:
            order, y = net.ops[x]["order"], net.operands[x][0]
            inner = net.add(i, op(net.name(i), order[net.ops[i]["axis"]]), y)
            net.replace(i, op("transpose", order), inner)


def slices(net: Net) -> None:
    """A slice goes before the transposes and reshapes that it reads, where they keep its entries together."""
    for i in net.nodes():
        while net.name(i) == "slice" and net.ops[i]["step"] == 1:
            x = net.operands[i][0]
            if net.name(x) == "transpose":
                made = net.ops[i].replace(axis=net.ops[x]["order"][net.ops[i]["axis"]])
                i = _before(net, i, x, made)
            elif net.name(x) in _RESHAPES and (found := _through(net, i, x)) is not None:
                i = _before(net, i, x, op("slice", *found))
            else:
                break
    reshapes(net)


def _before(net: Net, i: int, x: int, made: object) -> int:
    """Slice i of x is now x of a slice, which is returned."""
    y = net.operands[x][0]
    part = net.add(i, made, y)  # type: ignore[arg-type]
    kind = net.ops[x] if net.name(x) == "transpose" else op("reshape", target(net.shapes[part], net.shapes[i]))
    net.replace(i, kind, part)
    return part


def _through(net: Net, i: int, x: int) -> tuple[int, int, int] | None:
    """Axis and bounds of the slice in what reshape x reads, if its entries stand together there."""
    made, shape, source = net.ops[i], net.shapes[x], net.shapes[net.operands[x][0]]
    axis, start, stop = made["axis"], made["start"], made["stop"]
    if is_dynamic(shape[axis:]) or is_dynamic(source[1:]) or (shape[0] != source[0] and is_dynamic(source)):
        return None
    skip = 1 if shape[0] == source[0] and axis > 0 else 0  # a dynamic batch dimension
    ahead = _product(shape[skip:axis])
    for k in range(skip, len(source)):
        if _product(source[skip:k]) == ahead and source[k] != 1:
            inner = 1
            for m in range(axis, len(shape) + 1):
                if m > axis and inner * shape[axis] == source[k]:
                    return k, start * inner, stop * inner
                if m > axis and m < len(shape):
                    inner *= shape[m]
            return None
    return None


def _product(dims: Shape) -> int:
    total = 1
    for d in dims:
        total *= d
    return total

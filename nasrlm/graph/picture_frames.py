"""Boxes, frames and wires of a picture at their places: every frame first, then all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nasrlm.graph.picture_layout import Arrangement, Edge, Point, Span, arrange
from nasrlm.graph.picture_plan import Frame, Plan, Wire

_PAD = 10.0
_LANE = 4.0
_PORT, _PORT_SHARE = 14.0, 0.35
"""Points that a wire enters left or right of the middle at most, and as a part of the box's width."""

Size = tuple[float, float]


@dataclass(frozen=True)
class DrawnWire:
    """The pieces of a wire; one that goes on inside a frame has no arrow."""

    spans: list[Span]
    arrow: bool
    dashed: bool


@dataclass
class Placed:
    """Everything at its place, in points from the top left.

    Attributes:
        width: of everything.
        height: of everything.
        centres: of the boxes.
        frames: left, top, width and height of every frame.
        wires: what is drawn of the wires.
    """

    width: float = 0.0
    height: float = 0.0
    centres: list[Point] = field(default_factory=list)
    frames: list[tuple[float, float, float, float]] = field(default_factory=list)
    wires: list[DrawnWire] = field(default_factory=list)


@dataclass
class _Inside:
    """A frame's boxes in arrangement; where values come in (by source box) and go out (by box), from its middle."""

    arrangement: Arrangement
    corner: Point
    size: Size
    entries: dict[int, float]
    exits: dict[int, float]
    wires: list[Wire]


def place(plan: Plan, sizes: Sequence[Size], titles: Sequence[float]) -> Placed:
    """Finds the places.

    Args:
        plan: what to draw.
        sizes: of the boxes, in points.
        titles: widths of the frames' titles.
    """
    insides = [_inside(plan, frame, sizes, title) for frame, title in zip(plan.frames, titles, strict=True)]
    elements, element_of = _elements(plan)
    outer_sizes = [sizes[e.start] if f is None else insides[f].size for e, f in elements]
    keys: dict[tuple[int, int, float], bool] = {}  # wires outside frames: source box, target element, way in
    for wire in plan.wires:
        target = element_of[wire.target]
        if element_of[wire.source] != target:
            frame = elements[target][1]
            into = _into(wire, sizes) if frame is None else insides[frame].entries[wire.source]
            key = (wire.source, target, into)
            keys[key] = keys.get(key, True) and wire.dashed
    edges = []
    for source, target, into in keys:
        frame = elements[element_of[source]][1]
        out = 0.0 if frame is None else insides[frame].exits[source]
        edges.append(Edge(element_of[source], target, out, into))
    found = arrange(outer_sizes, edges)
    placed = Placed(found.width, found.height)
    for route, (_, target, _), dashed in zip(found.routes, keys, keys.values(), strict=True):
        placed.wires.append(DrawnWire(route, elements[target][1] is None, dashed))
    for centre, (_, frame) in zip(found.centres, elements, strict=True):
        if frame is None:
            placed.centres.append(centre)
        else:
            _put_inside(placed, insides[frame], centre, plan.frames[frame])
    return placed


def _elements(plan: Plan) -> tuple[list[tuple[range, int | None]], list[int]]:
    """Boxes outside frames and frames (their boxes and their number), and for each box its element."""
    frames = {frame.start: i for i, frame in enumerate(plan.frames)}
    elements: list[tuple[range, int | None]] = []
    element_of: list[int] = []
    while len(element_of) < len(plan.boxes):
        here = len(element_of)
        number = frames.get(here)
        boxes = range(here, here + 1 if number is None else plan.frames[number].stop)
        element_of += [len(elements)] * len(boxes)
        elements.append((boxes, number))
    return elements, element_of


def _inside(plan: Plan, frame: Frame, sizes: Sequence[Size], title: float) -> _Inside:
    boxes = range(frame.start, frame.stop)
    wires = [w for w in plan.wires if w.target in boxes]
    # What comes from further up stands right, as passing wires do.
    sources = sorted({w.source for w in wires if w.source not in boxes}, reverse=True)
    leaving = list(dict.fromkeys(w.source for w in plan.wires if w.source in boxes and w.target not in boxes))
    node = {box: i for i, box in enumerate([*boxes, *sources])}
    edges = [Edge(node[w.source], node[w.target], 0.0, _into(w, sizes)) for w in wires]
    edges += [Edge(node[box], len(node) + i) for i, box in enumerate(leaving)]
    top = range(len(boxes), len(node))
    bottom = range(len(node), len(node) + len(leaving))
    inner_sizes = [*(sizes[b] for b in boxes), *[(_LANE, 0.0)] * (len(top) + len(bottom))]
    found = arrange(inner_sizes, edges, top, bottom)
    above, below = (0.0 if top else _PAD), (0.0 if bottom else _PAD)
    size = (found.width + 2 * _PAD + title, found.height + above + below)
    corner = (_PAD + title, above)

    def ways(numbers: range) -> list[float]:
        return [found.centres[n][0] + corner[0] - size[0] / 2 for n in numbers]

    entries, exits = dict(zip(sources, ways(top), strict=True)), dict(zip(leaving, ways(bottom), strict=True))
    return _Inside(found, corner, size, entries, exits, wires)


def _into(wire: Wire, sizes: Sequence[Size]) -> float:
    return wire.port * min(_PORT, _PORT_SHARE * sizes[wire.target][0])


def _put_inside(placed: Placed, inside: _Inside, centre: Point, frame: Frame) -> None:
    left, top = centre[0] - inside.size[0] / 2, centre[1] - inside.size[1] / 2
    placed.frames.append((left, top, *inside.size))
    right, down = left + inside.corner[0], top + inside.corner[1]
    found = inside.arrangement
    placed.centres += [(x + right, y + down) for x, y in found.centres[: frame.stop - frame.start]]
    for i, route in enumerate(found.routes):
        wire = inside.wires[i] if i < len(inside.wires) else None  # the others lead out
        spans = [(x + right, y0 + down, y1 + down) for x, y0, y1 in route]
        placed.wires.append(DrawnWire(spans, wire is not None, wire is not None and wire.dashed))

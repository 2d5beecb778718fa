"""A picture of a network as the model reads it: the lines of its canonical text as boxes, values as wires."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from nasrlm.errors import ExportError
from nasrlm.graph import picture_plan as plans
from nasrlm.graph.picture_frames import DrawnWire, place
from nasrlm.graph.picture_plan import Box, Plan

SUFFIXES = (".svg", ".png", ".pdf")
_FILL = {
    "convolution": "#a6cee9",
    "linear": "#f6c7a0",
    "pooling": "#9fd8c3",
    "norm, activation": "#f7eda0",
    "join": "#e6bcd5",
    plans.OTHER: "#c9c4ee",
    "input, output": "#ffffff",
    plans.DEAD_WORK: "#d0d0d0",
    plans.BLOCK: "#f4f4f4",
    plans.LEFT_OUT: "#ffffff",
}
"""Pale tints of Okabe and Ito's colours, which colour-blind readers tell apart."""
_INK, _EDGE, _WIRE, _SHAPE, _FRAME = "#222222", "#777777", "#555555", "#0060a0", "#f8f8f8"
_FAMILY = ["DejaVu Sans Mono", "monospace"]  # comes with matplotlib
_LETTER, _LINE = 0.602, 1.25
"""Width of a letter and distance of lines, as parts of the font's size."""
_FONT, _SMALL = 8.0, 7.0
_PAD, _MARGIN, _CORNER, _ARROW = 5.0, 12.0, 4.0, 4.0
_DPI, _MOST_PIXELS = 150, 30_000


def draw(x: Any, path: str | PathLike[str], *, dead_work: bool = False) -> Path:
    """Draws a network from top to bottom.

    A box is a line of the canonical text; a wire is a value, with its shape (without the batch) where it changes. A
    repeated block is drawn once, in a frame with its count; where a named block comes again there is one box. Where
    their order matters, values enter a box from left to right. Of more than 200 boxes the middle is left out. The same
    network gives the same file.

    Args:
        x: an Architecture, a Graph, an ONNX model or file, a text, or (torch module, example): see `as_graph`.
        path: the file to write: .svg, .png or .pdf.
        dead_work: also draw, in grey, what has no effect.

    Returns:
        The path.

    Raises:
        ExportError: another suffix, a file that cannot be written, or a network that cannot be read.
    """
    file = Path(path)
    check_suffix(file)
    plan = plans.plan(x, dead_work=dead_work)
    from matplotlib import rc_context  # here: it takes a while to load

    # What makes the same network the same file, and leaves text as text.
    with rc_context({"svg.hashsalt": "nasrlm", "svg.fonttype": "none", "pdf.fonttype": 42, "font.family": _FAMILY}):
        _save(_Drawing(plan).figure, file)
    return file


def check_suffix(file: Path) -> None:
    """Raises ExportError if a picture cannot have this name.

    >>> check_suffix(Path("graph.jpg"))
    Traceback (most recent call last):
    nasrlm.errors.ExportError: a picture cannot be 'graph.jpg'. Allowed: names that end in .svg, .png or .pdf.
    """
    if file.suffix.lower() not in SUFFIXES:
        raise ExportError(f"a picture cannot be {str(file)!r}. Allowed: names that end in .svg, .png or .pdf.")


def _save(figure: Any, file: Path) -> None:
    undated: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    dpi = min(_DPI, _MOST_PIXELS / max(figure.get_size_inches()))
    try:
        figure.savefig(file, dpi=dpi, metadata=undated.get(file.suffix.lower()))
    except OSError as error:
        raise ExportError(f"{file} cannot be written: {error.strerror or error}. Choose another place.") from None


def _width(text: str, font: float) -> float:
    return max((len(line) for line in text.split("\n")), default=0) * font * _LETTER


def _size(box: Box) -> tuple[float, float]:
    """Width and height; the shape, which stands below and right of the middle, has room in the width."""
    lines = box.text.count("\n") + 1
    width = max(_width(box.text, _FONT) + 2 * _PAD, 2 * (_width(box.shape, _SMALL) + _ARROW + 2))
    return width, lines * _FONT * _LINE + 2 * _PAD


def _place(x: float, y: float) -> tuple[float, float]:
    return round(x, 1), round(y, 1)


class _Drawing:
    """Draws a plan on a figure of its size; one unit is a point, y downwards."""

    def __init__(self, plan: Plan) -> None:
        from matplotlib.figure import Figure

        sizes = [_size(box) for box in plan.boxes]
        titles = [_width(frame.title, _FONT) for frame in plan.frames]
        placed = place(plan, sizes, titles)
        kinds = [kind for kind in plans.KINDS if any(box.kind == kind for box in plan.boxes)]
        legend = len(kinds) * _FONT * 1.6
        width = max(placed.width, _width(max(kinds, key=len, default=""), _SMALL) + 2 * _FONT) + 2 * _MARGIN
        height = placed.height + 3 * _MARGIN + legend
        self.figure = Figure(figsize=(width / 72, height / 72))
        self.axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.axis("off")
        self.axes.set_xlim(-(width - placed.width) / 2, (width + placed.width) / 2)
        self.axes.set_ylim(height - _MARGIN, -_MARGIN)
        for frame, (left, top, wide, high) in zip(plan.frames, placed.frames, strict=True):
            self._rounded(left, top, wide, high, _FRAME, dashed=False)
            self._text(left + _PAD, top + _PAD, frame.title, _FONT, ha="left", va="top", weight="bold")
        leaning: dict[tuple[float, float], float] = {}  # how far to the right the wires of a box turn
        for wire in placed.wires:
            self._wire(wire)
            start = _place(*wire.spans[0][:2])
            leaning[start] = leaning.get(start, 0.0) + wire.spans[1][0] - wire.spans[0][0]
        for box, size, (x, y) in zip(plan.boxes, sizes, placed.centres, strict=True):
            side = "right" if leaning.get(_place(x, y + size[1] / 2), 0.0) > 1 else "left"
            self._box(box, _width(box.text, _FONT) + 2 * _PAD, size[1], x, y, side)
        for i, kind in enumerate(kinds):
            y = placed.height + _MARGIN + i * _FONT * 1.6
            left = _MARGIN - (width - placed.width) / 2
            self._rounded(left, y, _FONT, _FONT, _FILL[kind], dashed=False, corner=1.0)
            self._text(left + 1.5 * _FONT, y + _FONT / 2, kind, _SMALL, ha="left", va="center")

    def _box(self, box: Box, wide: float, high: float, x: float, y: float, side: str) -> None:
        dashed = box.kind in (plans.DEAD_WORK, plans.LEFT_OUT)
        self._rounded(x - wide / 2, y - high / 2, wide, high, _FILL[box.kind], dashed)
        weight = "bold" if box.kind == plans.BLOCK else "normal"
        self._text(x, y, box.text, _FONT, ha="center", va="center", weight=weight, linespacing=_LINE)
        if box.shape:
            x += _ARROW if side == "left" else -_ARROW
            behind = {"fc": "white", "alpha": 0.75, "lw": 0.0, "pad": 0.8}  # so that it can be read on a wire
            self._text(x, y + high / 2 + 2, box.shape, _SMALL, ha=side, va="top", color=_SHAPE, bbox=behind)

    def _rounded(
        self, left: float, top: float, wide: float, high: float, fill: str, dashed: bool, corner: float = _CORNER
    ) -> None:
        from matplotlib.patches import FancyBboxPatch

        style = f"round,pad=0,rounding_size={corner}"
        line = (0, (3, 2)) if dashed else "solid"
        self.axes.add_patch(
            FancyBboxPatch((left, top), wide, high, boxstyle=style, fc=fill, ec=_EDGE, lw=0.7, linestyle=line)
        )

    def _text(self, x: float, y: float, text: str, size: float, *, color: str = _INK, **options: Any) -> None:
        from matplotlib import font_manager

        font = font_manager.FontProperties(family=_FAMILY, size=size, weight=options.pop("weight", "normal"))
        # "$" would begin a formula.
        self.axes.text(x, y, text, fontproperties=font, color=color, parse_math=False, **options)

    def _wire(self, wire: DrawnWire) -> None:
        from matplotlib.patches import PathPatch, Polygon
        from matplotlib.path import Path as Curve

        color = _EDGE if wire.dashed else _WIRE
        x, y, _ = wire.spans[0]
        points, codes = [(x, y)], [Curve.MOVETO]
        for i, (right, start, end) in enumerate(wire.spans):
            if i:
                middle = (y + start) / 2
                points += [(x, middle), (right, middle), (right, start)]
                codes += [Curve.CURVE4] * 3
            points.append((right, end))
            codes.append(Curve.LINETO)
            x, y = right, end
        line = (0, (3, 2)) if wire.dashed else "solid"
        self.axes.add_patch(PathPatch(Curve(points, codes), fc="none", ec=color, lw=0.8, linestyle=line))
        if wire.arrow:
            head = [(x, y), (x - _ARROW / 2, y - _ARROW), (x + _ARROW / 2, y - _ARROW)]
            self.axes.add_patch(Polygon(head, closed=True, fc=color, ec="none"))

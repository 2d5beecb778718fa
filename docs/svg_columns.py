"""Cuts a tall picture of a network into columns beside each other, so that it can be read on a page."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

TALL, WIDE = 950.0, 1150.0
"""Points that a column and all columns should have at most."""
_SPACE, _TOP, _FRAME_COST, _GAP = 12.0, 6.0, 150.0, 5.0
"""Between columns; above them; how much further away a cut outside a frame may be; the least room of a cut."""
_FONT = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
_NUMBER = re.compile(r"-?\d+\.\d+")


@dataclass
class _Picture:
    """What a picture is made of: styles, shapes as SVG, and what a cut must not or should not go through."""

    width: float
    height: float
    shapes: list[str] = field(default_factory=list)
    styles: dict[str, str] = field(default_factory=dict)
    solid: list[tuple[float, float]] = field(default_factory=list)
    frames: list[tuple[float, float]] = field(default_factory=list)

    def style(self, css: str) -> str:
        return self.styles.setdefault(css, f"s{len(self.styles)}")


def in_columns(svg: str) -> str:
    """The same picture in as many columns as its height asks for and the width of a page allows.

    Args:
        svg: what `nasrlm.graph.picture.draw` writes.
    """
    picture = _read(svg)
    columns = max(1, min(math.ceil(picture.height / TALL), int(WIDE // picture.width)))
    cuts = [0.0, *_cuts(picture, columns), picture.height]
    high = max(below - above for above, below in pairwise(cuts)) + 2 * _TOP
    wide = (len(cuts) - 1) * (picture.width + _SPACE) - _SPACE
    css = "".join(f".{name}{{{style}}}" for style, name in picture.styles.items())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{wide:.0f}pt" height="{high:.0f}pt" viewBox="0 0 {wide:.1f} {high:.1f}">',
        f"<style>text{{font-family:{_FONT}}}{css}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    if columns == 1:
        return "\n".join([*parts, *picture.shapes, "</svg>\n"])
    parts += ["<defs>", '<g id="all">', *picture.shapes, "</g>", "</defs>"]
    for i, (above, below) in enumerate(pairwise(cuts)):
        left = i * (picture.width + _SPACE)
        size = f'width="{picture.width:.1f}" height="{below - above:.1f}"'
        box = f'viewBox="0 {above:.1f} {picture.width:.1f} {below - above:.1f}"'
        parts.append(f'<svg x="{left:.1f}" y="{_TOP}" {size} {box} overflow="hidden"><use xlink:href="#all"/></svg>')
        if i:
            parts.append(f'<path d="M{left - _SPACE / 2:.1f} 8V{high - 8:.1f}" stroke="#ccc" stroke-dasharray="2 3"/>')
    return "\n".join([*parts, "</svg>\n"])


def _cuts(picture: _Picture, columns: int) -> list[float]:
    """Heights between boxes, as even as they allow, outside frames where there is such a place nearby."""
    free, end = [], 0.0
    for top, bottom in [*sorted(picture.solid), (picture.height, picture.height)]:
        if top - end >= _GAP:
            free.append((top + end) / 2)
        end = max(end, bottom)
    found: list[float] = []
    for i in range(1, columns):
        wanted = picture.height * i / columns
        later = [y for y in free if y > (found[-1] if found else 0.0) + picture.height / columns / 3]
        if later:
            found.append(min(later, key=lambda y: abs(y - wanted) + _FRAME_COST * _inside(y, picture.frames)))
    return found


def _inside(y: float, spans: list[tuple[float, float]]) -> bool:
    return any(top < y < bottom for top, bottom in spans)


def _read(svg: str) -> _Picture:
    root = ET.fromstring(svg)
    picture = _Picture(*(float(word) for word in root.attrib["viewBox"].split()[2:]))
    inside = {child for clip in root.iter() if _tag(clip) == "clipPath" for child in clip}
    for element in root.iter():
        if element in inside:
            continue
        if _tag(element) == "path":
            _path(picture, element)
        elif _tag(element) == "text":
            _text(picture, element)
    return picture


def _path(picture: _Picture, element: ET.Element) -> None:
    css, d = element.attrib["style"], " ".join(element.attrib["d"].split())
    heights = [float(y) for y in re.findall(r"[-\d.]+ ([-\d.]+)(?= |$)", re.sub("[A-Zz]", "", d))]
    if "fill: #ffffff" in css and "stroke" not in css and max(heights) - min(heights) > picture.height - 1:
        return  # the ground
    if "stroke: #777777" in css and "fill: none" not in css:
        frame = "fill: #f8f8f8" in css
        (picture.frames if frame else picture.solid).append((min(heights), max(heights)))
    css = css.replace("; stroke-linejoin: miter", "")
    picture.shapes.append(f'<path class="{picture.style(_short(css))}" d="{_short(d)}"/>')


def _text(picture: _Picture, element: ET.Element) -> None:
    css = re.sub(r" font-family: [^;]*;", "", element.attrib["style"])
    x, y = element.attrib["x"], float(element.attrib["y"])
    picture.solid.append((y - 7, y + 2))
    words = escape("".join(element.itertext()), quote=False)
    picture.shapes.append(f'<text class="{picture.style(_short(css))}" x="{_short(x)}" y="{y:.1f}">{words}</text>')


def _short(text: str) -> str:
    """Numbers with one digit behind the point, and no blanks that say nothing."""
    rounded = _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)
    return re.sub(r"([A-Z;:]) ", r"\1", re.sub(r" ([A-Zz])", r"\1", rounded))


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]

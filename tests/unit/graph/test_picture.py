"""Pictures of networks: what is drawn (plan), where (layout), and the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from nasrlm.errors import ExportError
from nasrlm.graph import GraphBuilder, draw, to_onnx, to_text
from nasrlm.graph.picture_frames import place
from nasrlm.graph.picture_layout import Edge, arrange
from nasrlm.graph.picture_plan import DEAD_WORK, LEFT_OUT, MOST_BOXES, plan
from nasrlm.spaces import get_space
from tests.corpus import CORPUS, export

NB201 = "|nor_conv_3x3~0|+|nor_conv_3x3~0|skip_connect~1|+|skip_connect~0|nor_conv_1x1~1|avg_pool_3x3~2|"


def chain(length: int, *, repeated: bool) -> object:
    b = GraphBuilder()
    x = b.input((4, 8, 8))
    for i in range(length):
        x = b.relu(b.conv(x, 4 if repeated else 4 + i % 7, 3))
    b.output(x)
    return b.build()


def residual() -> object:
    b = GraphBuilder()
    x = b.input((8, 16, 16))
    y = b.relu(b.conv(x, 8, 3))
    b.output(b.linear(b.flatten(b.global_avg_pool(b.add(x, y))), 10))
    return b.build()


def test_a_box_is_a_line_and_a_wire_is_a_value() -> None:
    graph = residual()
    found = plan(graph)
    assert [box.text.split()[0] for box in found.boxes] == [line.split()[0] for line in to_text(graph).split("\n")[1:]]
    words = [box.text.split()[0] for box in found.boxes]
    wires = {(words[w.source], words[w.target]) for w in found.wires}
    assert wires == {
        ("in", "conv"),
        ("conv", "relu"),
        ("in", "add"),
        ("relu", "add"),
        ("add", "gap"),
        ("gap", "flatten"),
        ("flatten", "linear"),
    }
    assert "@" not in "".join(box.text for box in found.boxes)


def test_shapes_stand_where_they_change() -> None:
    shapes = {box.text.split()[0]: box.shape for box in plan(residual()).boxes}
    assert shapes["in"] == "8 x 16 x 16"
    assert shapes["relu"] == shapes["add"] == shapes["conv"] == ""
    assert shapes["gap"] == "8 x 1 x 1" and shapes["linear"] == "10"


def test_the_order_of_what_enters_is_shown_where_it_matters() -> None:
    def ports(kind: str) -> set[float]:
        b = GraphBuilder()
        x = b.input((8, 16, 16))
        y = b.conv(x, 8, 3)
        joined = b.concat([x, y]) if kind == "concat" else b.add(x, y)
        b.output(joined)
        found = plan(b.build())
        return {w.port for w in found.wires if found.boxes[w.target].text.startswith(kind)}

    assert ports("concat") == {-1.0, 1.0}
    assert ports("add") == {0.0}


def test_a_repeated_block_is_drawn_once_with_its_count() -> None:
    network = chain(12, repeated=True)
    found = plan(network)
    assert [frame.title for frame in found.frames] == ["x12"] or len(found.boxes) < 12
    counts = [int(n) for frame in found.frames for n in re.findall(r"x(\d+)$", frame.title)]
    assert max(counts) >= 11
    lines = to_text(network, folded=False).count("\n")
    inside = sum((f.stop - f.start) * (n - 1) for f, n in zip(found.frames, counts, strict=True))
    assert len(found.boxes) + inside == lines


def test_a_named_block_that_comes_again_is_one_box() -> None:
    b = GraphBuilder()
    x = b.input((8, 16, 16))
    for stage in range(3):
        x = b.repeat(4, lambda x: b.add(b.relu(b.conv(x, 8, 3)), x), b.max_pool(x, 2) if stage else x)
    b.output(x)
    found = plan(b.build())
    assert [f.title for f in found.frames] == ["A x4"]
    assert [box.text for box in found.boxes if box.kind == "block"] == ["A x4", "A x4"]


def test_dead_work_is_grey_and_only_on_demand() -> None:
    dead = "|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|"
    arch = get_space("nasbench201").architecture(dead)
    assert not any(box.kind == DEAD_WORK for box in plan(arch).boxes)
    shown = plan(arch, dead_work=True)
    dead_boxes = {i for i, box in enumerate(shown.boxes) if box.kind == DEAD_WORK}
    assert dead_boxes
    assert all(w.dashed for w in shown.wires if w.target in dead_boxes)


def test_of_a_long_network_the_middle_is_left_out() -> None:
    found = plan(chain(5_000, repeated=False))
    left_out = [box for box in found.boxes if box.kind == LEFT_OUT]
    assert len(found.boxes) <= MOST_BOXES + 2
    frames = sum(int(n) for f in found.frames for n in re.findall(r"x(\d+)$", f.title))
    assert left_out or frames > 500
    for box in left_out:
        assert re.fullmatch(r"\.\.\. [\d,]+ lines left out \.\.\.", box.text.replace("\n", " "))


@pytest.mark.parametrize("name", CORPUS)
def test_every_network_of_the_corpus_has_a_picture(name: str, tmp_path: Path) -> None:
    found = plan(export(name, "dynamo", 21))
    connected = {w.target for w in found.wires} | {w.source for w in found.wires}
    assert connected == set(range(len(found.boxes)))
    assert all(w.source < w.target for w in found.wires)
    file = draw(export(name, "dynamo", 21), tmp_path / "a.svg")
    drawn = re.sub(r"&lt;", "<", file.read_text(encoding="utf-8"))
    for box in found.boxes:
        for line in box.text.split("\n"):
            assert line.replace("&", "&amp;").replace(">", "&gt;") in drawn


@st.composite
def drawings(draw_: st.DrawFn) -> tuple[list[tuple[float, float]], list[Edge]]:
    count = draw_(st.integers(1, 25))
    sizes = [(draw_(st.integers(10, 200)) * 1.0, draw_(st.integers(10, 60)) * 1.0) for _ in range(count)]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = {(min(p), max(p)) for p in draw_(st.lists(pairs, max_size=40)) if p[0] != p[1]}
    return sizes, [Edge(a, b) for a, b in sorted(edges)]


@given(drawings())
@settings(max_examples=150, deadline=None)
def test_boxes_never_overlap_and_wires_go_down(drawing: tuple[list[tuple[float, float]], list[Edge]]) -> None:
    sizes, edges = drawing
    found = arrange(sizes, edges)
    boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (w, h), (x, y) in zip(sizes, found.centres, strict=True)]
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert left >= -1e-6 and top >= -1e-6 and right <= found.width + 1e-6 and bottom <= found.height + 1e-6
        for other in boxes[:i]:
            apart = left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom
            assert apart, (i, boxes[i], other)
    for edge, route in zip(edges, found.routes, strict=True):
        heights = [y for _, start, end in route for y in (start, end)]
        assert heights == sorted(heights)
        assert route[0][1] == pytest.approx(boxes[edge.source][3])
        assert route[-1][2] == pytest.approx(boxes[edge.target][1])


def test_frames_hold_their_boxes_and_nothing_else() -> None:
    found = plan(get_space("nasbench201").architecture(NB201))
    sizes = [(60.0, 20.0)] * len(found.boxes)
    placed = place(found, sizes, [30.0] * len(found.frames))
    for frame, (left, top, wide, high) in zip(found.frames, placed.frames, strict=True):
        for i, (x, y) in enumerate(placed.centres):
            inside = left <= x - 30 and x + 30 <= left + wide and top <= y - 10 and y + 10 <= top + high
            outside = x + 30 <= left or x - 30 >= left + wide or y + 10 <= top or y - 10 >= top + high
            assert inside if frame.start <= i < frame.stop else outside


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "SVG"])
def test_the_same_network_gives_the_same_file(suffix: str, tmp_path: Path) -> None:
    arch = get_space("tiny").sample(1, seed=3)[0]
    first = draw(arch, tmp_path / f"a.{suffix}").read_bytes()
    assert draw(to_onnx(arch, weights="random"), tmp_path / f"b.{suffix}").read_bytes() == first
    assert draw(to_text(arch), tmp_path / f"c.{suffix}").read_bytes() == first
    assert first[:5] in (b"<?xml", b"\x89PNG\r", b"%PDF-")


def test_letters_that_mean_something_to_svg_and_matplotlib_do_no_harm(tmp_path: Path) -> None:
    node = helper.make_node("Strange", ["x"], ["y"], domain="my.ops", mode="$a<b>&$")
    x, y = (helper.make_tensor_value_info(name, 1, [1, 4]) for name in "xy")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets)
    drawn = draw(model, tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "=&gt;float32:1x4" in drawn
    assert "mode='%24a%3Cb%3E%26%24" in drawn


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.svg.gz"])
def test_other_suffixes_are_refused_before_anything_is_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=rf"a picture cannot be '.*{re.escape(name)}'. Allowed: .*\.svg, \.png or"):
        draw("no network at all", tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot be written: No such file or directory. Choose another place"):
        draw(residual(), tmp_path / "none" / "a.svg")

"""Text version 1: what it looks like, what it forgets, what it refuses."""

from __future__ import annotations

import pytest

from nasrlm.errors import ExportError, TextError
from nasrlm.graph import GraphBuilder, costs, parse_text, texts, to_text
from nasrlm.graph.fold import Block, fold


def net(build) -> str:
    b = GraphBuilder()
    b.output(build(b, b.input((4, 8, 8))))
    return to_text(b.build())


def body(build) -> list[str]:
    return net(build).splitlines()[2:]


def test_defaults_are_not_written() -> None:
    assert body(lambda b, x: b.conv(x, 4, 3, bias=True)) == ["conv k3"]
    assert body(lambda b, x: b.conv(x, 8, (1, 3), (1, 2), padding=(1, 3), dilation=2, groups=2)) == [
        "conv *2 k1x3 s1x2 d2 p1x3 g2 nobias"
    ]
    assert body(lambda b, x: b.conv(x, 2, 3, padding=(1, 0, 0, 1), bias=True)) == ["conv /2 k3 p1x0x0x1"]
    assert body(lambda b, x: b.max_pool(x, 2, 2)) == ["maxpool k2 s2"]
    assert body(lambda b, x: b.avg_pool(x, 3, count_include_pad=True)) == ["avgpool padded"]


def test_batch_norm_folds_only_where_nothing_else_reads_the_convolution() -> None:
    assert body(lambda b, x: b.batch_norm(b.conv(x, 4))) == ["conv"]
    assert body(lambda b, x: b.batch_norm(b.batch_norm(b.conv(x, 4)))) == ["conv"]

    def shared(b: GraphBuilder, x: int) -> int:
        y = b.conv(x, 4)
        return b.add(b.batch_norm(y), b.relu(y))

    assert body(shared) == ["conv nobias", "bn", "relu @2", "add @2"]


def test_constants_no_operations_and_dead_paths_go() -> None:
    def build(b: GraphBuilder, x: int) -> int:
        b.conv(x, 4, 3)  # read by nobody
        zero = b.batch_norm(b.conv(b.relu(b.zeros_like(x)), 4, 3))
        return b.identity(b.add(b.unary("dropout", b.relu(x)), zero))

    assert body(build) == ["relu"]


def test_equal_operations_without_weights_merge_and_sums_flatten() -> None:
    assert body(lambda b, x: b.add(b.add(b.relu(x), b.conv(x, 4)), b.relu(x))) == [
        "conv nobias",
        "relu @2",
        "add @1 @2",
    ]


def test_the_text_ends_with_outputs_unless_it_is_the_last_value() -> None:
    b = GraphBuilder()
    x = b.input((4, 8, 8))
    y = b.relu(x)
    b.output(b.conv(y, 8), y)
    text = to_text(b.build())
    assert text.splitlines()[-1] == "out @1 @2"
    assert to_text(parse_text(text)) == text


def test_a_second_input_may_be_declared_late() -> None:
    def build(late: bool) -> str:
        b = GraphBuilder()
        x = b.input((4, 8, 8))
        z = None if late else b.input((4, 8, 8))
        y = b.conv(x, 4, 3)
        z = b.input((4, 8, 8)) if z is None else z
        b.output(b.add(b.relu(y), z))
        return to_text(b.build())

    assert build(True) == build(False)
    assert build(True).count("in 1x4x8x8") == 2


def test_a_network_that_forgets_its_input_is_a_constant() -> None:
    b = GraphBuilder()
    x = b.conv(b.zeros_like(b.input((4, 8, 8))), 8, 3)
    b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
    graph = b.build()
    assert to_text(graph).splitlines()[1:] == ["in 1x4x8x8", "const 1x10"]
    text = to_text(graph, dead_work=True)
    assert "=conv *2 k3 nobias at 1x4x8x8" in text and "=linear 10 at 1x8" in text
    assert to_text(parse_text(text), dead_work=True) == text
    assert costs(parse_text(text)).macs == costs(graph).macs


def test_dead_work_tells_what_an_output_waits_for() -> None:
    def text(none_last: bool) -> list[str]:
        b = GraphBuilder()
        x = b.input((4, 8, 8))
        dead = b.conv(b.zeros_like(x) if not none_last else x, 4, 3)
        b.output(b.add(b.relu(x), b.zeros_like(dead) if none_last else dead))
        return to_text(b.build(), dead_work=True).splitlines()[2:]

    assert text(none_last=False) == ["=conv k3 nobias", "=zeros", "relu"]
    assert text(none_last=True) == ["-conv k3 nobias", "=zeros", "relu"]


def test_runs_are_counted_and_blocks_named() -> None:
    run = ["a", "b", "c"] * 3
    assert fold(run) == [Block(("a", "b", "c"), 3)]
    assert fold(["a"] * 4) == ["a"] * 4
    assert fold(["a"] * 5) == [Block(("a",), 5)]
    assert fold(["x", "a", "b", "c d", "e", "y", "a", "b", "c d", "e", "z"])[1] == Block(("a", "b", "c d", "e"), 1)


def test_a_run_that_begins_with_the_line_before_it_keeps_the_known_block() -> None:
    cell = ["relu", "conv k3", "add @3"]
    lines = ["stem", *cell * 3, "down", "add @3", *cell * 3, "head"]
    assert [item for item in fold(lines) if isinstance(item, Block)] == [Block(tuple(cell), 3)] * 2


def test_a_text_passes_through_texts_unchanged() -> None:
    text = net(lambda b, x: b.relu(x))
    assert texts([text]) == [text]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "begins with nothing, not with 'nasrlm1'"),
        ("nasrlm2 in 1x3x8x8", "begins with 'nasrlm2'"),
        ("nasrlm1", "no operation"),
        ("nasrlm1 k3", "'k3' where an operator should stand"),
        ("nasrlm1 in 1x3x8x8 conv 4 k3 k5", "'k5' is no attribute of 'conv' here"),
        ("nasrlm1 in 1x3x8x8 conv k3 4", "'4' is no attribute"),
        ("nasrlm1 in 1x3x8x8 relu @2", "must lie between @1 and @1"),
        ("nasrlm1 in 1x3x8x8 add", "has 1 operand"),
        ("nasrlm1 in 1x3x8x8 A", "called before it is written"),
        ("nasrlm1 in 1x3x8x8 A{ relu", "never closed"),
        ("nasrlm1 in 1x3x8x8 relu }", "never opened"),
        ("nasrlm1 in 1x3x8x8 A{ B{ relu } }", "opens inside another"),
        ("nasrlm1 in 1x3x8x8 { relu } x0", "a count such as x5"),
        ("nasrlm1 in 1x3x8x8 { relu relu } x999999999", "more than 1,000,000 lines"),
        ("nasrlm1 in 1x3x8x8 -relu x999999999", "more dead work"),
        ("nasrlm1 in 1x3x8x8 out @1 relu", "nothing may follow"),
        ("nasrlm1 in 1x3x8x8 conv 4 g2", "into 2 groups"),
        ("nasrlm1 in 0x3x8x8 conv 4 k9 p0", "does not fit"),
    ],
)
def test_a_wrong_text_says_what_and_where(text: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        parse_text(text)


@pytest.mark.parametrize("thing", [3, "no_such.onnx", None, [1]])
def test_what_is_no_network_is_refused(thing: object) -> None:
    with pytest.raises(ExportError):
        to_text(thing)


def test_blocks_of_a_large_network_are_found_in_long_texts() -> None:
    def build(b: GraphBuilder, x: int) -> int:
        for _ in range(2000):
            x = b.add(x, b.batch_norm(b.conv(b.relu(x), 4, 3)))
        return x

    assert body(build) == ["{", "relu", "conv k3", "add @3", "} x2000"]

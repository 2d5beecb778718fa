"""Shapes, parameters, MACs, peak memory and depth, by hand and against torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nasrlm.errors import ExportError
from nasrlm.graph import GraphBuilder, as_graph, costs, to_text
from nasrlm.graph.ops import absolute_width, op, relative_width


class Net(nn.Module):
    """Every kind of layer that costs something."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish())
        self.depthwise = nn.Conv2d(16, 16, 5, padding=2, groups=16)
        self.grouped = nn.Conv2d(16, 32, 3, padding=2, dilation=2, groups=4, bias=False)
        self.wide = nn.Conv2d(32, 24, (1, 7), padding=(0, 3))
        self.squeeze, self.excite = nn.Conv2d(24, 6, 1), nn.Conv2d(6, 24, 1)
        self.classify = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.wide(torch.relu(self.grouped(self.depthwise(self.stem(x)))))
        x = nn.functional.max_pool2d(x, 3, 2, 1)
        gate = nn.functional.hardsigmoid(self.excite(torch.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        return self.classify((x * gate).mean((2, 3)))


def described() -> GraphBuilder:
    b = GraphBuilder()
    x = b.input((3, 32, 32))
    x = b.hard_swish(b.batch_norm(b.conv(x, 16, 3, 2)))
    x = b.conv(b.depthwise_conv(x, 5, bias=True), 32, 3, dilation=2, groups=4)
    x = b.max_pool(b.conv(b.relu(x), 24, (1, 7), bias=True), 3, 2)
    gate = b.conv(b.global_avg_pool(x), 6, bias=True)
    gate = b.hard_sigmoid(b.conv(b.relu(gate), 24, bias=True))
    b.output(b.linear(b.flatten(b.global_avg_pool(b.mul(x, gate))), 10))
    return b


def torch_macs(module: nn.Module, example: torch.Tensor) -> int:
    total = 0

    def count(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal total
        total += output.numel() * layer.weight[0].numel()

    handles = [m.register_forward_hook(count) for m in module.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    with torch.no_grad():
        module.eval()(example)
    for handle in handles:
        handle.remove()
    return total


def test_costs_equal_those_of_the_torch_module() -> None:
    found, module = costs(described().build()), Net()
    assert found.params == sum(p.numel() for p in module.parameters())
    assert found.macs == torch_macs(module, torch.zeros(1, 3, 32, 32))


def test_a_torch_module_and_its_description_have_one_text() -> None:
    assert to_text((Net(), torch.zeros(1, 3, 32, 32))) == to_text(described().build())


def test_exporting_a_module_leaves_it_in_training_mode() -> None:
    module = Net().train()
    as_graph((module, torch.zeros(1, 3, 32, 32)))
    assert module.training


def test_hand_counts() -> None:
    b = GraphBuilder()
    x = b.input((3, 8, 8))
    y = b.batch_norm(b.conv(x, 4, 3))
    b.output(b.add(y, b.relu(y)))
    found = costs(b.build())
    assert found.params == 4 * 3 * 9 + 2 * 4
    assert found.macs == 8 * 8 * 4 * 3 * 9
    assert found.activation_bytes == 4 * 3 * (4 * 8 * 8)  # y, relu(y) and their sum together
    assert found.depth == 4
    assert found.operators == {"in": 1, "conv": 1, "bn": 1, "relu": 1, "add": 1}
    assert set(found.metrics()) == {"params", "macs", "activation_bytes", "depth"}


@pytest.mark.parametrize(
    "kernel, stride, padding, ceil", [(3, 2, 1, True), (2, 2, 0, True), (3, 3, 0, False), (3, 2, 0, True)]
)
@pytest.mark.parametrize("size", [7, 8, 9, 10])
def test_pool_shapes_equal_torch(kernel: int, stride: int, padding: int, ceil: bool, size: int) -> None:
    b = GraphBuilder()
    y = b.max_pool(b.input((2, size, size)), kernel, stride, padding=padding, ceil=ceil)
    expected = nn.functional.max_pool2d(torch.zeros(1, 2, size, size), kernel, stride, padding, ceil_mode=ceil).shape
    assert b.shape(y) == tuple(expected)


@pytest.mark.parametrize("channels, out, word", [(16, 16, ""), (16, 32, "*2"), (64, 16, "/4"), (16, 24, "24")])
def test_relative_widths(channels: int, out: int, word: str) -> None:
    assert relative_width(channels, out) == word
    assert absolute_width(channels, word) == out


def test_operators_are_interned() -> None:
    assert op("relu") is op("relu")
    b = GraphBuilder()
    x, y = (b.input((c, 8, 8)) for c in (16, 64))
    b.output(b.conv(x, 32, 3), b.conv(y, 128, 3))
    ops = b.build().ops
    assert ops[2] is ops[3], "the same convolution at another width is the same operator"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda b, x: b.conv(x, 7, groups=2), "cannot split 4 input and 7 output channels into 2 groups"),
        (lambda b, x: b.add(x, b.conv(x, 8)), "cannot broadcast"),
        (lambda b, x: b.add(x), "needs at least two operands, got 1"),
        (lambda b, x: b.concat([x, b.max_pool(x, 2, 2)]), "needs equal other dimensions"),
        (lambda b, x: b.max_pool(x, 9, padding=0), "a window of 9"),
        (lambda b, x: b.relu(99), r"operands \(99,\)"),
        (lambda b, x: b.conv(x, 4, kernel=0), "kernel 0 must be"),
        (lambda b, x: b.conv(x, 4, 3, padding=-1), "padding -1 must be"),
        (lambda b, x: b.channel_shuffle(x, 3), "cannot split 4 channels into 3 groups"),
        (lambda b, x: b.slice(x, 2, 9), "outside axis 1"),
        (lambda b, x: b.input((3, 0, 3)), "must be positive"),
        (lambda b, x: b.build(), "has no output"),
    ],
)
def test_mistakes_are_told_where_they_are_made(make, message: str) -> None:
    b = GraphBuilder()
    x = b.input((4, 8, 8))
    with pytest.raises(ExportError, match=message):
        make(b, x)


def test_repeat_copies_what_tracing_would_give() -> None:
    def build(repeat: bool) -> object:
        b = GraphBuilder()
        x = b.conv(b.input((3, 8, 8)), 8, 3)

        def block(y: int) -> int:
            return b.add(y, b.batch_norm(b.conv(b.relu(y), 8, 3)))

        if repeat:
            x = b.repeat(4, block, x)
        else:
            for _ in range(4):
                x = block(x)
        b.output(x)
        return b.build()

    assert build(True) == build(False)


def test_repeat_of_an_identity_is_the_value_itself() -> None:
    b = GraphBuilder()
    x = b.input((3, 8, 8))
    assert b.repeat(3, lambda y: y, x) == x
    assert b.repeat(0, b.relu, x) == x


def test_repeat_traces_blocks_that_change_the_shape() -> None:
    b = GraphBuilder()
    x = b.repeat(3, lambda y: b.max_pool(y, 2, 2), b.input((3, 8, 8)))
    assert b.shape(x) == (1, 3, 1, 1)

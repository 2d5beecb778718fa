"""Small spaces for the tests of the training evaluator."""

from __future__ import annotations

import torch
from torch import nn

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.spaces import Choice, Params, SearchSpace


class Digits(SearchSpace):
    """Two convolutions on 1x8x8 pixels; "bare" ones have a bias in the place of BatchNorm."""

    name = "digits_cnn"
    source = "made up for a test"
    parameters = (Choice("width", (8, 16)), Choice("kind", ("norm", "bare")))

    def __init__(self, shape: tuple[int, ...] = (1, 8, 8), classes: int = 10) -> None:
        self.shape, self.classes = shape, classes

    def build(self, params: Params) -> Graph:
        b = GraphBuilder()
        x = b.input(self.shape)
        for stride in (1, 2):
            if params["kind"] == "norm":
                x = b.relu(b.batch_norm(b.conv(x, int(params["width"]), 3, stride)))
            else:
                x = b.relu(b.conv(x, int(params["width"]), 3, stride, bias=True))
        b.output(b.linear(b.flatten(x), self.classes))
        return b.build()


class Deep(SearchSpace):
    """Convolutions with biases and no normalisation, `depth` of them: what is left where BatchNorm was folded."""

    name = "deep"
    source = "made up for a test"
    parameters = (Choice("depth", (12,)),)

    def build(self, params: Params) -> Graph:
        b = GraphBuilder()
        x = b.input((1, 8, 8))
        for _ in range(int(params["depth"])):
            x = b.relu(b.conv(x, 8, 3, bias=True))
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
        return b.build()


class Vectors(SearchSpace):
    """A perceptron of `width` on four features."""

    name = "vectors"
    source = "made up for a test"
    parameters = (Choice("width", (8, 16)),)

    def build(self, params: Params) -> Graph:
        b = GraphBuilder()
        b.output(b.linear(b.relu(b.linear(b.input((4,)), int(params["width"]))), 3))
        return b.build()


class Modules(SearchSpace):
    """PyTorch code, with a dropout; "raises", "huge" and "single" cannot be trained."""

    name = "modules"
    source = "made up for a test"
    parameters = (Choice("how", ("good", "raises", "huge", "single", "fixed")),)
    example_shape = (1, 8, 8)

    def build_module(self, params: Params) -> nn.Module:
        how = params["how"]
        if how == "raises":
            raise KeyError("no such block")
        if how == "huge":
            return nn.Sequential(nn.Flatten(), nn.Linear(64, 10**15))
        if how == "fixed":
            return nn.Sequential(nn.AvgPool2d(2), nn.Flatten())
        end = nn.Flatten(0) if how == "single" else nn.Identity()
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10), end)


def pictures(n: int = 60, size: int = 8) -> torch.utils.data.Dataset:
    """Bright halves: class 0 has the left one, class 1 the right one."""
    labels = torch.arange(n) % 2
    x = torch.rand(n, 1, size, size, generator=torch.Generator().manual_seed(0))
    x[labels == 0, :, :, : size // 2] += 2
    x[labels == 1, :, :, size // 2 :] += 2
    return torch.utils.data.TensorDataset(x, labels)

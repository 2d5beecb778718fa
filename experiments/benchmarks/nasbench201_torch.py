"""The NAS-Bench-201 topology networks in plain torch, to compare nasrlm's text with torch's exporters.

Written after Dong & Yang, ICLR 2020 (arXiv:2001.00326): stem of 16 channels, three stages of five cells with 16, 32 and
64 channels, a residual block of stride 2 between stages. Loaded by the benchmark as a file (`torch_module`).
"""

from __future__ import annotations

import importlib.util
import io
import warnings

import torch
from torch import Tensor, nn

EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))


class Zero(nn.Module):
    """Nothing passes, yet it is computed."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mul(0.0)


def conv(before: int, after: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """ReLU, convolution, BatchNorm."""
    return nn.Sequential(
        nn.ReLU(), nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(after)
    )


OPERATIONS = {
    "none": lambda channels: Zero(),
    "skip_connect": lambda channels: nn.Identity(),
    "nor_conv_1x1": lambda channels: conv(channels, channels, 1),
    "nor_conv_3x3": lambda channels: conv(channels, channels, 3),
    "avg_pool_3x3": lambda channels: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
}


class Cell(nn.Module):
    """Four nodes; each is the sum of its edges."""

    def __init__(self, params: dict[str, str], channels: int) -> None:
        super().__init__()
        self.edges = nn.ModuleDict({f"{a}_{b}": OPERATIONS[params[f"edge_{a}_{b}"]](channels) for a, b in EDGES})

    def forward(self, x: Tensor) -> Tensor:
        nodes = [x]
        for target in (1, 2, 3):
            nodes.append(sum(self.edges[f"{source}_{target}"](nodes[source]) for source in range(target)))
        return nodes[3]


class Reduction(nn.Module):
    """A residual block that halves the image and doubles the channels."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.main = nn.Sequential(conv(before, after, 3, 2), conv(after, after, 3))
        self.shortcut = nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(before, after, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(x) + self.main(x)


class Network(nn.Module):
    """The whole network for 3x32x32 images and ten classes."""

    def __init__(self, params: dict[str, str], channels: int = 16, cells: int = 5, classes: int = 10) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)]
        for stage in range(3):
            if stage:
                layers.append(Reduction(channels, 2 * channels))
                channels *= 2
            layers += [Cell(params, channels) for _ in range(cells)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        layers.append(nn.Linear(channels, classes))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class MODULE:
    """What `nasrlm benchmark` asks a torch_module for."""

    @staticmethod
    def build(params: dict[str, str]) -> nn.Module:
        """The network of these parameters."""
        return Network(params).eval()

    @staticmethod
    def cannot_export(dynamo: bool) -> str:
        """Why an exporter does not run here; empty if it does."""
        if dynamo and importlib.util.find_spec("onnxscript") is None:
            return "not measured: pip install onnxscript"
        return ""

    @staticmethod
    def export(module: nn.Module, dynamo: bool) -> bytes:
        """The network as a serialized ONNX model."""
        example = torch.zeros(1, 3, 32, 32)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            if dynamo:
                program = torch.onnx.export(module, (example,), dynamo=True, verbose=False)
                return program.model_proto.SerializeToString()
            buffer = io.BytesIO()
            torch.onnx.export(module, (example,), buffer, dynamo=False)
            return buffer.getvalue()

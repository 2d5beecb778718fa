"""MnasNet's space as in Accel-NASBench: seven blocks of mobile convolutions, each with its own settings.

Tan et al., "MnasNet: Platform-Aware Neural Architecture Search for Mobile", CVPR 2019 (arXiv:1807.11626); Ahmad et al.,
"Accel-NASBench: Sustainable Benchmarking for Accelerator-Aware NAS", DAC 2024 (arXiv:2404.08005); code
afzalxo/Accel-NASBench, ``configurationspaces``, and afzalxo/ANB-DatasetCollection, ``models/accelbenchnet.py``.

Network: 3x3 convolution of stride 2 to 32 channels, seven blocks, 1x1 convolution to 1280 channels, each with BatchNorm
and activation; global average pool, linear layer. A block repeats one layer; its first changes width and resolution.
Layer: 1x1 convolution to ``e`` times the input's channels (absent at e = 1), depthwise convolution, squeeze-excite if
wanted, 1x1 convolution (no activation); the input is added where shapes are equal. Squeeze-excite's hidden width is a
quarter of the layer's own input (before expansion), not rounded to a multiple; its gate is a sigmoid.
Activations are SiLU; the FPGA models have ReLU and hard sigmoid (option ``activation``).

Counts (checked against the published table): parameters are exact; published "MACs" are a profiler's sum, see
:meth:`MnasNet.published_macs`. Accuracy is that of a shortened training at low resolution. The published results 0 to
1794 have no squeeze-excite and at most 3 layers a block.
"""

from __future__ import annotations

import math
import re

from nasrlm.graph import Graph, GraphBuilder, costs
from nasrlm.graph.blocks import conv_bn, inverted_residual
from nasrlm.spaces import Architecture, Choice, Params, SearchSpace, SpaceError, check_sizes, check_values

STEM, HEAD = 32, 1280
WIDTHS = (16, 24, 40, 80, 112, 192, 320)
STRIDES = (1, 2, 2, 2, 1, 2, 1)
BLOCKS = len(WIDTHS)
LONGEST = 5  # the block that may have four layers

FORM = "e6k3l1n"
EXAMPLE = "e6k3l1n_e4k5l2n_e6k3l3n_e6k5l3n_e6k5l2n_e1k3l2n_e1k3l2n"
EFFICIENTNET_B0 = "e1k3l1s_e6k3l2s_e6k5l2s_e6k3l3s_e6k5l3s_e6k5l4s_e6k3l1s"
_PATTERN = re.compile(r"e(\d+)k(\d+)l(\d+)([a-z])")
_GATES = {"silu": "sigmoid", "relu": "hard_sigmoid"}
_LETTERS = {"s": True, "n": False}


def _block_parameters(i: int) -> tuple[Choice, ...]:
    return (
        Choice(f"block{i}_e", (1, 4, 6)),
        Choice(f"block{i}_k", (3, 5)),
        Choice(f"block{i}_l", (1, 2, 3, 4) if i == LONGEST else (1, 2, 3)),
        Choice(f"block{i}_se", (False, True)),
    )


class MnasNet(SearchSpace):
    """Expansion, kernel, layers and squeeze-excite a block: 36^6 x 48 = 1.04e11 architectures.

    Parameters have the names of the published ConfigSpace files, so their dictionaries are taken as they are.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels.
        activation: "silu", or "relu" (with hard sigmoid gates) as measured on the FPGAs.

    >>> space = MnasNet()
    >>> space.architecture(EXAMPLE).params["block5_l"]
    2
    """

    name = "mnasnet"
    parameters = tuple(parameter for i in range(BLOCKS) for parameter in _block_parameters(i))
    source = "Tan et al., MnasNet, CVPR 2019, arXiv:1807.11626; as in github.com/afzalxo/Accel-NASBench"
    metrics = (
        "accuracy/imagenet_proxy",
        "accuracy/imagenet_proxy_top5",
        "train_time_s/imagenet_proxy",
        *(f"throughput_per_s/{device}" for device in ("a100", "3090", "tpuv2", "tpuv3", "zcu102", "vck190")),
        "latency_ms/zcu102",
        "latency_ms/vck190",
        "params",
        "macs",
        "macs/published",
    )

    def __init__(self, num_classes: int = 1000, image_size: int = 224, activation: str = "silu") -> None:
        check_sizes(self.name, {"num_classes": num_classes, "image_size": image_size})
        if activation not in _GATES:
            raise SpaceError(f"option 'activation' of mnasnet is {activation!r}. Allowed: {', '.join(_GATES)}.")
        self.num_classes, self.image_size, self.activation = num_classes, image_size, activation

    def to_string(self, params: Params) -> str:
        """Return the compact text: ``e6k3l1n`` a block, "s" at its end for squeeze-excite, joined by "_"."""
        values = [params[parameter.name] for parameter in self.parameters]
        blocks = zip(*[iter(values)] * 4, strict=True)
        return "_".join(f"e{e}k{k}l{layers}{'s' if se else 'n'}" for e, k, layers, se in blocks)

    def from_string(self, text: str) -> Params:
        """Return the parameters of a compact text.

        Raises:
            SpaceError: Another number of blocks, a block of another form, or a value outside the space.
        """
        blocks = text.strip().split("_")
        if len(blocks) != BLOCKS:
            raise SpaceError(
                f"{text[:200]!r} is no architecture of mnasnet: it has {len(blocks)} blocks, not {BLOCKS}. The form "
                f"of a block is {FORM} (n, or s for squeeze-excite), joined by _. Example: {EXAMPLE}"
            )
        values: list[object] = []
        for i, block in enumerate(blocks):
            found = _PATTERN.fullmatch(block)
            if found is None or found[4] not in _LETTERS:
                raise SpaceError(
                    f"block {i} of {text[:200]!r} is {block!r}. The form is {FORM}: expansion 1, 4, 6; kernel 3, 5; "
                    "layers 1 to 3 (block 5: 4); n, or s for squeeze-excite."
                )
            values += [*map(int, found.groups()[:3]), _LETTERS[found[4]]]
        return check_values(self.parameters, values, text)

    def published_macs(self, a: Architecture) -> int:
        """Return what Accel-NASBench's files call "macs" (times 1e6): the sum of a profiler.

        It is the MACs, 4 an output element of BatchNorm, and for every global average pool (H W + 1) a channel.

        >>> space = MnasNet()
        >>> space.published_macs(space.architecture(EXAMPLE))
        415361072
        """
        graph = self.architecture(a).graph()
        total = costs(graph).macs
        for i, op, operands in graph.nodes():
            if op.name == "bn":
                total += 4 * math.prod(graph.shapes[i])
            elif op.name == "gap":
                _, channels, height, width = graph.shapes[operands[0]]
                total += (height * width + 1) * channels
        return total

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        act = self.activation
        b = GraphBuilder()
        x = conv_bn(b, b.input((3, self.image_size, self.image_size)), STEM, 3, 2, act)
        for i, (width, stride) in enumerate(zip(WIDTHS, STRIDES, strict=True)):
            block = {key: params[f"block{i}_{key}"] for key in ("e", "k", "l", "se")}
            x = self._layer(b, x, block, width, stride)
            x = b.repeat(int(block["l"]) - 1, lambda y, block=block, width=width: self._layer(b, y, block, width, 1), x)  # type: ignore[misc]
        x = conv_bn(b, x, HEAD, 1, 1, act)
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), self.num_classes))
        return b.build()

    def _layer(self, b: GraphBuilder, x: int, block: Params, width: int, stride: int) -> int:
        channels, expansion = b.shape(x)[1], int(block["e"])
        return inverted_residual(
            b, x, width, channels * expansion, int(block["k"]), stride, self.activation,
            expand=expansion > 1, squeeze=max(1, channels // 4) if block["se"] else 0,
            squeeze_act=self.activation, gate=_GATES[self.activation],
        )  # fmt: skip


SPACE = MnasNet

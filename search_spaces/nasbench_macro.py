"""NAS-Bench-Macro: eight layers, each one of three operations.

Su et al., "Prioritized Architecture Sampling with Monte-Carlo Tree Search", CVPR 2021 (arXiv:2103.11922); code
xiusu/NAS-Bench-Macro, ``train/{model,utils}.py``.

Network (CIFAR-10, 32 pixels): 3x3 convolution to 32 channels with BatchNorm and ReLU (the stem); stages of 2, 3 and 3
layers, the first of each halves the image and doubles the channels; 1x1 convolution to 1280 channels with BatchNorm
and ReLU; global average pool, linear layer. Layer ``0``: nothing, or as a stage's first layer a 1x1 convolution of
stride 2 with BatchNorm; ``1``: MobileNetV2's block with 3x3 kernel and expansion 3; ``2``: with 5x5 and 6.

Strings are official: eight digits, such as 02012220. Layers that do nothing stand anywhere in a stage without changing
the network, so the 6,561 strings are 3,969 networks, and the published table repeats their values: split by network.

Counts (checked against every row of the published table): parameters exactly; its FLOPs are MACs, exactly. Nothing
here is unconfirmed.
"""

from __future__ import annotations

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import conv_bn, inverted_residual
from nasrlm.spaces import Choice, Params, SearchSpace, SpaceError, check_sizes

OPERATIONS = ("identity", "k3_e3", "k5_e6")
STAGES = (2, 3, 3)
LAYERS = sum(STAGES)
STEM, HEAD = 32, 1280
EXAMPLE = "22212202"


class NASBenchMacro(SearchSpace):
    """Eight layers of three operations: 6,561 architectures, 3,969 different networks.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels, a multiple of 8.

    >>> NASBenchMacro().architecture(EXAMPLE).params["layer_4"]
    'k3_e3'
    """

    name = "nasbench_macro"
    parameters = tuple(Choice(f"layer_{i}", OPERATIONS) for i in range(1, LAYERS + 1))
    source = "Su et al., Monte-Carlo tree search, CVPR 2021, arXiv:2103.11922; github.com/xiusu/NAS-Bench-Macro"
    metrics = ("accuracy/cifar10", "params", "macs")

    def __init__(self, num_classes: int = 10, image_size: int = 32) -> None:
        check_sizes(self.name, {"num_classes": num_classes, "image_size": image_size}, {"image_size": 8})
        self.num_classes, self.image_size = num_classes, image_size

    def to_string(self, params: Params) -> str:
        """Return the official string, one digit a layer."""
        return "".join(str(OPERATIONS.index(str(operation))) for operation in params.values())

    def from_string(self, text: str) -> Params:
        """Return the parameters of an official string; "-" between the digits is taken too.

        Raises:
            SpaceError: Other than eight digits, or a digit above 2.
        """
        digits = text.strip().replace("-", "")
        if len(digits) != LAYERS:
            raise SpaceError(
                f"{text[:200]!r} is no architecture of nasbench_macro: it has {len(digits)} digits. The form is "
                f"{LAYERS} digits, one a layer: 0, 1 or 2. Example: {EXAMPLE}"
            )
        for position, digit in enumerate(digits, 1):
            if digit not in "012":
                meaning = ", ".join(f"{i} ({operation})" for i, operation in enumerate(OPERATIONS))
                raise SpaceError(f"in {text[:200]!r}: digit {position} is {digit!r}. Allowed: {meaning}.")
        return {p.name: OPERATIONS[int(digit)] for p, digit in zip(self.parameters, digits, strict=True)}

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        operations = iter(params.values())
        b = GraphBuilder()
        x = conv_bn(b, b.input((3, self.image_size, self.image_size)), STEM, 3)
        for stage, layers in enumerate(STAGES, 1):
            for layer in range(layers):
                x = _layer(b, x, STEM * 2**stage, 1 if layer else 2, str(next(operations)))
        x = b.global_avg_pool(conv_bn(b, x, HEAD))
        b.output(b.linear(b.flatten(x), self.num_classes))
        return b.build()


def _layer(b: GraphBuilder, x: int, out: int, stride: int, operation: str) -> int:
    if operation == "identity":
        return x if stride == 1 else conv_bn(b, x, out, 1, stride, "none")
    kernel, expansion = (3, 3) if operation == "k3_e3" else (5, 6)
    return inverted_residual(b, x, out, expansion * b.shape(x)[1], kernel, stride)


SPACE = NASBenchMacro

"""FBNet: 22 layers of nine operations, Wu et al., "FBNet: Hardware-Aware Efficient ConvNet Design via Differentiable
Neural Architecture Search", CVPR 2019 (arXiv:1812.03443), as in HW-NAS-Bench (Li et al., ICLR 2021, arXiv:2103.10584;
code GATECH-EIC/HW-NAS-Bench, ``hw_nas_bench_api/fbnet_models``).

Network: 3x3 convolution to 16 channels, seven stages of 1, 4, 4, 4, 4, 4 and 1 layers, 1x1 convolution (the head), each
with BatchNorm and ReLU; global average pool, linear layer. The first layer of a stage changes width and resolution.
Layer ``k3_e6_g2``: 1x1 convolution to 6 times the input's channels, depthwise 3x3 convolution, 1x1 convolution to the
stage's width (no ReLU); 1x1 convolutions have 2 groups, and a channel shuffle behind the first; the input is added
where shapes are equal. ``skip``: the input itself, or where shapes differ a 1x1 convolution with BatchNorm and ReLU.

Counts (checked against the published table): the MACs shared with HELP's 5,000 architectures (CIFAR-100) are those of
this network without its classifier. Published latencies of pixel3, raspi4, eyeriss and fpga are sums over layers.
The original authors' own networks differ: no first 1x1 convolution at expansion 1 without groups, and biased
convolutions in the blocks. FBNet-A's head has 1504 channels on ImageNet too (option ``head``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Architecture, Choice, Params, SearchSpace, SpaceError, check_sizes, check_values

OPERATIONS = ("k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2", "k5_e3", "k5_e6", "skip")
DEPTHS = (1, 4, 4, 4, 4, 4, 1)
WIDTHS = (16, 24, 32, 64, 112, 184, 352)
LAYERS = sum(DEPTHS)
STEM = 16

FBNET_C = (
    "k3_e1-k3_e6-skip-k3_e1-k3_e1-k5_e6-k5_e3-k5_e6-k3_e6-k5_e6-k5_e3-k5_e6-k5_e6-"
    "k5_e6-k5_e6-k5_e6-k5_e3-k5_e6-k5_e6-k5_e6-k5_e6-k3_e6"
)
EXAMPLE = FBNET_C


@dataclass(frozen=True)
class _Variant:
    """What differs between the data sets."""

    image_size: int
    num_classes: int
    stem_stride: int
    strides: tuple[int, ...]
    head: int


VARIANTS = {
    "cifar": _Variant(32, 100, 1, (1, 1, 2, 2, 1, 2, 1), 1504),
    "imagenet": _Variant(224, 1000, 2, (1, 2, 2, 2, 1, 2, 1), 1984),
}


class FBNet(SearchSpace):
    """Twenty-two operations, one a layer: 9^22 = 9.85e20 architectures.

    Args:
        variant: "cifar" (CIFAR-100 at 32 pixels, of the published latencies) or "imagenet" (224 pixels, other strides).
        num_classes: Outputs of the linear layer; the variant's 100 or 1000 by default.
        image_size: Height and width of the input in pixels; the variant's 32 or 224 by default.
        head: Channels of the last convolution; the variant's 1504 or 1984 by default.

    >>> space = FBNet()
    >>> space.to_indices(space.architecture(EXAMPLE))[:5]
    [0, 3, 8, 0, 0]
    """

    name = "fbnet"
    parameters = tuple(Choice(f"layer_{i}", OPERATIONS) for i in range(1, LAYERS + 1))
    source = "Wu et al., FBNet, CVPR 2019, arXiv:1812.03443; as in github.com/GATECH-EIC/HW-NAS-Bench"
    metrics = (
        *(f"latency_ms/{device}" for device in ("pixel3", "raspi4", "eyeriss", "fpga", "edgegpu")),
        *(f"energy_mj/{device}" for device in ("edgegpu", "eyeriss", "fpga")),
        *(f"latency_ms/{phone}" for phone in ("pixel2", "samsung_a50", "samsung_s7", "essential_ph_1")),
        *(f"latency_ms/{cpu}" for cpu in ("gold_6226", "gold_6240", "silver_4114", "silver_4210r")),
        *(
            f"latency_ms/{gpu}_{batch}"
            for gpu in ("1080ti", "2080ti", "titan_rtx", "titanx", "titanxp")
            for batch in (1, 32, 64)
        ),
        "params",
        "macs",
    )

    def __init__(
        self,
        variant: str = "cifar",
        num_classes: int | None = None,
        image_size: int | None = None,
        head: int | None = None,
    ) -> None:
        if variant not in VARIANTS:
            raise SpaceError(f"option 'variant' of fbnet is {variant!r}. Allowed: {', '.join(VARIANTS)}.")
        options = {"num_classes": num_classes, "image_size": image_size, "head": head}
        check_sizes(self.name, {option: value for option, value in options.items() if value is not None})
        usual = VARIANTS[variant]
        self.variant = variant
        self.num_classes = num_classes or usual.num_classes
        self.image_size = image_size or usual.image_size
        self.head = head or usual.head

    def to_string(self, params: Params) -> str:
        """Return the operations' names, joined by "-"."""
        return "-".join(map(str, params.values()))

    def from_string(self, text: str) -> Params:
        """Return the parameters of 22 operations' names, joined by "-".

        Raises:
            SpaceError: Another number of names, or an unknown one.
        """
        return self._from_names(text.strip().split("-"), text)

    def to_indices(self, a: Architecture) -> list[int]:
        """Return HW-NAS-Bench's list: the position of each layer's operation in :data:`OPERATIONS`."""
        return [OPERATIONS.index(str(operation)) for operation in self.architecture(a).params.values()]

    def from_indices(self, indices: Iterable[int]) -> Architecture:
        """Return the architecture of a list of 22 positions in :data:`OPERATIONS`.

        Raises:
            SpaceError: Another number of entries, or one outside 0 to 8.

        >>> FBNet().from_indices([8] * 22).string == "-".join(["skip"] * 22)
        True
        """
        if isinstance(indices, str) or not isinstance(indices, Iterable):
            raise SpaceError(
                f"{indices!r} is no list of indices. Give {LAYERS} integers of 0 to {len(OPERATIONS) - 1}."
            )
        known = Choice("index", tuple(range(len(OPERATIONS))))
        given, names = list(indices), list[object]()
        for i, index in enumerate(given, 1):
            try:
                names.append(OPERATIONS[int(known.check(index))])
            except SpaceError as error:
                raise SpaceError(f"layer {i} of {LAYERS}: {error}") from error
        return self.architecture(self._from_names(names, str(given)))

    def _from_names(self, names: Sequence[object], text: str) -> Params:
        if len(names) != LAYERS:
            raise SpaceError(
                f"{text[:200]!r} is no architecture of fbnet: it has {len(names)} layers, not {LAYERS}. Give {LAYERS} "
                f"of: {', '.join(OPERATIONS)}. Example: {EXAMPLE}"
            )
        return check_values(self.parameters, names, text)

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        variant = VARIANTS[self.variant]
        b = GraphBuilder()
        x = conv_bn(b, b.input((3, self.image_size, self.image_size)), STEM, 3, variant.stem_stride)
        operations = iter(params.values())
        for depth, width, first_stride in zip(DEPTHS, WIDTHS, variant.strides, strict=True):
            for i in range(depth):
                x = _layer(b, x, str(next(operations)), width, first_stride if i == 0 else 1)
        x = conv_bn(b, x, self.head)
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), self.num_classes))
        return b.build()


def _layer(b: GraphBuilder, x: int, operation: str, width: int, stride: int) -> int:
    before = b.shape(x)[1]
    same = stride == 1 and before == width
    if operation == "skip":
        return x if same else conv_bn(b, x, width, 1, stride)
    kernel, expansion, *grouped = operation.split("_")
    groups = 2 if grouped else 1
    y = conv_bn(b, x, before * int(expansion[1:]), 1, groups=groups)  # there at expansion 1 too
    if groups > 1:
        y = b.channel_shuffle(y, groups)
    inner = b.shape(y)[1]
    y = conv_bn(b, y, inner, int(kernel[1:]), stride, groups=inner)
    y = conv_bn(b, y, width, 1, act="none", groups=groups)
    return b.add(y, x) if same else y


SPACE = FBNet

"""NATS-Bench's size search space: NAS-Bench-201's network with one cell a stage, and five free widths.

Dong et al., "NATS-Bench: Benchmarking NAS Algorithms for Architecture Topology and Size", TPAMI 2021
(arXiv:2009.00437); code D-X-Y/NATS-Bench and D-X-Y/AutoDL-Projects, ``xautodl/models/shape_infers``.

Network: see `nasbench201`. Widths: the stem and the first cell; the first residual block; the second cell; the second
residual block; the third cell and the head. (The README's gloss of the five numbers is shifted by one; this reading is
confirmed by the published counts.) The cell is always ``|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+
|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|``; where it changes the width, all three edges from its input do, the
skip connection by a 1x1 convolution with BatchNorm and no ReLU.

Counts (checked against three published architectures on four data sets): parameters exactly; the published FLOPs are
MACs plus the classifier's bias. The index is the position in :meth:`enumerate`.
"""

from __future__ import annotations

from nasrlm.graph import Graph
from nasrlm.spaces import Architecture, Choice, Params, SearchSpace, SpaceError, check_sizes, check_values
from search_spaces import _nats

WIDTHS = (8, 16, 24, 32, 40, 48, 56, 64)
PLACES = ("stem_and_cell_1", "reduction_1", "cell_2", "reduction_2", "cell_3_and_head")
CELL = ("nor_conv_3x3", "nor_conv_3x3", "nor_conv_3x3", "skip_connect", "nor_conv_3x3", "nor_conv_3x3")
EXAMPLE = "8:8:40:32:40"


class NATSSizes(SearchSpace):
    """Five widths of eight: 32,768 architectures, all different networks.

    Args:
        num_classes: Outputs of the linear layer: 10, 100 (CIFAR) or 120 (ImageNet16-120).
        image_size: Height and width of the input in pixels, a multiple of 4: 32, or 16 for ImageNet16-120.

    >>> NATSSizes().to_index(NATSSizes().architecture(EXAMPLE))
    284
    """

    name = "nats_sss"
    parameters = tuple(Choice(f"width_{place}", WIDTHS) for place in PLACES)
    source = "Dong et al., NATS-Bench, TPAMI 2021, arXiv:2009.00437; github.com/D-X-Y/NATS-Bench"
    metrics = (
        "accuracy/cifar10",
        "accuracy/cifar10_valid",
        "accuracy/cifar100",
        "accuracy/cifar100_valid",
        "accuracy/imagenet16_120",
        "accuracy/imagenet16_120_valid",
        "params",
        "macs",
    )

    def __init__(self, num_classes: int = 10, image_size: int = 32) -> None:
        check_sizes(self.name, {"num_classes": num_classes, "image_size": image_size}, {"image_size": 4})
        self.num_classes, self.image_size = num_classes, image_size

    def to_string(self, params: Params) -> str:
        """Return the official string, five widths with ":" between."""
        return ":".join(str(width) for width in params.values())

    def from_string(self, text: str) -> Params:
        """Return the parameters of an official string.

        Raises:
            SpaceError: Other than five numbers, or a width that is not in the space.
        """
        parts = text.strip().split(":")
        if len(parts) != len(PLACES):
            raise SpaceError(
                f"{text[:200]!r} is no architecture of nats_sss: it has {len(parts)} parts between ':'. The form is "
                f"{len(PLACES)} widths, each one of: {', '.join(map(str, WIDTHS))}. Example: {EXAMPLE}"
            )
        return check_values(self.parameters, [int(part) if part.isdecimal() else part for part in parts], text)

    def to_index(self, a: Architecture) -> int:
        """Return the official index, 0 to 32,767: the widths' positions as digits of base 8, the first one leading."""
        positions = (WIDTHS.index(int(width)) for width in self.architecture(a).params.values())
        return _nats.number(positions, len(WIDTHS))

    def from_index(self, index: int) -> Architecture:
        """Return the architecture at an official index.

        Raises:
            SpaceError: The index is outside 0 to 32,767.
        """
        digits = _nats.digits(index, len(WIDTHS), len(PLACES))
        return self.architecture({p.name: WIDTHS[k] for p, k in zip(self.parameters, digits, strict=True)})

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        widths = [int(width) for width in params.values()]
        return _nats.network(CELL, widths, 1, self.image_size, self.num_classes)


SPACE = NATSSizes

"""What the two spaces of TransNAS-Bench-101 share: stem, modules, and the heads of the seven tasks.

Duan et al., "TransNAS-Bench-101: Improving Transferability and Generalizability of Cross-Task Neural Architecture
Search", CVPR 2021 (arXiv:2105.11871); code yawen-d/TransNASBench, ``lib/models`` and ``configs/train_from_scratch``.

Encoder: 3x3 convolution of stride 2 to 32 channels with BatchNorm (no ReLU); ReLU, 3x3 convolution of stride 2 to 64
channels, BatchNorm; modules of two cells each, of which the first carries the module's change. A module's digit: 1 no
change, 2 twice the channels, 3 half the resolution, 4 both.

Heads: global average pool and linear layer (class_object 75 outputs, class_scene 47, room_layout 9); jigsaw: nine tiles
through one encoder, their pooled features side by side, linear layer to 1000 permutations; segmentsemantic, normal and
autoencoder: a decoder of biased 3x3 convolutions and, one for each halving in the encoder, transposed convolutions of
stride 2, each with BatchNorm and LeakyReLU(0.2) but for the last convolution (17 classes; or 3 channels and tanh). The
discriminator that normal and autoencoder are trained with is not part of the network.

Sizes: images are 256 pixels in training, published FLOPs are counted at 224 (jigsaw: nine tiles of 64). Unconfirmed:
the heads' outputs of the classification tasks, 75 and 47 in the authors' training configurations and "final" label
masks; NASLib builds 100 and 63 and calls these the original. No published count was at hand to check against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Choice, SpaceError, check_sizes

STEM = 64
TILES = 9
METRICS = (
    "accuracy/class_scene",
    "accuracy/class_object",
    "accuracy/jigsaw",
    "accuracy/segmentsemantic",
    "miou/segmentsemantic",
    "neg_loss/room_layout",
    "ssim/normal",
    "ssim/autoencoder",
)
SOURCE = "Duan et al., TransNAS-Bench-101, CVPR 2021, arXiv:2105.11871; github.com/yawen-d/TransNASBench"

CellMaker = Callable[[GraphBuilder, int, int, int], int]
"""Builder, value, output channels and stride to the cell's value."""


@dataclass(frozen=True)
class _Task:
    outputs: int
    image_size: int
    head: Callable[[GraphBuilder, int, int, int], int]


@dataclass(frozen=True)
class Options:
    """What a space's networks are built for, checked.

    Args:
        space: The space's name, for messages.
        task: One of the seven tasks.
        image_size: Height and width of the input in pixels (of a tile, for jigsaw); None = the task's own.
        outputs: Outputs of the head; None = the task's own.

    Raises:
        SpaceError: Another task, or a number that is no whole one from 1 up.
    """

    space: str
    task: str
    image_size: int
    outputs: int

    @classmethod
    def checked(cls, space: str, task: str, image_size: int | None, outputs: int | None) -> Options:
        """Return the options with the task's own sizes where none is given."""
        try:
            task = str(Choice("task", tuple(TASKS)).check(task))
        except SpaceError as error:
            raise SpaceError(f"option 'task' of {space}: {error}") from error
        given = {"image_size": image_size, "outputs": outputs}
        check_sizes(space, {option: value for option, value in given.items() if value is not None})
        own = TASKS[task]
        return cls(space, task, image_size or own.image_size, outputs or own.outputs)


def network(options: Options, changes: str, cell: CellMaker) -> Graph:
    """Describe the network of a task.

    Args:
        options: The task and its sizes.
        changes: One digit a module.
        cell: What makes a cell.
    """
    b = GraphBuilder()
    image = (3, options.image_size, options.image_size)
    # The tiles come as one input and go through the encoder as a batch of nine.
    x = b.reshape(b.input((TILES, *image)), (TILES, *image)) if options.task == "jigsaw" else b.input(image)
    x = conv_bn(b, x, STEM // 2, 3, 2, "none")
    x = relu_conv_bn(b, x, STEM, 3, 2)
    for change in changes:
        channels = b.shape(x)[1] * (2 if change in "24" else 1)
        x = cell(b, x, channels, 2 if change in "34" else 1)
        x = cell(b, x, channels, 1)
    halvings = 2 + sum(change in "34" for change in changes)
    b.output(TASKS[options.task].head(b, x, halvings, options.outputs))
    return b.build()


def relu_conv_bn(b: GraphBuilder, x: int, out: int, kernel: int, stride: int = 1) -> int:
    """ReLU, convolution, BatchNorm."""
    return conv_bn(b, b.relu(x), out, kernel, stride, "none")


def _classifier(b: GraphBuilder, x: int, halvings: int, outputs: int) -> int:
    return b.linear(b.flatten(b.global_avg_pool(x)), outputs)


def _jigsaw(b: GraphBuilder, x: int, halvings: int, outputs: int) -> int:
    pooled = b.flatten(b.global_avg_pool(x))
    return b.linear(b.reshape(pooled, (1, TILES * b.shape(pooled)[1])), outputs)


def _segmentation(b: GraphBuilder, x: int, halvings: int, outputs: int) -> int:
    channels = 1024
    x = _decode(b, x, channels)
    for i in range(5):
        channels //= 2
        x = _decode(b, x, channels, up=i >= 6 - halvings)
    return b.conv(_decode(b, x, channels, up=True), outputs, 3, bias=True)


_IMAGE = ((1024, 0), (1024, 0), (512, 6), (512, 0), (256, 5), (128, 0), (64, 4), (64, 0), (32, 3), (32, 0), (16, 1))
"""Channels of a layer, and from how many halvings in the encoder on it doubles the resolution; 0 = never."""


def _image(b: GraphBuilder, x: int, halvings: int, outputs: int) -> int:
    for channels, least in (*_IMAGE, (32, 0), (16, 1)):
        x = _decode(b, x, channels, up=0 < least <= halvings)
    return b.unary("tanh", b.conv(x, outputs, 3, bias=True))


def _decode(b: GraphBuilder, x: int, out: int, up: bool = False) -> int:
    y = b.conv_transpose(x, out, 3, 2, padding=1, output_padding=1) if up else b.conv(x, out, 3, bias=True)
    return b.leaky_relu(b.batch_norm(y), 0.2)


TASKS = {
    "class_scene": _Task(47, 224, _classifier),
    "class_object": _Task(75, 224, _classifier),
    "room_layout": _Task(9, 224, _classifier),
    "jigsaw": _Task(1000, 64, _jigsaw),
    "segmentsemantic": _Task(17, 256, _segmentation),
    "normal": _Task(3, 256, _image),
    "autoencoder": _Task(3, 256, _image),
}

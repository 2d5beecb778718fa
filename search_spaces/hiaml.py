"""HiAML, one of GENNAPE's families: four stages, each of two equal blocks out of fourteen.

Mills et al., "GENNAPE: Towards Generalized Neural Architecture Performance Estimators", AAAI 2023 (arXiv:2211.17226);
code Ascend-Research/GENNAPE, ``model_src/search_space/hiaml_two_path/{networks,operations}.py``.

Network: 3x3 convolution of stride 2 to 64 channels with BatchNorm and ReLU; four stages of two blocks, of which the
second and the fourth begin with stride 2 and twice the channels (64, 128, 128, 256); global average pool, linear layer.
Blocks end with the ReLU of a sum; convolutions inside have BatchNorm and mostly ReLU6. A block that adds its input
projects it by a 1x1 convolution with BatchNorm where stride or width change; two blocks do so twice.

Unconfirmed: parameters are our own counts of the definition (tested, one for every block), as no published table is at
hand; about 4,600 networks are labelled, which ones is not stated; the published graphs come from a TensorFlow twin with
other padding (see ``_gennape.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from nasrlm.graph import GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Choice, Params, SpaceError
from search_spaces._gennape import Family, cb, cbr, split

BLOCKS = (
    *("hiaml_z", "hiaml_a22", "hiaml_b23", "hiaml_j30", "hiaml_g30", "hiaml_r30", "hiaml_l20"),
    *("hiaml_t20", "hiaml_t31", "hiaml_src0", "hiaml_src1", "hiaml_src3", "hiaml_src7", "hiaml_src8"),
)
STEM = 64
STAGES = ((64, 1), (128, 2), (128, 1), (256, 2))
"""Width and first stride."""
REPEATS = 2
EXAMPLE = '["hiaml_z","hiaml_b23","hiaml_src1","hiaml_t31"]'


class HiAML(Family):
    """One block a stage: 14^4 = 38,416 architectures.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels, at least 8.

    >>> space = HiAML()
    >>> space.architecture(EXAMPLE).params["stage_2"]
    'hiaml_b23'
    """

    name = "hiaml"
    parameters = tuple(Choice(f"stage_{s}", BLOCKS) for s in range(1, len(STAGES) + 1))

    def to_string(self, params: Params) -> str:
        """Return the published list of four block names, as compact JSON."""
        return json.dumps(list(params.values()), separators=(",", ":"))

    def from_string(self, text: str) -> Params:
        """Return the parameters of a list of four block names as JSON.

        Raises:
            SpaceError: Not such a list, or a name is unknown.
        """
        try:
            names = json.loads(text)
        except ValueError:
            names = None
        if not isinstance(names, list) or len(names) != len(STAGES):
            has = f"has {len(names)} names" if isinstance(names, list) else "is no list"
            raise SpaceError(
                f"{text[:200]!r} is no architecture of hiaml: it {has}. Give a JSON list of {len(STAGES)} block names, "
                f"each one of: {', '.join(BLOCKS)}. Example: {EXAMPLE}"
            )
        return {parameter.name: parameter.check(name) for parameter, name in zip(self.parameters, names, strict=True)}

    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        x = conv_bn(b, x, STEM, 3, 2)
        for (width, stride), block in zip(STAGES, params.values(), strict=True):
            describe = _BLOCKS[str(block)]
            if stride > 1:
                x = b.relu(describe(b, width, stride, x))
            x = b.repeat(REPEATS - (stride > 1), partial(_same, b, describe, width), x)
        return x


Block = Callable[[GraphBuilder, int, int, int], int]
"""A block without its last ReLU: builder, width, stride, input."""


def _same(b: GraphBuilder, describe: Block, width: int, x: int) -> int:
    return b.relu(describe(b, width, 1, x))


def _s(b: GraphBuilder, x: int, width: int, stride: int = 1) -> int:
    return split(b, x, width, 3, stride)


def _projected(b: GraphBuilder, x: int, width: int, stride: int) -> int:
    return x if stride == 1 and b.shape(x)[1] == width else cb(b, x, width, 1, stride)


def _z(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = cbr(b, x, width, 3, stride)
    return b.add(a, _s(b, a, width))


def _a22(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = cbr(b, x, width, 3, stride)
    return b.add(a, cb(b, cbr(b, a, width), width))


def _b23(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    return b.add(_projected(b, x, width, stride), _s(b, _s(b, x, width, stride), width))


def _j30(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    return b.add(_projected(b, x, width, stride), _s(b, cbr(b, x, width, 3, stride), width))


def _g30(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = _s(b, x, width, stride)
    return b.add(a, cb(b, _s(b, b.add(_projected(b, x, width, stride), a), width), width))


def _r30(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = _s(b, x, width, stride)
    mixed = cb(b, b.add(_projected(b, x, width, stride), a), width)
    return b.add(_projected(b, x, width, stride), mixed, _s(b, a, width))


def _l20(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    return cb(b, cbr(b, x, width, 3, stride), width)


def _t20(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    return b.add(cb(b, x, width, 1, stride), _s(b, x, width, stride))


def _t31(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = cbr(b, _s(b, x, width, stride), width)
    mixed = _s(b, b.add(_projected(b, x, width, stride), a), width)
    return b.add(_projected(b, x, width, stride), a, mixed)


def _src0(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = cbr(b, x, width, 1, stride)
    return b.add(a, cb(b, cbr(b, a, width, 3), width, 3))


def _src1(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    inner = cbr(b, x, b.shape(x)[1], 3)
    return b.add(cbr(b, x, width, 1, stride), cb(b, inner, width, 3, stride))


def _src3(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    inner = cbr(b, cbr(b, x, b.shape(x)[1]), width, 3, stride)
    return b.add(cb(b, x, width, 1, stride), cb(b, inner, width))


def _src7(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = cb(b, x, width, 1, stride)
    return b.add(a, _s(b, _s(b, a, width), width))


def _src8(b: GraphBuilder, width: int, stride: int, x: int) -> int:
    a = cb(b, x, width, 1, stride)
    return b.add(a, cb(b, _s(b, a, width), width))


_BLOCKS: dict[str, Block] = dict(
    zip(BLOCKS, (_z, _a22, _b23, _j30, _g30, _r30, _l20, _t20, _t31, _src0, _src1, _src3, _src7, _src8), strict=True)
)

SPACE = HiAML

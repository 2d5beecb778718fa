"""Two-Path, one of GENNAPE's families: two independent chains of blocks, concatenated.

Mills et al., "GENNAPE: Towards Generalized Neural Architecture Performance Estimators", AAAI 2023 (arXiv:2211.17226);
code Ascend-Research/GENNAPE, ``model_src/search_space/hiaml_two_path``.

Network: 3x3 convolution to 32 channels, another of stride 2; two chains of 2 to 4 blocks, each with exactly two blocks
that halve the image and double the channels; their concatenation (256 channels), 3x3 convolution to 512, global average
pool, linear layer. Convolutions have BatchNorm and ReLU6, pools BatchNorm.
Block: one to three operations in a row, at least one of them a convolution ("conv") and at most one supplementary
("supp"). The first convolution takes stride and width change; the block's input is added where neither changes.

Sampling is the authors': numbers of blocks and operations uniform, a convolution first, others a convolution with
probability 8/13, order shuffled, reducing blocks uniform. Parameters drawn or moved otherwise are repaired.

Unconfirmed: the family's size is not stated (ours is exact for these rules), nor how many networks are labelled (6,890
is recalled); the published graphs come from a TensorFlow twin with other padding (see ``_gennape.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from nasrlm.graph import GraphBuilder
from nasrlm.spaces import Architecture, Choice, Integer, Parameter, Params, Seed, SpaceError, Value, When
from search_spaces._dictionaries import DictionarySpace, check_keys, read_object
from search_spaces._gennape import Family, PathRules, cbr, pooled, split

RULES = PathRules(
    conv=(
        *("conv3x3", "double3x3", "conv5x5", "bottleneck-r2-k3", "bottleneck-r4-k3", "bottleneck-e2-k3"),
        *("inception_s3x3", "inception_s5x5"),
    ),
    supp=("conv1x1", "bottleneck-r2-k1", "bottleneck-e2-k1", "avgpool3x3", "maxpool3x3"),
    most=3,
)
PATHS = (1, 2)
FEWEST, MOST, REDUCTIONS = 2, 4, 2
"""Blocks of a path, and how many of them reduce."""
STEM, LAST = 32, 512
KEYS = ("path1", "path2", "path1_reduce_inds", "path2_reduce_inds")
EXAMPLE = (
    '{"path1":[{"op_names":["conv3x3"],"op_types":["conv"]},{"op_names":["maxpool3x3","double3x3"],"op_types":["supp",'
    '"conv"]}],"path2":[{"op_names":["inception_s5x5"],"op_types":["conv"]},{"op_names":["conv5x5"],"op_types":["conv"]'
    '},{"op_names":["bottleneck-r2-k3","conv1x1"],"op_types":["conv","supp"]}],"path1_reduce_inds":[0,1],'
    '"path2_reduce_inds":[0,2]}'
)


def _reducing(blocks: int) -> tuple[str, ...]:
    """Which blocks may reduce: "0,2" for the first and the third."""
    return tuple(",".join(map(str, chosen)) for chosen in combinations(range(blocks), REDUCTIONS))


def _path_parameters(path: int) -> tuple[Parameter, ...]:
    found: list[Parameter] = [Integer(f"path{path}_blocks", FEWEST, MOST)]
    for blocks in range(REDUCTIONS + 1, MOST + 1):
        found.append(Choice(f"path{path}_reduce_of_{blocks}", _reducing(blocks), When(f"path{path}_blocks", (blocks,))))
    for k in range(1, MOST + 1):
        there = When(f"path{path}_blocks", tuple(range(k, MOST + 1))) if k > FEWEST else None
        found += RULES.parameters(f"path{path}_{k}", there)
    return tuple(found)


class TwoPath(Family, DictionarySpace):
    """Two chains of 2 to 4 blocks: 1.7e27 architectures.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels, at least 8.

    >>> space = TwoPath()
    >>> f"{space.size():.1e}", space.architecture(EXAMPLE).params["path2_reduce_of_3"]
    ('1.7e+27', '0,2')
    """

    name = "twopath"
    example = EXAMPLE
    parameters = tuple(parameter for path in PATHS for parameter in _path_parameters(path))

    def size(self) -> int:
        """Return the exact number of architectures."""
        conv, supp = len(RULES.conv), len(RULES.supp)
        block = sum(conv**n + (n * conv ** (n - 1) * supp if n > 1 else 0) for n in range(1, RULES.most + 1))
        return sum(len(_reducing(n)) * block**n for n in range(FEWEST, MOST + 1)) ** len(PATHS)

    def sample(self, n: int, seed: Seed) -> list[Architecture]:
        """Draw ``n`` architectures with the authors' probabilities; see the top of this file."""
        return self._sampled(n, seed, _drawn)

    def repair(self, params: Params) -> Params:
        """Return the parameters with a convolution in every block and one supplementary operation at most."""
        found = dict(params)
        for path in PATHS:
            for k in range(1, int(params[f"path{path}_blocks"]) + 1):
                prefix = f"path{path}_{k}"
                found.update(RULES.values(prefix, RULES.repaired(RULES.operations(params, prefix))))
        return found

    def _dict(self, params: Params) -> dict[str, Any]:
        return _to_dict(params)

    def _read(self, given: Mapping[str, Any]) -> dict[str, Value]:
        return _from_dict(given)

    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        x = cbr(b, cbr(b, x, STEM, 3), STEM, 3, 2)
        ends = []
        for path in PATHS:
            y, reducing = x, _reduce_indices(params, path)
            for k in range(int(params[f"path{path}_blocks"])):
                y = _block(b, y, RULES.operations(params, f"path{path}_{k + 1}"), 2 if k in reducing else 1)
            ends.append(y)
        return cbr(b, b.concat(ends), LAST, 3)


def _reduce_indices(params: Params, path: int) -> list[int]:
    chosen = params.get(f"path{path}_reduce_of_{params[f'path{path}_blocks']}", _reducing(REDUCTIONS)[0])
    return [int(k) for k in str(chosen).split(",")]


def _drawn(rng: np.random.Generator) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for path in PATHS:
        blocks = int(rng.integers(FEWEST, MOST + 1))
        found[f"path{path}_blocks"] = blocks
        for k in range(1, blocks + 1):
            found |= RULES.values(f"path{path}_{k}", RULES.drawn(int(rng.integers(1, RULES.most + 1)), rng))
        choices = _reducing(blocks)
        if len(choices) > 1:
            found[f"path{path}_reduce_of_{blocks}"] = choices[int(rng.integers(len(choices)))]
    return found


# --- the published dictionary ----------------------------------------------------------------------------------------


def _to_dict(params: Params) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in PATHS:
        blocks = range(1, int(params[f"path{path}_blocks"]) + 1)
        names = [RULES.operations(params, f"path{path}_{k}") for k in blocks]
        found[f"path{path}"] = [{"op_names": block, "op_types": RULES.types(block)} for block in names]
    return found | {f"path{path}_reduce_inds": _reduce_indices(params, path) for path in PATHS}


def _from_dict(given: Mapping[str, Any]) -> dict[str, Value]:
    check_keys(TwoPath.name, given, KEYS, ())
    found: dict[str, Value] = {}
    for path in PATHS:
        key = f"path{path}"
        blocks, reducing = given[key], given[f"{key}_reduce_inds"]
        if not isinstance(blocks, list | tuple) or not FEWEST <= len(blocks) <= MOST:
            shown = f"{len(blocks)} blocks" if isinstance(blocks, list | tuple) else repr(blocks)
            raise SpaceError(f"{key!r} has {shown}. Give a list of {FEWEST} to {MOST} blocks.")
        found[f"{key}_blocks"] = len(blocks)
        for k, block in enumerate(blocks):
            block = read_object(f"{key}[{k}]", block, '{"op_names":["conv3x3"],"op_types":["conv"]}')
            check_keys(f"{key}[{k}]", block, ("op_names", "op_types"), ())
            names = RULES.read(f"{key}[{k}]", "op_names", block["op_names"], block["op_types"])
            found |= RULES.values(f"{key}_{k + 1}", names)
        allowed = Choice(f"{key}_reduce_inds", _reducing(len(blocks)))
        listed = isinstance(reducing, list | tuple) and all(isinstance(k, int) for k in reducing)
        chosen = allowed.check(",".join(map(str, sorted(reducing))) if listed else reducing)
        if len(allowed.values) > 1:
            found[f"{key}_reduce_of_{len(blocks)}"] = chosen
    return found


# --- the network -------------------------------------------------------------------------------------------------


def _block(b: GraphBuilder, x: int, operations: list[str], stride: int) -> int:
    before = b.shape(x)[1]
    y, pending = x, True
    for operation in operations:
        first = pending and operation in RULES.conv
        pending = pending and not first
        y = _operation(b, y, operation, before * stride if first else b.shape(y)[1], stride if first else 1)
    return b.add(y, x) if stride == 1 else y


def _operation(b: GraphBuilder, x: int, operation: str, out: int, stride: int) -> int:
    before = b.shape(x)[1]
    kind, *details = operation.split("-")
    if kind == "bottleneck":  # r2: half the channels inside; e2: twice
        factor, kernel = int(details[0][1:]), int(details[1][1:])
        inner = before // factor if details[0][0] == "r" else before * factor
        return cbr(b, cbr(b, x, inner, kernel, stride), out, kernel)
    if kind.endswith("pool3x3"):
        return pooled(b, x, kind)
    kernel = int(kind[-1])
    if kind.startswith("double"):
        return cbr(b, cbr(b, x, before, kernel, stride), out, kernel)
    if kind.startswith("inception_s"):
        return split(b, x, out, kernel, stride)
    return cbr(b, x, out, kernel, stride)


SPACE = TwoPath

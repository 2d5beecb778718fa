"""Inception, one of GENNAPE's families: four stages, each repeating a block of one to four parallel paths.

Mills et al., "GENNAPE: Towards Generalized Neural Architecture Performance Estimators", AAAI 2023 (arXiv:2211.17226);
code Ascend-Research/GENNAPE, ``model_src/search_space/inception``.

Network: 3x3 convolution to 32 channels; four stages (32, 64, 128, 256 channels; the last three begin with stride 2) of
2 to 6 equal blocks; 3x3 convolution to 512, global average pool, linear layer. Convolutions have a bias and BatchNorm,
but for the 1x1 convolution in front of a depthwise one, which has neither.
Block: paths side by side, concatenated, brought to the stage's width by a 1x1 convolution if their widths add up to
another one; its input is added where stride is 1 and widths are equal. No activation behind it.
Path: operations in a row, at least one convolution and at most one supplementary. Its width is its share of the
stage's, at least 16: equal shares, but for three paths one of half and two of a quarter. The first operation that can
change the width (all but pools) goes to the inner width, the last one to the path's; the first convolution takes the
stride. The inner width is half the path's (at least 16), the same or double, and another one only where two
different operations can change the width. A block has at most 3, 4, 8, 10 operations for one to four paths; a path of
three or four at least two.

Sampling is the authors': blocks, paths and operations uniform one after the other, inner width half 0.3, same 0.6,
double 0.1. Parameters drawn or moved otherwise are repaired.

Unconfirmed: how many networks are labelled (580 is recalled), and which; the family's size is not stated (ours is exact
for these rules, with the order of paths counted); the published graphs come from a TensorFlow twin with other padding
(see ``_gennape.py``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from nasrlm.graph import GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import Architecture, Choice, Integer, Parameter, Params, Seed, SpaceError, Value, When
from nasrlm.spaces.parameters import enumerate_params
from search_spaces._dictionaries import DictionarySpace, check_keys, read_list, read_object
from search_spaces._gennape import Family, PathRules, cb, cbr, pooled, split

RULES = PathRules(
    conv=(
        *("conv3x3", "inception_s3x3", "inception_p3x3", "depthwise3x3"),
        *("conv5x5", "depthwise5x5", "inception_s5x5", "inception_p5x5"),
    ),
    supp=("conv1x1", "avgpool3x3", "maxpool3x3", "double1x1"),
    most=4,
)
POOLS = ("avgpool3x3", "maxpool3x3")
PATHS = (1, 2, 3, 4)
MOST_IN_BLOCK = {1: 3, 2: 4, 3: 8, 4: 10}
FEWEST_IN_PATH = {1: 1, 2: 1, 3: 2, 4: 2}
BLOCKS = (2, 6)
STEM, LAST, NARROWEST = 32, 512, 16
STAGES = ((32, 32, 1), (32, 64, 2), (64, 128, 2), (128, 256, 2))
"""Width before, width, first stride."""
INNER = {"same": 0.6, "half": 0.3, "double": 0.1}
"""Inner widths and how often the authors draw them."""
EXAMPLE = json.dumps(
    {
        "stages": [
            {
                "block": {"paths": [{"ops": [name], "op_types": ["conv"], "C_internal": width, "C_out": width}]},
                **{"n_blocks": 2, "C_in": before, "C_out": width, "stride": stride},
            }
            for name, (before, width, stride) in zip(RULES.conv[:4], STAGES, strict=True)
        ]
    },
    separators=(",", ":"),
)


def _stage_parameters(s: int) -> Iterator[Parameter]:
    yield Integer(f"blocks_{s}", *BLOCKS)
    yield Integer(f"paths_{s}", PATHS[0], PATHS[-1])
    if len(set(_widths(s, 3, 1))) > 1:
        yield Integer(f"wide_{s}", 1, 3, when=When(f"paths_{s}", (3,)))
    for p in PATHS:
        there = When(f"paths_{s}", PATHS[p - 1 :]) if p > 1 else None
        yield from RULES.parameters(f"path_{s}_{p}", there)
        yield Choice(f"path_{s}_{p}_inner", tuple(INNER), there)


def _widths(s: int, paths: int, wide: int) -> list[int]:
    """Widths of a stage's paths; of three paths number `wide` has twice the others' width."""
    width = STAGES[s - 1][1]
    shares = [4] * 3 if paths == 3 else [paths] * paths
    if paths == 3:
        shares[wide - 1] = 2
    return [max(width // share, NARROWEST) for share in shares]


def _inner(width: int, word: str) -> int:
    return max({"half": width // 2, "same": width, "double": 2 * width}[word], NARROWEST)


def _inner_words(operations: Sequence[str], width: int) -> tuple[str, ...]:
    """The inner widths of a path that make a difference."""
    if sum(operation not in POOLS for operation in operations) < 2:
        return ("same",)
    return tuple(word for word in INNER if word == "same" or _inner(width, word) != width)


def _stage_widths(params: Params, s: int) -> list[int]:
    return _widths(s, int(params[f"paths_{s}"]), int(params.get(f"wide_{s}", 1)))


class Inception(Family, DictionarySpace):
    """One block a stage, of up to four paths of up to four operations: 1.4e54 architectures.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels, at least 8.

    >>> space = Inception()
    >>> f"{space.size():.1e}", space.architecture(EXAMPLE).params["blocks_1"]
    ('1.4e+54', 2)
    """

    name = "inception"
    example = EXAMPLE
    parameters = tuple(parameter for s in range(1, len(STAGES) + 1) for parameter in _stage_parameters(s))

    def size(self) -> int:
        """Return the exact number of architectures; the same paths in another order are another architecture."""
        return math.prod(_stage_size(s) for s in range(1, len(STAGES) + 1))

    def sample(self, n: int, seed: Seed) -> list[Architecture]:
        """Draw ``n`` architectures with the authors' probabilities; see the top of this file."""
        return self._sampled(n, seed, _drawn)

    def repair(self, params: Params) -> Params:
        """Return the parameters with as many operations, of such kinds, and such inner widths as are allowed.

        Missing operations become conv3x3, those too many at the end of a path go, an inner width without effect is
        "same".
        """
        return {key: value for s in range(1, len(STAGES) + 1) for key, value in _repaired_stage(params, s).items()}

    def enumerate(self) -> Iterator[Architecture]:
        """Yield every architecture once; the last parameter changes fastest."""
        return map(self.repaired, _stages_from(1))

    def _dict(self, params: Params) -> dict[str, Any]:
        return _to_dict(params)

    def _read(self, given: Mapping[str, Any]) -> dict[str, Value]:
        return _from_dict(given)

    def _features(self, b: GraphBuilder, x: int, params: Params) -> int:
        x = cbr(b, x, STEM, 3, bias=True)
        for s, (_, width, stride) in enumerate(STAGES, 1):
            blocks = int(params[f"blocks_{s}"])
            if stride > 1:
                x, blocks = _block(b, params, s, width, stride, x), blocks - 1
            x = b.repeat(blocks, partial(_block, b, params, s, width, 1), x)
        return cbr(b, x, LAST, 3, bias=True)


def _repaired_stage(params: Params, s: int) -> dict[str, Value]:
    found = {key: params[key] for key in (f"blocks_{s}", f"paths_{s}", f"wide_{s}") if key in params}
    paths, used = int(params[f"paths_{s}"]), 0
    for p, width in enumerate(_stage_widths(params, s), 1):
        prefix = f"path_{s}_{p}"
        given = RULES.operations(params, prefix)
        length = min(max(len(given), FEWEST_IN_PATH[paths]), _most_ops(paths, p, used))
        names = RULES.repaired([*given, *RULES.conv[:1] * RULES.most][:length])
        used += length
        word = str(params[f"{prefix}_inner"])
        inner = word if word in _inner_words(names, width) else "same"
        found |= RULES.values(prefix, names) | {f"{prefix}_inner": inner}
    return found


def _stages_from(s: int) -> Iterator[dict[str, Value]]:
    """Every valid choice of stage s and the later ones; the order of the parameters is the declared one."""
    if s > len(STAGES):
        yield {}
        return
    for stage in enumerate_params(tuple(_stage_parameters(s))):
        if _repaired_stage(stage, s) == stage:
            for rest in _stages_from(s + 1):
                yield stage | rest


def _most_ops(paths: int, p: int, used: int) -> int:
    """The most operations of path p, which leave the later ones their fewest."""
    return MOST_IN_BLOCK[paths] - used - FEWEST_IN_PATH[paths] * (paths - p)


def _drawn(rng: np.random.Generator) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for s in range(1, len(STAGES) + 1):
        found[f"blocks_{s}"] = int(rng.integers(BLOCKS[0], BLOCKS[1] + 1))
        paths = int(rng.integers(PATHS[0], PATHS[-1] + 1))
        found[f"paths_{s}"] = paths
        wide, used = int(rng.integers(1, 4)), 0
        if f"wide_{s}" in _NAMES and paths == 3:
            found[f"wide_{s}"] = wide
        for p in range(1, paths + 1):
            length = int(rng.integers(FEWEST_IN_PATH[paths], _most_ops(paths, p, used) + 1))
            used += length
            found |= RULES.values(f"path_{s}_{p}", RULES.drawn(length, rng))
            found[f"path_{s}_{p}_inner"] = str(rng.choice(list(INNER), p=list(INNER.values())))
    return found


# --- counting ----------------------------------------------------------------------------------------------------


def _stage_size(s: int) -> int:
    total = 0
    for paths in PATHS:
        fewest = FEWEST_IN_PATH[paths]
        longest = MOST_IN_BLOCK[paths] - fewest * (paths - 1)
        for wide in range(1, 4 if f"wide_{s}" in _NAMES and paths == 3 else 2):
            widths = _widths(s, paths, wide)
            for lengths in product(range(fewest, longest + 1), repeat=paths):
                if sum(lengths) <= MOST_IN_BLOCK[paths]:
                    total += math.prod(_path_size(n, w) for n, w in zip(lengths, widths, strict=True))
    return total * (BLOCKS[1] - BLOCKS[0] + 1)


@lru_cache
def _path_size(length: int, width: int) -> int:
    """Paths of so many operations, with their inner widths; operations of a kind count alike."""
    total = 0
    for supp in (None, *(RULES.supp if length > 1 else ())):
        example = [RULES.conv[0]] * (length - (supp is not None)) + ([supp] if supp else [])
        orders = length if supp else 1
        total += orders * len(RULES.conv) ** example.count(RULES.conv[0]) * len(_inner_words(example, width))
    return total


_NAMES = frozenset(parameter.name for parameter in Inception.parameters)


# --- the published dictionary ----------------------------------------------------------------------------------------


def _to_dict(params: Params) -> dict[str, Any]:
    stages = []
    for s, (before, width, stride) in enumerate(STAGES, 1):
        paths = []
        for p, out in enumerate(_stage_widths(params, s), 1):
            names = RULES.operations(params, f"path_{s}_{p}")
            inner = _inner(out, str(params[f"path_{s}_{p}_inner"]))
            paths.append({"ops": names, "op_types": RULES.types(names), "C_internal": inner, "C_out": out})
        fixed = {"C_in": before, "C_out": width, "stride": stride}
        stages.append({"block": {"paths": paths}, "n_blocks": params[f"blocks_{s}"], **fixed})
    return {"stages": stages}


def _from_dict(given: Mapping[str, Any]) -> dict[str, Value]:
    check_keys(Inception.name, given, ("stages",), ())
    found: dict[str, Value] = {}
    for s, stage in enumerate(read_list("stages", given["stages"], len(STAGES)), 1):
        where = f"stages[{s - 1}]"
        stage = read_object(where, stage, '{"block":{"paths":[...]},"n_blocks":2,"C_in":32,"C_out":64,"stride":2}')
        check_keys(where, stage, ("block", "n_blocks", "C_in", "C_out", "stride"), ())
        for key, value in zip(("C_in", "C_out", "stride"), STAGES[s - 1], strict=True):
            Choice(f"{where}.{key}", (value,)).check(stage[key])
        found[f"blocks_{s}"] = Integer(f"{where}.n_blocks", *BLOCKS).check(stage["n_blocks"])
        block = read_object(f"{where}.block", stage["block"], '{"paths":[...]}')
        check_keys(f"{where}.block", block, ("paths",), ())
        found |= _read_paths(s, f"{where}.block.paths", block["paths"])
    return found


def _read_paths(s: int, where: str, paths: Any) -> dict[str, Value]:
    if not isinstance(paths, list | tuple) or len(paths) not in PATHS:
        shown = f"{len(paths)} paths" if isinstance(paths, list | tuple) else repr(paths)
        raise SpaceError(f"{where!r} has {shown}. Give a list of 1 to {PATHS[-1]} paths.")
    count, form = len(paths), '{"ops":["conv3x3"],"op_types":["conv"],"C_internal":32,"C_out":32}'
    found: dict[str, Value] = {f"paths_{s}": count}
    for p, path in enumerate(paths):
        check_keys(f"{where}[{p}]", read_object(f"{where}[{p}]", path, form), ("ops", "op_types", *_WIDTH_KEYS), ())
    wide = _read_wide(s, where, [path["C_out"] for path in paths])
    if f"wide_{s}" in _NAMES and count == 3:
        found[f"wide_{s}"] = wide
    for p, (path, width) in enumerate(zip(paths, _widths(s, count, wide), strict=True)):
        names = RULES.read(f"{where}[{p}]", "ops", path["ops"], path["op_types"])
        words = {_inner(width, word): word for word in _inner_words(names, width)}
        inner = Choice(f"{where}[{p}].C_internal", tuple(words)).check(path["C_internal"])
        found |= RULES.values(f"path_{s}_{p + 1}", names) | {f"path_{s}_{p + 1}_inner": words[int(inner)]}
    lengths = [len(path["ops"]) for path in paths]
    if sum(lengths) > MOST_IN_BLOCK[count] or min(lengths) < FEWEST_IN_PATH[count]:
        raise SpaceError(
            f"{where!r} has paths of {', '.join(map(str, lengths))} operations, {sum(lengths)} in all. Allowed for "
            f"{count} paths: at least {FEWEST_IN_PATH[count]} each and at most {MOST_IN_BLOCK[count]} in all."
        )
    return found


_WIDTH_KEYS = ("C_internal", "C_out")


def _read_wide(s: int, where: str, given: list[Any]) -> int:
    count = len(given)
    allowed = {tuple(_widths(s, count, wide)): wide for wide in (3, 2, 1)}
    if tuple(given) not in allowed:
        shown = " or ".join(", ".join(map(str, widths)) for widths in sorted(allowed, reverse=True))
        raise SpaceError(
            f"the C_out of {where!r} are {', '.join(map(str, given))}. Allowed for {count} paths: {shown}."
        )
    return allowed[tuple(given)]


# --- the network -------------------------------------------------------------------------------------------------


def _block(b: GraphBuilder, params: Params, s: int, width: int, stride: int, x: int) -> int:
    ends = []
    for p, out in enumerate(_stage_widths(params, s), 1):
        inner = _inner(out, str(params[f"path_{s}_{p}_inner"]))
        ends.append(_path(b, x, RULES.operations(params, f"path_{s}_{p}"), inner, out, stride))
    y = b.concat(ends)
    if b.shape(y)[1] != width:
        y = cb(b, y, width, bias=True)
    return b.add(y, x) if stride == 1 and b.shape(x)[1] == width else y


def _path(b: GraphBuilder, x: int, operations: Sequence[str], inner: int, out: int, stride: int) -> int:
    """Where one operation is first convolution and first or last to change the width, the first rule wins."""
    capable = [j for j, operation in enumerate(operations) if operation not in POOLS]
    first = next(j for j, operation in enumerate(operations) if operation in RULES.conv)
    for j, operation in enumerate(operations):
        width = inner if j == capable[0] else out if j == capable[-1] else b.shape(x)[1]
        x = _operation(b, x, operation, width, stride if j == first else 1)
    return x


def _operation(b: GraphBuilder, x: int, operation: str, out: int, stride: int) -> int:
    kernel = int(operation[-1])
    if operation in POOLS:
        return pooled(b, x, operation)
    if operation == "double1x1":
        return cbr(b, cbr(b, x, out, bias=True), out, bias=True)
    if operation.startswith("conv"):
        return cbr(b, x, out, kernel, stride, bias=True)
    if operation.startswith("depthwise"):
        x = x if b.shape(x)[1] == out else b.conv(x, out)
        return conv_bn(b, x, out, kernel, stride, "relu6", groups=out, bias=True)
    if operation.startswith("inception_s"):
        return split(b, x, out, kernel, (1, stride), (stride, 1), bias=True)
    return _parallel(b, x, out, kernel, stride)


def _parallel(b: GraphBuilder, x: int, out: int, kernel: int, stride: int) -> int:
    """inception_p: half the channels by 1xk, the rest by kx1; with stride each is followed by the other one."""
    wide, tall = ((1, kernel), (1, stride)), ((kernel, 1), (stride, 1))
    halves = []
    for width, turns in ((out // 2, (wide, tall)), (out - out // 2, (tall, wide))):
        y = x
        for size, step in turns if stride > 1 else turns[:1]:
            y = conv_bn(b, y, width, size, step, "none", bias=True)
        halves.append(b.relu6(y))
    return b.relu6(b.concat(halves))


SPACE = Inception

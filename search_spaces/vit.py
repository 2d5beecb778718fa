"""Vision transformers as AutoFormer searches them: width and depth, and heads and hidden width of every block.

Chen et al., "AutoFormer: Searching Transformers for Visual Recognition", ICCV 2021 (arXiv:2107.00651); code
microsoft/Cream, ``AutoFormer/{model,experiments}``. With the options `widths`, `depths`, `heads` and `ratios` it is a
template for transformers of your own, such as small ones on small images.

Network: patches (a biased convolution) to D channels, a class token, learned positions; L blocks; LayerNorm, the mean
over all patches without the class token, linear layer. Block: x + attention(LayerNorm x), then x + MLP(LayerNorm x)
with int(D x ratio) hidden channels and GELU. Heads have 64 channels whatever D is. Relative positions (Shaw et al.
2018, in two dimensions): a block has for keys and for values a vertical and a horizontal table of 30 x 64, which its
heads share; row 0 stands for the class token, the others for distances from -14 to 14, farther ones are clipped. What a
query finds in the keys' tables is added to its logits, what its weights find in the values' tables to the output.

Counts (tested): parameters of the published AutoFormer-T, -S and -B, 5,867,944, 22,891,432 and 53,691,688. AutoFormer-T
has the ratio 3.0, which its own list lacks: `ratios=(3.0, 3.5, 4.0)` takes it in. The authors' sub-network file of
"base" also allows 8 heads. Unconfirmed: MACs, as the authors count otherwise. Here they include the products with
the tables, which are read by shifting (equal in value to the authors' indexing). Queries, keys and values are
three slices of one linear layer; in the authors' super-network its rows are interleaved in threes. In
the text what is made of the tables alone is one weight, as in an exported ONNX file, so a network that is read from its
text has other parameter counts (not with `relative_positions=False`); MACs are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.ops import op
from nasrlm.spaces import Choice, Parameter, Params, SpaceError, Value, When, check_sizes
from search_spaces._dictionaries import DictionarySpace, check_keys, read_list

HEAD = 64
"""Channels of a head."""
REACH = 14
"""Patches; relative positions farther apart are clipped to it."""
ROWS = 2 * REACH + 2
SIZES: dict[str, dict[str, tuple[int | float, ...]]] = {
    "tiny": {"widths": (192, 216, 240), "depths": (12, 13, 14), "heads": (3, 4), "ratios": (3.5, 4.0)},
    "small": {"widths": (320, 384, 448), "depths": (12, 13, 14), "heads": (5, 6, 7), "ratios": (3.0, 3.5, 4.0)},
    "base": {"widths": (528, 576, 624), "depths": (14, 15, 16), "heads": (9, 10), "ratios": (3.0, 3.5, 4.0)},
}
KEYS = ("layer_num", "embed_dim", "mlp_ratio", "num_heads")
EXAMPLE = (
    '{"layer_num":12,"embed_dim":[192,192,192,192,192,192,192,192,192,192,192,192],"mlp_ratio":[3.5,4.0,3.5,3.5,4.0,4.0,'
    '3.5,3.5,4.0,3.5,3.5,4.0],"num_heads":[3,3,4,3,3,3,4,4,3,3,4,3]}'
)


class ViT(DictionarySpace):
    """Heads and MLP ratio a block, width and depth once: 1.1e9 (tiny), 7.7e13 (small), 1.0e13 (base) architectures.

    Args:
        size: The super-network whose lists are used: "tiny", "small" or "base".
        image_size: Height and width of the input in pixels, a multiple of `patch`.
        patch: Height and width of a patch in pixels.
        num_classes: Outputs of the linear layer.
        relative_positions: Whether blocks have tables of relative positions.
        widths: Channels D, instead of the size's.
        depths: Numbers of blocks, instead of the size's.
        heads: Heads of a block, instead of the size's.
        ratios: MLP ratios, instead of the size's.

    >>> f"{ViT().size():.1e}"
    '1.1e+09'
    >>> small = ViT(image_size=32, patch=4, num_classes=10, widths=(64, 96), depths=(2, 3, 4), heads=(1, 2))
    >>> small.size()
    672
    """

    name = "vit"
    example = EXAMPLE
    source = "Chen et al., AutoFormer, ICCV 2021, arXiv:2107.00651; github.com/microsoft/Cream"
    metrics = ("accuracy/imagenet", "params", "macs")

    def __init__(
        self,
        size: str = "tiny",
        image_size: int = 224,
        patch: int = 16,
        num_classes: int = 1000,
        relative_positions: bool = True,
        widths: Sequence[int] | None = None,
        depths: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        ratios: Sequence[float] | None = None,
    ) -> None:
        lists = SIZES[str(Choice("size", tuple(SIZES)).check(size))]
        check_sizes(self.name, {"patch": patch, "image_size": image_size, "num_classes": num_classes})
        self.patch, self.image_size, self.num_classes = patch, image_size, num_classes
        if image_size % patch:
            raise SpaceError(f"option 'image_size' of vit is {image_size}. Allowed: multiples of 'patch', {patch}.")
        self.relative_positions = bool(Choice("relative_positions", (True, False)).check(relative_positions))
        own = {"widths": widths, "depths": depths, "heads": heads, "ratios": ratios}
        self.lists = {key: _checked(key, lists[key] if own[key] is None else own[key]) for key in lists}
        self.parameters = tuple(self._declared())

    def _declared(self) -> list[Parameter]:
        found: list[Parameter] = [Choice("depth", self.lists["depths"]), Choice("width", self.lists["widths"])]
        depths = [int(depth) for depth in self.lists["depths"]]
        for i in range(1, max(depths) + 1):
            there = When("depth", tuple(d for d in depths if d >= i)) if i > min(depths) else None
            found.append(Choice(f"heads_{i}", self.lists["heads"], there))
            found.append(Choice(f"ratio_{i}", self.lists["ratios"], there))
        return found

    def _dict(self, params: Params) -> dict[str, Any]:
        """Return the authors' dictionary: layer_num, embed_dim, mlp_ratio, num_heads."""
        depth = int(params["depth"])
        lists = {key: [params[f"{word}_{i}"] for i in range(1, depth + 1)] for key, word in _BLOCK_KEYS.items()}
        return {"layer_num": depth, "embed_dim": [params["width"]] * depth, **lists}

    def _read(self, given: Mapping[str, Any]) -> dict[str, Value]:
        check_keys(self.name, given, KEYS, ())
        depth = int(Choice("layer_num", self.lists["depths"]).check(given["layer_num"]))
        widths, ratios, heads = (read_list(key, given[key], depth) for key in KEYS[1:])
        width = Choice("embed_dim[0]", self.lists["widths"]).check(widths[0])
        found: dict[str, Value] = {"depth": depth, "width": width}
        for i in range(depth):
            Choice(f"embed_dim[{i}]", (width,)).check(widths[i])  # one width for all blocks
            found[f"heads_{i + 1}"] = Choice(f"num_heads[{i}]", self.lists["heads"]).check(heads[i])
            found[f"ratio_{i + 1}"] = Choice(f"mlp_ratio[{i}]", self.lists["ratios"]).check(ratios[i])
        return found

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        b = GraphBuilder()
        width, grid = int(params["width"]), self.image_size // self.patch
        x = b.conv(b.input((3, self.image_size, self.image_size)), width, self.patch, self.patch, padding=0, bias=True)
        x = b.transpose(b.reshape(x, (1, width, grid * grid)), (0, 2, 1))
        x = b.add(b.concat([b.weight(1, 1, width), x], axis=1), b.weight(1, grid * grid + 1, width))
        for i in range(1, int(params["depth"]) + 1):
            heads, hidden = int(params[f"heads_{i}"]), int(width * float(params[f"ratio_{i}"]))
            x = b.add(x, self._attention(b, b.layer_norm(x), width, heads, grid))
            x = b.add(x, b.linear(b.unary("gelu", b.linear(b.layer_norm(x), hidden)), width))
        x = b.slice(b.layer_norm(x), 1, grid * grid + 1, axis=1)
        b.output(b.linear(b.mean(x, (1,), keep=False), self.num_classes))
        return b.build()

    def _attention(self, b: GraphBuilder, x: int, width: int, heads: int, grid: int) -> int:
        inner = heads * HEAD
        joined = b.linear(x, 3 * inner)
        q, k, v = (b.split_heads(b.slice(joined, n * inner, (n + 1) * inner, axis=2), heads) for n in range(3))
        if not self.relative_positions:
            return b.linear(b.merge_heads(b.attention(q, k, v)), width)
        keys, values = _positions(b, grid)
        logits = b.add(
            b.binary("matmul", q, b.transpose(k, (0, 1, 3, 2))), _by_query(b, q, b.transpose(keys, (0, 1, 3, 2)))
        )
        weights = b.softmax(b.mul(logits, b.constant(HEAD**-0.5)), axis=3)
        found = b.add(b.binary("matmul", weights, v), _by_query(b, weights, values))
        return b.linear(b.merge_heads(found), width)


def _checked(key: str, values: Any) -> tuple[int | float, ...]:
    """Return a list option as the values of a Choice, ratios as floats."""
    kind = "numbers" if key == "ratios" else "integers"
    allowed = int | float if key == "ratios" else int
    given = tuple(values) if isinstance(values, list | tuple) else ()
    if not given or any(not isinstance(v, allowed) or isinstance(v, bool) or v <= 0 for v in given):
        raise SpaceError(f"option {key!r} of vit is {values!r}. Allowed: a list of {kind} above 0.")
    return Choice(key, tuple(float(v) for v in given) if key == "ratios" else given).values  # type: ignore[return-value]


_BLOCK_KEYS = {"mlp_ratio": "ratio", "num_heads": "heads"}


# --- relative positions ----------------------------------------------------------------------------------------------


def _by_query(b: GraphBuilder, x: int, positions: int) -> int:
    """Multiply rows of (batch, heads, length, n) by their own matrix: positions are (length, 1, n, m)."""
    rows = b.transpose(x, (2, 0, 1, 3))
    return b.transpose(b.binary("matmul", rows, positions), (1, 2, 0, 3))


def _positions(b: GraphBuilder, grid: int) -> tuple[int, int]:
    """The embeddings of every query and key, (length, 1, length, channels), the class token first: keys', values'."""
    patches, length, both = grid * grid, grid * grid + 1, 2 * HEAD
    # Side by side, the tables are read once: keys' and values' vertical ones, then the horizontal ones.
    tables = b.concat([b.weight(ROWS, HEAD) for _ in range(4)], axis=1)
    tables = _expanded(b, tables, (grid, ROWS, 2 * both))
    halves = ((0, both), (both, 2 * both))
    token = b.slice(b.slice(tables, 0, 1, axis=0), 0, 1)
    token = b.add(*[b.slice(token, *half, axis=2) for half in halves])
    near, shapes = _by_distance(b, tables, grid), ((grid, 1, grid, 1, both), (1, grid, 1, grid, both))
    axes = [b.reshape(b.slice(near, *half, axis=2), shape) for half, shape in zip(halves, shapes, strict=True)]
    between = b.reshape(b.add(*axes), (patches, patches, both))
    rows = b.concat([_expanded(b, token, (patches, 1, both)), between], axis=1)
    whole = b.concat([_expanded(b, token, (1, length, both)), rows], axis=0)
    whole = b.reshape(whole, (length, 1, length, both))
    return b.slice(whole, 0, HEAD, axis=3), b.slice(whole, HEAD, both, axis=3)


def _by_distance(b: GraphBuilder, tables: int, grid: int) -> int:
    """The tables' row for every pair of places on a line, (grid, grid, channels), by shifting.

    Args:
        tables: The same tables `grid` times, (grid, rows, channels).

    A table of n rows, written `grid` times in a row and cut into rows of n - 1, moves by one entry a row.
    """
    if grid > REACH:
        parts = [b.slice(tables, 1, ROWS), _far(b, tables, ROWS - 1, grid - REACH)]
        if grid > REACH + 1:
            parts.insert(0, _far(b, tables, 1, grid - REACH - 1))
        tables = b.concat(parts)
    _, rows, channels = b.shape(tables)
    start = grid - 1 if grid > REACH else REACH + 1
    copies = b.reshape(tables, (grid * rows, channels))
    shifted = b.reshape(b.slice(copies, 0, grid * (rows - 1), axis=0), (grid, rows - 1, channels))
    return b.slice(shifted, start, start + grid)


def _far(b: GraphBuilder, tables: int, row: int, times: int) -> int:
    """One row for all distances beyond the reach."""
    return _expanded(b, b.slice(tables, row, row + 1), (b.shape(tables)[0], times, b.shape(tables)[2]))


def _expanded(b: GraphBuilder, x: int, shape: tuple[int, ...]) -> int:
    return b.apply(op("expand", shape), x)


SPACE = ViT

"""Operators that have no word of their own: any ONNX operator, written in full.

    onnx:TopK <@;#int64:1:5> axis=1 ->2 @3
    com.microsoft:FusedGelu =>float32:1x64

The head is the ONNX domain ("onnx" for ONNX's own) and the operator. `<...>` says what each input is where not all are
float32 values: `@` a value with its element type, `^` one that a sub-graph reads from outside, a constant as in any
line, or nothing. `->2` is the number of values, `/11` the version of the operator where it is not that of opset 17, and
`=>` the types that it gives where ONNX cannot know. Sub-graphs stand between `body=(` and `)`, as texts of their own.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nasrlm.graph.dims import Shape, read_shape, size
from nasrlm.graph.spec import Field, OpSpec

if TYPE_CHECKING:
    from nasrlm.graph.ops import Op


def _head(kind: str, op_: Op) -> str:
    return f"{op_['domain'] or 'onnx'}:{kind}"


def _inputs(pattern: tuple[str, ...], _: Op) -> str:
    return "" if all(p == "@" for p in pattern) else f"<{';'.join(pattern)}>"


def _field(name: str, word: Any) -> Field:
    return Field(name, word, lambda *_: None, lambda *_: None)


def inference() -> Any:
    """The room that asks onnx; it is loaded for the few texts that need it, and it lies above this one."""
    return importlib.import_module("nasrlm.graph.onnx_generic")


@lru_cache(maxsize=16_384)
def results(op_: Op, *shapes: Shape) -> tuple[tuple[str, Shape], ...]:
    """Element type and shape of every value of the operator."""
    if op_["types"]:
        return op_["types"]
    return inference().infer(op_, shapes)


def _shape(op_: Op, *shapes: Shape) -> Any:
    found = tuple(shape for _, shape in results(op_, *shapes))
    return found if op_["outputs"] > 1 else found[0]


def _dtype(op_: Op, *_: Any) -> Any:
    found = op_["dtypes"]
    return found if op_["outputs"] > 1 else found[0]


def _parameters(op_: Op, *_: Shape) -> int:
    weights = [p[1:].partition(":")[0] for p in op_["inputs"] if p.startswith("%")]
    return sum(size(read_shape(w) or ()) for w in weights)


GENERIC: dict[str, OpSpec] = {
    "onnx": OpSpec(
        _shape,
        (
            _field("kind", _head),
            _field("domain", lambda *_: ""),
            _field("inputs", _inputs),
            _field("attributes", lambda pairs, _: " ".join(f"{k}={v}" for k, v in pairs)),
            _field("outputs", lambda n, _: f"->{n}" if n > 1 else ""),
            _field("version", lambda n, _: f"/{n}" if n else ""),
            _field("types", lambda types, _: _types_word(types)),
            _field("dtypes", lambda *_: ""),
        ),
        arity=(0, None),
        parameters=_parameters,
        dtype=_dtype,
    )
}
"""Attribute values are kept as the words that the text has. `dtypes` follow from the rest."""


def _types_word(types: Sequence[tuple[str, Shape]]) -> str:
    from nasrlm.graph.dims import shape_word

    return "=>" + ";".join(f"{dtype}:{shape_word(shape)}" for dtype, shape in types) if types else ""

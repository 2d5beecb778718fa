"""Operators that have no word of their own: any ONNX operator, written in full.

    onnx:TopK <@;#int64:1:5> axis=1 ->2 @3
    com.microsoft:FusedGelu =>float32:1x64

The head is the ONNX domain ("onnx" for ONNX's own) and the operator. `<...>` says what each input is where not all are
float32 values: `@` a value with its element type, `^` one that a sub-graph reads from outside, a constant as in any
line, or nothing. `->2` is the number of values, `/11` the version of the operator where it is not that of opset 17, and
`=>` the types that it gives where ONNX cannot know. Sub-graphs stand between `body=(` and `)`, as texts of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nasrlm.errors import TextError
from nasrlm.graph.dims import Shape, read_shape, size
from nasrlm.graph.spec import DTYPES, FLOAT, Field, OpSpec

if TYPE_CHECKING:
    from nasrlm.graph.ops import Op

_HEAD = re.compile(r"[A-Za-z][\w.]*:[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*=.+")


def is_generic(word: str) -> bool:
    """Whether a word begins a line of an operator that is written in full."""
    return _HEAD.fullmatch(word) is not None


def _head(kind: str, op_: Op) -> str:
    return f"{op_['domain'] or 'onnx'}:{kind}"


def _inputs(pattern: tuple[str, ...], _: Op) -> str:
    return "" if all(p == "@" for p in pattern) else f"<{';'.join(pattern)}>"


def _field(name: str, word: Any) -> Field:
    return Field(name, word, lambda *_: None, lambda *_: None)


@lru_cache(maxsize=16_384)
def results(op_: Op, *shapes: Shape) -> tuple[tuple[str, Shape], ...]:
    """Element type and shape of every value of the operator."""
    if op_["types"]:
        return op_["types"]
    from nasrlm.graph.onnx_generic import infer  # loads onnx, which few texts need

    return infer(op_, shapes)


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


def generic_op(
    kind: str,
    domain: str,
    inputs: Sequence[str],
    attributes: Sequence[tuple[str, str]],
    outputs: int,
    version: int,
    types: Sequence[tuple[str, Shape]] = (),
) -> Op:
    """The operator; its element types are found by inference on operands without known sizes."""
    from nasrlm.graph.ops import op

    known = (kind, domain, tuple(inputs), tuple(attributes), outputs, version, tuple(types))
    if types:
        return op("onnx", *known, tuple(dtype for dtype, _ in types))
    from nasrlm.graph.onnx_generic import infer_dtypes

    return op("onnx", *known, infer_dtypes(*known))


def read_generic(words: Sequence[str]) -> tuple[Op, list[str]]:
    """The operator of a line and its references ("of" among them).

    Raises:
        TextError: a word that has no place there.
    """
    domain, _, kind = words[0].rpartition(":")
    domain = "" if domain == "onnx" else domain
    inputs: tuple[str, ...] | None = None
    attributes: list[tuple[str, str]] = []
    types: tuple[tuple[str, Shape], ...] = ()
    outputs, version = 1, 0
    references: list[str] = []
    rest = list(reversed(words[1:]))
    while rest:
        word = rest.pop()
        if word[0] == "@" or word == "of":
            references.append(word)
        elif word[0] == "<" and word[-1] == ">":
            inputs = tuple(word[1:-1].split(";"))
        elif word.startswith("->") and word[2:].isdecimal():
            outputs = int(word[2:])
        elif word[0] == "/" and word[1:].isdecimal():
            version = int(word[1:])
        elif word.startswith("=>"):
            types = tuple(_read_type(t) for t in word[2:].split(";"))
        elif word.endswith("=("):
            attributes.append((word[:-2], _body(rest)))
        elif _ATTRIBUTE.fullmatch(word):
            name, _, value = word.partition("=")
            attributes.append((name, value))
        else:
            raise TextError(f"{word!r} has no place in the line of {words[0]!r}")
    given = [r for r in references if r != "of"]
    count = len(given) if references else 1
    return generic_op(kind, domain, inputs or ("@",) * count, attributes, outputs, version, types), references


def _body(rest: list[str]) -> str:
    """The words of a sub-graph, up to the bracket that closes it; they are taken from the end of `rest`."""
    depth = 1
    found: list[str] = []
    while rest:
        word = rest.pop()
        depth += word.endswith("=(") - (word == ")")
        if not depth:
            return f"( {' '.join(found)} )"
        found.append(word)
    raise TextError("a sub-graph is never closed; the text may be cut short")


def _read_type(text: str) -> tuple[str, Shape]:
    dtype, _, shape = text.partition(":")
    dims = read_shape(shape)
    if dtype not in DTYPES or dims is None:
        raise TextError(f"{text!r} is no type such as {FLOAT}:1x64")
    return dtype, dims

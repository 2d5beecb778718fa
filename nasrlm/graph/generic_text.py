"""Words of operators that are written in full (`generic`), and the operators of those words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nasrlm.errors import TextError
from nasrlm.graph.dims import Shape, read_shape, size
from nasrlm.graph.generic import inference
from nasrlm.graph.operators.tensor import inline_op
from nasrlm.graph.ops import Op, op
from nasrlm.graph.spec import DTYPES, FLOAT

_HEAD = re.compile(r"[A-Za-z][\w.]*:[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*=.+")


def is_generic(word: str) -> bool:
    """Whether a word begins a line of an operator that is written in full."""
    return _HEAD.fullmatch(word) is not None


_MOST_VALUES, _MOST_ENTRIES = 1024, 2**24
"""More values of an operator, or entries of a constant of it, are a mistake."""


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
    known = (kind, domain, tuple(inputs), tuple(attributes), outputs, version, tuple(types))
    if bool(types) != bool(domain) or len(types) not in (0, outputs):
        raise TextError(
            f"{kind} is written with {len(types)} types for {outputs} values. A foreign operator has one for each, "
            "one of ONNX has none."
        )
    if not 1 <= outputs <= _MOST_VALUES:
        raise TextError(f"{kind} cannot give {outputs} values, only 1 to {_MOST_VALUES}")
    if types:
        return op("onnx", *known, tuple(dtype for dtype, _ in types))
    return op("onnx", *known, inference().infer_dtypes(*known))


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
    slots = inputs or ("@",) * count
    values = sum(_check_slot(word) for word in slots)
    if values != count:
        raise TextError(f"{words[0]!r} reads {values} values, but {count} are given")
    for _, value in attributes:
        if value[0] in "#%":
            _check_slot(value)
    return generic_op(kind, domain, slots, attributes, outputs, version, types), references


def _check_slot(word: str) -> bool:
    """Whether a word of `<...>` is a value; a constant must be one that can be made."""
    if word[:1] in ("@", "^"):
        if word[1:] not in ("", *DTYPES):
            raise TextError(f"{word[1:]!r} is no element type. Allowed: {', '.join(DTYPES)}.")
        return True
    if word:
        found = inline_op(word) if word[0] in "#%" else None
        if found is None:
            raise TextError(f"{word!r} is no input; inputs look like @, @int64, ^, #0.125, #int64:3 or %1x768")
        shape = found[1][0] if found[0] == "weight" else found[1][2]
        if size(shape) > _MOST_ENTRIES:
            raise TextError(f"{word!r} has {size(shape)} entries, more than {_MOST_ENTRIES}")
    return False


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

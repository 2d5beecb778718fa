"""The operators of a graph: attributes, words, shapes, parameters and MACs, from one table for all rooms.

An `Op` is interned and knows no absolute shape: the output channels of a convolution are kept relative
to its input ("" equal, "*2" twice, "/4" a quarter, "24" anything else) and a depthwise convolution says
"dw". The same cell at another width is therefore made of the very same objects, which lets canonical
form and text be computed once a distinct block.
"""

from __future__ import annotations

from typing import Any

from nasrlm.graph.dims import Shape
from nasrlm.graph.generic import GENERIC
from nasrlm.graph.operators.image import IMAGE, absolute_width, group_count, relative_width, same_padding
from nasrlm.graph.operators.sequence import SEQUENCE
from nasrlm.graph.operators.tensor import TENSOR
from nasrlm.graph.spec import OpSpec, same

SPECS: dict[str, OpSpec] = {**IMAGE, **TENSOR, **SEQUENCE, **GENERIC}
"""Operators by their word."""

NO_OPERATION = frozenset({"identity", "dropout", "after"})
"""Operators whose value is their first operand."""


class Op:
    """An operator with its attributes; make it with `op(...)`, compare it with `is`.

    Attributes:
        name: the operator's word, such as "conv".
        attrs: attribute values in the order of the operator's fields.
        text: the words of the canonical text, without references: "conv *2 k3 s2".
        inline: a constant that is written as an operand.
    """

    __slots__ = ("attrs", "inline", "name", "spec", "text")

    def __init__(self, name: str, attrs: tuple[Any, ...]) -> None:
        self.name = name
        self.attrs = attrs
        self.spec = SPECS[name]
        self.inline = self.spec.inline
        words = (f.word(value, self) for f, value in zip(self.spec.fields, attrs, strict=True))
        self.text = " ".join(filter(None, words if self.inline or name == "onnx" else (name, *words)))

    def __getitem__(self, name: str) -> Any:
        return self.attrs[self.spec.index[name]]

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return op, (self.name, *self.attrs)

    def replace(self, **changes: Any) -> Op:
        """The same operator with some attributes changed."""
        values = dict(zip(self.spec.index, self.attrs, strict=True)) | changes
        return op(self.name, *values.values())


_INTERNED: dict[tuple[str, tuple[Any, ...]], Op] = {}


def op(name: str, *attrs: Any) -> Op:
    """The one `Op` object of this name and these attributes; those left out at the end take their defaults."""
    key = (name, attrs)
    found = _INTERNED.get(key)
    if found is None:
        fields = SPECS[name].fields
        if len(attrs) < len(fields):
            given = {f.name: v for f, v in zip(fields, attrs, strict=False)}
            for f in fields[len(attrs) :]:
                given[f.name] = f.default(given, len(given.get("kernel", ())))
            found = op(name, *given.values())
        else:
            found = Op(name, attrs)
        _INTERNED[key] = found
    return found


def op_with(name: str, **attrs: Any) -> Op:
    """The operator with some attributes given by name and its defaults for the others.

    Example:
        >>> op_with("mean", axes=(1, 2)).text
        'mean a1,2'
    """
    given: dict[str, Any] = {}
    for f in SPECS[name].fields:
        given[f.name] = attrs.pop(f.name) if f.name in attrs else f.default(given, len(given.get("kernel", ())))
    if attrs:
        raise TypeError(f"{name!r} has no attribute {next(iter(attrs))!r}")
    return op(name, *given.values())


__all__ = [
    "NO_OPERATION",
    "SPECS",
    "Op",
    "OpSpec",
    "Shape",
    "absolute_width",
    "group_count",
    "op",
    "op_with",
    "relative_width",
    "same",
    "same_padding",
]

"""Operators without a word of their own: reading them from ONNX, their types, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import onnx
from onnx import AttributeProto, defs, helper, numpy_helper, shape_inference

from nasrlm.errors import ExportError, nearest
from nasrlm.graph.dims import Shape, fresh, shape_word
from nasrlm.graph.generic_text import generic_op
from nasrlm.graph.onnx_bodies import body_results, read_bodies, write_body
from nasrlm.graph.onnx_read.constants import Constant, element_type, leaf, read_tensor
from nasrlm.graph.onnx_read.node import Node, Result
from nasrlm.graph.operators.tensor import inline_op
from nasrlm.graph.ops import Op, op
from nasrlm.graph.spec import FLOAT, number_word, read_number

OPSET = 17
"""Operators are written as this opset has them, unless their line says another version."""
_FEW = 10
_NUMBERS = frozenset(("Resize", "Upsample", "OneHot", "Range", "RoiAlign", "NonMaxSuppression"))
"""Operators whose floating-point operands are never learned."""
_SEQUENCES = frozenset(
    ("SequenceMap", "SequenceConstruct", "SequenceEmpty", "SequenceAt", "SplitToSequence", "Optional")
)


def read(n: Node) -> Result | list[Result]:
    """An ONNX node in full: a value, or the values of an operator that gives several."""
    kind, domain = n.proto.op_type, "" if n.proto.domain == "ai.onnx" else n.proto.domain
    if kind in _SEQUENCES:
        raise ExportError(f"{kind} works with sequences of tensors, which have no place in a graph of tensors")
    version = _version(n, kind, domain)
    attributes, captured, bodies = read_bodies(n)
    for a in n.proto.attribute:
        if a.name not in bodies and not _is_default(kind, domain, n.opset, a):
            attributes.append((a.name, _attribute_word(a)))
    inputs, operands = [], []
    for slot, name in enumerate(n.proto.input):
        found = n.found(slot) if name else None
        if found is None:
            inputs.append("")
        elif isinstance(found, Constant):
            word = _small(found, kind) or leaf(found)
            inputs.append(word.text if word.inline else f"%{shape_word(found.shape)}")
        else:
            inputs.append("@" + _suffix(n.b.dtype(found)))
            operands.append(found)
    for value in captured:
        inputs.append("^" + _suffix(n.b.dtype(value)))
        operands.append(value)
    while inputs and not inputs[-1]:
        inputs.pop()
    outputs = max((i + 1 for i, name in enumerate(n.proto.output) if name), default=1)
    types = () if _schema(kind, domain, n.opset) else _given_types(n)
    made = generic_op(kind, domain, inputs, sorted(attributes), outputs, version, types)
    value = n.b.apply(made, *operands)
    if outputs == 1:
        return value
    return [n.b.apply(op("item", i), value) if n.uses(i) else value for i in range(outputs)]


def _small(found: Constant, kind: str) -> Op | None:
    """A few known numbers, which mean something to an operator that is written in full, such as on and off values."""
    if (
        found.data is None
        or (found.learned and kind not in _NUMBERS)
        or not found.is_float
        or not 1 < found.size <= _FEW
    ):
        return None
    return op("value", tuple(found.data.reshape(-1).tolist()), found.dtype, found.shape)


def _suffix(dtype: Any) -> str:
    return "" if dtype == FLOAT else str(dtype)


def _schema(kind: str, domain: str, opset: int) -> Any:
    try:
        return defs.get_schema(kind, opset, domain) if domain == "" else None
    except defs.SchemaError:
        raise ExportError(f"ONNX has no operator {kind} in opset {opset}") from None


def _version(n: Node, kind: str, domain: str) -> int:
    """The operator's version, 0 where opset 17 has the same, or reads this node in the same way.

    Raises:
        ExportError: opset 17 has the operator in another form.
    """
    schema = _schema(kind, domain, n.opset)
    if schema is None:
        return 0
    usual = defs.get_schema(kind, OPSET, "") if defs.has(kind, OPSET, "") else None
    if usual is None or usual.since_version < schema.since_version:
        return int(schema.since_version)
    given = {a.name for a in n.proto.attribute}
    if not given <= set(usual.attributes) or not usual.min_input <= len(n.proto.input) <= usual.max_input:
        raise ExportError(
            f"{kind} of opset {n.opset} has another form than that of opset {OPSET}. Convert the model first: "
            f"onnx.version_converter.convert_version(model, {OPSET})."
        )
    return 0


def _given_types(n: Node) -> list[tuple[str, Shape]]:
    """Types of the values of a foreign operator, from the file."""
    found = []
    for name in n.proto.output:
        info = n.reader.infos.get(name)
        if info is None or not info.HasField("tensor_type") or not info.tensor_type.HasField("shape"):
            raise ExportError(
                f"the shape of {name!r} is not known: {n.proto.domain}.{n.proto.op_type} is no operator of ONNX, and "
                "the file does not say it. Run shape inference of the tool that made the file, and save with shapes."
            )
        dims = tuple(n.reader.dimension(name, i, d) for i, d in enumerate(info.tensor_type.shape.dim))
        found.append((element_type(info.tensor_type.elem_type, name), dims))
    return found


# --- attributes as words --------------------------------------------------------------------------------------


def _is_default(kind: str, domain: str, opset: int, given: AttributeProto) -> bool:
    schema = _schema(kind, domain, opset)
    known = schema.attributes.get(given.name) if schema else None
    default = known.default_value if known is not None and known.default_value.name else None
    return default is not None and helper.get_attribute_value(default) == helper.get_attribute_value(given)


def _attribute_word(a: AttributeProto) -> str:
    value = helper.get_attribute_value(a)
    if a.type == AttributeProto.TENSOR:
        made = leaf(read_tensor(a.t, learned=False))
        return made.text if made.inline else f"%{shape_word(made['shape'])}"
    words: dict[Any, tuple[Callable[[Any], str], bool]] = {
        AttributeProto.INT: (str, False),
        AttributeProto.INTS: (str, True),
        AttributeProto.FLOAT: (lambda v: number_word(v) + "f", False),
        AttributeProto.FLOATS: (lambda v: number_word(v) + "f", True),
        AttributeProto.STRING: (_string_word, False),
        AttributeProto.STRINGS: (_string_word, True),
    }
    if a.type not in words:
        kind = AttributeProto.AttributeType.Name(a.type)
        raise ExportError(f"attribute {a.name!r} is a {kind}, which has no text")
    word, several = words[a.type]
    if not several:
        return str(word(value))
    return f"[{','.join(word(v) for v in value)}]"


def _string_word(value: bytes | str) -> str:
    return "'" + quote(value if isinstance(value, bytes) else value.encode(), safe="")


def _attribute(name: str, word: str) -> AttributeProto:
    if word[0] in "#%":
        return helper.make_attribute(name, _tensor(word, name))
    if word[0] == "[":
        parts = [_scalar(p) for p in word[1:-1].split(",")] if len(word) > 2 else []
        return helper.make_attribute(name, parts, attr_type=None if parts else AttributeProto.INTS)
    return helper.make_attribute(name, _scalar(word))


def _scalar(word: str) -> Any:
    if word[0] == "'":
        return unquote(word[1:])
    if word.removeprefix("-").isdecimal():
        return int(word)
    number = read_number(word.removesuffix("f"))
    if number is None:
        raise ExportError(f"{word!r} is no attribute: a number, 'text or [a list]")
    return number


def tensor_of(word: str) -> np.ndarray:
    """A tensor for a constant's word; zeros where the text has not its entries."""
    return leaf_tensor(_leaf(word))


def _leaf(word: str) -> Op:
    found = inline_op(word)
    if found is None:
        raise ExportError(f"{word!r} is no constant; they look like #0.125, #int64:3 or %1x768")
    return op(found[0], *found[1])


def leaf_tensor(made: Op) -> np.ndarray:
    """Entries of a `value`; zeros for weights and for constants whose entries are not in the text."""
    shape, dtype = made["shape"], made["dtype"]
    kind = np.dtype(object if dtype == "string" else "float32" if dtype == "bfloat16" else dtype)
    numbers = made["numbers"] if made.name == "value" else ()
    if numbers == ("causal",):
        seen = np.tril(np.ones(shape, bool), shape[-1] - shape[-2])
        return seen if dtype == "bool" else np.where(seen, 0, -np.inf).astype(kind)
    if not numbers or isinstance(numbers[0], str):
        return np.full(shape, "", kind) if dtype == "string" else np.zeros(shape, kind)
    return np.asarray(numbers).astype(kind).reshape(shape)


def _tensor(word: str, name: str) -> onnx.TensorProto:
    return numpy_helper.from_array(tensor_of(word), name)


# --- types ------------------------------------------------------------------------------------------------------


def infer(op_: Op, shapes: Sequence[Shape]) -> tuple[tuple[str, Shape], ...]:
    """Element type and shape of each value, by ONNX's own inference."""
    found = _inferred(op_, tuple(shapes))
    if any(shape is None for _, shape in found):
        raise ExportError(f"the number of dimensions of '{op_.text}' is not known beforehand")
    return found  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def infer_dtypes(*known: Any) -> tuple[str, ...]:
    """Element types of the values, which follow without any shape."""
    op_ = op("onnx", *known, ())
    return tuple(dtype for dtype, _ in _inferred(op_, None))


def _inferred(op_: Op, shapes: tuple[Shape, ...] | None) -> list[tuple[str, Shape | None]] | Any:
    _check_known(op_)
    bodies = dict(op_["attributes"])
    if any(word.startswith("( ") for word in bodies.values()):
        return body_results(op_, shapes)
    inputs, names, initializers, given = [], [], [], iter(range(len(op_["inputs"])))
    for slot, word in enumerate(op_["inputs"]):
        name = f"i{slot}" if word else ""
        names.append(name)
        if word[:1] == "#":
            initializers.append(_tensor(word, name))
        elif word[:1] == "%":
            made = _leaf(word)
            inputs.append(_info(name, made["dtype"], made["shape"]))
        elif word:
            inputs.append(_info(name, word[1:] or FLOAT, None if shapes is None else shapes[next(given)]))
    node = helper.make_node(op_["kind"], names, [f"o{i}" for i in range(op_["outputs"])])
    node.attribute.extend(_attribute(k, v) for k, v in op_["attributes"])
    graph = helper.make_graph([node], "one", inputs, [], initializers)
    version = op_["version"] or OPSET
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    try:
        found = shape_inference.infer_shapes(model, strict_mode=shapes is not None, data_prop=True).graph
    except Exception as error:  # of the checker's C++ code, in several kinds
        raise ExportError(f"'{op_.text}' does not fit its operands: {str(error)[:200]}") from None
    types = {info.name: info.type.tensor_type for info in (*found.value_info, *found.output)}
    return [_type_of(types.get(f"o{i}"), op_, i) for i in range(op_["outputs"])]


def _check_known(op_: Op) -> None:
    kind, version = op_["kind"], op_["version"] or OPSET
    if not defs.has(kind, version, "") or (
        op_["version"] and defs.get_schema(kind, version, "").since_version != version
    ):
        raise ExportError(f"ONNX has no operator {kind} of opset {version}")
    schema = defs.get_schema(kind, version, "")
    for name, _ in op_["attributes"]:
        if name not in schema.attributes:
            known = ", ".join([*nearest(name, schema.attributes), *schema.attributes][:5]) or "none"
            raise ExportError(f"{kind} has no attribute {name!r}. Its attributes: {known}.")
    if op_["outputs"] > schema.max_output:
        raise ExportError(f"{kind} gives at most {schema.max_output} values, not {op_['outputs']}")


def _info(name: str, dtype: str, shape: Shape | None) -> onnx.ValueInfoProto:
    dims = None if shape is None else [d if isinstance(d, int) else str(d) for d in shape]
    return helper.make_tensor_value_info(name, element_number(dtype), dims)


def element_number(dtype: str) -> int:
    """ONNX's number of an element type."""
    if dtype == "string":
        return int(onnx.TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(numpy_type(dtype))))


def numpy_type(dtype: str) -> Any:
    """numpy's type of an element type."""
    if dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return dtype


def _type_of(tensor: Any, op_: Op, output: int) -> tuple[str, Shape | None]:
    if tensor is None or not tensor.elem_type:
        raise ExportError(f"ONNX does not say what '{op_.text}' gives")
    dtype = element_type(tensor.elem_type, op_.text)
    if not tensor.HasField("shape"):
        return dtype, None
    return dtype, tuple(_dim(d, op_, output, i) for i, d in enumerate(tensor.shape.dim))


def _dim(dim: Any, op_: Op, output: int, axis: int) -> Any:
    if dim.HasField("dim_value"):
        return dim.dim_value
    if dim.dim_param:
        from sympy import Symbol

        if dim.dim_param.isidentifier() and not dim.dim_param.startswith("unk__"):
            return Symbol(dim.dim_param, integer=True, positive=True)
    return fresh(op_.text, output, axis)


# --- writing ------------------------------------------------------------------------------------------------------


def write(w: Any, op_: Op, name: str, inputs: list[str], operands: tuple[int, ...]) -> None:
    """Emit the node; `w` is the writer."""
    w.need_opset(op_["version"])
    if op_["domain"]:
        w.domains.add(op_["domain"])
        names = [name] if op_["outputs"] == 1 else [f"{name}.{i}" for i in range(op_["outputs"])]
        w.infos += [_info(n, dtype, shape) for n, (dtype, shape) in zip(names, op_["types"], strict=True)]
    given, names, captured = iter(inputs), [], []
    for slot, word in enumerate(op_["inputs"]):
        if word[:1] == "^":
            captured.append(next(given))
        elif word[:1] == "@":
            names.append(next(given))
        elif word[:1] == "%":
            made = _leaf(word)
            names.append(w.tensor(f"{name}.weight{slot}", made["shape"], made["dtype"]))
        else:
            names.append(w.constant(f"{name}.input{slot}", tensor_of(word)) if word else "")
    outputs = [name] if op_["outputs"] == 1 else [f"{name}.{i}" for i in range(op_["outputs"])]
    node = helper.make_node(op_["kind"], names, outputs, name=name, domain=op_["domain"])
    for key, word in op_["attributes"]:
        body = word.startswith("( ")
        node.attribute.append(write_body(w, key, word, name, captured) if body else _attribute(key, word))
    w.nodes.append(node)

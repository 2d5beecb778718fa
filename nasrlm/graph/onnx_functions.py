"""Functions of an ONNX model, written out where they are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, defs, inliner

from nasrlm.errors import ExportError
from nasrlm.graph.onnx_tensors import short

MOST_NODES = 200_000
"""Nodes of a model after its functions are written out."""
MOST_BYTES = 2**28
_DEEPEST = 64
"""Calls within calls."""
Key = tuple[str, str, str]


def inlined(model: ModelProto) -> ModelProto:
    """The model with its functions written out where they are called, by onnx.inliner.

    Raises:
        ExportError: functions that call each other in a circle, or so often that the model would have over 200,000
            nodes; two with one name; one for another opset, whose operators have changed since.
    """
    functions: dict[Key, FunctionProto] = {}
    for f in model.functions:
        if functions.setdefault(_key(f, f.name), f) is not f:
            raise ExportError(f"function {_shown(_key(f, f.name))} is defined twice")
    _check_size(model, functions)
    versions = {_domain(o.domain): o.version for o in model.opset_import}
    model = _same_versions(model, versions)
    made = _inline(model, convert=False)
    if made.functions:
        made = _inline(model, convert=True)
    if made.functions:
        f = made.functions[0]
        raise ExportError(
            f"function {_shown(_key(f, f.name))} is written for other versions of the operators "
            f"({_versions(f.opset_import)}) than the model ({_versions(model.opset_import)}); export all for one opset"
        )
    return made


def _inline(model: ModelProto, *, convert: bool) -> ModelProto:
    try:
        return inliner.inline_local_functions(model, convert_version=convert)
    except Exception as error:  # of the inliner's C++ code, in several kinds
        raise ExportError(f"the functions of the model cannot be written out: {str(error)[:200]}") from None


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _key(x: FunctionProto | NodeProto, name: str) -> Key:
    return _domain(x.domain), name, x.overload


def _shown(key: Key) -> str:
    return short(".".join(part for part in key if part))


def _versions(imports: Iterable[onnx.OperatorSetIdProto]) -> str:
    return ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in imports)


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes with those of their sub-graphs."""
    for node in nodes:
        yield node
        for a in node.attribute:
            if a.type == AttributeProto.GRAPH:
                yield from _nodes(a.g.node)


def _check_size(model: ModelProto, functions: dict[Key, FunctionProto]) -> None:
    """Count nodes and bytes before anything is written out: functions that call each other twice double each time."""
    sizes: dict[Key, tuple[int, int]] = {}
    for key in functions:
        _size(key, functions, sizes, [])
    count, size = _sum(_calls(model.graph.node, functions), sizes)
    if count > MOST_NODES or size > MOST_BYTES:
        raise ExportError(
            f"with its functions written out the model has {count:,} nodes and {size:,} bytes; at most {MOST_NODES:,} "
            f"nodes and {MOST_BYTES:,} bytes are read"
        )


def _size(key: Key, functions: dict[Key, FunctionProto], sizes: dict[Key, tuple[int, int]], path: list[Key]) -> None:
    if key in sizes:
        return
    if key in path:
        circle = [*path[path.index(key) :], key]
        raise ExportError(f"functions call each other in a circle: {' -> '.join(_shown(k) for k in circle[:8])}")
    if len(path) >= _DEEPEST:
        raise ExportError(f"functions call each other more than {_DEEPEST} deep, from {_shown(path[0])} on")
    called = _calls(functions[key].node, functions)
    for inner in called:
        if inner is not None:
            _size(inner, functions, sizes, [*path, key])
    count, size = _sum(called, sizes)
    sizes[key] = count, size + functions[key].ByteSize()


def _calls(nodes: Iterable[NodeProto], functions: dict[Key, FunctionProto]) -> dict[Key | None, int]:
    """How often each function is called; None counts operators."""
    called: dict[Key | None, int] = {}
    for node in _nodes(nodes):
        key: Key | None = _key(node, node.op_type)
        f = functions.get(key) if key is not None else None
        if f is None:
            key = None
        elif len(node.input) > len(f.input) or len(node.output) > len(f.output):
            raise ExportError(
                f"node {short(node.name)} calls function {short(f.name)} with {len(node.input)} inputs and "
                f"{len(node.output)} outputs; it has {len(f.input)} and {len(f.output)}"
            )
        called[key] = called.get(key, 0) + 1
    return called


def _sum(called: dict[Key | None, int], sizes: dict[Key, tuple[int, int]]) -> tuple[int, int]:
    count, size = called.get(None, 0), 0
    for key, times in called.items():
        if key is not None:
            count, size = count + times * sizes[key][0], size + times * sizes[key][1]
    return count, size


def _same_versions(model: ModelProto, versions: dict[str, int]) -> ModelProto:
    """The model with functions of another opset declared for the model's, if their operators have not changed since.

    onnx.inliner writes out only functions of the model's own versions.
    """
    changed = ModelProto()
    changed.CopyFrom(model)
    for f in changed.functions:
        for o in f.opset_import:
            domain = _domain(o.domain)
            version = versions.setdefault(domain, o.version)
            used = {n.op_type for n in _nodes(f.node) if _domain(n.domain) == domain}
            if version != o.version and all(_unchanged(kind, domain, o.version, version) for kind in used):
                o.version = version
    return changed


def _unchanged(kind: str, domain: str, a: int, b: int) -> bool:
    try:
        return bool(defs.get_schema(kind, a, domain).since_version == defs.get_schema(kind, b, domain).since_version)
    except defs.SchemaError:
        return domain != ""

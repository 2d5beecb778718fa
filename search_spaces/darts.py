"""DARTS cells, in the networks of NAS-Bench-301.

Liu, Simonyan & Yang, "DARTS: Differentiable Architecture Search", ICLR 2019 (arXiv:1806.09055), code quark0/darts;
Zela et al., "Surrogate NAS Benchmarks", ICLR 2022 (arXiv:2008.09777), NAS-Bench-301, code automl/nasbench301.

Cells of four nodes; a node adds two of seven operations on two *different* earlier states; all nodes are concatenated.
Operations, cells and networks are described in ``_cells.py``. NAS-Bench-301 trains 32 channels and 8 cells (100 epochs,
with the auxiliary head and drop-path, which are no part of the network); its ``configspace.json`` names 50 and 20.
DARTS's own networks have 36 channels and 20 cells on CIFAR-10, 48 and 14 with the ImageNet stem.

Encodings: the published cell description, a text such as :data:`EXAMPLE` (DARTS_V2), and NAS-Bench-301's ConfigSpace
dictionary. Within a node the pairs are written by their states; other orders are read.

Counts: DARTS_V2 has 3,349,342 parameters with 36 channels and 20 cells, 4,718,752 with 48 and 14 on ImageNet, as the
authors say (3.3 and 4.7 million). Unconfirmed: how the papers count the FLOPs of ImageNet networks, which are more than
the MACs here.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nasrlm.graph import Graph
from nasrlm.spaces import Architecture, Choice, Parameter, Params, SearchSpace, SpaceError, Value, check_sizes
from search_spaces._cells import INPUTS, KINDS, Cell, Images, Term, check_outputs, network, pairs, read_nodes
from search_spaces._dictionaries import check_keys, read_object

OPERATIONS = (
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
NODES = range(INPUTS, 6)
PREFIX = "NetworkSelectorDatasetInfo:darts:"
TRAINING = tuple(PREFIX + key for key in ("init_channels", "layers", "auxiliary", "drop_path_prob"))
"""ConfigSpace keys of the networks that do not describe cells: they are ignored."""
FIELDS = ("normal", "normal_concat", "reduce", "reduce_concat")
EXAMPLE = (
    "Genotype(normal=[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('sep_conv_3x3', 1), "
    "('skip_connect', 0), ('sep_conv_3x3', 1), ('skip_connect', 0), ('dil_conv_3x3', 2)], normal_concat=[2, 3, 4, 5], "
    "reduce=[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('max_pool_3x3', 1), ('skip_connect', 2), ('max_pool_3x3', 0), "
    "('skip_connect', 2), ('max_pool_3x3', 1), ('skip_connect', 2)], reduce_concat=[2, 3, 4, 5])"
)
CALL = "Genotype"
"""What the published description calls."""
_LONGEST = 4_000
_CALL = re.compile(r"\s*(?:\w+\s*=\s*)?(\w+\s*\(.*\))\s*", re.DOTALL)


def _start(node: int) -> int:
    """The number of a node's first edge: edges are numbered node by node, source by source."""
    return sum(range(INPUTS, node))


def _cell_parameters(kind: str) -> Iterator[Parameter]:
    for node in NODES:
        if node > INPUTS:
            sources = tuple(f"{a}_{b}" for a, b in itertools.combinations(range(node), 2))
            yield Choice(f"{kind}_{node}_inputs", sources)
        yield from (Choice(f"{kind}_{node}_op_{i}", OPERATIONS) for i in (1, 2))


class DARTS(SearchSpace):
    """Two cells of four nodes, seven operations: (7^8 x 1 x 3 x 6 x 10)^2 = 1.1e18 architectures.

    Args:
        channels: Channels of the first cells, an even number.
        layers: Number of cells.
        stem: "cifar" or "imagenet".
        image_size: Height and width of the input in pixels; None = 32, or 224 with the ImageNet stem.
        num_classes: Outputs of the linear layer; None = 10, or 1000 with the ImageNet stem.

    >>> space = DARTS()
    >>> space.architecture(EXAMPLE).params["normal_5_inputs"]
    '0_2'
    """

    name = "darts"
    parameters = tuple(parameter for kind in KINDS for parameter in _cell_parameters(kind))
    source = "Liu et al., DARTS, ICLR 2019, arXiv:1806.09055; Zela et al., NAS-Bench-301, ICLR 2022, arXiv:2008.09777"
    metrics = ("accuracy/cifar10", "accuracy/cifar10_valid", "train_time_s/cifar10", "params", "macs")

    def __init__(
        self,
        channels: int = 32,
        layers: int = 8,
        stem: str = "cifar",
        image_size: int | None = None,
        num_classes: int | None = None,
    ) -> None:
        self.images = Images.checked(self.name, stem, image_size, num_classes)
        check_sizes(self.name, {"channels": channels, "layers": layers}, {"channels": 2})
        self.channels, self.layers = channels, layers

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of ``_cells.py``."""
        return network({kind: _cell(kind, params) for kind in KINDS}, self.images, self.channels, self.layers)

    def to_string(self, params: Params) -> str:
        """Return the published cell description, ``Genotype(normal=[('sep_conv_3x3', 0), ...], ...)``."""
        fields = []
        for kind in KINDS:
            cell = _cell(kind, params)
            terms = ", ".join(f"('{name}', {state})" for name, state in pairs(cell))
            fields.append(f"{kind}=[{terms}], {kind}_concat={list(cell.outputs)}")
        return f"{CALL}({', '.join(fields)})"

    def from_string(self, text: str) -> Params:
        """Return the parameters of a published cell description, or of a ConfigSpace dictionary as JSON.

        The description may be an assignment (``DARTS_V2 = Genotype(...)``), its concatenated states a list, a tuple or
        ``range(2, 6)``. It is read as text, never run.

        Raises:
            SpaceError: The text is of no such form, or an operation or state is not allowed; with its place.
        """
        if text.lstrip().startswith("{"):
            return _params_of_config(read_object(self.name, text, _example_config()))
        return _params_of_fields(_fields(text))

    def to_configspace(self, a: Architecture) -> dict[str, str]:
        """Return NAS-Bench-301's ConfigSpace dictionary: active edges and their nodes' inputs, sorted by key.

        >>> config = DARTS().to_configspace(DARTS().architecture(EXAMPLE))
        >>> config["NetworkSelectorDatasetInfo:darts:edge_normal_11"]
        'dil_conv_3x3'
        """
        params = self.architecture(a).params
        config: dict[str, str] = {}
        for kind in KINDS:
            for node, terms in zip(NODES, _cell(kind, params).nodes, strict=True):
                config |= {f"{PREFIX}edge_{kind}_{_start(node) + state}": name for name, state in terms}
                if node > INPUTS:
                    config[f"{PREFIX}inputs_node_{kind}_{node}"] = str(params[f"{kind}_{node}_inputs"])
        return dict(sorted(config.items()))

    def from_configspace(self, config: Mapping[str, Any]) -> Architecture:
        """Return the architecture of a ConfigSpace dictionary, or of the whole ``optimized_hyperparamater_config``.

        The prefix of keys that describe cells may be left out. Other settings (of training, and ``init_channels`` and
        ``layers``, which are options of the space) are ignored.

        Raises:
            SpaceError: A key is missing, unknown or of an inactive edge, or a value is not allowed.
        """
        return self.architecture(_params_of_config(read_object(self.name, config, _example_config())))


def _cell(kind: str, params: Params) -> Cell:
    nodes = []
    for node in NODES:
        sources = str(params.get(f"{kind}_{node}_inputs", "0_1")).split("_")
        nodes.append(tuple((str(params[f"{kind}_{node}_op_{i}"]), int(x)) for i, x in enumerate(sources, 1)))
    return Cell(tuple(nodes), tuple(NODES))


def _node_params(kind: str, node: int, terms: Sequence[Term]) -> dict[str, Value]:
    """The parameters of a node, whose terms read two states, the lower one first."""
    sources = {f"{kind}_{node}_inputs": "_".join(str(state) for _, state in terms)} if node > INPUTS else {}
    return {**sources, **{f"{kind}_{node}_op_{i}": name for i, (name, _) in enumerate(terms, 1)}}


# --- the published cell description ------------------------------------------------------------------------------


def _params_of_fields(fields: Mapping[str, Any]) -> dict[str, Value]:
    params: dict[str, Value] = {}
    for kind in KINDS:
        nodes = read_nodes(kind, fields[kind], OPERATIONS, len(NODES))
        for i, (node, terms) in enumerate(zip(NODES, nodes, strict=True)):
            if terms[0][1] == terms[1][1]:
                raise SpaceError(
                    f"'{kind}[{2 * i + 1}]' is {terms[1]}, on the same state as '{kind}[{2 * i}]'. The two inputs of a "
                    f"node of darts differ. Allowed: {', '.join(str(x) for x in range(node) if x != terms[0][1])}."
                )
            params |= _node_params(kind, node, sorted(terms, key=lambda term: term[1]))
        check_outputs(kind, fields[f"{kind}_concat"], NODES, "all nodes")
    return params


def _fields(text: str) -> dict[str, Any]:
    """The four fields of a description, as plain values."""
    found = _CALL.fullmatch(text) if len(text) <= _LONGEST else None
    try:
        # A backslash has no place in a description, and would make the parser warn.
        call = ast.parse(found[1], mode="eval").body if found and "\\" not in text else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != CALL:
        raise SpaceError(f"{text[:200]!r} is no architecture of darts. The form is {EXAMPLE}")
    if len(call.args) > len(FIELDS):
        raise SpaceError(f"{text[:200]!r} has {len(call.args)} fields. Allowed: {', '.join(FIELDS)}.")
    given = dict(zip(FIELDS, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg in given:
            raise SpaceError(f"{text[:200]!r} gives {keyword.arg!r} twice. Give it once.")
        given[str(keyword.arg)] = keyword.value
    check_keys("darts", given, required=FIELDS, optional=())
    return {field: _plain(field, value, found[1] if found else "") for field, value in given.items()}


def _plain(field: str, value: ast.expr, source: str) -> Any:
    """The value of a literal, or of ``range`` of whole numbers."""
    try:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "range":
            bounds = [ast.literal_eval(bound) for bound in value.args]
            if all(type(bound) is int and abs(bound) < _LONGEST for bound in bounds):
                return range(*bounds)
        return ast.literal_eval(value)
    except (TypeError, ValueError, RecursionError, MemoryError):
        shown = str(ast.get_source_segment(source, value))[:200]
        raise SpaceError(f"{field!r} is {shown}. Give a list, such as in {EXAMPLE}") from None


# --- NAS-Bench-301's ConfigSpace dictionary ------------------------------------------------------------------------


def _example_config() -> str:
    space = DARTS()
    return json.dumps(space.to_configspace(space.architecture(EXAMPLE)), separators=(",", ":"))


def _params_of_config(config: Mapping[str, Any]) -> dict[str, Value]:
    """The parameters of a dictionary; keys of other components (``ImageAugmentation:...``) are ignored."""
    cells = {
        key.removeprefix(PREFIX): value
        for key, value in config.items()
        if isinstance(key, str) and key not in TRAINING and (key.startswith(PREFIX) or ":" not in key)
    }
    edges = [f"edge_{kind}_{i}" for kind in KINDS for i in range(_start(NODES.stop))]
    inputs = [f"inputs_node_{kind}_{node}" for kind in KINDS for node in NODES if node > INPUTS]
    check_keys("darts", cells, required=inputs, optional=edges)
    params: dict[str, Value] = {}
    for kind in KINDS:
        for node in NODES:
            sources = _sources(kind, node, cells)
            _check_inactive(kind, node, sources, cells)
            terms = [(_edge(kind, node, state, sources, cells), state) for state in sources]
            params |= _node_params(kind, node, terms)
    return params


def _sources(kind: str, node: int, cells: Mapping[str, Any]) -> list[int]:
    if node == INPUTS:
        return [0, 1]
    key = f"inputs_node_{kind}_{node}"
    allowed = tuple(f"{a}_{b}" for a, b in itertools.combinations(range(node), 2))
    return [int(state) for state in str(Choice(key, allowed).check(cells[key])).split("_")]


def _edge(kind: str, node: int, state: int, sources: Sequence[int], cells: Mapping[str, Any]) -> str:
    key = f"edge_{kind}_{_start(node) + state}"
    if key not in cells:
        raise SpaceError(
            f"key {key!r} is missing: node {node} of the {kind} cell reads the states {sources}. Give one of: "
            f"{', '.join(OPERATIONS)}."
        )
    return str(Choice(key, OPERATIONS).check(cells[key]))


def _check_inactive(kind: str, node: int, sources: Sequence[int], cells: Mapping[str, Any]) -> None:
    """Refuse an operation on an edge that its node does not read."""
    for state in range(node):
        key = f"edge_{kind}_{_start(node) + state}"
        if state not in sources and key in cells:
            active = ", ".join(f"edge_{kind}_{_start(node) + source}" for source in sources)
            raise SpaceError(
                f"key {key!r} is given, but node {node} of the {kind} cell reads the states {list(sources)}, not "
                f"{state}. Leave it out. Edges of this node: {active}."
            )


SPACE = DARTS

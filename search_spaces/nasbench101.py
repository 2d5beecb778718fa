"""NAS-Bench-101: cells of up to seven vertices and nine edges, each repeated nine times.

Ying et al., "NAS-Bench-101: Towards Reproducible Neural Architecture Search", ICML 2019 (arXiv:1902.09635); code
google-research/nasbench, ``nasbench/lib/{model_builder,model_spec,base_ops,graph_util}.py``.

Network: 3x3 convolution to 128 channels with BatchNorm and ReLU (the stem); three stacks of three equal modules, with
a 2x2 max pool and twice the channels before the second and the third; global average pool, linear layer.
Module: vertex 0 is the input, the last one the output. What leaves the input goes through a 1x1 convolution with
BatchNorm and ReLU, one for each edge. An interior vertex adds what enters it and applies its operation. The output
concatenates the interior vertices that feed it and adds the input, if an edge comes from there; its channels are
divided among those vertices, the first of them have one more where that leaves a remainder. Any other interior vertex
is as wide as the widest interior vertex it feeds; what is one channel wider than where it goes is cut.

An architecture is a cell as the authors store it: every vertex lies on a path from input to output. The order of its
vertices counts, since the remainders depend on it: cells of one hash may differ in some channels, and the stored
matrix reproduces the published count. :meth:`NASBench101.size` and :meth:`NASBench101.enumerate` count one cell a
published hash, the one in the authors' table. Their canonical texts are 420,780
(``tests/unit/search_spaces/distinct_texts.py``): max pools of one vertex compute the same and are one in the text,
while the hash tells one from two of them.

Counts (checked against the published table): trainable parameters of 10 classes, exactly; all matrices and operations
of the table, and its hashes. MACs are not published. Nothing here is unconfirmed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.graph.blocks import conv_bn
from nasrlm.spaces import (
    Architecture,
    Choice,
    Integer,
    Params,
    SearchSpace,
    Seed,
    SpaceError,
    When,
    check_sizes,
    generator,
)
from search_spaces import _nasbench101_cells as cells
from search_spaces._nasbench101_cells import MOST_EDGES, OPERATIONS, VERTICES, Cell

STACKS = 3
EXAMPLE = "100110100001001010101:conv3x3-bn-relu,maxpool3x3,conv3x3-bn-relu,conv3x3-bn-relu,conv1x1-bn-relu"
FORM = "rows of the matrix above its diagonal:operations of the interior vertices, with commas between"
INPUT, OUTPUT = "input", "output"
_SIZE = 423_624
_LENGTHS = {v * (v - 1) // 2: v for v in range(2, VERTICES + 1)}
_SHORT = {operation.removesuffix("-bn-relu"): operation for operation in OPERATIONS}
_EDGES = [(i, j) for i in range(VERTICES) for j in range(i + 1, VERTICES)]


class NASBench101(SearchSpace):
    """Matrix and operations of a cell: 423,624 different ones by the published hash.

    ``edge_1_3`` says whether an edge leads from vertex 1 to vertex 3, ``op_1`` what vertex 1 does. Parameters that
    describe no valid cell are repaired where they are drawn, and refused where they are given: vertices on no path are
    left out, edges beyond nine too, and a cell without a path to the output gets one.

    Args:
        num_classes: Outputs of the linear layer.
        image_size: Height and width of the input in pixels, a multiple of 4.
        channels: Channels of the stem and the first stack.
        modules: Modules a stack.

    >>> space = NASBench101()
    >>> a = space.architecture(EXAMPLE)
    >>> a.params["vertices"], a.params["edge_0_4"], a.params["op_2"]
    (7, 1, 'maxpool3x3')
    """

    name = "nasbench101"
    parameters = (
        Integer("vertices", 2, VERTICES),
        *(Choice(f"edge_{i}_{j}", (0, 1), when=When("vertices", tuple(range(j + 1, VERTICES + 1)))) for i, j in _EDGES),
        *(
            Choice(f"op_{i}", OPERATIONS, when=When("vertices", tuple(range(i + 2, VERTICES + 1))))
            for i in range(1, VERTICES - 1)
        ),
    )
    source = "Ying et al., NAS-Bench-101, ICML 2019, arXiv:1902.09635; github.com/google-research/nasbench"
    metrics = ("accuracy/cifar10", "accuracy/cifar10_valid", "train_time_s/cifar10", "params")

    def __init__(self, num_classes: int = 10, image_size: int = 32, channels: int = 128, modules: int = 3) -> None:
        options = {"num_classes": num_classes, "image_size": image_size, "channels": channels, "modules": modules}
        check_sizes(self.name, options, {"image_size": 4})
        if channels < VERTICES - 2:
            raise SpaceError(f"option 'channels' of nasbench101 is {channels}. Allowed: {VERTICES - 2} and more.")
        self.num_classes, self.image_size = num_classes, image_size
        self.channels, self.modules = channels, modules

    def to_string(self, params: Params) -> str:
        """Return matrix and operations, ``rows:operation,operation``: the authors' columns without what is known.

        The rows are those above the diagonal, one after another; the operations are those of vertices 1 to V - 2.

        >>> NASBench101().to_string(_params(Cell(3, frozenset({(0, 1), (1, 2)}), ("maxpool3x3",))))
        '101:maxpool3x3'
        """
        bits = "".join(str(value) for name, value in params.items() if name.startswith("edge"))
        return f"{bits}:{','.join(str(value) for name, value in params.items() if name.startswith('op'))}"

    def from_string(self, text: str) -> Params:
        """Return the parameters of a text as :meth:`to_string` writes it.

        Raises:
            SpaceError: Another form or length, an unknown operation, or no valid cell: a vertex on no path, no path to
                the output, or more than nine edges.
        """
        bits, colon, operations = text.strip().partition(":")
        if not colon:
            raise SpaceError(
                f"{text[:200]!r} is no architecture of nasbench101. The form is {FORM}. Example: {EXAMPLE}"
            )
        names = operations.split(",") if operations else []
        return _params(_checked(_cell(bits, names, text), text))

    def from_table(self, adjacency: str, operations: str) -> Architecture:
        """Return the architecture of two columns of a table.

        Args:
            adjacency: Rows of the matrix above its diagonal, as text; a number has lost its leading zeros.
            operations: Of the interior vertices, short, with "-" between: "conv3x3-maxpool3x3".

        Raises:
            SpaceError: As for :meth:`from_string`.

        >>> NASBench101().from_table("101", "conv3x3").string
        '101:conv3x3-bn-relu'
        """
        shown = f"{adjacency} {operations}"
        names = []
        for position, short in enumerate(operations.split("-") if operations else (), 1):
            names.append(_SHORT[str(_checked_value(f"operation of vertex {position}", tuple(_SHORT), short, shown))])
        return self.architecture(_params(_checked(_cell(str(adjacency), names, shown), shown)))

    def from_matrix(self, matrix: Sequence[Sequence[int]], operations: Sequence[str]) -> Architecture:
        """Return the architecture of the authors' own form; vertices on no path are left out, as their loader does.

        Args:
            matrix: V rows of V entries 0 or 1, zero on and below the diagonal: a list or an array.
            operations: V names, of which the first is "input" and the last "output".

        Raises:
            SpaceError: No such matrix, an unknown operation, no path to the output, more than nine edges on paths.

        >>> NASBench101().from_matrix([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ["input", "maxpool3x3", "output"]).string
        '101:maxpool3x3'
        """
        cell = _cell_of_matrix([list(row) for row in matrix], list(operations))
        pruned = cells.prune(cell) if cell.living() else cell
        return self.architecture(_params(_checked(pruned, f"the matrix {matrix!r}")))

    def to_matrix(self, params: Params) -> tuple[list[list[int]], list[str]]:
        """Return the authors' own form: V rows of V entries, and V names with "input" and "output"."""
        cell = _cell_of(params)
        vertices = range(cell.vertices)
        return [[int((i, j) in cell.edges) for j in vertices] for i in vertices], [INPUT, *cell.operations, OUTPUT]

    def module_hash(self, params: Params) -> str:
        """Return the published hash of a cell, the key of the authors' table.

        >>> space = NASBench101()
        >>> space.module_hash(space.from_table("101", "conv3x3").params)[:8]
        'b49ac8c5'
        """
        return cells.module_hash(_cell_of(params))

    def same_row(self, params: Params) -> Iterator[Params]:
        """Yield the other cells of the same published hash: the authors' table has one row for all of them.

        >>> space = NASBench101()
        >>> [space.to_string(same) for same in space.same_row(space.from_string("110101:maxpool3x3,conv1x1-bn-relu"))]
        []
        >>> both = space.from_string("110011:maxpool3x3,conv1x1-bn-relu")
        >>> [space.to_string(same) for same in space.same_row(both)]
        ['110011:conv1x1-bn-relu,maxpool3x3']
        """
        return (_params(cell) for cell in cells.reordered(_cell_of(params)))

    def repair(self, params: Params) -> Params:
        """Return the valid cell that stands for these parameters: see the class, and `_nasbench101_cells.repair`."""
        return _params(cells.repair(_cell_of(params)))

    def sample(self, n: int, seed: Seed) -> list[Architecture]:
        """Draw ``n`` architectures as is usual for this space, with repetition.

        Seven vertices, every edge with probability 1/2, every operation with 1/3; drawn again unless a path leads to
        the output and, without what lies on no path, nine edges at most are left. So the draw is uniform over the valid
        ones among 2^21 x 3^5 full descriptions; a cell comes as often as it has descriptions.
        """
        if n < 0:
            raise SpaceError(f"cannot sample {n} architectures. Give a number of at least 0.")
        rng = generator(seed)
        return [self._make(_params(_draw(rng))) for _ in range(n)]

    def size(self) -> int:
        """Return the number of cells that differ by the published hash."""
        return _SIZE

    def enumerate(self) -> Iterator[Architecture]:
        """Yield the cells of the authors' table, one a hash, from two vertices to seven."""
        return (self._make(_params(cell)) for cell in cells.all_cells())

    def build(self, params: Params) -> Graph:
        """Describe the network; see the top of this file."""
        cell = _cell_of(params)
        b = GraphBuilder()
        x = conv_bn(b, b.input((3, self.image_size, self.image_size)), self.channels, 3)
        for stack in range(STACKS):
            channels = self.channels * 2**stack
            if stack:
                x = b.max_pool(x, 2, stride=2, padding=0)
            x = b.repeat(self.modules, partial(_module, b, cell, channels), x)
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), self.num_classes))
        return b.build()


def _module(b: GraphBuilder, cell: Cell, channels: int, x: int) -> int:
    widths = cells.widths(cell, channels)
    values = [x]
    for vertex in range(1, cell.output):
        arriving = [
            conv_bn(b, x, widths[vertex]) if source == 0 else b.slice(values[source], 0, widths[vertex])
            for source in cell.sources(vertex)
        ]
        total = b.add(*arriving) if len(arriving) > 1 else arriving[0]
        values.append(_operation(b, total, widths[vertex], cell.operations[vertex - 1]))
    sources = cell.sources(cell.output)
    parts = [values[source] for source in sources if source > 0]
    if 0 not in sources:
        return b.concat(parts)
    projected = conv_bn(b, x, channels)
    return b.add(projected, b.concat(parts)) if parts else projected


def _operation(b: GraphBuilder, x: int, width: int, operation: str) -> int:
    if operation == "maxpool3x3":
        return b.max_pool(x, 3, stride=1, padding=1)
    return conv_bn(b, x, width, 3 if operation == "conv3x3-bn-relu" else 1)


# -- cells and parameters ----------------------------------------------------------------------------------------------


def _params(cell: Cell) -> dict[str, Any]:
    edges = {f"edge_{i}_{j}": int((i, j) in cell.edges) for i, j in _EDGES if j < cell.vertices}
    return {"vertices": cell.vertices, **edges, **{f"op_{i}": op for i, op in enumerate(cell.operations, 1)}}


def _cell_of(params: Mapping[str, Any]) -> Cell:
    vertices = int(params["vertices"])
    edges = frozenset((i, j) for i, j in _EDGES if j < vertices and params[f"edge_{i}_{j}"])
    return Cell(vertices, edges, tuple(str(params[f"op_{i}"]) for i in range(1, vertices - 1)))


def _draw(rng: Any) -> Cell:
    while True:
        bits, operations = rng.integers(2, size=len(_EDGES)).tolist(), rng.integers(len(OPERATIONS), size=VERTICES - 2)
        edges = frozenset(edge for edge, there in zip(_EDGES, bits, strict=True) if there)
        cell = Cell(VERTICES, edges, tuple(OPERATIONS[k] for k in operations.tolist()))
        if cell.living():
            cell = cells.prune(cell)
            if len(cell.edges) <= MOST_EDGES:
                return cell


# -- reading, with every mistake in its place --------------------------------------------------------------------------


def _checked(cell: Cell, shown: str) -> Cell:
    wrong = cells.problem(cell)
    if wrong is not None:
        raise SpaceError(f"{shown[:200]!r} is no valid cell of nasbench101: {wrong}.")
    return cell


def _checked_value(what: str, allowed: Sequence[str], given: object, shown: str) -> object:
    try:
        return Choice(what, tuple(allowed)).check(given)
    except SpaceError as error:
        raise SpaceError(f"in {shown[:200]!r}: {error}") from error


def _cell(bits: str, operations: Sequence[str], shown: str) -> Cell:
    """The cell of the rows above the diagonal and of the interior operations, valid or not."""
    for position, bit in enumerate(bits, 1):
        if bit not in "01":
            raise SpaceError(f"in {shown[:200]!r}: character {position} of the matrix is {bit!r}. Allowed: 0, 1.")
    if len(bits) not in _LENGTHS:
        lengths = ", ".join(f"{length} ({v} vertices)" for length, v in _LENGTHS.items())
        raise SpaceError(f"in {shown[:200]!r}: the matrix has {len(bits)} entries. Allowed: {lengths}.")
    vertices = _LENGTHS[len(bits)]
    if len(operations) != vertices - 2:
        raise SpaceError(
            f"in {shown[:200]!r}: there are {len(operations)} operations. Allowed: {vertices - 2}, one for each "
            f"interior vertex, since the matrix has {len(bits)} entries, those of {vertices} vertices."
        )
    for vertex, operation in enumerate(operations, 1):
        _checked_value(f"op_{vertex}", OPERATIONS, operation, shown)
    pairs = [(i, j) for i, j in _EDGES if j < vertices]
    return Cell(vertices, frozenset(p for p, bit in zip(pairs, bits, strict=True) if bit == "1"), tuple(operations))


def _cell_of_matrix(rows: list[list[Any]], operations: list[str]) -> Cell:
    vertices = len(rows)
    if not 2 <= vertices <= VERTICES:
        raise SpaceError(f"the matrix has {vertices} rows. Allowed: 2 to {VERTICES}.")
    for i, row in enumerate(rows):
        if len(row) != vertices:
            raise SpaceError(f"row {i} of the matrix has {len(row)} entries. Allowed: {vertices}, as many as rows.")
        for j, entry in enumerate(row):
            allowed = (0, 1) if j > i else (0,)
            if entry not in allowed:
                below = " An edge on or below the diagonal would make a cycle." if j <= i else ""
                words = ", ".join(map(str, allowed))
                raise SpaceError(f"entry ({i}, {j}) of the matrix is {entry!r}. Allowed: {words}.{below}")
    if len(operations) != vertices:
        raise SpaceError(
            f"there are {len(operations)} operations. Allowed: {vertices}, one for each row of the matrix."
        )
    for vertex, operation in enumerate(operations):
        ends = {0: (INPUT,), vertices - 1: (OUTPUT,)}
        _checked_value(f"operation of vertex {vertex}", ends.get(vertex, OPERATIONS), operation, str(operations))
    edges = frozenset((i, j) for i, j in _EDGES if j < vertices and rows[i][j])
    return Cell(vertices, edges, tuple(operations[1:-1]))


SPACE = NASBench101

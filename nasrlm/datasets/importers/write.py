"""From an importer's stream of rows to a parquet file, in row groups, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from nasrlm import registry
from nasrlm.datasets.importers.protocol import Importer, Published, Row, Skipped
from nasrlm.errors import SpaceError, TableError, unknown_name
from nasrlm.files import whole_file
from nasrlm.spaces import get_space

ROW_GROUP = 10_000
"""Rows that are in memory at a time."""
TELL = 100
"""Rows after which progress is told again."""
SPACE_KEY, IMPORTER_KEY = b"nasrlm.space", b"nasrlm.importer"

Progress = Callable[[float, float, str], None]
"""Is told units done, units in all, and a few words."""


@dataclass(frozen=True)
class Imported:
    """What was written.

    Attributes:
        file: the table.
        space: the search space of its strings, "" where there are none.
        rows: how many.
        metrics: its columns of numbers.
        skipped: how many rows could not be read.
        reasons: why, for the first hundred of them, one line each with its place.
        outside: how many rows the search space does not read; they were kept, their strings as published.
        outside_reasons: why, as for `reasons`.
    """

    file: Path
    space: str
    rows: int
    metrics: tuple[str, ...]
    skipped: int
    reasons: tuple[str, ...]
    outside: int = 0
    outside_reasons: tuple[str, ...] = ()


def importer(name: str) -> Importer:
    """The importer of that name.

    Raises:
        UnknownNameError: there is none; the nearest names come with it.

    >>> importer("nasbench_macro").paths
    'nas-bench-macro_cifar10.json'
    """
    if name not in (known := registry.names("importers")):
        raise unknown_name("format", name, known, hint="`nasrlm data formats` says what each reads.")
    found: Importer = registry.get("importers", name)
    return found


def import_table(
    name: str,
    paths: Sequence[str | Path],
    output: str | Path,
    *,
    limit: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Write a published file of labels as a table that `load_table` reads.

    Args:
        name: the format, one of ``registry.names("importers")``.
        paths: the published files or folders.
        output: a .parquet file; it appears when it is complete. Its column ``arch`` holds the space's own strings.
        limit: rows at the most.
        overwrite: replace the output if it exists; it stays as it is until the new one is complete.
        progress: is told how far it is.

    Raises:
        UnknownNameError: no such format.
        TableError: a file that is missing, damaged, of another format or unsafe, or an output that cannot be written
            or is there already.
    """
    file = Path(output)
    if file.suffix != ".parquet":
        raise TableError(f"cannot write the table {file}. Its name must end in .parquet.")
    if file.exists() and not overwrite:
        raise TableError(f"the table {file} exists already. Choose another name, or overwrite it (--force).")
    if limit is not None and limit < 1:
        raise TableError(f"limit is {limit}. Allowed: 1 and more.")
    published = importer(name).open([Path(path).expanduser() for path in paths])
    official = _Official(published.space)
    try:
        rows = _write(published, name, file, limit, official, progress or (lambda done, total, words: None))
    except OSError as error:
        raise TableError(f"the table {file} cannot be written: {error.strerror or error}.") from error
    left, outside = published.skipped, official.outside
    return Imported(
        file, published.space, rows, published.metrics,
        left.count, tuple(left.reasons), outside.count, tuple(outside.reasons),
    )  # fmt: skip


class _Official:
    """Writes published strings as the search space writes them: settings that change nothing look the same."""

    def __init__(self, space: str) -> None:
        self._space = get_space(space) if space in registry.names("spaces") else None
        self.outside = Skipped()

    def __call__(self, row: Row, number: int) -> Row:
        if self._space is None or not row.get("arch"):
            return row
        try:
            return {**row, "arch": self._space.architecture(row["arch"]).string}
        except SpaceError as error:
            self.outside.add(f"row {number:,}: {error}")
            return row


def _write(
    published: Published, name: str, file: Path, limit: int | None, official: _Official, progress: Progress
) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [(text, pa.string()) for text in published.texts] + [(m, pa.float64()) for m in published.metrics]
    schema = pa.schema(columns, metadata={SPACE_KEY: published.space.encode(), IMPORTER_KEY: name.encode()})
    rows = 0
    with whole_file(file) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for group in _groups(published, limit, progress):
            group = [official(row, number) for number, row in enumerate(group, start=rows + 1)]
            writer.write_table(pa.table(_columns(group, schema), schema=schema))
            rows += len(group)
        if not rows:
            raise TableError(f"no row was found in what {name} was given. Is it the published file?")
    return rows


def _groups(published: Published, limit: int | None, progress: Progress) -> Iterator[list[Row]]:
    rows = (row for row in _told(published, progress) if row is not None)
    while group := list(islice(rows, ROW_GROUP if limit is None else min(ROW_GROUP, limit))):
        yield group
        limit = None if limit is None else limit - len(group)
    progress(published.total, published.total, published.unit)


def _told(published: Published, progress: Progress) -> Iterator[Row | None]:
    for count, (done, row) in enumerate(published.rows):
        if count % TELL == 0:
            progress(done, published.total, published.unit)
        yield row


def _columns(group: Sequence[Row], schema: Any) -> dict[str, Any]:
    import pyarrow as pa

    texts = {field.name for field in schema if field.type == pa.string()}
    return {
        field.name: pa.array(
            [(_text if field.name in texts else _number)(field.name, row) for row in group], field.type
        )
        for field in schema
    }


def _text(column: str, row: Row) -> str | None:
    value = row.get(column)
    if value is not None and not isinstance(value, str):
        raise _wrong(column, row, "text")
    return value


def _number(column: str, row: Row) -> float | None:
    value = row.get(column)
    try:
        number = None if value is None or isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(column, row, "number") from None
    if number is None and value is not None:
        raise _wrong(column, row, "number")
    # a loss that has become NaN is not known
    return number if number is not None and number - number == 0.0 else None


def _wrong(column: str, row: Row, expected: str) -> TableError:
    of = next((f" of {str(row[name])[:60]!r}" for name in ("arch", "id") if row.get(name)), "")
    return TableError(
        f"{column}{of} is {str(row[column])[:60]!r}, which is no {expected}. Is it the published file, and unchanged?"
    )

"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``, with the same ending, to be written in the block.

    When the block ends well, what was written is on the disk and takes the place of ``path`` at once; otherwise it is
    gone, and an older file stays as it was. A folder that is missing is made.

    Raises:
        OSError: The disk is full, or the folder cannot be written.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "new" / "front.csv"
    >>> with whole_file(file) as part:
    ...     written = part.write_text("accuracy")
    >>> file.read_text(), [entry.name for entry in file.parent.iterdir()]
    ('accuracy', ['front.csv'])
    """
    path = Path(path)
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())  # else a power cut may leave the new name on an empty file
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)

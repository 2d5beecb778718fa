"""Files that appear whole or not at all, and the folder they go into."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from nasrlm.errors import RunFolderError
from nasrlm.files import whole_file


def make_folder(path: str | Path) -> Path:
    """Make a folder (and those above it) and see that it can be written.

    Raises:
        RunFolderError: A file stands in the way, or the folder cannot be made or written.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".write-test-{uuid.uuid4().hex[:8]}"
        probe.touch()
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        blocked = next((p for p in (folder, *folder.parents) if p.exists() and not p.is_dir()), folder)
        raise RunFolderError(
            f"the folder {folder} cannot be made: {blocked} is a file. Move it, or set outputs.folder elsewhere."
        ) from None
    except OSError as error:
        raise RunFolderError(
            f"the folder {folder} cannot be written: {error.strerror}. Set outputs.folder to a folder you may write, "
            "or change its permissions."
        ) from None
    return folder


def write_atomic(path: Path, write: Callable[[Path], Any]) -> Path:
    """Let `write` fill a temporary file beside `path` (with the same ending), then put it in place at once.

    Raises:
        RunFolderError: The disk is full, or the folder cannot be written.
    """
    try:
        with whole_file(path) as part:
            write(part)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror or error}. Nothing older was lost.") from error
    return path


def write_text(path: Path, text: str) -> Path:
    """Write UTF-8 text with Unix line ends, atomically."""
    return write_atomic(path, lambda part: part.write_bytes(text.encode()))


def write_json(path: Path, value: Any) -> Path:
    """Write indented JSON, atomically; numbers that are not finite become null."""
    return write_text(path, json.dumps(finite(value), indent=2, ensure_ascii=False) + "\n")


def write_csv(path: Path, frame: pd.DataFrame) -> Path:
    """Write a DataFrame without its index, atomically."""
    return write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def finite(value: Any) -> Any:
    """Plain values for JSON: numpy scalars become numbers, numbers that are not finite None."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if hasattr(value, "item"):  # numpy scalars
        value = value.item()
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value

"""What the tests of importers share: importing into a folder of the test, and a pickle that would run something."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nasrlm import registry
from nasrlm.datasets.importers import import_table
from nasrlm.errors import TableError
from nasrlm.spaces import SearchSpace, get_space

Import = Callable[..., pd.DataFrame]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """Import with a name and paths; the table comes back, and nothing else is left in its folder."""

    def run(name: str, *paths: Path, limit: int | None = None) -> pd.DataFrame:
        folder = tmp_path / "imported"
        done = import_table(name, list(paths), folder / "table.parquet", limit=limit, overwrite=True)
        assert [file.name for file in folder.iterdir()] == ["table.parquet"]
        table = pd.read_parquet(done.file)
        assert len(table) == done.rows
        assert set(done.metrics) <= set(table.columns)
        return table

    return run


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., None]:
    """Import with a name and paths; the message must fit, and nothing may be left."""

    def check(name: str, *paths: Path | str, message: str) -> None:
        out = tmp_path / "out"
        with pytest.raises(TableError, match=message):
            import_table(name, paths, out / "t.parquet")
        assert not out.exists() or list(out.iterdir()) == []

    return check


@pytest.fixture
def space_or_skip() -> Callable[[str], SearchSpace]:
    """The search space of a name; the test is skipped where it is not here."""

    def find(name: str) -> SearchSpace:
        if name not in registry.names("spaces"):
            pytest.skip(f"the space {name} is not here")
        return get_space(name)

    return find


class Evil:
    """A pickle of it touches a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.file}",)


@pytest.fixture
def evil(tmp_path: Path) -> Evil:
    """Something to pickle; `evil.file` exists if it was run."""
    return Evil(tmp_path / "was-run")

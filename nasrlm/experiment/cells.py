"""A benchmark in cells, each kept in a file of its own: a run that was stopped goes on with those that are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from nasrlm.experiment.files import write_csv
from nasrlm.experiment.progress import Progress, Step


@dataclass(frozen=True)
class Cell:
    """A part of a benchmark.

    Attributes:
        name: of its file; it must say all that decides on the outcome.
        title: in words, for the progress bar.
        run: gives its rows.
    """

    name: str
    title: str
    run: Callable[[], pd.DataFrame]


def run_cells(cells: Sequence[Cell], folder: Path, progress: Progress) -> list[pd.DataFrame]:
    """The rows of every cell, from `folder`/cells where it was run before."""
    found = []
    for done, cell in enumerate(cells):
        progress(Step("cells", done, len(cells), cell.title))
        file = folder / "cells" / f"{cell.name}.csv"
        if not file.is_file():
            write_csv(file, cell.run())
        found.append(pd.read_csv(file))
    progress(Step("cells", len(cells), len(cells)))
    return found

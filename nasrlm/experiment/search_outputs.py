"""The files of a search: trials, front, networks, plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nasrlm.experiment.files import write_atomic, write_csv, write_text
from nasrlm.search import SearchResult
from nasrlm.search.confirmation import ON_CONFIRMED_FRONT
from nasrlm.spaces import SearchSpace

TRIALS, FRONT, CONFIRMED, NETWORKS = "trials.csv", "front.csv", "confirmed.csv", "networks"


def write_front(result: SearchResult, folder: Path) -> None:
    """Write trials.csv and front.csv.

    front.csv has the columns architecture_id, arch, one a metric (then its quantiles), knee, number.
    """
    write_csv(folder / TRIALS, result.trials)
    front = result.front
    first = ["architecture_id", "arch"]
    last = ["knee", "number"]
    middle = [column for column in front.columns if column not in (*first, *last)]
    write_csv(folder / FRONT, front[[*first, *middle, *last]])


def draw(result: SearchResult, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Draw the front and the hypervolume's history in each format; returns the files."""
    from nasrlm.plots import plot_history, plot_pareto

    files = []
    for suffix in formats:
        files.append(write_atomic(folder / f"front.{suffix}", lambda part: plot_pareto(result, part)))
        files.append(write_atomic(folder / f"history.{suffix}", lambda part: plot_history(result, part)))
    return files


def write_networks(result: SearchResult, space: SearchSpace, folder: Path) -> None:
    """Write each network of the front, and of the confirmed front, as networks/ID.onnx and ID.txt."""
    from nasrlm.graph import to_onnx, to_text

    folder = folder / NETWORKS
    best = result.front[["architecture_id", "arch"]]
    confirmed = result.confirmed
    if confirmed is not None and ON_CONFIRMED_FRONT in confirmed:
        best = pd.concat([best, confirmed.loc[confirmed[ON_CONFIRMED_FRONT].astype(bool), best.columns]])
    names = set()
    for identity, arch in best.drop_duplicates().itertuples(index=False):
        architecture = space.architecture(str(arch))
        names |= {f"{identity}.onnx", f"{identity}.txt"}
        if not (folder / f"{identity}.onnx").exists() or not (folder / f"{identity}.txt").exists():
            write_atomic(folder / f"{identity}.onnx", lambda part, a=architecture: to_onnx(a, part))  # type: ignore[misc]
            write_text(folder / f"{identity}.txt", to_text(architecture) + "\n")
    for file in folder.glob("*") if folder.is_dir() else ():
        if file.suffix in (".onnx", ".txt") and file.name not in names:
            file.unlink()  # was among them before more trials were done

"""Runs an experiment of kind compare: samplers side by side, by the hypervolume of what they evaluated (B5).

One cell a sampler and seed, each in a file of its own: a run that was stopped goes on with the cells that are missing.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from nasrlm.evaluators import Evaluator, evaluate_all
from nasrlm.experiment.cells import Cell, run_cells
from nasrlm.experiment.files import write_csv, write_text
from nasrlm.experiment.model_card import markdown_table
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.progress import Progress
from nasrlm.experiment.run_folder import open_run_folder
from nasrlm.experiment.run_search import goals_of
from nasrlm.experiment.schema import ComparedSampler, CompareExperiment
from nasrlm.search import hypervolume
from nasrlm.search.run import search
from nasrlm.spaces import Architecture

# Samplers and seeds may change: a cell's file says which it is of, and those that are done stay right.
FREE = ("outputs", "description", "tags", "samplers", "seeds")
_LARGEST_WHOLE = 100_000  # architectures of a space whose best hypervolume is found by evaluating all of them


@dataclass(frozen=True)
class CompareRun:
    """A comparison that is done.

    Attributes:
        name: the experiment's.
        folder: where results.csv, results.md and the cells are.
        scores: one row a (sampler, seed, evaluations): hypervolume; share of the best possible (NaN where the space is
            too large to know); seconds a proposed batch, evaluations not counted.
        command: what was run.
    """

    name: str
    folder: Path
    scores: pd.DataFrame
    command: str

    @property
    def table(self) -> pd.DataFrame:
        """Mean and standard deviation over seeds: one row a sampler, one column a number of evaluations."""
        column = "share" if self.scores["share"].notna().all() else "hypervolume"
        grouped = self.scores.groupby(["sampler", "evaluations"], sort=False)[column]
        cells = grouped.mean().map("{:.4g}".format) + " ± " + grouped.std(ddof=0).map("{:.2g}".format)
        table = cells.unstack("evaluations").reindex(self.scores["sampler"].unique())
        table.columns = [str(column) for column in table.columns]
        table["s a batch"] = self.scores.groupby("sampler")["batch_seconds"].mean().map("{:.2f}".format)
        return table.reset_index()

    def summary(self) -> dict[str, Any]:
        """Plain values, for machines."""
        folder, rows = str(self.folder), self.scores.to_dict("records")
        return {"name": self.name, "folder": folder, "command": self.command, "results": rows}


def run_compare(experiment: CompareExperiment, prepared: Prepared, progress: Progress) -> CompareRun:
    """Search with every sampler and seed, or go on with it.

    Raises:
        RunFolderError: The folder cannot be written or belongs to another experiment.
        RunError: An evaluator failed.
        KeyboardInterrupt: Ctrl-C; the same command goes on with the cell that was stopped.
    """
    values: dict[str, Any] = experiment.model_dump(by_alias=True, exclude_none=True)
    folder = open_run_folder(experiment.outputs.folder, values, FREE)
    best = _best(experiment, prepared)
    cells = [
        Cell(
            f"{_file_name(sampler)}-seed{seed}",
            f"{sampler.label}, seed {seed}",
            partial(_cell, experiment, prepared, sampler, seed, folder.path),
        )
        for seed in range(experiment.seeds)
        for sampler in experiment.samplers
    ]
    found = run_cells(cells, folder.path, progress)
    scores = pd.concat(found, ignore_index=True)
    scores["share"] = scores["hypervolume"] / best
    run = CompareRun(experiment.name, folder.path, scores, prepared.command)
    write_csv(folder.path / "results.csv", scores)
    write_text(folder.path / "results.md", _markdown(run, experiment))
    folder.log("done", cells=len(cells))
    return run


def _file_name(sampler: ComparedSampler) -> str:
    """Its label, and a digest of its settings: a sampler that was changed is another."""
    digest = hashlib.sha256(sampler.model_dump_json().encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]+', '_', sampler.label)}-{digest}"


class _Timed:
    """Evaluators as one, with the seconds that they take."""

    name = "timed"

    def __init__(self, evaluators: Sequence[Evaluator], metrics: Sequence[str]) -> None:
        self.evaluators, self.metrics, self.seconds = evaluators, tuple(metrics), 0.0

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        start = time.perf_counter()
        try:
            return evaluate_all(self.evaluators, architectures, metrics)
        finally:
            self.seconds += time.perf_counter() - start


def _cell(
    experiment: CompareExperiment, prepared: Prepared, sampler: ComparedSampler, seed: int, folder: Path
) -> pd.DataFrame:
    objectives, point = goals_of(experiment.objectives)
    timed = _Timed(prepared.evaluators, [o.metric for o in objectives])
    trials = max(experiment.evaluations)
    start = time.perf_counter()
    result = search(
        prepared.space,
        timed,
        objectives,
        sampler=sampler.name,
        sampler_options=sampler.options,
        n_trials=trials,
        batch_size=sampler.batch_size,
        seed=experiment.seed + seed,
        folder=folder,  # a reader that was pretrained once serves all seeds
        reference_point=point,
    )
    seconds = time.perf_counter() - start - timed.seconds
    reached = result.history["hypervolume"].to_numpy()
    rows = {
        "evaluations": list(experiment.evaluations),
        "hypervolume": [float(reached[n - 1]) for n in experiment.evaluations],
        "batch_seconds": seconds / -(-trials // sampler.batch_size),
    }
    return pd.DataFrame({"sampler": sampler.label, "seed": seed, **rows})


def _best(experiment: CompareExperiment, prepared: Prepared) -> float:
    """The hypervolume of the whole space; NaN if it is too large to evaluate."""
    if prepared.space.size() > _LARGEST_WHOLE or any(e.name != "table" for e in prepared.evaluators):
        return float("nan")
    objectives, point = goals_of(experiment.objectives)
    metrics = [o.metric for o in objectives]
    values = evaluate_all(prepared.evaluators, list(prepared.space.enumerate()), metrics)[metrics]
    return hypervolume(values, objectives, [point[metric] for metric in metrics])


def _markdown(run: CompareRun, experiment: CompareExperiment) -> str:
    goals = ", ".join(f"{o.metric} ({o.direction}, reference {o.reference:g})" for o in experiment.objectives)
    return (
        f"# {run.name}\n\n    {run.command}\n\nHypervolume after so many true evaluations, as a share of the whole "
        f"space's where that is known; mean ± standard deviation over {experiment.seeds} seeds. {goals}.\n\n"
        f"{markdown_table(run.table)}\n"
    )

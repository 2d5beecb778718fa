"""Runs an experiment of kind benchmark and writes what was measured as JSON and Markdown."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from nasrlm import registry
from nasrlm.experiment.files import make_folder, write_json, write_text
from nasrlm.experiment.measures import MEASURES, Row, Setting
from nasrlm.experiment.model_card import markdown_table
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.progress import Progress, Step
from nasrlm.experiment.schema import BenchmarkExperiment
from nasrlm.experiment.versions import versions
from nasrlm.rlm import RegressionLM


@dataclass(frozen=True)
class BenchmarkRun:
    """What a benchmark measured.

    Attributes:
        name: the experiment's.
        folder: where results.json and results.md are.
        rows: the figures.
        command: what was run.
        threads: CPU threads.
    """

    name: str
    folder: Path
    rows: list[Row]
    command: str
    threads: int

    @property
    def table(self) -> pd.DataFrame:
        """The figures with the columns what, value, unit, details."""
        frame = pd.DataFrame([dataclasses.asdict(row) for row in self.rows])
        return frame[["what", "value", "unit", "details"]]

    def summary(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "command": self.command,
            "threads": self.threads,
            "results": [dataclasses.asdict(row) for row in self.rows],
        }


def run_benchmark(experiment: BenchmarkExperiment, prepared: Prepared, progress: Progress) -> BenchmarkRun:
    """Measure; figures depend on the machine, ratios much less.

    Raises:
        RunFolderError: The folder cannot be written.
    """
    folder = make_folder(experiment.outputs.folder)
    module = None if experiment.torch_module is None else registry.load_file("modules", experiment.torch_module)
    setting = Setting(
        prepared.space,
        RegressionLM.from_pretrained(experiment.checkpoint),
        tuple(experiment.metrics),
        experiment.architectures,
        experiment.repeats,
        experiment.seed,
        module,
    )
    rows: list[Row] = []
    total = len(experiment.measures)
    with threadpool_limits(limits=experiment.threads):
        for done, name in enumerate(experiment.measures):
            progress(Step("measure", done, total, name))
            rows += MEASURES[name](setting)
    progress(Step("measure", total, total))
    run = BenchmarkRun(experiment.name, folder, rows, prepared.command, experiment.threads)
    made_with = versions()
    write_json(folder / "results.json", {**run.summary(), "when": _now(), "versions": made_with})
    write_text(folder / "results.md", _markdown(run, made_with))
    return run


def _markdown(run: BenchmarkRun, made_with: dict[str, Any]) -> str:
    table = run.table.astype({"value": object})
    table["value"] = [f"{value:.4g}" if value == value else "not measured" for value in table["value"]]
    machine = made_with["machine"]
    return (
        f"# {run.name}\n\n    {run.command}\n\n{_now()[:10]}, {machine['processor']}, {run.threads} threads, "
        f"Python {made_with['python']}, torch {made_with['packages']['torch']}.\n\n{markdown_table(table)}\n"
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")

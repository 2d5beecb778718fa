"""Runs an experiment of kind evaluate: predictions beside true values, and baselines beside both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, graph_groups, load_split, unseen_graphs
from nasrlm.errors import MetricError, TableError
from nasrlm.evaluators import evaluate_all
from nasrlm.experiment.files import write_atomic, write_csv, write_text
from nasrlm.experiment.labels import Split, load_labels, with_costs
from nasrlm.experiment.model_card import markdown_table
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.progress import Progress, Step
from nasrlm.experiment.run_folder import open_run_folder
from nasrlm.experiment.schema import EvaluateExperiment
from nasrlm.experiment.scores import score_rows, scored, shown
from nasrlm.graph import COST_METRICS

FREE = ("outputs", "baselines", "description", "tags")
TEST = "test"


@dataclass(frozen=True)
class EvaluateRun:
    """Scores of predictions against a table.

    Attributes:
        name: the experiment's.
        folder: where scores.csv, scores.md, predictions.csv and the plots are.
        scores: one row a metric, see `nasrlm.experiment.scores.score_rows`.
        rows: rows that were scored.
        unseen_rows: those among them whose network was not trained on, as far as the split tells.
    """

    name: str
    folder: Path
    scores: pd.DataFrame
    rows: int
    unseen_rows: int

    def summary(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "rows": self.rows,
            "unseen_rows": self.unseen_rows,
            "scores": self.scores.to_dict("records"),
        }

    def table(self) -> pd.DataFrame:
        """The scores in few columns, for people."""
        return shown(self.scores)


def run_evaluate(experiment: EvaluateExperiment, prepared: Prepared, progress: Progress) -> EvaluateRun:
    """Score evaluators against a table.

    Raises:
        TableError: A table or split that cannot be used.
        MetricError: The evaluators give none of the table's metrics.
    """
    table = load_labels(experiment.table, prepared.space, (), experiment.seed)
    given = {metric for evaluator in prepared.evaluators for metric in evaluator.metrics}
    if not given.intersection(table.metrics):
        raise MetricError(
            f"the evaluators give none of the table's metrics ({', '.join(table.metrics)}), only "
            f"{', '.join(sorted(given)) or 'nothing'}. Correct table.metrics, or add an evaluator."
        )
    table = with_costs(table, [cost for cost in COST_METRICS if cost in given])
    wanted = [metric for metric in table.metrics if metric in given]
    split = _parts(experiment, table)
    rows = scored(split)
    folder = open_run_folder(experiment.outputs.folder, experiment.model_dump(by_alias=True, exclude_none=True), FREE)
    progress(Step("predict", 0, len(rows)))
    predicted = evaluate_all(prepared.evaluators, [table.architectures[i] for i in rows], wanted)
    progress(Step("predict", len(rows), len(rows)))
    groups = graph_groups(table.architectures)
    scores = score_rows(table, split, predicted, groups, experiment.seed, baselines=experiment.baselines)
    unseen = unseen_graphs(groups, split["train"], split[TEST])
    done = EvaluateRun(experiment.name, folder.path, scores, len(split[TEST]), len(unseen))
    _write(done, table, split[TEST], predicted[wanted].iloc[: len(split[TEST])])
    folder.log("done", rows=len(split[TEST]))
    return done


def _parts(experiment: EvaluateExperiment, table: Table) -> Split:
    """Positions that were trained on (none if not known), positions to score, and their copies."""
    nothing = np.array([], dtype=np.int64)
    if experiment.split is None:
        return {"train": nothing, TEST: np.arange(len(table))}
    split = load_split(experiment.split, table)
    if TEST not in split:
        raise TableError(
            f"{experiment.split} has no part {TEST!r}, only {', '.join(split)}. "
            "Give the split.json that training wrote."
        )
    return {"train": nothing, **split}


def _write(done: EvaluateRun, table: Table, test: np.ndarray, predicted: pd.DataFrame) -> None:
    from nasrlm.plots import plot_predictions

    write_csv(done.folder / "scores.csv", done.scores)
    write_text(done.folder / "scores.md", f"# {done.name}\n\n{markdown_table(done.table())}\n")
    rows = table.subset(test)
    true = rows.values[list(predicted.columns)].reset_index(drop=True).add_suffix(" true")
    both = pd.concat([rows.frame()[["architecture_id", "arch"]], predicted.reset_index(drop=True), true], axis=1)
    write_csv(done.folder / "predictions.csv", both)
    for metric in predicted.columns:
        file = done.folder / f"{metric.replace('/', '_')}.png"
        values, guesses = rows.values[metric].to_numpy(), predicted[metric].to_numpy()
        write_atomic(file, lambda part, v=values, g=guesses, m=metric: plot_predictions(v, g, m, part))  # type: ignore[misc]

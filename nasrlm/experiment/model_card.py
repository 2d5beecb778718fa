"""A checkpoint's README.md: data, split, command, and what was measured on held-out rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

import nasrlm
from nasrlm.datasets import Table
from nasrlm.experiment.labels import Split
from nasrlm.experiment.schema import TrainExperiment
from nasrlm.rlm import RegressionLM


def model_card(
    experiment: TrainExperiment,
    command: str,
    model: RegressionLM,
    table: Table,
    split: Split,
    scores: pd.DataFrame,
) -> str:
    """The text of the card.

    Args:
        experiment: what was run.
        command: how a user runs it.
        model: the trained model.
        table: the labels.
        split: positions of "train" and "test".
        scores: of the test rows, see `nasrlm.experiment.scores.score_rows`.
    """
    config = {key: value for key, value in model.config.to_dict().items() if key != "metrics"}
    parts = [
        f"# {experiment.name}",
        _opening(experiment, model),
        "## Data",
        _data(experiment, table, split),
        "## Training",
        f"    {command}\n\nnasrlm {nasrlm.__version__}, seed {experiment.seed}. Model: {_listed(config)}. "
        f"Training: {_listed(experiment.train) or 'defaults'}.",
        "## Measured on the held-out rows",
        "rho is Spearman's rank correlation, tau Kendall's tau-b, both of the median prediction. *unseen* counts only "
        "rows whose network, in any isomorphic form, was not trained on; *all* counts the held-out copies of the test "
        "networks too, so that a network with many copies weighs much. *MACs* ranks by MACs alone, *forest* is a "
        "random forest on operator counts trained on the same rows"
        + (", *head* a regression head on the same encoder." if "head_rho" in scores else "."),
        markdown_table(_table(scores)),
        "## Use",
        "    from nasrlm import RegressionLM, get_space\n\n"
        f'    model = RegressionLM.from_pretrained("{experiment.name}")  # or this folder\n'
        f'    model.predict(get_space("{table.space.name}").sample(5, seed=0), quantiles=(0.1, 0.9))',
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_table(frame: pd.DataFrame) -> str:
    """A DataFrame as a Markdown table; numbers keep four decimals, NaN is a dash.

    >>> print(markdown_table(pd.DataFrame({"metric": ["a"], "rho": [0.98765]})))
    | metric | rho |
    |---|---|
    | a | 0.9877 |
    """
    lines = ["| " + " | ".join(map(str, frame.columns)) + " |", "|" + "---|" * len(frame.columns)]
    for row in frame.astype(object).itertuples(index=False):
        lines.append("| " + " | ".join(_cell(value) for value in row) + " |")
    return "\n".join(lines)


def _opening(experiment: TrainExperiment, model: RegressionLM) -> str:
    start = f" It was fine-tuned from {experiment.init}." if experiment.init else ""
    words = experiment.description.strip()
    return (
        f"A Regression Language Model of nasrlm: it reads a network's canonical text and predicts "
        f"{', '.join(model.metrics)}.{start}" + (f"\n\n{words}" if words else "")
    )


def _data(experiment: TrainExperiment, table: Table, split: Split) -> str:
    free = f" Counted on the networks themselves: {', '.join(experiment.costs)}." if experiment.costs else ""
    kept = (
        "each is of another network (canonical text), and the "
        f"{len(split.get('copies', ())):,} further rows of these networks were not trained on either"
        if experiment.split.by == "graph"
        else "rows were drawn at random, so equal networks can stand on both sides"
    )
    notes = "".join(f"\n- {note}" for note in table.notes)
    return (
        f"{len(table):,} architectures of the space {table.space.name} ({table.space.source}), from "
        f"`{Path(experiment.table.path).name}`.{free} {len(split['train']):,} rows were trained on, "
        f"{len(split['test']):,} held out; {kept}. split.json lists the positions of both."
        + (f"\n{notes}" if notes else "")
    )


def _table(scores: pd.DataFrame) -> pd.DataFrame:
    names = {
        "metric": "metric", "n": "rows", "rho": "rho", "tau": "tau", "unseen_n": "unseen rows",
        "unseen_rho": "unseen rho", "all_n": "all rows",
        "all_rho": "all rho", "all_tau": "all tau", "macs_rho": "MACs rho", "macs_tau": "MACs tau",
        "forest_rho": "forest rho", "forest_tau": "forest tau", "head_rho": "head rho", "head_tau": "head tau",
    }  # fmt: skip
    return scores[[name for name in names if name in scores]].rename(columns=names)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "-"
    return f"{value:g}" if value.is_integer() and abs(value) > 1 else f"{value:.4f}"


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())

"""Runs an experiment of kind few_labels: ranks of a whole table from few training architectures (B1).

A cell is a number of labels with a seed. Finished cells stay in the run folder, so a stopped run goes on with the
first one that is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, graph_groups, rank_scores, split_by_graph, unseen_graphs
from nasrlm.errors import TableError
from nasrlm.evaluators.baselines import forest_baseline, head_baseline, macs_baseline
from nasrlm.experiment.cells import Cell, run_cells
from nasrlm.experiment.files import write_csv, write_text
from nasrlm.experiment.labels import load_labels
from nasrlm.experiment.model_card import markdown_table
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.progress import Progress, Step
from nasrlm.experiment.run_folder import RunFolder, open_run_folder
from nasrlm.experiment.schema import FewLabelsExperiment
from nasrlm.graph import costs, texts
from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig
from nasrlm.tokens import TextTokenizer

# How many sizes, seeds and predictors there are may change: cells that are done stay right.
FREE = ("outputs", "description", "tags", "labels", "seeds")
RLM = {"folded": "rlm", "written_out": "rlm, written out"}
"""Name of the predictor by how its texts write repetition."""


@dataclass(frozen=True)
class FewLabelsRun:
    """What was measured.

    Attributes:
        name: the experiment's.
        folder: where results.csv, results.md and the cells are.
        scores: one row a (labels, seed, predictor, metric): n, rho, tau over the scored rows; unseen_n, unseen_rho,
            unseen_tau over those whose network, in any form, was not trained on.
        tokens: median tokens of a network's text, by the predictor that reads it.
        command: what was run.
    """

    name: str
    folder: Path
    scores: pd.DataFrame
    tokens: dict[str, float]
    command: str

    @property
    def table(self) -> pd.DataFrame:
        """tau and its deviation over seeds: one row a metric, predictor and kind of rows; one column a size."""
        return self.ranks("tau")

    def ranks(self, score: Literal["tau", "rho"]) -> pd.DataFrame:
        """As `table`, of either rank correlation."""
        parts = [
            self.scores.assign(rows=rows, value=self.scores[column])
            for rows, column in (("all", score), ("unseen", f"unseen_{score}"))
        ]
        long = pd.concat(parts)
        keys = ["metric", "predictor", "rows"]
        groups = long.groupby([*keys, "labels"], sort=False)["value"]
        means, deviations = groups.mean(), groups.std(ddof=0)
        words = pd.Series([f"{m:.3f} ± {d:.3f}" for m, d in zip(means, deviations, strict=True)], means.index)
        wide = words.unstack("labels")
        order = long[keys].drop_duplicates().apply(tuple, axis=1)
        return wide.loc[list(order)].rename(columns=str).reset_index().rename_axis(columns=None)

    def summary(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "command": self.command,
            "tokens": self.tokens,
            "results": self.scores.to_dict("records"),
        }


@dataclass(frozen=True)
class Setting:
    """What all cells share.

    Attributes:
        experiment: what is run.
        table: labels, with the costs that are learnt first.
        metrics: what is predicted.
        rlm_texts: canonical text of each row as the RLM reads it, by how repetition is written.
        groups: one label a row, equal for equal networks.
        rows: positions that training and test rows are drawn from.
        folder: of the run.
        progress: told about each training.
    """

    experiment: FewLabelsExperiment
    table: Table
    metrics: list[str]
    rlm_texts: dict[str, list[str]]
    groups: np.ndarray
    rows: np.ndarray
    folder: RunFolder
    progress: Progress


def run_few_labels(experiment: FewLabelsExperiment, prepared: Prepared, progress: Progress) -> FewLabelsRun:
    """Train and score every predictor with every number of labels and seed, or go on with it.

    Raises:
        TableError: A table that cannot be used, or is too small.
        RunFolderError: The folder cannot be written or belongs to another experiment.
        KeyboardInterrupt: Ctrl-C; the same command goes on with the cell that was stopped.
    """
    setting = _setting(experiment, prepared, progress)
    cells = [
        Cell(f"labels{labels}-seed{seed}", f"{labels} labels, seed {seed}", partial(_cell, setting, labels, seed))
        for seed in range(experiment.seeds)
        for labels in experiment.labels
    ]
    found = run_cells(cells, setting.folder.path, progress)
    scores = pd.concat(found).sort_values(["labels", "seed"], kind="stable", ignore_index=True)
    tokens = {RLM[way]: _median_tokens(read) for way, read in setting.rlm_texts.items()}
    run = FewLabelsRun(experiment.name, setting.folder.path, scores, tokens, prepared.command)
    write_csv(run.folder / "results.csv", scores)
    write_text(run.folder / "results.md", _markdown(run, experiment))
    setting.folder.log("done", cells=len(cells))
    return run


def _setting(experiment: FewLabelsExperiment, prepared: Prepared, progress: Progress) -> Setting:
    table = load_labels(experiment.table, prepared.space, (), experiment.seed)
    metrics = list(table.metrics)
    groups = graph_groups(table.architectures)
    rows = _rows(experiment, table, groups)
    if max(experiment.labels) > len(rows) - 2:
        raise TableError(
            f"labels asks for {max(experiment.labels)} training architectures, but there are {len(rows)} rows to train "
            f"on and to score. Ask for {len(rows) - 2} at most."
        )
    folder = open_run_folder(experiment.outputs.folder, experiment.model_dump(by_alias=True, exclude_none=True), FREE)
    dead_work = RLMConfig.from_dict(experiment.model).dead_work
    read: dict[str, list[str]] = {}
    for way in experiment.texts:
        read[way] = texts(table.architectures, dead_work=dead_work, folded=way == "folded")
    if experiment.pretrain is not None:
        table = table.with_metrics(_text_costs(table, read[experiment.texts[0]], experiment.pretrain.costs))
    return Setting(experiment, table, metrics, read, groups, rows, folder, progress)


def _text_costs(table: Table, read: Sequence[str], wanted: Sequence[str]) -> pd.DataFrame:
    """Costs of what the texts say: equal texts have equal costs, whatever dead work they do not list."""
    known = {text: costs(text).metrics() for text in dict.fromkeys(read)}
    return pd.DataFrame([known[text] for text in read], index=table.values.index)[list(wanted)]


def _rows(experiment: FewLabelsExperiment, table: Table, groups: np.ndarray) -> np.ndarray:
    """The reserved rows if settings are being chosen, else all others."""
    reserve = experiment.reserve
    if reserve is None:
        return np.arange(len(table))
    parts: dict[str, int | float | str] = {"reserve": reserve.rows, "others": "rest"}
    split = split_by_graph(table, parts, experiment.seed, groups=groups)
    return split["reserve" if reserve.use else "others"]


def _cell(setting: Setting, labels: int, seed: int) -> pd.DataFrame:
    """Scores of all predictors with one number of labels and one seed."""
    experiment, table = setting.experiment, setting.table
    order = np.random.default_rng([experiment.seed, seed]).permutation(setting.rows)
    train, test = order[:labels], order[labels:]
    test = test if experiment.test is None else test[-experiment.test :]  # the same rows for every size
    networks = [table.architectures[i] for i in test]
    config = RLMConfig.from_dict({**experiment.model, "seed": seed})
    settings = _train_config(experiment.head, seed)
    first = experiment.texts[0]
    init = (
        None if experiment.pretrain is None else _pretrained(setting, 0, first)
    )  # the head starts where the RLM starts
    ways: dict[str, Callable[[], pd.DataFrame]] = {
        "macs": lambda: macs_baseline(networks, setting.metrics),
        "forest": lambda: forest_baseline(table, train, test, setting.metrics, seed),
        "head": lambda: head_baseline(table, train, test, setting.metrics, config, settings, init=init),
    }
    predictions = {RLM[way]: _rlm(setting, train, test, seed, way) for way in experiment.texts}
    predictions |= {name: ways[name]() for name in experiment.baselines}
    position = np.flatnonzero(np.isin(test, unseen_graphs(setting.groups, train, test)))
    true = table.values.iloc[test]
    rows = []
    for name, predicted in predictions.items():
        for metric in setting.metrics:
            a, b = true[metric].to_numpy(), predicted[metric].to_numpy()
            scores = {"": rank_scores(a, b), "unseen_": rank_scores(a[position], b[position])}
            row: dict[str, Any] = {"labels": labels, "seed": seed, "predictor": name, "metric": metric}
            rows.append(row | {f"{p}{k}": getattr(s, k) for p, s in scores.items() for k in ("n", "rho", "tau")})
    return pd.DataFrame(rows)


def _rlm(setting: Setting, train: np.ndarray, test: np.ndarray, seed: int, way: str) -> pd.DataFrame:
    """Predictions of the RLM for the test rows: the mean over its members."""
    experiment, read = setting.experiment, setting.rlm_texts[way]
    rows = [read[i] for i in train]
    found = []
    for member in range(experiment.members):
        settings = _train_config(experiment.train, experiment.members * seed + member)
        progress = _told(setting.progress, f"{RLM[way]}, {len(train)} labels, seed {seed}")
        if experiment.pretrain is None:
            config = RLMConfig.from_dict({**experiment.model, "metrics": setting.metrics, "seed": settings.seed})
            model = RegressionLM(config).fit(
                rows, setting.table.values[setting.metrics].iloc[train], train=settings, progress=progress
            )
        else:
            # the costs stay in the lesson: what was learnt about networks is not forgotten
            model = _pretrained(setting, member, way).fine_tune(
                rows, setting.table.values.iloc[train], train=settings, progress=progress
            )
        found.append(model.predict([read[i] for i in test], setting.metrics, point="mean"))
    return sum(found) / len(found)  # type: ignore[return-value]


def _pretrained(setting: Setting, member: int, way: str) -> RegressionLM:
    """A model that has learnt the costs of every distinct text; made once a member and kept in the run folder."""
    experiment, pretrain = setting.experiment, setting.experiment.pretrain
    assert pretrain is not None
    read = setting.rlm_texts[way]
    folder = setting.folder.path / "pretrained" / (f"member{member}" if way == "folded" else f"{way}{member}")
    if (folder / "config.json").is_file():
        return RegressionLM.from_pretrained(folder)
    seed = experiment.seed + member
    _, first = np.unique(np.array(read, dtype=object), return_index=True)
    config = RLMConfig.from_dict({**experiment.model, "metrics": list(pretrain.costs), "seed": seed})
    model = RegressionLM(config).fit(
        [read[i] for i in first],
        setting.table.values[list(pretrain.costs)].iloc[first],
        train=_train_config(pretrain.train, seed),
        folder=folder / "training",
        progress=_told(setting.progress, f"pretrain, member {member}"),
    )
    model.save_pretrained(folder)
    return model


def _train_config(options: Mapping[str, Any], seed: int) -> TrainConfig:
    # a test row must not be looked at, and every label is needed: no validation unless it is asked for
    return dataclasses.replace(TrainConfig.from_dict({"validation_fraction": 0.0, **options}), seed=seed)


def _told(progress: Progress, what: str) -> Any:
    return lambda entry: progress(Step(what, entry.get("step", 0), entry.get("steps", 1)))


def _median_tokens(read: Sequence[str]) -> float:
    """Of a row, with a tokenizer that has seen every text: its pieces do not depend on which rows were labelled."""
    return float(np.median([len(ids) for ids in TextTokenizer.train(dict.fromkeys(read)).encode(read)]))


def _markdown(run: FewLabelsRun, experiment: FewLabelsExperiment) -> str:
    rows = "rows that were reserved for choosing settings" if experiment.reserve and experiment.reserve.use else "rows"
    tokens = ", ".join(f"{name} {count:.4g}" for name, count in run.tokens.items())
    return (
        f"# {run.name}\n\n    {run.command}\n\nKendall's tau from so many training architectures, mean ± standard "
        f"deviation over {experiment.seeds} seeds, over all {rows} that were not trained on, and over those whose "
        f"network, in any isomorphic form, was not.\n\n{markdown_table(run.table)}\n\nSpearman's rho of the same "
        f"predictions:\n\n{markdown_table(run.ranks('rho'))}\n\nMedian tokens of a network's text: {tokens}.\n"
    )

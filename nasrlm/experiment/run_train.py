"""Runs an experiment of kind train: table -> checkpoint with measured scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, graph_groups, save_split
from nasrlm.experiment.files import write_csv, write_text
from nasrlm.experiment.labels import Split, load_labels, split_rows
from nasrlm.experiment.model_card import model_card
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.progress import Progress, Step
from nasrlm.experiment.run_folder import RunFolder, open_run_folder
from nasrlm.experiment.schema import TrainExperiment
from nasrlm.experiment.scores import score_rows, scored, shown
from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig

CHECKPOINT, TRAINING, SPLIT, SCORES = "checkpoint", "training", "split.json", "scores.csv"
FREE = ("outputs", "baselines", "description", "tags")
_FINE_TUNE = {"epochs": 30, "learning_rate": 5e-4}  # gentler, unless the experiment says otherwise


@dataclass(frozen=True)
class TrainRun:
    """A training that is done.

    Attributes:
        name: the experiment's.
        folder: the checkpoint folder.
        scores: one row a metric, see `nasrlm.experiment.scores.score_rows`.
        train_rows: rows trained on.
        test_rows: rows held out.
    """

    name: str
    folder: Path
    scores: pd.DataFrame
    train_rows: int
    test_rows: int

    def summary(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {
            "name": self.name,
            "checkpoint": str(self.folder),
            "train_rows": self.train_rows,
            "test_rows": self.test_rows,
            "scores": self.scores.to_dict("records"),
        }

    def table(self) -> pd.DataFrame:
        """The scores in few columns, for people."""
        return shown(self.scores)


def run_train(experiment: TrainExperiment, prepared: Prepared, progress: Progress) -> TrainRun:
    """Train, or go on with a training; write the checkpoint, its split, scores and card.

    A finished run only reports. The folder holds checkpoint/ (what you keep), training/ (the state to resume from),
    scores.csv, split.json, experiment.yaml, versions.json and log.jsonl.

    Raises:
        TableError: A table that cannot be used.
        RunFolderError: The folder cannot be written or belongs to another experiment.
        KeyboardInterrupt: Ctrl-C; the same command goes on from the last saved state.
    """
    resolved = experiment.model_dump(by_alias=True, exclude_none=True)
    table = load_labels(experiment.table, prepared.space, experiment.costs, experiment.seed)
    groups = graph_groups(table.architectures)
    split = split_rows(table, experiment.split, experiment.seed, groups)
    folder = open_run_folder(experiment.outputs.folder, resolved, FREE)
    checkpoint = folder.path / CHECKPOINT
    if (scores := _finished(folder, experiment.baselines)) is not None:
        return TrainRun(experiment.name, checkpoint, scores, len(split["train"]), len(split["test"]))
    folder.log("resume" if folder.resumed else "start", kind="train", rows=len(table), notes=list(table.notes))
    try:
        model = _fit(experiment, table, split, folder, progress)
        predicted = model.predict([table.architectures[i] for i in scored(split)])
        scores = score_rows(
            table,
            split,
            predicted,
            groups,
            experiment.seed,
            baselines=experiment.baselines,
            config=model.config,
            settings=_settings(experiment.train, experiment.seed),
        )
    except BaseException as error:
        folder.log("stopped", reason=type(error).__name__, message=str(error))
        raise
    model.save_pretrained(checkpoint, dtype=experiment.outputs.weights)
    save_split(split, table, checkpoint / SPLIT)
    write_text(checkpoint / "README.md", model_card(experiment, prepared.command, model, table, split, scores))
    write_csv(folder.path / SCORES, scores)
    folder.log("done", scores={row["metric"]: row["rho"] for row in scores.to_dict("records")})
    return TrainRun(experiment.name, checkpoint, scores, len(split["train"]), len(split["test"]))


def _finished(folder: RunFolder, baselines: Sequence[str]) -> pd.DataFrame | None:
    """The scores of a run that is done; a baseline asked for since then makes it go on."""
    if not (folder.path / SCORES).is_file() or not (folder.path / CHECKPOINT / "config.json").is_file():
        return None
    scores = pd.read_csv(folder.path / SCORES)
    return scores if all(f"{name}_rho" in scores for name in baselines) else None


def _settings(options: Mapping[str, Any], seed: int) -> TrainConfig:
    return dataclasses.replace(TrainConfig.from_dict(options), seed=seed)


def _fit(
    experiment: TrainExperiment, table: Table, split: Split, folder: RunFolder, progress: Progress
) -> RegressionLM:
    given = experiment.train if experiment.init is None else {**_FINE_TUNE, **experiment.train}
    rows = np.asarray(split["train"])
    inputs, values = [table.architectures[i] for i in rows], table.values.iloc[rows]
    settings = _settings(given, experiment.seed)
    work: dict[str, Any] = {"train": settings, "folder": folder.path / TRAINING, "progress": _told(progress)}
    if experiment.init is not None:
        return RegressionLM.from_pretrained(experiment.init).fine_tune(inputs, values, **work)
    config = RLMConfig.from_dict({**experiment.model, "metrics": list(table.metrics), "seed": experiment.seed})
    return RegressionLM(config).fit(inputs, values, **work)


def _told(progress: Progress) -> Callable[[dict[str, Any]], None]:
    def tell(entry: dict[str, Any]) -> None:
        words = [f"loss {entry['loss']:.3f}"] if "loss" in entry else []
        if "validation_score" in entry:
            words.append(f"validation {entry['validation_score']:.4f}")
        progress(Step("train", entry.get("step", 0), entry.get("steps", 1), ", ".join(words)))

    return tell

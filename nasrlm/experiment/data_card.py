"""The README.md beside a table of labels: how it was made, on what, what it holds, and how noisy it is."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from nasrlm.datasets import rank_scores
from nasrlm.experiment.model_card import markdown_table
from nasrlm.experiment.prepare import Prepared
from nasrlm.experiment.run_folder import to_yaml
from nasrlm.experiment.schema import LabelExperiment
from nasrlm.experiment.versions import versions

MAX_SPREAD = 0.1
"""Quartiles of a measurement that lie further apart than this share of its median make it unstable."""
_SEED = re.compile(r"(.+)_seed\d+")
_REASONS = 5  # that the card lists


def metric_ranges(labels: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Columns metric, smallest, lower_quartile, median, upper_quartile, largest; one row a metric.

    >>> metric_ranges(pd.DataFrame({"params": [1.0, 2.0, 6.0]}), ["params"])["median"].tolist()
    [2.0]
    """
    columns = ("smallest", "lower_quartile", "median", "upper_quartile", "largest")
    found = labels[list(metrics)].astype("float64").quantile([0.0, 0.25, 0.5, 0.75, 1.0])
    return found.T.set_axis(columns, axis=1).rename_axis("metric").reset_index()


def seed_noise(labels: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """How well trainings with different seeds agree: the ceiling for a predictor of one of them.

    Args:
        labels: the table.
        metrics: of which those that end in `_seed0`, `_seed1` ... count.

    Returns:
        Columns metric, seeds, tau (Kendall's tau-b), rho (Spearman's), mean_difference (absolute, in the metric's
        unit), each the mean over pairs of seeds; one row a metric with two seeds or more.

    >>> labels = pd.DataFrame({"accuracy/x_seed0": [1.0, 2.0, 3.0], "accuracy/x_seed1": [1.0, 3.0, 2.0]})
    >>> seed_noise(labels, list(labels))[["metric", "rho"]].values.tolist()
    [['accuracy/x', 0.5]]
    """
    groups: dict[str, list[str]] = {}
    for metric in metrics:
        if match := _SEED.fullmatch(metric):
            groups.setdefault(match[1], []).append(metric)
    rows = []
    for metric, runs in groups.items():
        scores = [rank_scores(labels[a].to_numpy(), labels[b].to_numpy()) for a, b in combinations(runs, 2)]
        if scores:
            means = pd.DataFrame([(s.tau, s.rho, s.mae) for s in scores]).mean()
            rows.append((metric, len(runs), *means))
    return pd.DataFrame(rows, columns=["metric", "seeds", "tau", "rho", "mean_difference"])


def spread_noise(labels: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """How far the quartiles of repeated measurements lie apart, in percent of the median.

    Returns:
        Columns metric, median_spread, spread_95 (exceeded by 5 % of the rows), unstable (percent of rows above
        `MAX_SPREAD`); one row a metric with the columns `@0.25` and `@0.75`.

    >>> labels = pd.DataFrame({"ms": [1.0, 1.0], "ms@0.25": [0.99, 0.9], "ms@0.75": [1.01, 1.1]})
    >>> spread_noise(labels, ["ms"])["unstable"].tolist()
    [50.0]
    """
    rows = []
    for metric in metrics:
        lower, upper = f"{metric}@0.25", f"{metric}@0.75"
        if lower in labels and upper in labels and len(labels):
            spread = 100 * (labels[upper] - labels[lower]) / labels[metric]
            unstable = 100 * float((spread > 100 * MAX_SPREAD).mean())
            rows.append((metric, spread.median(), spread.quantile(0.95), unstable))
    return pd.DataFrame(rows, columns=["metric", "median_spread", "spread_95", "unstable"])


def data_card(
    experiment: LabelExperiment,
    prepared: Prepared,
    labels: pd.DataFrame,
    failures: pd.DataFrame,
    metrics: Sequence[str],
) -> str:
    """The text of the card.

    Args:
        experiment: what was run.
        prepared: its space, and the command that a user types.
        labels: the table.
        failures: architectures without a row, and why.
        metrics: the metrics of the table.
    """
    space = prepared.space
    parts = [
        f"# {experiment.name}",
        f"{len(labels):,} architectures of the space {space.name} ({space.source}), drawn at random with seed "
        f"{experiment.seed}, each with {', '.join(metrics)}."
        + (f"\n\n{experiment.description.strip()}" if experiment.description.strip() else ""),
        "## How it was made",
        f"    {prepared.command}",
        _made_with(),
        "```yaml\n" + to_yaml(experiment.model_dump(exclude_none=True, include={"space", "evaluators"})) + "```",
        "## What it holds",
        f"`{experiment.outputs.table}`: arch (the space's string), architecture_id, one column a metric, and the "
        "quartiles of what was measured repeatedly (`@0.25`, `@0.75`).",
        markdown_table(metric_ranges(labels, metrics)) if len(labels) else "No row.",
        "## Noise",
        *_noise(labels, metrics),
        "## Failures",
        _failures(failures),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _made_with() -> str:
    found = versions()
    machine, packages = found["machine"], found["packages"]
    used = ", ".join(f"{name} {version}" for name, version in packages.items() if version)
    load = f" When it ended, {os.getloadavg()[0]:.1f} programs wanted a core." if hasattr(os, "getloadavg") else ""
    return (
        f"Processor: {machine['processor']}, {machine['cores']} cores, {machine['system']}.{load}\n\n"
        f"nasrlm {found['nasrlm']}, Python {found['python']}, {used}."
    )


def _noise(labels: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    seeds, spread = seed_noise(labels, metrics), spread_noise(labels, metrics)
    parts = []
    if len(seeds):
        parts += [
            "Trainings with another seed: tau between the seeds is the noise ceiling of a predictor of one seed; a "
            "predictor of their mean can be somewhat above it.",
            markdown_table(seeds),
        ]
    if len(spread):
        parts += [
            "Repeated measurements: distance of the quartiles in percent of the median (its median over the rows, and "
            f"the value that 5 % of them exceed), and percent of rows in which it is above {100 * MAX_SPREAD:.0f} %.",
            markdown_table(spread),
        ]
    return parts or ["Nothing was measured twice."]


def _failures(failures: pd.DataFrame) -> str:
    if not len(failures):
        return "None."
    counts = failures["failure"].value_counts()
    lines = [f"- {count:,} times: {reason}" for reason, count in counts.head(_REASONS).items()]
    more = [f"- ... and {len(counts) - _REASONS} other reasons"] if len(counts) > _REASONS else []
    return "\n".join([f"{len(failures):,} architectures have no row (failures.csv):", "", *lines, *more])

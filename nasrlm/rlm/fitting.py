"""From networks and values to a training job: which rows count, which are held out, new metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nasrlm.errors import MetricError, RunFolderError, TableError
from nasrlm.rlm.batches import Examples
from nasrlm.rlm.checkpoint import build_network
from nasrlm.rlm.config import RLMConfig, TrainConfig
from nasrlm.rlm.inputs import encode_texts
from nasrlm.rlm.network import RLMNetwork
from nasrlm.tokens import TextTokenizer


def check_labels(labels: NDArray[np.float64], metrics: Sequence[str]) -> None:
    """There is something to learn.

    Raises:
        TableError: no row has a value.
        MetricError: one of `metrics` has no value.
    """
    if not labels.size:
        raise TableError("values have no rows or no columns. Give a row a network and a column a metric.")
    if not metrics and np.isnan(labels).all():
        raise TableError(f"none of the {len(labels)} rows has a value. Give at least one row with a number.")
    for at, metric in enumerate(metrics):
        if np.isnan(labels[:, at]).all():
            raise MetricError(f"the metric {metric!r} has no value in any row. Give values, or leave the metric out.")


def make_examples(
    texts: Sequence[str], labels: NDArray[np.float64], tokenizer: TextTokenizer, config: RLMConfig
) -> Examples:
    """Rows that can be read and have a label.

    Raises:
        TableError: none is left.
    """
    ids, readable = encode_texts(texts, tokenizer, config)
    rows = np.nonzero(readable & ~np.isnan(labels).all(1))[0]
    if not len(rows):
        raise TableError("no row is left to train on: every text is too long or has no value.")
    return Examples(list(texts), ids, labels).take(rows)


def hold_out(examples: Examples, train: TrainConfig) -> tuple[Examples, Examples | None]:
    """Splits off the validation share; equal texts stay together."""
    places: dict[str, int] = {}
    group = np.array([places.setdefault(text, len(places)) for text in examples.texts])
    wanted = round(train.validation_fraction * len(places))
    if wanted < 1 or wanted >= len(places):
        return examples, None
    order = np.random.default_rng([train.seed, 3]).permutation(len(places))
    held = np.isin(group, order[:wanted])
    return examples.take(np.nonzero(~held)[0]), examples.take(np.nonzero(held)[0])


def make_folder(folder: str | Path) -> Path:
    """The folder of a training's state.

    Raises:
        RunFolderError: it cannot be made.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise RunFolderError(f"the folder {path} cannot be written: {error}. Choose another.") from error
    return path


@torch.no_grad()
def widen(network: RLMNetwork, tokenizer: TextTokenizer, new: Sequence[str], sources: Mapping[str, int]) -> RLMNetwork:
    """The network with prompts for new metrics, started from a known metric's or from the mean of all."""
    old = network.config
    wide = build_network(dataclasses.replace(old, metrics=(*old.metrics, *new)), tokenizer)
    weights = network.state_dict()
    prompts = weights["metric.weight"]
    mean = prompts.mean(0)
    fresh = [prompts[sources[metric]] if metric in sources else mean for metric in new]
    wide.load_state_dict({**weights, "metric.weight": torch.cat([prompts, torch.stack(fresh)])})
    return wide

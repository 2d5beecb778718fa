"""What is free to know of candidates: counts of the network and of its canonical text, and how an RLM reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nasrlm.errors import CheckpointError
from nasrlm.graph import costs, parse_text, texts
from nasrlm.graph.paths import path_statistics
from nasrlm.search.surrogate import Array, Features, balanced
from nasrlm.spaces import Architecture, SearchSpace

if TYPE_CHECKING:
    from nasrlm.rlm import RegressionLM

_SAMPLE = 1000
"""Random networks that features are scaled by."""
_DIRECTIONS = 32
"""Directions in which the RLM's reading varies most; the others are left out."""
_EXTREME = 6.0
_RARE = 0.003
"""A count that fewer networks of the sample have is no feature."""

Counts = Mapping[str, float]

FEATURE_SETS = {
    "structure": ("living", "read"),
    "structure, counts alone": ("living",),
    "costs": ("whole", "words", "living"),
    "all": ("living", "read", "whole", "words"),
}
"""Accuracy depends on what is alive, latency on what runs; which set serves a metric is for the data to say."""


class Knowledge:
    """Features of architectures, computed once for each and scaled by a random sample of the space.

    Args:
        space: where the architectures come from.
        reader: an RLM whose encoder reads the texts; None = counts alone.
        seed: of the sample.
    """

    def __init__(self, space: SearchSpace, reader: RegressionLM | None, seed: int = 0) -> None:
        self.space, self.reader = space, reader
        groups = ("living", "whole", "words", *(() if reader is None else ("read",)))
        self.sets = {name: parts for name, parts in FEATURE_SETS.items() if set(parts) <= set(groups)}
        self._row: dict[str, int] = {}
        self._rows: dict[str, list[Array]] = {name: [] for name in groups}
        looked = self._look(list(dict.fromkeys(space.sample(_SAMPLE, seed))))
        self._scales = {name: (_Reading if name == "read" else _Columns).fit(rows) for name, rows in looked.items()}

    def learn(self, architectures: Iterable[Architecture]) -> None:
        """Looks at those that are not known yet."""
        new = list({a.id: a for a in architectures if a.id not in self._row}.values())
        if not new:
            return
        for name, rows in self._look(new).items():
            self._rows[name].append(self._scales[name](rows))
        for a in new:
            self._row[a.id] = len(self._row)

    def features(self, ids: Sequence[str]) -> Features:
        """Feature sets of architectures that `learn` has looked at."""
        rows = [self._row[i] for i in ids]
        parts = {name: self._joined(name)[rows] for name in self._rows}
        return {name: balanced([parts[p] for p in members]) for name, members in self.sets.items()}

    def _joined(self, name: str) -> Array:
        blocks = self._rows[name]
        if len(blocks) > 1:
            blocks[:] = [np.concatenate(blocks)]
        return blocks[0]

    def _look(self, architectures: list[Architecture]) -> dict[str, Any]:
        living, whole = texts(architectures), texts(architectures, dead_work=True)
        known = {text: living_counts(text) for text in dict.fromkeys(living)}
        found: dict[str, Any] = {
            "living": [known[text] for text in living],
            "whole": [costs(a).metrics() for a in architectures],
            "words": [Counter(text.split()) for text in whole],
        }
        if self.reader is not None:
            found["read"] = self.reader.read(whole if self.reader.config.dead_work else living)
        return found


@dataclass(frozen=True)
class _Columns:
    """Counts by name to features: each as its logarithm and, since latencies are sums, as it is; of norm about one."""

    names: tuple[str, ...]
    mean: Array
    deviation: Array

    @classmethod
    def fit(cls, rows: Sequence[Counts]) -> _Columns:
        having = Counter(name for row in rows for name, value in row.items() if value)
        names = tuple(sorted(name for name, n in having.items() if n >= _RARE * len(rows)))
        plain = cls(names, np.zeros(1), np.ones(1)).columns(rows)
        varied = np.array([bool(np.ptp(column)) for column in plain.T[: len(names)]], dtype=bool)
        names = tuple(name for name, keep in zip(names, varied, strict=True) if keep)
        plain = cls(names, np.zeros(1), np.ones(1)).columns(rows)
        return cls(names, plain.mean(0), plain.std(0))

    def columns(self, rows: Sequence[Counts]) -> Array:
        values = np.array([[float(row.get(name, 0.0)) for name in self.names] for row in rows])
        values = values.reshape(len(rows), len(self.names))
        return np.concatenate([values, np.log1p(np.abs(values))], axis=1)

    def __call__(self, rows: Sequence[Counts]) -> Array:
        found = np.clip((self.columns(rows) - self.mean) / self.deviation, -_EXTREME, _EXTREME)
        return found / max(1, found.shape[1]) ** 0.5


@dataclass(frozen=True)
class _Reading:
    """What the encoder makes of a text, to the directions that vary most; the first ones count most."""

    mean: Array
    deviation: Array
    directions: Array
    norm: float

    @classmethod
    def fit(cls, read: Array) -> _Reading:
        deviation = np.where(read.std(0) > 0, read.std(0), 1.0)
        centred = (read - read.mean(0)) / deviation
        _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
        norm = float(np.sqrt((sizes[:_DIRECTIONS] ** 2).sum() / len(read))) or 1.0
        return cls(read.mean(0), deviation, directions[:_DIRECTIONS].T, norm)

    def __call__(self, read: Array) -> Array:
        centred = np.clip((read - self.mean) / self.deviation, -_EXTREME, _EXTREME)
        found: Array = centred @ self.directions / self.norm
        return found


def living_counts(text: str) -> dict[str, float]:
    """Costs, operators and paths of the network of a canonical text.

    >>> living_counts("nasrlm1\\nin 1x3x8x8\\nconv 4 k3\\nrelu")["relu operators"]
    1.0
    """
    graph = parse_text(text)
    counted = costs(graph)
    operators = {f"{name} operators": float(n) for name, n in counted.operators.items()}
    return {**counted.metrics(), **operators, **path_statistics(graph).values()}


def pretrained_reader(
    space: SearchSpace, networks: int, epochs: int, seed: int = 0, folder: Path | None = None
) -> RegressionLM:
    """An RLM that has learnt to read random networks of a space: it tells their costs, operators and paths.

    Nothing is measured for that, so it knows nothing of accuracy or latency.

    Args:
        space: the search space.
        networks: how many are drawn; of those with equal texts one is kept.
        epochs: passes over them.
        seed: of the draw and of the weights.
        folder: where it is kept for the next time; None = nowhere.
    """
    from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig

    home = None if folder is None else folder / f"reader-{space.name}-{networks}x{epochs}-seed{seed}"
    if home is not None and home.is_dir():
        try:
            return RegressionLM.from_pretrained(str(home))
        except CheckpointError:
            pass  # cut short, or of another version: made anew
    found = list(dict.fromkeys(texts(space.sample(networks, seed))))
    labels = pd.DataFrame([living_counts(text) for text in found]).fillna(0.0)
    labels = labels.loc[:, labels.nunique() > 1]
    labels.columns = [f"free/{name.replace(' ', '_')}" for name in labels.columns]
    shape = RLMConfig(width=96, dropout=0.1, dead_work=False, seed=seed)
    steps = TrainConfig(
        epochs=epochs, learning_rate=2e-3, seed=seed, metrics_per_example=min(6, max(1, labels.shape[1]))
    )
    model = RegressionLM(shape).fit(found, labels, train=steps)
    if home is not None:
        model.save_pretrained(home)
    return model

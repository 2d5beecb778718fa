"""What is free to know of candidates: counts of the network and of its canonical text, and how an RLM reads it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nasrlm.errors import CheckpointError
from nasrlm.graph import COST_METRICS, Graph, costs, parse_text, texts
from nasrlm.graph.paths import path_statistics
from nasrlm.search.surrogate import Array, Features, balanced
from nasrlm.spaces import Architecture, SearchSpace

if TYPE_CHECKING:
    from nasrlm.rlm import RegressionLM

_SAMPLE = 1000
"""Random networks that features are scaled by."""
_DIRECTIONS = 32
"""Directions in which the RLM's reading varies most; the others are left out."""
_TOLD_AT_MOST = 4
"""Metrics that are predicted for each candidate, a third of a millisecond each."""
_EXTREME = 6.0
_RARE = 0.003
"""A count that fewer networks of the sample have is no feature."""

FREE = "free/"
"""Begins the metrics that a reader is pretrained on."""
Counts = Mapping[str, float]
_log = logging.getLogger("nasrlm.search")

FEATURE_SETS = {
    "structure": ("living", "read"),
    "structure, counts alone": ("living",),
    "costs": ("whole", "words", "living"),
    "all": ("living", "read", "whole", "words"),
}
"""Accuracy depends on what is alive, latency on what runs; which set serves a metric is for the data to say."""
TOLD_SETS = {
    "told": ("told",),
    "told, structure": ("told", "living"),
    "told, costs": ("told", "whole", "words", "living"),
    "told, all": ("told", "living", "read", "whole", "words"),
}
"""In place of those where the RLM has learnt metrics that are not free: what it predicts."""


class Knowledge:
    """Features of architectures, computed once for each and scaled by a random sample of the space.

    Args:
        space: where the architectures come from.
        reader: an RLM whose encoder reads the texts; None = counts alone. What it predicts are features too, where it
            has learnt metrics that are not free: those among the objectives, else a few, accuracies first.
        objectives: what is searched for, as far as names are known.
        seed: of the sample.
    """

    def __init__(
        self, space: SearchSpace, reader: RegressionLM | None, objectives: Sequence[str] = (), seed: int = 0
    ) -> None:
        self.space, self.reader = space, reader
        self._told = () if reader is None else _worth_telling(reader.metrics, objectives)
        groups = ("living", "whole", "words", *(("read",) if reader else ()), *(("told",) if self._told else ()))
        known = TOLD_SETS if self._told else FEATURE_SETS
        self.sets = {name: parts for name, parts in known.items() if set(parts) <= set(groups)}
        self._row: dict[str, int] = {}
        self._useless: set[str] = set()
        self._costs: list[list[float]] = []
        self._rows: dict[str, list[Array]] = {name: [] for name in groups}
        looked = self._look(self._built(dict.fromkeys(space.sample(_SAMPLE, seed))))
        self._scales = {name: (_Reading if name == "read" else _Columns).fit(rows) for name, rows in looked.items()}

    def useful(self, candidates: Iterable[Architecture]) -> list[Architecture]:
        """Learns the candidates; leaves out those that cannot be built, and those that answer the same to any input."""
        candidates = list(candidates)
        self._learn(self._built(a for a in self._new(candidates) if a.id not in self._useless))
        return [a for a in candidates if a.id in self._row and a.id not in self._useless]

    def learn(self, architectures: Iterable[Architecture]) -> None:
        """Looks at those that are not known yet."""
        self._learn({a: a.graph() for a in self._new(architectures)})

    def _new(self, architectures: Iterable[Architecture]) -> list[Architecture]:
        return list({a.id: a for a in architectures if a.id not in self._row}.values())

    def _built(self, architectures: Iterable[Architecture]) -> dict[Architecture, Graph]:
        """The networks of those that can be built."""
        found = {}
        for a in architectures:
            try:
                found[a] = a.graph()
            except Exception as error:  # whatever the space's own code raises
                _log.warning("%s is no candidate, it cannot be built: %s", a.string, error)
                self._useless.add(a.id)
        return found

    def _learn(self, new: Mapping[Architecture, Graph]) -> None:
        if not new:
            return
        looked = self._look(new)
        self._costs += [[counted[name] for name in COST_METRICS] for counted in looked["whole"]]
        for name, rows in looked.items():
            self._rows[name].append(self._scales[name](rows))
        for a in new:
            self._row[a.id] = len(self._row)

    def features(self, ids: Sequence[str]) -> Features:
        """Feature sets of architectures that `learn` has looked at."""
        rows = [self._row[i] for i in ids]
        parts = {name: self._joined(name)[rows] for name in self._rows}
        return {name: balanced([parts[p] for p in members]) for name, members in self.sets.items()}

    def costs(self, ids: Sequence[str]) -> dict[str, Array]:
        """The costs of architectures that `learn` has looked at, by name."""
        found = np.array([self._costs[self._row[i]] for i in ids]).reshape(len(ids), len(COST_METRICS))
        return {name: found[:, j] for j, name in enumerate(COST_METRICS)}

    def _joined(self, name: str) -> Array:
        blocks = self._rows[name]
        if len(blocks) > 1:
            blocks[:] = [np.concatenate(blocks)]
        return blocks[0]

    def _look(self, networks: Mapping[Architecture, Graph]) -> dict[str, Any]:
        graphs = list(networks.values())
        living, whole = texts(graphs), texts(graphs, dead_work=True)
        known = {text: living_counts(text) for text in dict.fromkeys(living)}
        self._useless.update(a.id for a, text in zip(networks, living, strict=True) if is_constant(text))
        found: dict[str, Any] = {
            "living": [known[text] for text in living],
            "whole": [costs(graph).metrics() for graph in graphs],
            "words": [Counter(text.split()) for text in whole],
        }
        if self.reader is not None:
            read = whole if self.reader.config.dead_work else living
            found["read"] = self.reader.read(read)
            if self._told:
                found["told"] = _errors(self.reader.predict(read, metrics=self._told))
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


def _worth_telling(metrics: Sequence[str], objectives: Sequence[str]) -> tuple[str, ...]:
    measured = [m for m in metrics if m not in COST_METRICS and not m.startswith(FREE)]
    wanted = [m for m in measured if m in objectives]
    return tuple(wanted or sorted(measured, key=lambda m: not m.startswith("accuracy/"))[:_TOLD_AT_MOST])


def _errors(predicted: pd.DataFrame) -> list[Counts]:
    """Predictions as columns whose logarithm says something: of an accuracy, what is missing from 100."""
    rows = predicted.fillna(predicted.median()).to_dict("records")  # blank where a text is too long to read
    return [{str(m): 100.0 - v if str(m).startswith("accuracy/") else float(v) for m, v in row.items()} for row in rows]


def is_constant(text: str) -> bool:
    """Whether the outputs of the network of a canonical text do not depend on its inputs.

    >>> is_constant("nasrlm1\\nin 1x3x8x8\\nconst 1x10"), is_constant("nasrlm1\\nin 1x3x8x8\\nrelu")
    (True, False)
    """
    lines = text.splitlines()[1:]
    return any(line.startswith("const ") for line in lines) and all(
        line.startswith(("in ", "const ", "out ")) for line in lines
    )


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
    labels.columns = [f"{FREE}{name.replace(' ', '_')}" for name in labels.columns]
    shape = RLMConfig(width=96, dropout=0.1, dead_work=False, seed=seed)
    steps = TrainConfig(
        epochs=epochs, learning_rate=2e-3, seed=seed, metrics_per_example=min(6, max(1, labels.shape[1]))
    )
    model = RegressionLM(shape).fit(found, labels, train=steps)
    if home is not None:
        model.save_pretrained(home)
    return model

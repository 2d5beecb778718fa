"""What a prediction really has to compute: the readable texts, each only once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nasrlm.errors import MetricError, UsageError
from nasrlm.rlm.config import RLMConfig
from nasrlm.rlm.inputs import encode_texts, metric_indices
from nasrlm.tokens import NumberTokens, TextTokenizer


@dataclass(frozen=True)
class Work:
    """Distinct texts to read, and where their results go.

    Attributes:
        ids: text ids of each distinct text.
        rows: the input that each of them was met at first.
        home: for each input, its place in `ids`; -1 for a text that is left out.
        given: metric -> value of each distinct text.
    """

    ids: list[NDArray[np.int64]]
    rows: NDArray[np.int64]
    home: NDArray[np.int64]
    given: dict[int, NDArray[np.float64]]

    def spread(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Results of distinct texts to all inputs; NaN for texts left out."""
        everywhere = np.full((len(self.home), *found.shape[1:]), np.nan)
        kept = self.home >= 0
        everywhere[kept] = found[self.home[kept]]
        return everywhere


def plan_work(
    texts: Sequence[str],
    given: Mapping[str, Any] | None,
    tokenizer: TextTokenizer,
    config: RLMConfig,
    numbers: NumberTokens,
    distinct: bool = True,
) -> Work:
    """Encodes the texts; with `distinct`, equal texts with equal given values are read once."""
    known = _given_values(given, len(texts), config, numbers)
    columns = list(known.values())
    keys: list[Any] = [(text, *(column[at] for column in columns)) if distinct else at for at, text in enumerate(texts)]
    first: dict[Any, int] = {}
    for at, key in enumerate(keys):
        first.setdefault(key, at)
    rows = np.fromiter(first.values(), dtype=np.int64, count=len(first))
    ids, readable = encode_texts([texts[at] for at in rows], tokenizer, config)
    place = dict(zip(first, np.where(readable, np.cumsum(readable) - 1, -1).tolist(), strict=True))
    rows = rows[readable]
    return Work(
        ids=[row for row, good in zip(ids, readable, strict=True) if good],
        rows=rows,
        home=np.array([place[key] for key in keys], dtype=np.int64),
        given={metric: column[rows] for metric, column in known.items()},
    )


def _given_values(
    given: Mapping[str, Any] | None, count: int, config: RLMConfig, numbers: NumberTokens
) -> dict[int, NDArray[np.float64]]:
    found: dict[int, NDArray[np.float64]] = {}
    order = sorted(given or {}, key=lambda metric: config.metrics.index(metric) if metric in config.metrics else -1)
    for metric in order:
        (index,) = metric_indices([metric], config.metrics)
        found[index] = _column(metric, (given or {})[metric], count, numbers)
    return found


def _column(metric: str, values: ArrayLike, count: int, numbers: NumberTokens) -> NDArray[np.float64]:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MetricError(f"given[{metric!r}] is no number ({error}). Allowed: a number, or one a network.") from error
    if column.ndim and column.shape != (count,):
        raise UsageError(f"given[{metric!r}] has shape {column.shape}. Allowed: a number, or {count} of them.")
    column = np.broadcast_to(column, (count,)).copy()
    try:
        numbers.encode_array(column)
    except UsageError as error:
        raise UsageError(f"given[{metric!r}]: {error}") from error
    return column

"""What users hand in - networks in any form, tables of values - as texts, ids and arrays, checked at the door."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nasrlm.errors import MetricError, TableError, TextTooLongError, UsageError, nearest
from nasrlm.rlm.config import RLMConfig
from nasrlm.tokens import NumberTokens, TextTokenizer

POINTS = ("median", "mean", "greedy")


@dataclass(frozen=True)
class Inputs:
    """Networks that a model can read.

    Attributes:
        names: architecture id of each input, or its position.
        texts: canonical text of each.
    """

    names: list[Any]
    texts: list[str]


def read_inputs(inputs: Sequence[Any], dead_work: bool) -> Inputs:
    """Canonical texts and names of networks in any form that `nasrlm.graph.texts` takes.

    Raises:
        UsageError: a single network in place of a list, or an empty list.
    """
    if isinstance(inputs, str) or not hasattr(inputs, "__len__"):
        raise UsageError(
            f"inputs is one {type(inputs).__name__}. Allowed: a list of architectures, ONNX models or paths, texts, "
            "or (torch module, example) pairs. Put it into a list."
        )
    from nasrlm.graph import texts

    names = [getattr(x, "id", at) if hasattr(x, "params") else at for at, x in enumerate(inputs)]
    return Inputs(names, texts(list(inputs), dead_work=dead_work))


def encode_texts(
    texts: Sequence[str], tokenizer: TextTokenizer, config: RLMConfig
) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
    """Text ids, and which texts can be read; texts over the limit are handled as `config.too_long` says.

    Raises:
        TextTooLongError: a text is over the limit and `too_long` is "error".
    """
    ids = [np.asarray(row, dtype=np.int64) for row in tokenizer.encode(texts)]
    limit = config.max_text_tokens
    long = [at for at, row in enumerate(ids) if len(row) > limit]
    readable = np.ones(len(ids), dtype=bool)
    if not long:
        return ids, readable
    longest = max(len(ids[at]) for at in long)
    count = f"{len(long)} of {len(ids)} texts exceed the {limit} tokens the model reads (the longest: {longest})"
    if config.too_long == "error":
        raise TextTooLongError(
            f"{count}, the first at position {long[0]}. Train a model with a larger max_text_tokens, or set too_long "
            'to "drop" or "cut".'
        )
    if config.too_long == "cut":
        warnings.warn(f"{count}: their ends are cut off.", stacklevel=3)
        return [row[:limit] for row in ids], readable
    warnings.warn(f"{count}: they are left out.", stacklevel=3)
    readable[long] = False
    return ids, readable


def read_labels(values: Any, rows: int, metrics: Sequence[str], numbers: NumberTokens) -> NDArray[np.float64]:
    """Values as (N, M) in the order of `metrics`; a metric without a column is blank.

    Raises:
        TableError: a column that holds no numbers, or another number of rows than inputs.
        UsageError: a number that the number tokens cannot write.
    """
    frame = as_frame(values)
    if len(frame) != rows:
        raise TableError(f"values have {len(frame)} rows, inputs {rows}. They must match one to one.")
    labels = np.full((rows, len(metrics)), np.nan)
    for at, metric in enumerate(metrics):
        if metric in frame.columns:
            labels[:, at] = _numbers(frame[metric], metric, numbers)
    return labels


def as_frame(values: Any) -> pd.DataFrame:
    """Values as a DataFrame with one column a metric."""
    if isinstance(values, pd.DataFrame):
        return values
    if isinstance(values, Mapping):
        return pd.DataFrame(dict(values))
    raise UsageError(
        f"values is a {type(values).__name__}. Allowed: a pandas DataFrame (or a dict of lists) with a column a metric."
    )


def metric_indices(wanted: Sequence[str], known: Sequence[str]) -> list[int]:
    """Places of metrics among those the model knows.

    Raises:
        MetricError: a metric the model does not know.
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    for metric in wanted:
        if metric not in known:
            close = nearest(str(metric), list(known))
            hint = f" Nearest: {', '.join(close)}." if close else ""
            raise MetricError(f"the model does not know the metric {metric!r}.{hint} It knows: {', '.join(known)}.")
    return [list(known).index(metric) for metric in wanted]


def _numbers(column: Any, metric: str, numbers: NumberTokens) -> NDArray[np.float64]:
    try:
        found = np.asarray(pd.to_numeric(column), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TableError(f"values of {metric!r} are no numbers ({error}). Allowed: numbers, NaN for blank.") from error
    try:
        numbers.encode_array(found[~np.isnan(found)])
    except UsageError as error:
        raise UsageError(f"metric {metric!r}: {error}") from error
    return found


def check_request(point: str, quantiles: Sequence[float]) -> None:
    """Sees that a point estimate and quantiles can be given.

    Raises:
        UsageError: an unknown point, or a level outside (0, 1).
    """
    if point not in POINTS:
        raise UsageError(f"point is {point!r}. Allowed: {', '.join([*nearest(point, POINTS), *POINTS])}.")
    for level in quantiles:
        if not 0 < level < 1:
            raise UsageError(f"the quantile {level!r} is not allowed. Allowed: numbers between 0 and 1, as in 0.1.")

"""Predictions for many texts: batches of like length, quantiles, means, samples, log-probabilities.

Legend: see `nasrlm.rlm.network`. Results are numpy arrays in the order of the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.rlm.batches import Examples, grammar_mask, pad, split_by_size, write_targets
from nasrlm.rlm.decoding import greedy_tokens, quantile_tokens, sample_tokens, token_log_probs
from nasrlm.rlm.network import RLMNetwork
from nasrlm.tokens import NumberTokens

_T = TypeVar("_T")

Ids = Sequence[NDArray[np.int64]]
Given = dict[int, NDArray[np.float64]]  # metric -> value of each text

_BATCH_TOKENS = 4096  # small batches stay in the processor's caches
_MEAN_LEVELS = 16


def text_batches(ids: Ids, batch_size: int) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor]]:
    """Row numbers, padded ids and lengths of batches of texts of like length."""
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    rows = np.argsort(lengths, kind="stable")
    for part in split_by_size(rows, lengths, batch_size, _BATCH_TOKENS):
        yield part, *pad([ids[i] for i in part])


def predict_quantiles(
    network: RLMNetwork,
    numbers: NumberTokens,
    ids: Ids,
    *,
    metrics: Sequence[int] | None = None,
    levels: Sequence[float],
    given: Given | None = None,
    batch_size: int = 256,
) -> NDArray[np.float64]:
    """Exact quantiles (N, M, levels) of each metric on its own, given what is known."""
    chosen = list(range(len(network.config.metrics))) if metrics is None else list(metrics)
    row_metrics = torch.tensor(chosen).repeat_interleave(len(levels))
    row_levels = torch.tensor(levels, dtype=torch.float32).repeat(len(chosen))
    found = np.empty((len(ids), len(chosen), len(levels)))

    @torch.inference_mode()
    def read(batch: tuple[NDArray[np.int64], Tensor, Tensor]) -> None:
        part, text, lengths = batch
        memory = network.encode(text, lengths)
        prefix = given_tokens(numbers, given, part)
        said = quantile_tokens(network, numbers, memory, row_metrics, row_levels, prefix)
        found[part] = numbers.decode_array(said.numpy()).reshape(len(part), len(chosen), len(levels))

    _in_parallel(read, list(text_batches(ids, batch_size)))
    return found


def read_texts(network: RLMNetwork, ids: Ids, batch_size: int = 256) -> NDArray[np.float64]:
    """Mean and maximum over the tokens of encoded texts, (N, 2 D)."""
    found = np.empty((len(ids), 2 * network.config.width))

    @torch.inference_mode()
    def read(batch: tuple[NDArray[np.int64], Tensor, Tensor]) -> None:
        part, text, lengths = batch
        encoded, _ = network.read(text, lengths)
        padding = (torch.arange(text.shape[1]) >= lengths[:, None])[..., None]
        encoded = encoded.float()
        mean = encoded.masked_fill(padding, 0.0).sum(1) / lengths[:, None]
        highest = encoded.masked_fill(padding, float("-inf")).amax(1)
        found[part] = torch.cat([mean, highest], dim=1).double().numpy()

    _in_parallel(read, list(text_batches(ids, batch_size)))
    return found


def _in_parallel(work: Callable[[_T], None], batches: Sequence[_T]) -> None:
    """One batch a core: small operations scale far better so than with all cores in every operation."""
    cores = torch.get_num_threads()
    if cores == 1 or len(batches) < 2:
        for batch in batches:
            work(batch)
        return
    try:
        with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            list(pool.map(work, batches))
    finally:
        torch.set_num_threads(cores)


def predict_means(
    network: RLMNetwork,
    numbers: NumberTokens,
    ids: Ids,
    *,
    metrics: Sequence[int],
    given: Given | None = None,
    batch_size: int = 256,
) -> NDArray[np.float64]:
    """Means (N, M): the average of 16 exact quantiles at the middles of equal shares of probability."""
    levels = [(i + 0.5) / _MEAN_LEVELS for i in range(_MEAN_LEVELS)]
    return predict_quantiles(
        network, numbers, ids, metrics=metrics, levels=levels, given=given, batch_size=batch_size
    ).mean(-1)


@torch.inference_mode()
def predict_greedy(
    network: RLMNetwork,
    numbers: NumberTokens,
    ids: Ids,
    *,
    metrics: Sequence[int],
    given: Given | None = None,
    batch_size: int = 256,
) -> NDArray[np.float64]:
    """The number (N, M) whose tokens are the most likely in every step."""
    found = np.empty((len(ids), len(metrics)))
    for part, text, lengths in text_batches(ids, batch_size):
        memory = network.encode(text, lengths)
        said = greedy_tokens(network, numbers, memory, torch.tensor(metrics), given_tokens(numbers, given, part))
        found[part] = numbers.decode_array(said.numpy())
    return found


def predict_points(
    network: RLMNetwork,
    numbers: NumberTokens,
    ids: Ids,
    metrics: Sequence[int],
    point: str,
    quantiles: Sequence[float],
    given: Given,
    batch_size: int,
) -> NDArray[np.float64]:
    """(N, M x (1 + quantiles)): the point estimates ("median", "mean" or "greedy"), then each quantile's."""
    if not ids:
        return np.empty((0, len(metrics) * (1 + len(quantiles))))
    levels = [*([0.5] if point == "median" else []), *quantiles]
    parts: list[NDArray[np.float64]] = []
    if point != "median":
        way = predict_means if point == "mean" else predict_greedy
        parts.append(way(network, numbers, ids, metrics=metrics, given=given, batch_size=batch_size))
    if levels:
        distinct = sorted(set(levels))
        found = predict_quantiles(
            network, numbers, ids, metrics=metrics, levels=distinct, given=given, batch_size=batch_size
        )
        parts += [found[:, :, distinct.index(level)] for level in levels]
    return np.concatenate(parts, axis=1)


@torch.inference_mode()
def draw_samples(
    network: RLMNetwork,
    numbers: NumberTokens,
    ids: Ids,
    *,
    metrics: Sequence[int],
    n: int,
    rng: np.random.Generator,
    given: Given | None = None,
    batch_size: int = 64,
) -> NDArray[np.float64]:
    """Joint samples (N, n, M): each metric is drawn given those before it."""
    found = np.empty((len(ids), n, len(metrics)))
    for part, text, lengths in text_batches(ids, batch_size):
        memory = network.encode(text, lengths)
        prefix = given_tokens(numbers, given, part)
        said = sample_tokens(network, numbers, memory, torch.tensor(metrics), n, rng, prefix)
        found[part] = numbers.decode_array(said.numpy())
    return found


@torch.inference_mode()
def chain_log_probs(
    network: RLMNetwork,
    numbers: NumberTokens,
    ids: Ids,
    values: NDArray[np.float64],
    metrics: Sequence[int],
    batch_size: int = 128,
) -> NDArray[np.float64]:
    """Log-probability (N, M) of each value given those before it in the row; no blanks."""
    found = np.empty(values.shape)
    mask = grammar_mask(numbers)
    for part, text, lengths in text_batches(ids, batch_size):
        owners = np.broadcast_to(np.asarray(metrics), (len(part), 1, len(metrics)))
        targets = write_targets(values[part][:, None], owners, numbers)
        memory = network.encode(text, lengths)
        found[part] = token_log_probs(network, memory, targets, mask).sum(-1)[:, 0].double().numpy()
    return found


def log_probs(
    network: RLMNetwork, numbers: NumberTokens, ids: Ids, values: NDArray[np.float64], metrics: Sequence[int]
) -> NDArray[np.float64]:
    """`chain_log_probs` of values with blanks (NaN): 0 for a blank, which no later value is conditioned on."""
    found = np.zeros(values.shape)
    present = ~np.isnan(values)
    for pattern in np.unique(present, axis=0):
        part, columns = np.nonzero((present == pattern).all(1))[0], np.nonzero(pattern)[0]
        if len(columns):
            block, texts = np.ix_(part, columns), [ids[int(i)] for i in part]
            owners = [metrics[i] for i in columns.tolist()]
            found[block] = chain_log_probs(network, numbers, texts, values[block], owners)
    return found


@torch.inference_mode()
def validation_loss(network: RLMNetwork, numbers: NumberTokens, examples: Examples) -> float:
    """Negative log-probability of a metric's value on its own, mean over all labels that are not blank."""
    total, count = 0.0, 0.0
    mask = grammar_mask(numbers)
    for part, text, lengths in text_batches(examples.ids, 128):
        labels = examples.labels[part]
        owners = np.broadcast_to(np.arange(labels.shape[1])[:, None], (*labels.shape, 1))
        targets = write_targets(labels[..., None], owners, numbers)
        memory = network.encode(text, lengths)
        total -= float(token_log_probs(network, memory, targets, mask).sum())
        count += float(targets.weight[..., 0].sum())
    return total / max(count, 1.0)


def given_tokens(numbers: NumberTokens, given: Given | None, part: NDArray[np.int64]) -> tuple[Tensor, Tensor] | None:
    """Tokens and metrics (B, P) of the known numbers, S of them each, prompts included."""
    if not given:
        return None
    tokens, metrics = [], []
    for metric, values in given.items():
        said = numbers.encode_array(values[part])
        tokens.append(np.concatenate([np.zeros((len(part), 1), dtype=np.int64), said], axis=1))
        metrics.append(np.full(tokens[-1].shape, metric))
    return torch.from_numpy(np.concatenate(tokens, axis=1)), torch.from_numpy(np.concatenate(metrics, axis=1))

"""Batches: texts of like length side by side, and labels as rows of number tokens.

Legend: see `nasrlm.rlm.network`. C chains of K metrics each stand in one decoder batch (R = C, T = K x S - 1).
Everything random comes from a generator that the step's number seeds, so training can go on from any step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.rlm.config import TrainConfig
from nasrlm.tokens import NumberTokens, TextTokenizer

_LONGEST_CHAIN = 8


@dataclass(frozen=True)
class Examples:
    """Texts with labels: what a model is trained and validated on.

    Attributes:
        texts: canonical texts.
        ids: text ids of each.
        labels: (N, M) float64, NaN = blank.
    """

    texts: Sequence[str]
    ids: Sequence[NDArray[np.int64]]
    labels: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, index: NDArray[np.int64]) -> Examples:
        """Some of the rows."""
        return Examples([self.texts[i] for i in index], [self.ids[i] for i in index], self.labels[index])


@dataclass(frozen=True)
class Targets:
    """Decoder rows with what they should say.

    Attributes:
        tokens: (B, C, T) inputs.
        metrics: (B, C, T) metric of each input.
        spots: (K x (S-1),) places in T whose output is scored.
        wanted: (B, C, K x (S-1)) right number tokens.
        weight: (B, C, K x (S-1)) 1.0 where a token counts.
    """

    tokens: Tensor
    metrics: Tensor
    spots: Tensor
    wanted: Tensor
    weight: Tensor


def pad(ids: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    """Text ids as (B, L) padded with 0, and their lengths (B,)."""
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    grid = np.zeros((len(ids), max(1, int(lengths.max(initial=1)))), dtype=np.int64)
    grid[np.arange(grid.shape[1]) < lengths[:, None]] = np.concatenate(ids)
    return torch.from_numpy(grid), torch.from_numpy(lengths)


def epoch_batches(lengths: NDArray[np.int64], train: TrainConfig, epoch: int) -> list[NDArray[np.int64]]:
    """Row numbers of each batch of one epoch: shuffled, texts of like length together, batches shuffled."""
    rng = np.random.default_rng([train.seed, 1, epoch])
    order = rng.permutation(len(lengths))
    # like lengths together, yet not always the same neighbours: sort within large shuffled pools
    pool = 64 * train.batch_size
    pools = [order[i : i + pool] for i in range(0, len(order), pool)]
    rows = np.concatenate([p[np.argsort(lengths[p], kind="stable")] for p in pools])
    batches = split_by_size(rows, lengths, train.batch_size, train.batch_tokens)
    return [batches[i] for i in rng.permutation(len(batches))]


def split_by_size(
    rows: NDArray[np.int64], lengths: NDArray[np.int64], most_rows: int, most_tokens: int
) -> list[NDArray[np.int64]]:
    """Cuts rows into batches of at most `most_rows` texts and `most_tokens` tokens with padding."""
    batches, start, longest = [], 0, 0
    for at, row in enumerate(rows):
        longest = max(longest, int(lengths[row]))
        if at > start and (at - start >= most_rows or longest * (at - start + 1) > most_tokens):
            batches.append(rows[start:at])
            start, longest = at, int(lengths[row])
    batches.append(rows[start:])
    return batches


def draw_targets(
    labels: NDArray[np.float64], numbers: NumberTokens, train: TrainConfig, rng: np.random.Generator
) -> Targets:
    """Chooses metrics, order and chains for a batch of labels (B, M), and writes the decoder rows."""
    batch, metrics = labels.shape
    wanted = min(train.metrics_per_example or metrics, metrics)
    chain = 1
    if wanted > 1 and rng.random() < train.chain:
        chain = int(rng.integers(2, min(wanted, _LONGEST_CHAIN) + 1))
    chains = wanted // chain
    blank = np.isnan(labels)
    # blanks come last, so that within a chain no label looks at a blank before it
    order = np.argsort(rng.random((batch, metrics)) + blank, axis=1)[:, : chains * chain]
    order = order.reshape(batch, chains, chain)
    if chain > 1 and rng.random() < 0.5:  # in half of the chained steps: the declared order
        late = np.take_along_axis(blank, order.reshape(batch, -1), 1).reshape(order.shape) * metrics
        order = np.take_along_axis(order, np.argsort(order + late, axis=2), 2)
    values = np.take_along_axis(labels, order.reshape(batch, -1), 1).reshape(order.shape)
    return write_targets(_noisy(values, numbers, train.label_noise, rng), order, numbers)


def write_targets(values: NDArray[np.float64], metrics: NDArray[np.int64], numbers: NumberTokens) -> Targets:
    """Decoder rows that say `values` (B, C, K; NaN = blank) of `metrics` (B, C, K)."""
    batch, chains, chain = values.shape
    slots = numbers.length + 1
    present = ~np.isnan(values)
    said = numbers.encode_array(np.where(present, values, 1.0))
    counts = np.repeat(present[..., None], numbers.length, axis=-1)
    counts[..., 1:] &= said[..., :1] != numbers.zero  # the digits behind zero are no choice
    tokens = np.zeros((batch, chains, chain, slots), dtype=np.int64)
    tokens[..., 1:] = said
    owner = np.repeat(metrics[..., None], slots, axis=-1)
    spots = (np.arange(chain)[:, None] * slots + np.arange(slots - 1)).reshape(-1)
    return Targets(
        tokens=torch.from_numpy(tokens.reshape(batch, chains, -1)[..., :-1].copy()),
        metrics=torch.from_numpy(owner.reshape(batch, chains, -1)[..., :-1].copy()),
        spots=torch.from_numpy(spots),
        wanted=torch.from_numpy(said.reshape(batch, chains, -1)),
        weight=torch.from_numpy(counts.reshape(batch, chains, -1).astype(np.float32)),
    )


def draw_texts(
    examples: Examples, rows: NDArray[np.int64], tokenizer: TextTokenizer, share: float, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Text ids of some rows, a share of them cut into pieces in another way."""
    ids = [examples.ids[i] for i in rows]
    if share > 0:
        for at in np.nonzero(rng.random(len(rows)) < share)[0]:
            other = tokenizer.encode([examples.texts[rows[at]]], sample=True, seed=rng)[0]
            # another segmentation is longer; a text near the limit keeps its own
            if len(other) <= 2 * len(ids[at]):
                ids[at] = np.asarray(other, dtype=np.int64)
    return ids


def grammar_mask(numbers: NumberTokens) -> Tensor:
    """(S-1, V): 0 where the grammar allows a number token, -inf elsewhere."""
    return torch.zeros(numbers.grammar.shape).masked_fill_(~torch.from_numpy(numbers.grammar), float("-inf"))


def _noisy(
    values: NDArray[np.float64], numbers: NumberTokens, noise: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    if noise == 0:
        return values
    moved = values * (1 + noise * rng.standard_normal(values.shape))
    size = np.abs(moved)
    inside = (size >= 10.0**numbers.min_exponent) & (size < 9.9 * 10.0**numbers.max_exponent)
    return np.where(inside, moved, values)

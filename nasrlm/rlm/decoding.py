"""Decoding: exact quantiles in one pass, samples, the most likely digits, log-probabilities.

Legend: see `nasrlm.rlm.network`. A number is written token by token; `u` (B, R) says how to choose. The tokens'
order is the order of numbers, so the quantile of level u is found by walking down: take the token in which the
cumulative probability crosses u, rescale u within that token, go on. A fresh uniform u in every step is a sample.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.rlm.batches import Targets, grammar_mask
from nasrlm.rlm.network import Cache, Memory, RLMNetwork
from nasrlm.tokens import NumberTokens

Draw = Callable[[], Tensor]  # gives a fresh u (B, R)

_BELOW_ONE = 1 - 2**-23  # u times any float32 total is then less than that total


def quantile_tokens(
    network: RLMNetwork,
    numbers: NumberTokens,
    memory: Memory,
    metrics: Tensor,
    levels: Tensor,
    prefix: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Number tokens of exact quantiles, all rows in one pass.

    Args:
        network: the model.
        numbers: its number tokens.
        memory: encoded texts.
        metrics: (R,) metric of each row.
        levels: (R,) level of each row, 0 to 1.
        prefix: tokens and metrics (B, P) of the numbers that are given, S of them each.

    Returns:
        (B, R, S-1).
    """
    writer = _Writer(network, numbers, memory, metrics.shape[0], prefix)
    u = levels.float().expand(writer.batch, -1)
    return writer.number(metrics.expand(writer.batch, -1), u, None)


def greedy_tokens(
    network: RLMNetwork,
    numbers: NumberTokens,
    memory: Memory,
    metrics: Tensor,
    prefix: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Number tokens, the most likely one in every step: (B, R, S-1)."""
    writer = _Writer(network, numbers, memory, metrics.shape[0], prefix)
    return writer.number(metrics.expand(writer.batch, -1), None, None)


def sample_tokens(
    network: RLMNetwork,
    numbers: NumberTokens,
    memory: Memory,
    metrics: Tensor,
    n: int,
    rng: np.random.Generator,
    prefix: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Joint samples: `n` rows a text write the metrics (M,) one after the other: (B, n, M, S-1)."""
    writer = _Writer(network, numbers, memory, n, prefix)
    device = metrics.device

    def draw() -> Tensor:
        return torch.from_numpy(rng.random((writer.batch, n), dtype=np.float32)).to(device)

    said = [writer.number(metric.expand(writer.batch, n), draw(), draw) for metric in metrics]
    return torch.stack(said, dim=2)


def token_log_probs(
    network: RLMNetwork, memory: Memory, targets: Targets, mask: Tensor, rng: torch.Generator | None = None
) -> Tensor:
    """Log-probabilities (B, C, K, S-1) of the wanted tokens under the grammar; 0 where no token counts."""
    hidden = network.decode(targets.tokens, targets.metrics, memory, rng=rng)
    logits = network.logits(hidden[:, :, targets.spots])
    length = mask.shape[0]
    logits = logits.unflatten(2, (-1, length)) + mask
    wanted = targets.wanted.unflatten(2, (-1, length))
    weight = targets.weight.unflatten(2, (-1, length))
    found = logits.gather(-1, wanted[..., None])[..., 0]
    # behind zero the grammar forbids what stands there: such places carry no weight and must give no NaN
    found = torch.where(weight > 0, found - logits.logsumexp(-1), 0.0)
    return found * weight


def number_loss(
    network: RLMNetwork, ids: Tensor, lengths: Tensor, targets: Targets, mask: Tensor, rng: torch.Generator | None
) -> Tensor:
    """Negative log-probability of a number, mean over the numbers that are not blank.

    Args:
        network: the model.
        ids: (B, L) text ids.
        lengths: (B,) their lengths.
        targets: decoder rows with the wanted tokens.
        mask: (S-1, V) grammar, 0 or -inf.
        rng: draws of dropout; None = evaluation.
    """
    log_probs = token_log_probs(network, network.encode(ids, lengths, rng), targets, mask, rng)
    count = targets.weight.unflatten(2, (-1, mask.shape[0]))[..., 0].sum()
    return -log_probs.sum() / count.clamp(min=1.0)


def sample_without_cache(
    network: RLMNetwork,
    numbers: NumberTokens,
    ids: Tensor,
    metric: int,
    n: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Samples the published way, for the benchmark: encoder and decoder run anew for every token of every sample.

    Args:
        network: the model.
        numbers: its number tokens.
        ids: (L,) ids of one text.
        metric: the metric.
        n: samples, decoded as one batch.
        rng: source of the draws.
    """
    batch = ids.expand(n, -1)
    lengths = torch.full((n,), ids.shape[0])
    said = torch.zeros(n, 1, 1, dtype=torch.int64)
    mask = grammar_mask(numbers)
    for place in range(numbers.length):
        memory = network.encode(batch, lengths)
        hidden = network.decode(said, torch.full_like(said, metric), memory)[:, :, -1]
        u = torch.from_numpy(rng.random((n, 1), dtype=np.float32))
        token, _ = _choose(network.logits(hidden) + mask[place], u)
        if place:
            token = torch.where(said[:, :, 1] == numbers.zero, numbers.digit, token)
        said = torch.cat([said, token[..., None]], dim=2)
    return numbers.decode_array(said[:, 0, 1:].numpy())


class _Writer:
    """Rows of number tokens that grow: keeps the cache and what the network has not read yet."""

    def __init__(
        self,
        network: RLMNetwork,
        numbers: NumberTokens,
        memory: Memory,
        rows: int,
        prefix: tuple[Tensor, Tensor] | None,
    ) -> None:
        self.network, self.numbers, self.memory, self.cache = network, numbers, memory, Cache()
        self.batch = memory.keys[0].shape[0]
        self.mask = grammar_mask(numbers).to(memory.keys[0].device)
        self.unread: list[Tensor] = []
        self.unread_metrics: list[Tensor] = []
        if prefix is not None:
            self.unread.append(prefix[0][:, None].expand(-1, rows, -1))
            self.unread_metrics.append(prefix[1][:, None].expand(-1, rows, -1))

    def number(self, metrics: Tensor, u: Tensor | None, draw: Draw | None) -> Tensor:
        """Writes one number a row: metrics (B, R), u (B, R) or None for the most likely, draw for samples."""
        self._push(torch.zeros_like(metrics), metrics)
        said: list[Tensor] = []
        for place in range(self.numbers.length):
            logits = self._read() + self.mask[place]
            below = said[0] < self.numbers.zero if place else None
            token, u = self._choose(logits, u, below)
            if place:
                token = torch.where(said[0] == self.numbers.zero, self.numbers.digit, token)
            said.append(token)
            self._push(token, metrics)
            u = u if draw is None else draw()
        return torch.stack(said, dim=-1)

    def _choose(self, logits: Tensor, u: Tensor | None, below: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if u is None:
            return logits.argmax(-1), None
        if below is None:
            return _choose(logits, u)
        digit = self.numbers.digit  # below zero a larger digit is a smaller number: walk the digits backwards
        part = logits[..., digit:]
        part = torch.where(below[..., None], part.flip(-1), part)
        token, u = _choose(part, u)
        return digit + torch.where(below, 9 - token, token), u

    def _push(self, tokens: Tensor, metrics: Tensor) -> None:
        self.unread.append(tokens[..., None])
        self.unread_metrics.append(metrics[..., None])

    def _read(self) -> Tensor:
        """Lets the network read what is new; logits (B, R, V) of what comes next."""
        tokens, metrics = torch.cat(self.unread, dim=2), torch.cat(self.unread_metrics, dim=2)
        self.unread, self.unread_metrics = [], []
        hidden = self.network.decode(tokens, metrics, self.memory, self.cache)
        return self.network.logits(hidden[:, :, -1])


def _choose(logits: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """The token (B, R) in which the cumulative probability crosses u, and u rescaled within it."""
    probability = logits.softmax(-1)
    cumulative = probability.cumsum(-1)
    aim = u.clamp(0, _BELOW_ONE) * cumulative[..., -1]
    token = (cumulative <= aim[..., None]).sum(-1, keepdim=True)
    inside = probability.gather(-1, token)[..., 0]
    before = cumulative.gather(-1, token)[..., 0] - inside
    return token[..., 0], ((aim - before) / inside).clamp(0, _BELOW_ONE)

"""The network: a pre-norm encoder-decoder.

Legend of the letters in comments and docstrings:

    B batch (texts)   L text tokens   R decoder rows of one text   T number and prompt tokens of one row
    M metrics   D width   H heads   E width of a head   F hidden width   V number vocabulary   S slots

The encoder reads a text once. The decoder writes R rows a text that all look at the same memory: the queries of the
rows stand side by side, (B, H, R x T, E), against keys and values (B, H, L, E) that are computed once. A row is

    prompt of metric a, its number tokens, prompt of metric b, its number tokens ...

Every token also carries its metric and its slot (prompt = 0, first number token = 1 ...).

Attention is written out: on CPUs in bfloat16 it trains several times faster than torch's fused kernel. Long texts
use the fused kernel, which needs no L x L memory.

Sources: Vaswani et al. 2017 (encoder-decoder); Xiong et al. 2020 (pre-norm); Su et al. 2021 (rotary positions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nasrlm.rlm.config import RLMConfig

_FUSED_FROM = 1024  # text tokens from which the fused kernel is used
_ROTARY_BASE = 10_000.0


@dataclass
class Memory:
    """What the decoder needs to know of B texts: keys and values of each layer, and the mask of padding."""

    keys: list[Tensor]  # each (B, H, E, L): ready to be multiplied
    values: list[Tensor]  # each (B, H, L, E)
    mask: Tensor | None  # (B, 1, 1, L), 0 or -inf; None when no text is padded

    def select(self, index: Tensor) -> Memory:
        """The memory of some of the texts."""
        mask = None if self.mask is None else self.mask[index]
        return Memory([k[index] for k in self.keys], [v[index] for v in self.values], mask)


@dataclass
class Cache:
    """Self-attention keys and values of the tokens written so far, one pair a layer, each (B x R, H, T, E)."""

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Tokens written so far."""
        return self.keys[0].shape[2] if self.keys else 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds tokens to one layer and returns all of that layer."""
        if layer == len(self.keys):
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], k], dim=2)
            self.values[layer] = torch.cat([self.values[layer], v], dim=2)
        return self.keys[layer], self.values[layer]


class EncoderLayer(nn.Module):
    """Self-attention over the text, then the feed-forward part; both pre-norm."""

    def __init__(self, config: RLMConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm = nn.LayerNorm(config.width, bias=False)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], mask: Tensor | None, drop: Drop) -> Tensor:
        q, k, v = split_heads(self.qkv(self.norm(x)), self.heads, 3)
        y = attention(rotate(q, rotary), rotate(k, rotary).transpose(-1, -2), v, mask)
        x = x + drop(self.out(join_heads(y)))
        return x + drop(self.feed_forward(x))


class DecoderLayer(nn.Module):
    """Causal self-attention within a row, attention to the text, feed-forward; all pre-norm."""

    def __init__(self, config: RLMConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm = nn.LayerNorm(config.width, bias=False)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.cross_norm = nn.LayerNorm(config.width, bias=False)
        self.cross_q = nn.Linear(config.width, config.width, bias=False)
        self.cross_kv = nn.Linear(config.width, 2 * config.width, bias=False)
        self.cross_out = nn.Linear(config.width, config.width, bias=False)
        self.feed_forward = FeedForward(config)

    def memory(self, text: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, H, E, L) and values (B, H, L, E) of encoded texts (B, L, D)."""
        k, v = split_heads(self.cross_kv(text), self.heads, 2)
        return k.transpose(-1, -2).contiguous(), v.contiguous()

    def forward(
        self, x: Tensor, memory: Memory, cache: Cache, layer: int, rotary: tuple[Tensor, Tensor], drop: Drop
    ) -> Tensor:
        rows, length = x.shape[:3], x.shape[2]  # x is (B, R, T, D)
        q, k, v = split_heads(self.qkv(self.norm(x)).flatten(0, 1), self.heads, 3)
        k, v = cache.extend(layer, rotate(k, rotary), v)
        causal = _causal(length, k.shape[2], x) if length > 1 else None
        y = join_heads(attention(rotate(q, rotary), k.transpose(-1, -2), v, causal))
        x = x + drop(self.out(y.unflatten(0, rows[:2])))
        (q,) = split_heads(self.cross_q(self.cross_norm(x)).flatten(1, 2), self.heads, 1)
        y = join_heads(attention(q, memory.keys[layer], memory.values[layer], memory.mask))
        x = x + drop(self.cross_out(y.unflatten(1, rows[1:])))
        return x + drop(self.feed_forward(x))


class FeedForward(nn.Module):
    """Pre-norm two-layer part with GELU."""

    def __init__(self, config: RLMConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(self.norm(x))))


class Drop:
    """Dropout of whole channels, one draw a text: the draw costs B x D numbers in place of B x L x D.

    Args:
        share: share of the channels that are silenced.
        rng: where the draws come from; None means evaluation (nothing is silenced).
    """

    def __init__(self, share: float, rng: torch.Generator | None) -> None:
        self.share, self.rng = share, rng

    def __call__(self, x: Tensor) -> Tensor:
        if self.rng is None or self.share == 0:
            return x
        shape = (x.shape[0], *[1] * (x.dim() - 2), x.shape[-1])
        keep = torch.rand(shape, generator=self.rng) >= self.share
        return x * (keep.to(x) / (1 - self.share))


class RLMNetwork(nn.Module):
    """Text ids and number tokens in, logits of number tokens out.

    Args:
        config: the shape; `config.metrics` gives the number of prompts M.
        text_vocabulary: number of text ids, padding (0) included.
        number_vocabulary: V.
        number_length: number tokens of one number.
        compounds: text ids that stand for several words, with the ids of these words. What is read at such an id is the
            sum of the words' vectors and its own, which starts at zero: a rare line is read as its words.
    """

    def __init__(
        self,
        config: RLMConfig,
        text_vocabulary: int,
        number_vocabulary: int,
        number_length: int,
        compounds: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.parts: Tensor
        self.starts: Tensor
        parts = [[i, *(compounds or {}).get(i, ())] for i in range(text_vocabulary)] if compounds else []
        starts = np.cumsum([0, *map(len, parts)])[: len(parts)]
        self.register_buffer(
            "parts", torch.tensor([p for row in parts for p in row], dtype=torch.long), persistent=False
        )
        self.register_buffer("starts", torch.tensor(starts, dtype=torch.long), persistent=False)
        self.slots = number_length + 1
        self.text = nn.Embedding(text_vocabulary, config.width)
        self.number = nn.Embedding(number_vocabulary, config.width)
        self.metric = nn.Embedding(len(config.metrics), config.width)
        self.slot = nn.Embedding(self.slots, config.width)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.encoder_norm = nn.LayerNorm(config.width, bias=False)
        self.decoder_norm = nn.LayerNorm(config.width, bias=False)
        self.head = nn.Linear(config.width, number_vocabulary)
        self._initialise(torch.Generator().manual_seed(config.seed))
        if compounds:
            with torch.no_grad():
                self.text.weight[list(compounds)] = 0.0

    def encode(self, ids: Tensor, lengths: Tensor, rng: torch.Generator | None = None) -> Memory:
        """Reads texts.

        Args:
            ids: (B, L), padded with 0 at the end.
            lengths: (B,) tokens of each text.
            rng: draws of dropout; None = evaluation.
        """
        x, mask = self.read(ids, lengths, rng)
        pairs = [cast(DecoderLayer, layer).memory(x) for layer in self.decoder]
        return Memory([k for k, _ in pairs], [v for _, v in pairs], mask)

    def read(self, ids: Tensor, lengths: Tensor, rng: torch.Generator | None = None) -> tuple[Tensor, Tensor | None]:
        """What the encoder makes of texts, (B, L, D), and the mask of padding; arguments as for `encode`."""
        x = F.embedding(ids, self._text_vectors())
        drop = Drop(self.config.dropout, rng)
        mask = padding_mask(lengths, ids.shape[1], x)
        rotary = rotary_table(ids.shape[1], 0, self.config.width // self.config.heads, x)
        for layer in self.encoder:
            x = layer(x, rotary, mask, drop)
        return self.encoder_norm(x), mask

    def _text_vectors(self) -> Tensor:
        if not len(self.starts):
            return self.text.weight
        return F.embedding_bag(self.parts, self.text.weight, self.starts, mode="sum")

    def decode(
        self,
        tokens: Tensor,
        metrics: Tensor,
        memory: Memory,
        cache: Cache | None = None,
        rng: torch.Generator | None = None,
    ) -> Tensor:
        """Hidden states of decoder tokens; tokens of earlier calls are in the cache.

        Args:
            tokens: (B, R, T) number tokens; what stands at the place of a prompt (slot 0) does not matter.
            metrics: (B, R, T) metric that each token belongs to.
            memory: what `encode` gave.
            cache: state of the tokens before these; extended in place. A row is at slot `cache.length % slots`.
            rng: draws of dropout; None = evaluation.

        Returns:
            (B, R, T, D), ready for `logits`.
        """
        cache = Cache() if cache is None else cache
        start, length = cache.length, tokens.shape[2]
        slot = torch.arange(start, start + length, device=tokens.device) % self.slots
        number = self.number(tokens)
        x = number.masked_fill((slot == 0)[:, None], 0.0) + self.metric(metrics) + self.slot(slot)
        rotary = rotary_table(length, start, self.config.width // self.config.heads, x)
        drop = Drop(self.config.dropout, rng)
        for index, layer in enumerate(self.decoder):
            x = layer(x, memory, cache, index, rotary, drop)
        return self.decoder_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., D) to (..., V) in float32, not yet masked by the grammar."""
        return self.head(hidden).float()

    def _initialise(self, rng: torch.Generator) -> None:
        layers = 2 * self.config.encoder_layers + 3 * self.config.decoder_layers
        for name, weight in self.named_parameters():
            if weight.dim() < 2:
                continue
            module = self.get_submodule(name.rpartition(".")[0])
            std = 0.5 if isinstance(module, nn.Embedding) else weight.shape[1] ** -0.5
            if name.endswith(("out.weight", "down.weight")):
                std /= layers**0.5
            with torch.no_grad():
                weight.normal_(0.0, std, generator=rng)
        nn.init.zeros_(self.head.bias)
        with torch.no_grad():
            self.head.weight.mul_(0.1)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax attention: q (..., Q, E), k already transposed (..., E, K), v (..., K, E), mask added to scores."""
    if k.shape[-1] >= _FUSED_FROM:
        return F.scaled_dot_product_attention(q, k.transpose(-1, -2), v, attn_mask=mask)
    scores = (q * q.shape[-1] ** -0.5) @ k
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ v


def split_heads(x: Tensor, heads: int, parts: int) -> Sequence[Tensor]:
    """(N, T, parts x D) to `parts` tensors (N, H, T, E)."""
    return x.unflatten(-1, (parts, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def join_heads(x: Tensor) -> Tensor:
    """(N, H, T, E) to (N, T, D)."""
    return x.transpose(1, 2).flatten(2)


def rotary_table(length: int, start: int, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines (length, E) of positions start ... start + length - 1."""
    rate = _ROTARY_BASE ** (-torch.arange(0, width, 2, dtype=torch.float32, device=like.device) / width)
    angle = torch.arange(start, start + length, dtype=torch.float32, device=like.device)[:, None] * rate
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def rotate(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Turns pairs of channels of x (N, H, T, E) by the angle of their position."""
    cos, sin = rotary
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


def padding_mask(lengths: Tensor, longest: int, like: Tensor) -> Tensor | None:
    """(B, 1, 1, L) with -inf over padding; None when there is no padding."""
    if bool((lengths == longest).all()):
        return None
    outside = torch.arange(longest, device=like.device) >= lengths[:, None]
    return torch.zeros(outside.shape, dtype=like.dtype, device=like.device).masked_fill_(outside, float("-inf"))[
        :, None, None
    ]


def _causal(rows: int, columns: int, like: Tensor) -> Tensor:
    blocked = torch.ones(rows, columns, dtype=torch.bool, device=like.device).triu(columns - rows + 1)
    return torch.zeros(rows, columns, dtype=like.dtype, device=like.device).masked_fill_(blocked, float("-inf"))

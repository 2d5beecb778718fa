"""Transformers, recurrent networks, sound, several inputs and several outputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class FusedAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))


class VitBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width, eps=1e-6), FusedAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.token, self.positions = nn.Parameter(torch.zeros(1, 1, 32)), nn.Parameter(torch.zeros(1, 17, 32))
        self.blocks = nn.Sequential(*(VitBlock(32, 4) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(32, eps=1e-6), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class TorchEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.norm, self.attention = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head(x.mean(1))


class Transformers(nn.Module):
    """A model of the transformers library; gives its first tensor."""

    def __init__(self, model: nn.Module, **options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None and self.options:  # without one, decoders look for packed sequences by a TorchScript-less way
            mask = torch.ones_like(ids)
        return self.model(ids, **self.options, **({} if mask is None else {"attention_mask": mask}))[0]


_SMALL = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


def bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    return Transformers(BertModel(BertConfig(**_SMALL, max_position_embeddings=64), add_pooling_layer=False))


def gpt(attention: str) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=2, n_head=2, use_cache=False)
    config._attn_implementation = attention
    return Transformers(GPT2LMHeadModel(config), use_cache=False)


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**_SMALL, max_position_embeddings=64, use_cache=False, tie_word_embeddings=False)
    config._attn_implementation = "eager"
    return Transformers(LlamaForCausalLM(config), use_cache=False)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module], layers: int, both: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.cells = kind(16, 24, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(24 * (1 + both), 5)

    def forward(self, ids: Tensor) -> Tensor:
        y, state = self.cells(self.embedding(ids))
        hidden = state[0] if isinstance(state, tuple) else state
        if self.cells.bidirectional:
            return self.head(torch.cat([hidden[-2], hidden[-1]], 1))
        return self.head(y[:, -1])


class Audio(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def separable(a: int, b: int, s: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv1d(a, a, 9, s, 4, groups=a, bias=False), nn.BatchNorm1d(a), nn.ReLU(),
                nn.Conv1d(a, b, 1, bias=False), nn.BatchNorm1d(b), nn.ReLU(),
            )  # fmt: skip

        self.body = nn.Sequential(
            nn.Conv1d(8, 16, 5, padding=2), separable(16, 32, 2), nn.AvgPool1d(2), separable(32, 32, 1)
        )
        self.pool, self.head = nn.AdaptiveAvgPool1d(1), nn.Linear(32, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.body(x)).squeeze(-1))


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.vector, self.head = nn.Sequential(nn.Linear(6, 8), nn.ReLU()), nn.Linear(16, 3)

    def forward(self, image: Tensor, vector: Tensor) -> Tensor:
        return self.head(torch.cat([self.image(image), self.vector(vector)], 1))


class Detector(nn.Module):
    """A pyramid of two levels with heads of their own; scores and boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.low = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU())
        self.high = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
        self.side, self.top = nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1)
        self.scores = nn.ModuleList(nn.Conv2d(8, 2 * 3, 3, padding=1) for _ in range(2))
        self.boxes = nn.ModuleList(nn.Conv2d(8, 2 * 4, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = self.low(x)
        b = self.top(self.high(a))
        levels = [self.side(a) + F.interpolate(b, scale_factor=2.0, mode="nearest"), b]

        def flat(y: Tensor, width: int) -> Tensor:
            return y.permute(0, 2, 3, 1).reshape(y.shape[0], -1, width)

        scores = torch.cat([flat(head(y), 3) for head, y in zip(self.scores, levels, strict=True)], 1)
        boxes = torch.cat([flat(head(y), 4) for head, y in zip(self.boxes, levels, strict=True)], 1)
        return scores.sigmoid(), boxes


SEQUENCE = {
    "vit": VisionTransformer,
    "torch_attention": TorchEncoder,
    "bert": bert,
    "bert_masked": bert,
    "gpt_eager": lambda: gpt("eager"),
    "gpt_sdpa": lambda: gpt("sdpa"),
    "llama": llama,
    "lstm": lambda: Recurrent(nn.LSTM, 2, True),
    "gru": lambda: Recurrent(nn.GRU, 1, False),
    "audio": Audio,
    "two_inputs": TwoInputs,
    "detector": Detector,
}
"""Networks with inputs of their own (see `networks.inputs`)."""

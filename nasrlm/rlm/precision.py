"""Which float type is faster on this machine: measured once a process."""

from __future__ import annotations

import time
from functools import lru_cache

import torch
import torch.nn.functional as F

_GAIN = 1.3  # bfloat16 must be this much faster to be worth its rounding


def resolve(precision: str) -> torch.dtype:
    """The type that "auto", "float32" or "bfloat16" stands for here."""
    if precision == "auto":
        return fastest()
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


@lru_cache(maxsize=1)
def fastest() -> torch.dtype:
    """bfloat16 where its matrix products are clearly faster than float32's, else float32."""
    seconds = {dtype: _seconds(dtype) for dtype in (torch.float32, torch.bfloat16)}
    return torch.bfloat16 if seconds[torch.bfloat16] * _GAIN < seconds[torch.float32] else torch.float32


def _seconds(dtype: torch.dtype) -> float:
    x, weight = torch.ones(1024, 128, dtype=dtype), torch.ones(512, 128, dtype=dtype)
    best = float("inf")
    with torch.no_grad():
        for _ in range(6):
            start = time.perf_counter()
            F.linear(x, weight)
            best = min(best, time.perf_counter() - start)
    return best

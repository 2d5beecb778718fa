"""A small model, trained once on a rule that it can learn: the number of convolutions, and twice that, and noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig

TINY = RLMConfig(width=32, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=64)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def make_rule_texts(n: int, seed: int = 0) -> tuple[list[str], pd.DataFrame]:
    """Texts of 4 to 12 lines with a known number of convolutions, and values that follow from it."""
    rng = np.random.default_rng(seed)
    texts, convs = [], []
    for _ in range(n):
        lines = ["conv 8 k3" if rng.random() < 0.5 else "relu" for _ in range(rng.integers(3, 12))]
        texts.append("\n".join(["nasrlm1", "in 1x3x8x8", *lines]))
        convs.append(sum(line.startswith("conv") for line in lines))
    count = np.array(convs, dtype=float)
    return texts, pd.DataFrame(
        {"accuracy/rule": 50 + 4 * count, "latency_ms/rule": 0.5 + count, "offset/rule": 2 - count}
    )


@pytest.fixture(scope="session")
def rule_texts() -> Callable[..., tuple[list[str], pd.DataFrame]]:
    """(n, seed=0) -> texts and their values."""
    return make_rule_texts


@pytest.fixture(scope="session")
def trained() -> RegressionLM:
    texts, values = make_rule_texts(400)
    values.iloc[::5, 1] = np.nan
    train = TrainConfig(epochs=40, batch_size=32, learning_rate=3e-3, validation_fraction=0, precision="float32")
    return RegressionLM(TINY, precision="float32").fit(texts, values, train=train)

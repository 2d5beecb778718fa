"""A small evaluator whose values follow from the parameters alone, and the space it is for."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from nasrlm.spaces import get_space


class ToyEvaluator:
    """Accuracy grows with depth and width, latency grows faster; remembers what it was asked."""

    name = "toy"
    metrics = ("accuracy/toy", "latency_ms/toy", "params")

    def __init__(self, fails=lambda architecture: False):
        self.asked: list[str] = []
        self.calls = 0
        self.fails = fails

    def evaluate(self, architectures, metrics):
        self.calls += 1
        self.asked += [architecture.id for architecture in architectures]
        table = pd.DataFrame(
            [self.values(architecture) for architecture in architectures],
            index=pd.Index([architecture.id for architecture in architectures], name="architecture_id"),
        )
        return table[[*metrics, *(name for name in table if name.rpartition("@")[0] in metrics)]]

    def values(self, architecture):
        p = architecture.params
        size = p["depth"] * p["width"] * (1 + p["kernel"]) + 3 * p["residual"] + p.get("skip_kernel", 0)
        accuracy = 50 + 10 * math.log(size) + (1 if p["pool"] == "max" else 0)
        return {
            "accuracy/toy": math.nan if self.fails(architecture) else accuracy,
            "accuracy/toy@0.1": accuracy - 2,
            "accuracy/toy@0.9": accuracy + 1,
            "latency_ms/toy": 0.1 * size + 0.05 * p["kernel"] + (0.2 if p["pool"] == "max" else 0),
            "params": 100.0 * size,
        }


@pytest.fixture
def toy():
    return ToyEvaluator()


@pytest.fixture
def toy_class():
    return ToyEvaluator


@pytest.fixture
def tiny():
    return get_space("tiny")

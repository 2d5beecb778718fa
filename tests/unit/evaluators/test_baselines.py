"""The baselines that every predictor is printed beside."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nasrlm.datasets import Table, load_table
from nasrlm.evaluators.baselines import (
    BASELINES,
    baseline_scores,
    forest_baseline,
    head_baseline,
    macs_baseline,
    operator_counts,
)
from nasrlm.graph import costs
from nasrlm.rlm import RLMConfig, TrainConfig
from nasrlm.spaces import get_space

SPACE = get_space("tiny")


def table() -> Table:
    architectures = list(SPACE.enumerate())
    macs = [float(costs(a).macs) for a in architectures]
    convolutions = [float(a.params["depth"]) + 0.1 * float(a.params["kernel"]) for a in architectures]
    rows = {"arch": [a.string for a in architectures], "macs_ms": macs, "conv_ms": convolutions}
    return load_table(pd.DataFrame(rows), space=SPACE, metrics={"macs_ms": "x/macs", "conv_ms": "x/conv"})


def test_operator_counts_tell_kernels_apart() -> None:
    three = SPACE.architecture(next(a for a in SPACE.enumerate() if a.params["kernel"] == 3 and a.params["depth"] == 3))
    counts = operator_counts([three])
    assert counts.iloc[0].filter(like="k3").sum() == 3
    assert counts["relu"].tolist() == [3]


def test_macs_rank_what_follows_macs_and_the_forest_learns_the_rest() -> None:
    t = table()
    order = np.random.default_rng(0).permutation(len(t))
    train, test = order[:100], order[100:]
    scores = baseline_scores(t, train, test, seed=0, trees=20)
    assert list(scores.columns) == ["n", "macs_rho", "macs_tau", "forest_rho", "forest_tau"]
    assert scores.loc["x/macs", "macs_rho"] == 1.0
    assert scores.loc["x/conv", "forest_rho"] > 0.95 > scores.loc["x/conv", "macs_rho"]
    assert (scores["n"] == len(test)).all()


def test_forest_skips_blanks_and_repeats_itself() -> None:
    t = table()
    t.values.iloc[:50, 0] = np.nan
    t.values.iloc[:, 1] = np.nan
    train, test = np.arange(0, 100), np.arange(100, 110)
    one, two = (forest_baseline(t, train, test, t.metrics, seed=3, trees=5) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)
    assert one["x/macs"].notna().all() and one["x/conv"].isna().all()
    assert one.index.tolist() == [t.architectures[i].id for i in test]


def test_macs_baseline_is_the_same_for_every_metric() -> None:
    values = macs_baseline(table().architectures[:4], ["a", "b"])
    assert (values["a"] == values["b"]).all() and values["a"].tolist() == [
        float(costs(a).macs) for a in table().architectures[:4]
    ]


def test_the_head_stands_beside_when_asked_for() -> None:
    t = table()
    t.values.iloc[:10, 0] = np.nan
    order = np.random.default_rng(0).permutation(len(t))
    config = RLMConfig(width=16, heads=2, encoder_layers=1, metrics=("ignored",))
    settings = TrainConfig(epochs=30, batch_size=16, learning_rate=3e-3, validation_fraction=0, precision="float32")
    head = {"config": config, "settings": settings}
    scores = baseline_scores(t, order[:110], order[110:], baselines=["macs", "head"], **head)
    assert list(scores.columns) == ["n", "macs_rho", "macs_tau", "head_rho", "head_tau"]
    assert scores.loc["x/conv", "head_rho"] > 0.9


def test_what_learns_is_blank_without_training_rows() -> None:
    t, none = table(), np.array([], dtype=np.int64)
    scores = baseline_scores(t, none, np.arange(20), baselines=BASELINES)
    assert scores["macs_rho"].notna().all()
    assert scores[["forest_rho", "head_rho", "head_tau"]].isna().all(axis=None)


def test_a_metric_without_labels_is_blank_for_the_head() -> None:
    t = table()
    t.values.iloc[:, 1] = np.nan
    config = RLMConfig(width=8, heads=1, encoder_layers=1)
    settings = TrainConfig(steps=1, precision="float32")
    found = head_baseline(t, np.arange(20), np.arange(20, 30), t.metrics, config, settings)
    assert found["x/macs"].notna().all() and found["x/conv"].isna().all()
    assert found.index.tolist() == [t.architectures[i].id for i in range(20, 30)]

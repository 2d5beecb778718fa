"""Rank scores: right on hand-made cases, and honest where ranks are not defined."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from nasrlm.datasets import rank_scores, score_frame


def test_perfect_reversed_and_hand_counted() -> None:
    assert rank_scores([1, 2, 3], [10, 20, 30]).rho == 1.0
    assert rank_scores([1, 2, 3], [3, 2, 1]).tau == -1.0
    # One of six pairs out of order: tau = (5 - 1) / 6; squared rank differences 1 + 1: rho = 1 - 6 * 2 / 60.
    scores = rank_scores([1, 2, 3, 4], [1, 3, 2, 4])
    assert scores.tau == pytest.approx(4 / 6) and scores.rho == pytest.approx(0.8)
    assert scores.mae == 0.5 and scores.n == 4


def test_constant_predictions_rank_nothing_and_are_flagged() -> None:
    scores = rank_scores([1, 2, 3], [5, 5, 5])
    assert scores.rho == scores.tau == 0 and scores.constant
    assert not rank_scores([1, 2], [1, 2]).constant
    flat = rank_scores([5, 5, 5], [1, 2, 3])
    assert math.isnan(flat.rho) and not flat.constant


def test_unknown_pairs_are_left_out() -> None:
    scores = rank_scores([1, math.nan, 3, 2], [1, 2, math.nan, 5])
    assert (scores.n, scores.rho) == (2, 1.0)
    assert rank_scores([], []).n == 0
    with pytest.raises(ValueError, match="same length"):
        rank_scores([1], [1, 2])


def test_score_frame_takes_the_shared_metrics() -> None:
    true = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    predicted = pd.DataFrame({"b": [2.0, 1.0, 3.0], "a@0.1": [0.0, 0.0, 0.0]})
    scores = score_frame(true, predicted)
    assert scores.index.tolist() == ["b"] and scores.loc["b", "rho"] == 0.5
    assert score_frame(true, pd.DataFrame()).empty

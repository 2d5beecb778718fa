"""RegressionLM: what it learns, answers and refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from nasrlm.errors import MetricError, TableError, TextTooLongError, UsageError
from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig

Rule = Callable[..., tuple[list[str], pd.DataFrame]]

QUICK = TrainConfig(epochs=1, batch_size=16, validation_fraction=0, precision="float32")
TINY = RLMConfig(width=16, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=16)


def test_it_learns_a_rule_and_its_answers_vary(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, values = rule_texts(60, seed=1)
    scores = trained.score(texts, values)
    assert list(scores.columns) == ["rho", "tau", "mae", "n"]
    assert (scores["rho"] > 0.95).all(), scores
    assert (scores["n"] == 60).all()
    predicted = trained.predict(texts)
    assert (predicted.nunique() >= 5).all()  # a model that answers the same to everything is broken


def test_predict_gives_a_frame_with_metrics_then_quantiles(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, _ = rule_texts(5, seed=2)
    frame = trained.predict(texts, ["offset/rule", "accuracy/rule"], quantiles=(0.1, 0.9))
    assert list(frame.columns) == [
        "offset/rule",
        "accuracy/rule",
        "offset/rule@0.1",
        "accuracy/rule@0.1",
        "offset/rule@0.9",
        "accuracy/rule@0.9",
    ]
    assert frame.index.tolist() == [0, 1, 2, 3, 4]
    assert frame.index.name == "architecture_id"
    for metric in ("offset/rule", "accuracy/rule"):
        assert (frame[f"{metric}@0.1"] <= frame[metric]).all()
        assert (frame[metric] <= frame[f"{metric}@0.9"]).all()


@pytest.mark.parametrize("point", ["median", "mean", "greedy"])
def test_points_agree_where_the_model_is_sure(trained: RegressionLM, point: str, rule_texts: Rule) -> None:
    texts, values = rule_texts(30, seed=3)
    error = (trained.predict(texts, ["accuracy/rule"], point=point) - values[["accuracy/rule"]]).abs()
    assert error["accuracy/rule"].median() < 2


def test_equal_texts_get_equal_answers_and_order_is_kept(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, _ = rule_texts(6, seed=4)
    both = trained.predict(texts + texts[::-1])
    np.testing.assert_array_equal(both.to_numpy()[:6], both.to_numpy()[:5:-1])
    one_by_one = pd.concat([trained.predict([text]) for text in texts])
    np.testing.assert_allclose(one_by_one.to_numpy(), both.to_numpy()[:6], rtol=1e-2)


def test_batch_size_does_not_matter(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, _ = rule_texts(9, seed=5)
    np.testing.assert_allclose(trained.predict(texts, batch_size=2), trained.predict(texts), rtol=1e-3)


def test_given_metrics_are_left_out_and_believed(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, values = rule_texts(20, seed=6)
    given = {"latency_ms/rule": values["latency_ms/rule"].to_numpy(), "accuracy/rule": values["accuracy/rule"]}
    frame = trained.predict(texts, given=given)
    assert list(frame.columns) == ["offset/rule"]
    assert (frame["offset/rule"] - values["offset/rule"]).abs().median() < 0.5
    with pytest.raises(UsageError, match="both given and asked for"):
        trained.predict(texts, ["offset/rule"], given={"offset/rule": 1.0})


def test_samples_follow_the_distribution(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, _ = rule_texts(3, seed=7)
    drawn = trained.sample(texts, n=400, seed=0)
    assert drawn.shape == (3, 400, 3)
    np.testing.assert_array_equal(drawn, trained.sample(texts, n=400, seed=0))
    median = trained.predict(texts, ["accuracy/rule"])["accuracy/rule"]
    share_below = (drawn[:, :, 0] < median.to_numpy()[:, None]).mean(1)
    share_up_to = (drawn[:, :, 0] <= median.to_numpy()[:, None]).mean(1)
    assert (share_below < 0.5 + 0.1).all() and (share_up_to > 0.5 - 0.1).all()


def test_log_prob_is_the_chain_rule_and_skips_blanks(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, values = rule_texts(8, seed=8)
    full = trained.log_prob(texts, values)
    assert (full < 0).all(axis=None)
    blank = values.copy()
    blank.iloc[2, 0] = np.nan
    part = trained.log_prob(texts, blank)
    assert part.iloc[2, 0] == 0.0
    np.testing.assert_allclose(part.iloc[0], full.iloc[0], atol=1e-5)
    alone = trained.log_prob(texts, values[["latency_ms/rule", "offset/rule"]])
    np.testing.assert_allclose(part.iloc[2, 1:], alone.iloc[2], atol=1e-5)
    wrong = trained.log_prob(texts, values + 30)
    assert (wrong.sum(axis=1) < full.sum(axis=1)).all()


def test_sampled_median_the_slow_way_agrees(trained: RegressionLM, rule_texts: Rule) -> None:
    texts, _ = rule_texts(6, seed=9)
    slow = trained.sampled_median_uncached(texts, "accuracy/rule", n=64)
    fast = trained.predict(texts, ["accuracy/rule"])["accuracy/rule"]
    assert slow.index.equals(fast.index)
    assert (slow - fast).abs().median() < 2


def test_fine_tuning_adds_a_metric_and_keeps_the_tokenizer(trained: RegressionLM, rule_texts: Rule) -> None:
    model = copy.deepcopy(trained)
    texts, values = rule_texts(200, seed=10)
    new = pd.DataFrame({"latency_ms/new": 2 * values["latency_ms/rule"]})
    train = TrainConfig(epochs=12, batch_size=16, learning_rate=2e-3, validation_fraction=0, precision="float32")
    model.fine_tune(texts, new, like={"latency_ms/new": "latency_ms/rule"}, train=train)
    assert model.metrics == (*trained.metrics, "latency_ms/new")
    assert model.tokenizer is not None and model.tokenizer.to_bytes() == trained.tokenizer.to_bytes()
    test, true = rule_texts(60, seed=11)
    assert model.score(test, {"latency_ms/new": 2 * true["latency_ms/rule"]})["rho"].iloc[0] > 0.85
    with pytest.raises(MetricError, match="Nearest: latency_ms/rule"):
        model.fine_tune(texts, new, like={"latency_ms/new": "latency_ms/rul"})


def test_unknown_metric_names_the_nearest(trained: RegressionLM) -> None:
    with pytest.raises(MetricError, match=r"does not know the metric 'accuracy/rul'. Nearest: accuracy/rule"):
        trained.predict(["nasrlm1\nin 1x3x8x8"], ["accuracy/rul"])


def test_an_empty_list_gives_an_empty_frame(trained: RegressionLM) -> None:
    assert trained.predict([], quantiles=(0.1,)).shape == (0, 6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"point": "meidan"}, "Allowed: median"),
        ({"quantiles": (1.5,)}, "quantile 1.5"),
        ({"given": {"offset/rule": float("nan")}}, "given"),
        ({"given": {"offset/rule": [1.0, 2.0]}}, "has shape"),
        ({"given": {"offset/rule": "fast"}}, "is no number"),
    ],
)
def test_wrong_requests(trained: RegressionLM, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        trained.predict(["nasrlm1\nin 1x3x8x8"], **options)


def test_wrong_values(rule_texts: Rule) -> None:
    texts, values = rule_texts(10)
    model = RegressionLM(TINY)
    with pytest.raises(TableError, match="9 rows, inputs 10"):
        model.fit(texts, values.iloc[:9], train=QUICK)
    with pytest.raises(TableError, match="are no numbers"):
        model.fit(texts, {"a": ["fast"] * 10}, train=QUICK)
    with pytest.raises(MetricError, match="'a' has no value"):
        model.fit(texts, {"a": [np.nan] * 10}, train=QUICK)
    with pytest.raises(UsageError, match="metric 'a': the value inf"):
        model.fit(texts, {"a": [np.inf] * 10}, train=QUICK)
    with pytest.raises(TableError, match="no rows"):
        model.fit([], pd.DataFrame({"a": []}), train=QUICK)
    with pytest.raises(UsageError, match="Put it into a list"):
        model.fit("nasrlm1", values, train=QUICK)
    with pytest.raises(UsageError, match="not trained"):
        model.predict(texts)


def test_texts_over_the_limit(rule_texts: Rule) -> None:
    texts, values = rule_texts(30)
    short = {"max_text_tokens": 8}
    with pytest.raises(TextTooLongError, match="exceed the 8 tokens"):
        RegressionLM(RLMConfig(**{**TINY.to_dict(), **short})).fit(texts, values, train=QUICK)
    for policy, blanks in (("drop", True), ("cut", False)):
        config = RLMConfig(**{**TINY.to_dict(), **short, "too_long": policy})
        with pytest.warns(UserWarning, match=r"of 30 texts exceed the 8 tokens"):
            model = RegressionLM(config).fit(texts, values, train=QUICK)
        with pytest.warns(UserWarning):
            assert model.predict(texts).isna().to_numpy().any() == blanks


def test_architectures_are_indexed_by_their_id() -> None:
    from nasrlm import get_space

    space = get_space("tiny")
    networks = space.sample(12, seed=0)
    values = {"params": [float(i + 1) for i in range(12)]}
    model = RegressionLM(TINY).fit(networks, values, train=QUICK)
    assert model.predict(networks).index.tolist() == [network.id for network in networks]

"""The regression head: learns the rule, scales labels there and back, skips blanks, is not the RLM's decoder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

from nasrlm.errors import MetricError, TableError, TextTooLongError, UsageError
from nasrlm.rlm import RegressionHead, RegressionLM, RLMConfig, TrainConfig
from nasrlm.rlm.head import HeadNetwork, Scale, read_points
from nasrlm.rlm.scores import score_table
from nasrlm.rlm.training import _optimizer
from nasrlm.tokens import TextTokenizer

TINY = RLMConfig(width=32, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=64)
TRAIN = TrainConfig(epochs=30, learning_rate=3e-3, validation_fraction=0, precision="float32")

RuleTexts = Callable[..., tuple[list[str], pd.DataFrame]]


def test_it_learns_a_rule_and_repeats_itself(rule_texts: RuleTexts) -> None:
    texts, values = rule_texts(200)
    values.iloc[::5, 1] = np.nan
    one, two = (RegressionHead(TINY).fit(texts, values, train=TRAIN) for _ in range(2))
    unseen, true = rule_texts(100, seed=1)
    found = one.predict(unseen)
    assert list(found.columns) == list(values.columns)
    scores = score_table(true.to_numpy(), found.to_numpy(), list(true.columns))
    assert (scores["rho"] > 0.95).all()
    assert (scores["mae"] < [4.0, 1.0, 1.0]).all()
    pd.testing.assert_frame_equal(found, two.predict(unseen))


def test_labels_there_and_back() -> None:
    labels = np.array([[10.0, 0.5, 1.0, 7.0], [90.0, 8.0, 0.0, 7.0], [np.nan, 2.0, 4.0, 7.0]])
    metrics = ("accuracy/x", "latency_ms/a", "latency_ms/b", "params")
    scale = Scale.of(labels, metrics)
    assert scale.log.tolist() == [False, True, False, False]  # the second latency has a zero
    small = scale.shrink(labels)
    assert np.nanmean(small, axis=0) == pytest.approx([0, 0, 0, 0])
    assert np.nanstd(small, axis=0) == pytest.approx([1, 1, 1, 0])
    np.testing.assert_allclose(scale.grow(small), labels)
    assert np.isnan(scale.shrink(np.array([[1.0, 0.0, 1.0, 1.0]]))[0]).tolist() == [False, True, False, False]


def test_padding_and_order_do_not_matter() -> None:
    texts = ["nasrlm1\nconv 8 k3", "nasrlm1\nconv 8 k3\nrelu\nconv 8 k3\nrelu"]
    tokenizer = TextTokenizer.train(texts, 512)
    network = HeadNetwork(RLMConfig(**{**TINY.to_dict(), "metrics": ("a", "b")}), tokenizer)
    torch.nn.init.normal_(network.out.weight, generator=torch.Generator().manual_seed(0))
    ids = [np.asarray(row) for row in tokenizer.encode(texts)]
    both = read_points(network, ids)
    alone = np.concatenate([read_points(network, [row]) for row in ids])
    np.testing.assert_allclose(both, alone, atol=1e-5)
    assert abs(both[0] - both[1]).max() > 1e-2


def test_it_has_the_encoder_alone_and_no_decay_of_embeddings() -> None:
    tokenizer = TextTokenizer.train(["nasrlm1\nconv 8 k3"], 512)
    network = HeadNetwork(RLMConfig(**{**TINY.to_dict(), "metrics": ("a",)}), tokenizer)
    names = {name for name, _ in network.named_parameters()}
    assert "reader.text.weight" in names
    assert not [name for name in names if "decoder" in name or "number" in name]
    decayed = {id(p) for p in _optimizer(network, TRAIN).param_groups[0]["params"]}
    assert id(network.reader.text.weight) not in decayed
    assert id(network.out.weight) in decayed


def test_it_starts_from_a_trained_model(trained: RegressionLM, rule_texts: RuleTexts) -> None:
    texts, values = rule_texts(40, seed=2)
    one_step = TrainConfig(steps=1, learning_rate=1e-9, average=0, validation_fraction=0, precision="float32")
    head = RegressionHead().fit(texts, values[["latency_ms/rule"]], init=trained, train=one_step)
    assert head.config.width == trained.config.width
    assert head._network is not None
    assert torch.allclose(head._network.reader.text.weight, trained.network.text.weight, atol=1e-6)
    few = TrainConfig(epochs=30, learning_rate=3e-3, validation_fraction=0, precision="float32")
    unseen, true = rule_texts(100, seed=1)
    found = RegressionHead().fit(texts[:16], values[:16], init=trained, train=few).predict(unseen)
    assert (score_table(true.to_numpy(), found.to_numpy(), list(true.columns))["rho"] > 0.9).all()


def test_validation_picks_the_best_weights(rule_texts: RuleTexts) -> None:
    texts, values = rule_texts(120)
    log: list[dict] = []
    train = TrainConfig(epochs=6, validation_fraction=0.3, validate_every=1, patience=2, precision="float32")
    RegressionHead(TINY).fit(texts, values, train=train, progress=log.append)
    scores = [entry for entry in log if "validation_score" in entry]
    assert scores
    assert {"validation_loss", "validation_rho/accuracy/rule"} <= set(scores[-1])


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="not trained"):
        RegressionHead(TINY).predict(["nasrlm1\nrelu"])
    with pytest.raises(TableError, match="match one to one"):
        RegressionHead(TINY).fit(["nasrlm1\nrelu"], {"a": [1.0, 2.0]})
    with pytest.raises(MetricError, match="no value in any row"):
        RegressionHead(TINY).fit(["nasrlm1\nrelu"], {"a": [1.0], "b": [np.nan]})
    short = RLMConfig(**{**TINY.to_dict(), "max_text_tokens": 1})
    with pytest.raises(TextTooLongError):
        RegressionHead(short).fit(["nasrlm1\nrelu"], {"a": [1.0]})

"""Batches: every row once an epoch, blanks without weight, chains that never look at blanks."""

from __future__ import annotations

import numpy as np
import pytest

from nasrlm.rlm.batches import draw_targets, epoch_batches, split_by_size, write_targets
from nasrlm.rlm.config import TrainConfig
from nasrlm.tokens import NumberTokens

NUMBERS = NumberTokens()


def test_an_epoch_has_every_row_once_and_depends_on_seed_and_epoch_only() -> None:
    lengths = np.random.default_rng(0).integers(3, 90, 501)
    train = TrainConfig(batch_size=16, seed=4)
    batches = epoch_batches(lengths, train, 2)
    assert sorted(np.concatenate(batches).tolist()) == list(range(501))
    again = epoch_batches(lengths, train, 2)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    assert not np.array_equal(batches[0], epoch_batches(lengths, train, 3)[0])
    padding = sum(lengths[b].max() * len(b) for b in batches) / lengths.sum()
    assert padding < 1.15


def test_batches_keep_the_token_limit() -> None:
    lengths = np.array([10, 10, 10, 50, 50, 200])
    batches = split_by_size(np.arange(6), lengths, most_rows=4, most_tokens=100)
    assert [b.tolist() for b in batches] == [[0, 1, 2], [3, 4], [5]]


@pytest.mark.parametrize("chain", [0.0, 1.0])
def test_targets_say_every_label_once_and_no_blank(chain: float) -> None:
    labels = np.random.default_rng(1).lognormal(1, 1, (20, 6))
    labels[np.random.default_rng(2).random(labels.shape) < 0.3] = np.nan
    train = TrainConfig(chain=chain)
    targets = draw_targets(labels, NUMBERS, train, np.random.default_rng(3))
    digits = targets.wanted.unflatten(2, (-1, NUMBERS.length)).numpy()
    weight = targets.weight.unflatten(2, (-1, NUMBERS.length)).numpy()
    owners = targets.metrics[:, :, targets.spots].unflatten(2, (-1, NUMBERS.length))[..., 0].numpy()
    for row in range(20):
        for c, k in np.argwhere(weight[row, ..., 0] > 0):
            said = NUMBERS.decode(digits[row, c, k])
            assert said == pytest.approx(labels[row, owners[row, c, k]], rel=1e-3)
    counted = (weight[..., 0] > 0).sum()
    assert counted == (~np.isnan(labels)).sum() if chain == 0 else counted > 0
    # within a chain, whatever has weight stands before whatever has none
    assert (np.diff(weight[..., 0], axis=2) <= 0).all()


def test_digits_behind_zero_have_no_weight() -> None:
    targets = write_targets(np.array([[[0.0]], [[3.0]]]), np.zeros((2, 1, 1), dtype=np.int64), NUMBERS)
    assert targets.weight[:, 0].tolist() == [[1, 0, 0, 0, 0], [1, 1, 1, 1, 1]]


def test_fewer_metrics_an_example() -> None:
    labels = np.ones((4, 6))
    targets = draw_targets(labels, NUMBERS, TrainConfig(chain=0, metrics_per_example=2), np.random.default_rng(0))
    assert targets.tokens.shape == (4, 2, NUMBERS.length)
    assert len({tuple(row) for row in targets.metrics[:, :, 0].tolist()}) > 1


def test_noise_moves_labels_a_little() -> None:
    labels = np.full((200, 1), 50.0)
    targets = draw_targets(labels, NUMBERS, TrainConfig(label_noise=0.01), np.random.default_rng(0))
    values = NUMBERS.decode_array(targets.wanted[:, 0].numpy())
    assert 0.3 < values.std() < 0.7
    assert abs(values.mean() - 50) < 0.2

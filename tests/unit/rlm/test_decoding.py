"""Decoding against plain enumeration: every number of a small vocabulary, its probability without any cache."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from nasrlm.rlm.batches import grammar_mask, pad, write_targets
from nasrlm.rlm.config import RLMConfig
from nasrlm.rlm.decoding import quantile_tokens, sample_tokens, token_log_probs
from nasrlm.rlm.network import Cache, Memory, RLMNetwork
from nasrlm.rlm.predicting import given_tokens
from nasrlm.tokens import NumberTokens

NUMBERS = NumberTokens(mantissa_digits=2, min_exponent=-1, max_exponent=1)
IDS = [np.array([1, 2, 3, 4, 5]), np.array([5, 4, 3]), np.array([7] * 9)]


@pytest.fixture(scope="module")
def network() -> RLMNetwork:
    config = RLMConfig(
        width=16, heads=2, encoder_layers=2, decoder_layers=2, feed_forward=16, metrics=("a", "b", "c"), seed=3
    )
    network = RLMNetwork(config, 10, NUMBERS.vocabulary, NUMBERS.length)
    with torch.no_grad():
        network.head.weight.mul_(30)  # far from uniform
    return network


@pytest.fixture(scope="module")
def memory(network: RLMNetwork) -> Memory:
    with torch.no_grad():
        return network.encode(*pad(IDS))


def all_numbers() -> np.ndarray:
    """Every number that the vocabulary can write, ascending."""
    sizes = [(10 * a + b) * 10.0 ** (e - 1) for e, a, b in itertools.product((-1, 0, 1), range(1, 10), range(10))]
    found = np.array(sorted([0.0, *sizes, *(-s for s in sizes)]))
    return NUMBERS.decode_array(NUMBERS.encode_array(found))


def probabilities(network: RLMNetwork, memory: Memory, metric: int, before: dict[int, float]) -> np.ndarray:
    """(texts, numbers): probability of every number, teacher-forced, behind the given metrics."""
    numbers = all_numbers()
    chain = [*before.values()]
    values = np.tile(np.array([[*chain, 0.0]]), (len(numbers), 1))
    values[:, -1] = numbers
    values = np.broadcast_to(values, (len(IDS), *values.shape))
    owners = np.broadcast_to(np.array([*before, metric]), values.shape)
    with torch.no_grad():
        found = token_log_probs(network, memory, write_targets(values, owners, NUMBERS), grammar_mask(NUMBERS))
    return found[:, :, -1].sum(-1).double().exp().numpy()


@pytest.mark.parametrize("before", [{}, {2: -3.4, 0: 12.0}])
def test_probabilities_sum_to_one(network: RLMNetwork, memory: Memory, before: dict[int, float]) -> None:
    np.testing.assert_allclose(probabilities(network, memory, 1, before).sum(1), 1.0, atol=1e-5)


@pytest.mark.parametrize("before", [{}, {0: 0.0}, {2: -3.4, 0: 12.0}])
def test_one_pass_gives_the_exact_quantiles(network: RLMNetwork, memory: Memory, before: dict[int, float]) -> None:
    levels = np.array([0.013, 0.1, 0.25, 0.5, 0.77, 0.9, 0.987])
    cumulative = probabilities(network, memory, 1, before).cumsum(1)
    wanted = np.array([[all_numbers()[np.searchsorted(row, level)] for level in levels] for row in cumulative])
    given = {metric: np.full(len(IDS), value) for metric, value in before.items()}
    prefix = given_tokens(NUMBERS, given, np.arange(len(IDS)))
    metrics = torch.ones(len(levels), dtype=torch.int64)
    with torch.no_grad():
        said = quantile_tokens(network, NUMBERS, memory, metrics, torch.from_numpy(levels), prefix)
    np.testing.assert_array_equal(NUMBERS.decode_array(said.numpy()), wanted)


def test_samples_have_the_joint_probabilities(network: RLMNetwork, memory: Memory) -> None:
    with torch.no_grad():
        said = sample_tokens(network, NUMBERS, memory, torch.tensor([0, 1]), 4000, np.random.default_rng(0))
    drawn = NUMBERS.decode_array(said.numpy())
    first = probabilities(network, memory, 0, {})
    numbers = all_numbers()
    for text in range(len(IDS)):
        counts = (drawn[text, :, :1] == numbers).mean(0)
        assert np.abs(counts - first[text]).max() < 0.04
        common = numbers[first[text].argmax()]
        second = drawn[text, drawn[text, :, 0] == common, 1]
        expected = probabilities(network, memory, 1, {0: common})[text]
        assert np.abs((second[:, None] == numbers).mean(0) - expected).max() < 0.12


def test_the_cache_changes_nothing(network: RLMNetwork, memory: Memory) -> None:
    tokens = torch.tensor([[[0, 5, 8, 9, 0, 3, 9]]]).expand(3, 2, -1)
    metrics = torch.tensor([[[0, 0, 0, 0, 1, 1, 1]]]).expand(3, 2, -1)
    with torch.no_grad():
        whole = network.decode(tokens, metrics, memory)
        cache = Cache()
        cuts = [(0, 1), (1, 4), (4, 7)]
        parts = [network.decode(tokens[..., a:b], metrics[..., a:b], memory, cache) for a, b in cuts]
    torch.testing.assert_close(torch.cat(parts, dim=2), whole, atol=1e-5, rtol=1e-4)


def test_padding_changes_nothing(network: RLMNetwork, memory: Memory) -> None:
    tokens = torch.zeros(1, 1, 1, dtype=torch.int64)
    with torch.no_grad():
        alone = network.decode(tokens, tokens, network.encode(*pad(IDS[1:2])))
        beside = network.decode(tokens, tokens, memory.select(torch.tensor([1])))
    torch.testing.assert_close(alone, beside, atol=1e-5, rtol=1e-4)


def test_a_row_cannot_look_ahead_or_at_other_rows(network: RLMNetwork, memory: Memory) -> None:
    tokens = torch.randint(0, 13, (3, 2, 7), generator=torch.Generator().manual_seed(0))
    metrics = torch.zeros_like(tokens)
    other = tokens.clone()
    other[:, 0, 5] = (other[:, 0, 5] + 1) % 13
    with torch.no_grad():
        a, b = network.decode(tokens, metrics, memory), network.decode(other, metrics, memory)
    torch.testing.assert_close(a[:, 0, :5], b[:, 0, :5])
    torch.testing.assert_close(a[:, 1], b[:, 1])
    assert not torch.equal(a[:, 0, 5:], b[:, 0, 5:])

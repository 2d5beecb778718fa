"""The network by itself: what is read at pieces that are several words."""

from __future__ import annotations

import torch

from nasrlm.rlm.checkpoint import build_network
from nasrlm.rlm.config import RLMConfig
from nasrlm.tokens import TextTokenizer

CONFIG = RLMConfig(metrics=("a",), width=16, heads=2, encoder_layers=1, decoder_layers=1)


def test_a_line_of_several_words_starts_as_the_sum_of_its_words() -> None:
    tokenizer = TextTokenizer.train(["conv k3\nrelu"] * 5)
    network = build_network(CONFIG, tokenizer)
    (line,) = tokenizer.encode(["conv k3"])[0]
    words = tokenizer.compounds()[line]
    vectors = network._text_vectors()
    torch.testing.assert_close(vectors[line], network.text.weight[words].sum(0))
    single = tokenizer.encode(["relu"])[0]
    torch.testing.assert_close(vectors[single], network.text.weight[single])


def test_its_own_vector_is_learnt_beside_the_words() -> None:
    tokenizer = TextTokenizer.train(["conv k3\nrelu"] * 5)
    network = build_network(CONFIG, tokenizer)
    (line,) = tokenizer.encode(["conv k3"])[0]
    words = tokenizer.compounds()[line]
    memory = network.encode(torch.tensor([[line]]), torch.tensor([1]))
    sum(keys.sum() for keys in memory.keys).backward()
    gradient = network.text.weight.grad
    moved = set(torch.nonzero(gradient.abs().sum(1)).flatten().tolist())
    assert moved == {line, *words}


def test_weights_do_not_depend_on_how_pieces_are_read() -> None:
    """A checkpoint holds the vectors alone; which words a piece is made of is the tokenizer's."""
    network = build_network(CONFIG, TextTokenizer.train(["conv k3\nrelu"] * 5))
    assert not {"parts", "starts"} & set(network.state_dict())

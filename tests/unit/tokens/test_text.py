"""The text tokenizer: pieces that never cross lines, any text encodes, the same bytes every time."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from nasrlm.errors import CheckpointError, UsageError
from nasrlm.tokens import TextTokenizer

TEXTS = ["conv k3 *2\nrelu\nadd @3", "conv k5\nrelu\n-conv k3", "conv k3\navgpool k2 s2\nadd @5"]


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer.train(TEXTS * 5)


def test_one_piece_a_frequent_line(tokenizer: TextTokenizer) -> None:
    assert tokenizer.pieces("conv k3\nrelu") == ["▁conv▁k3", "▁relu"]


def test_a_line_never_met_is_cut_into_words(tokenizer: TextTokenizer) -> None:
    assert tokenizer.pieces("avgpool k3") == ["▁avgpool", "▁k3"]


def test_white_space_does_not_matter(tokenizer: TextTokenizer) -> None:
    a, b = tokenizer.encode(["conv k3\nrelu", "  conv   k3 \n\n relu\t"])
    assert a == b


def test_pieces_never_cross_lines(tokenizer: TextTokenizer) -> None:
    for text in TEXTS:
        lines = iter(text.splitlines())
        rest = ""
        for piece in tokenizer.pieces(text):
            rest = rest or "▁" + next(lines).replace(" ", "▁")
            assert rest.startswith(piece)
            rest = rest.removeprefix(piece)


def test_an_older_tokenizer_cuts_as_it_always_did() -> None:
    """Pieces of older checkpoints stop at words; a line is then the pieces of its words."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["conv", "k3", "k5", "relu", "add", "@3", "dw"] * 20),
        model_writer=model,
        vocab_size=300,
        hard_vocab_limit=False,
        byte_fallback=True,
        minloglevel=2,
    )
    text = "conv k3 *2\nrelu\nadd @3\nconv k5 dw"
    words = SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [i for word in text.split() for i in words.encode(word)]
    assert TextTokenizer(model.getvalue()).encode([text]) == [pieces]


@pytest.mark.parametrize("text", ["Überraschung k3", "\u4f60\u597d", "conv2d_transpose @99 -zeros"])
def test_any_text_encodes_and_decodes(tokenizer: TextTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode([text])[0]) == text


def test_small_corpus_small_vocabulary(tokenizer: TextTokenizer) -> None:
    assert tokenizer.vocabulary < 320
    assert 0 not in tokenizer.encode(TEXTS)[0]  # padding


def test_large_corpus_keeps_the_limit() -> None:
    texts = [" ".join(f"word{i * 7919 % 99991}x" for i in range(j, j + 40)) for j in range(0, 4000, 40)]
    assert TextTokenizer.train(texts, vocab_size=1000).vocabulary <= 1000


def test_the_same_texts_give_the_same_bytes() -> None:
    assert TextTokenizer.train(TEXTS).to_bytes() == TextTokenizer.train(reversed(TEXTS)).to_bytes()


def test_sampling_is_seeded_and_reads_the_same(tokenizer: TextTokenizer) -> None:
    first = tokenizer.encode(TEXTS, sample=True, seed=1)
    assert first == tokenizer.encode(TEXTS, sample=True, seed=1)
    drawn = [tokenizer.encode(TEXTS, sample=True, seed=seed)[0] for seed in range(20)]
    assert len({tuple(ids) for ids in drawn}) > 1
    assert {tokenizer.decode(ids) for ids in drawn} == {"conv k3 *2 relu add @3"}


def test_save_and_load(tokenizer: TextTokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.model")
    assert TextTokenizer.load(tmp_path / "tokenizer.model").encode(TEXTS) == tokenizer.encode(TEXTS)


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is missing"):
        TextTokenizer.load(tmp_path / "nothing.model")
    with pytest.raises(CheckpointError, match="no SentencePiece model"):
        TextTokenizer(b"not a model")
    with pytest.raises(UsageError, match="no words"):
        TextTokenizer.train([" \n"])
    with pytest.raises(UsageError, match="vocab_size is 9000"):
        TextTokenizer.train(TEXTS, vocab_size=9000)
    with pytest.raises(UsageError, match="takes a list"):
        TextTokenizer.train(TEXTS).encode("conv k3")

"""Text tokenizer: SentencePiece (unigram) over the words of canonical text.

A text is lines of words; a word is an operator, an attribute or a reference. Newlines are redundant (every line
starts with an operator), so all white space counts as one space. Pieces never cross words, so a text is encoded word
by word from a table, and the tokenizer only runs on words it has not met before.

Source: Kudo & Richardson, SentencePiece (EMNLP 2018); Kudo, Subword regularization (ACL 2018) for `sample=True`.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2

from nasrlm.errors import CheckpointError, UsageError

PAD = 0
MAX_PIECES = 8192
_BYTE_PIECES = 256
_NBEST = 8
_SMOOTHING = 0.2  # exponent on the probabilities of segmentations; 0 = uniform
_CACHE_WORDS = 200_000
_LONGEST_PIECE = 24  # characters, word mark included
_MOST_SEEDS = 200_000


class TextTokenizer:
    """Cuts canonical text into at most 8,192 small pieces; ids start at 1, 0 is padding.

    Example:
        >>> tokenizer = TextTokenizer.train(["conv k3\\nrelu"] * 4)
        >>> len(tokenizer.encode(["conv k3\\nrelu"])[0])
        3
        >>> tokenizer.decode(tokenizer.encode(["conv k3\\nrelu"])[0])
        'conv k3 relu'
    """

    def __init__(self, model: bytes) -> None:
        self._model = model
        try:
            self._processor = spm.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise CheckpointError(f"the tokenizer cannot be read: it is no SentencePiece model ({error}).") from error
        self._ids: dict[str, list[int]] = {}
        self._choices: dict[str, tuple[list[list[int]], np.ndarray]] = {}

    @property
    def vocabulary(self) -> int:
        """Number of ids, padding included."""
        return int(self._processor.get_piece_size())

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int = MAX_PIECES) -> TextTokenizer:
        """Learns pieces from texts; small corpora give a smaller vocabulary. The same texts give the same bytes.

        Args:
            texts: canonical texts.
            vocab_size: upper limit of the vocabulary, 300 to 8,192 (256 ids are bytes, so that any text encodes).

        Raises:
            UsageError: no text, or a limit outside the allowed range.
        """
        if not _BYTE_PIECES + 44 <= vocab_size <= MAX_PIECES:
            raise UsageError(f"vocab_size is {vocab_size}. Allowed: {_BYTE_PIECES + 44} to {MAX_PIECES}.")
        words = Counter(word for text in texts for word in text.split())
        if not words:
            raise UsageError("the tokenizer got no words to learn from. Give it at least one text that is not blank.")
        return cls(_train_model(words, vocab_size))

    def encode(
        self, texts: Sequence[str], sample: bool = False, seed: int | np.random.Generator = 0
    ) -> list[list[int]]:
        """Ids of each text.

        Args:
            texts: canonical texts; any text encodes, foreign characters as bytes.
            sample: draw one of the likely segmentations of each word in place of the best (training only).
            seed: seed or generator of the draw.
        """
        if isinstance(texts, str):
            raise UsageError(f"encode takes a list of texts, got one text {texts[:40]!r}. Put it into a list.")
        if sample:
            rng = np.random.default_rng(seed)
            return [self._sample_text(text, rng) for text in texts]
        table = self._ids
        if len(table) > _CACHE_WORDS:
            table.clear()
        rows = []
        for text in texts:
            words = text.split()
            try:
                parts = [table[word] for word in words]
            except KeyError:
                parts = [self._word(word) for word in words]
            row: list[int] = []
            for part in parts:
                row += part
            rows.append(row)
        return rows

    def decode(self, ids: Sequence[int]) -> str:
        """The text of one row of ids, words separated by single spaces; padding is skipped."""
        return str(self._processor.decode([int(i) for i in ids if i != PAD]))

    def pieces(self, text: str) -> list[str]:
        """The pieces of one text, for people."""
        return [self._processor.id_to_piece(i) for i in self.encode([text])[0]]

    def to_bytes(self) -> bytes:
        """The SentencePiece model, as stored in `tokenizer.model`."""
        return self._model

    def save(self, path: str | Path) -> None:
        """Writes the SentencePiece model."""
        Path(path).write_bytes(self._model)

    @classmethod
    def load(cls, path: str | Path) -> TextTokenizer:
        """Reads what `save` wrote.

        Raises:
            CheckpointError: the file is missing or no SentencePiece model.
        """
        file = Path(path)
        if not file.is_file():
            raise CheckpointError(f"{file} is missing. A tokenizer is a SentencePiece file named tokenizer.model.")
        return cls(file.read_bytes())

    def _word(self, word: str) -> list[int]:
        ids = self._ids.get(word)
        if ids is None:
            ids = self._ids[word] = self._processor.encode(word)
        return ids

    def _sample_text(self, text: str, rng: np.random.Generator) -> list[int]:
        words = text.split()
        row: list[int] = []
        for word, u in zip(words, rng.random(len(words)), strict=True):
            segmentations, cumulative = self._segmentations(word)
            row += segmentations[min(int(np.searchsorted(cumulative, u)), len(segmentations) - 1)]
        return row

    def _segmentations(self, word: str) -> tuple[list[list[int]], np.ndarray]:
        found = self._choices.get(word)
        if found is None:
            ids = self._processor.nbest_encode(word, out_type=int, nbest_size=_NBEST)
            score = np.array([sum(map(self._processor.get_score, row)) for row in ids])
            weight = np.exp(_SMOOTHING * (score - score.max()))
            found = self._choices[word] = (ids, np.cumsum(weight / weight.sum()))
        return found


def _train_model(words: Counter[str], vocab_size: int) -> bytes:
    model = io.BytesIO()
    with TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds.tsv"
        seeds.write_text(_seed_pieces(words), encoding="utf-8")
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(sorted(f"{word}\t{count}" for word, count in words.items())),
            input_format="tsv",
            seed_sentencepieces_file=str(seeds),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            byte_fallback=True,
            split_by_whitespace=True,
            split_by_unicode_script=False,
            split_by_number=False,
            normalization_rule_name="identity",
            max_sentence_length=1 << 20,
            max_sentencepiece_length=_LONGEST_PIECE,
            pad_id=PAD,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    return _in_order(model.getvalue())


def _in_order(model: bytes) -> bytes:
    """The same model with pieces of equal score in alphabetic order, and without the name of the seed file.

    SentencePiece orders them by a hash that differs from process to process.
    """
    make: Any = sentencepiece_model_pb2
    proto = make.ModelProto()
    proto.ParseFromString(model)
    normal = make.ModelProto.SentencePiece.Type.NORMAL
    pieces = [piece for piece in proto.pieces if piece.type != normal]
    pieces += sorted((p for p in proto.pieces if p.type == normal), key=lambda piece: (-piece.score, piece.piece))
    ordered = make.ModelProto()
    ordered.CopyFrom(proto)
    del ordered.pieces[:]
    ordered.pieces.extend(pieces)
    ordered.trainer_spec.seed_sentencepieces_file = ""
    return bytes(ordered.SerializeToString(deterministic=True))


def _seed_pieces(words: Counter[str]) -> str:
    """Candidate pieces with counts: every word and every part of it.

    SentencePiece's own candidates are the parts that are followed by different characters, and a whole word, which
    is always followed by the next word's mark, is none of them.
    """
    seeds: Counter[str] = Counter()
    for word, count in words.items():
        marked = "\u2581" + word
        longest = min(len(marked), _LONGEST_PIECE)
        for size in range(2, longest + 1):
            for start in range(len(marked) - size + 1):
                seeds[marked[start : start + size]] += count
    # sorted by weight, as SentencePiece does: longer pieces of equal counts first
    ranked = sorted(seeds.items(), key=lambda item: (-len(item[0]) * item[1], item[0]))[:_MOST_SEEDS]
    return "".join(f"{piece}\t{count * len(piece)}\n" for piece, count in ranked)

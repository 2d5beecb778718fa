"""Text tokenizer: SentencePiece (unigram) over the lines of canonical text.

A text is lines of words; a word is an operator, an attribute or a reference, and a line is an operation. A piece is a
line, some words of one, or a part of a word: what is frequent is one piece. Pieces never cross lines, so a text is
encoded line by line from a table, and the tokenizer only runs on lines it has not met before. A tokenizer whose pieces
never cross words, as they were trained before, cuts as it always did.

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
_CACHE_LINES = 200_000
_MARK = "\u2581"
"""Stands for the space before a word."""
_LONGEST_PART, _LONGEST_PIECE = 24, 48  # characters of parts of a word, and of pieces, marks included
_MOST_SEEDS = 200_000


class TextTokenizer:
    """Cuts canonical text into at most 8,192 small pieces; ids start at 1, 0 is padding.

    Example:
        >>> tokenizer = TextTokenizer.train(["conv k3\\nrelu"] * 4)
        >>> tokenizer.pieces("conv k3\\nrelu")
        ['▁conv▁k3', '▁relu']
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
        lines = Counter(line for text in texts for raw in text.splitlines() if (line := _spaced(raw)))
        if not lines:
            raise UsageError("the tokenizer got no words to learn from. Give it at least one text that is not blank.")
        # Every word is a line of its own too: where lines are pieces, no word would be left for lines never met.
        words = Counter(word for line in lines for word in line.split())
        return cls(_train_model(lines + words, vocab_size))

    def encode(
        self, texts: Sequence[str], sample: bool = False, seed: int | np.random.Generator = 0
    ) -> list[list[int]]:
        """Ids of each text.

        Args:
            texts: canonical texts; any text encodes, foreign characters as bytes.
            sample: draw one of the likely segmentations of each line in place of the best (training only).
            seed: seed or generator of the draw.
        """
        if isinstance(texts, str):
            raise UsageError(f"encode takes a list of texts, got one text {texts[:40]!r}. Put it into a list.")
        if sample:
            rng = np.random.default_rng(seed)
            return [self._sample_text(text, rng) for text in texts]
        table = self._ids
        if len(table) > _CACHE_LINES:
            table.clear()
        rows = []
        for text in texts:
            lines = text.splitlines()
            try:
                parts = [table[line] for line in lines]
            except KeyError:
                parts = [self._line(line) for line in lines]
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

    def compounds(self) -> dict[int, list[int]]:
        """The pieces that are several words, by id, with the ids of these words.

        >>> tokenizer = TextTokenizer.train(["conv k3\\nrelu"] * 4)
        >>> name = tokenizer._processor.id_to_piece
        >>> {name(i): [name(part) for part in parts] for i, parts in tokenizer.compounds().items()}
        {'▁conv▁k3': ['▁conv', '▁k3']}
        """
        pieces = map(self._processor.id_to_piece, range(self.vocabulary))
        words = {i: piece.split(_MARK)[1:] for i, piece in enumerate(pieces) if _MARK in piece[1:]}
        return {i: [part for word in found for part in self._processor.encode(word)] for i, found in words.items()}

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

    def _line(self, line: str) -> list[int]:
        ids = self._ids.get(line)
        if ids is None:
            ids = self._ids[line] = self._processor.encode(_spaced(line))
        return ids

    def _sample_text(self, text: str, rng: np.random.Generator) -> list[int]:
        lines = text.splitlines()
        row: list[int] = []
        for line, u in zip(lines, rng.random(len(lines)), strict=True):
            segmentations, cumulative = self._segmentations(line)
            row += segmentations[min(int(np.searchsorted(cumulative, u)), len(segmentations) - 1)]
        return row

    def _segmentations(self, line: str) -> tuple[list[list[int]], np.ndarray]:
        found = self._choices.get(line)
        if found is None:
            ids = self._processor.nbest_encode(_spaced(line), out_type=int, nbest_size=_NBEST)
            score = np.array([sum(map(self._processor.get_score, row)) for row in ids])
            weight = np.exp(_SMOOTHING * (score - score.max()))
            found = self._choices[line] = (ids, np.cumsum(weight / weight.sum()))
        return found


def _spaced(line: str) -> str:
    return " ".join(line.split())


def _train_model(lines: Counter[str], vocab_size: int) -> bytes:
    model = io.BytesIO()
    with TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds.tsv"
        seeds.write_text(_seed_pieces(lines), encoding="utf-8")
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(sorted(f"{line}\t{count}" for line, count in lines.items())),
            input_format="tsv",
            seed_sentencepieces_file=str(seeds),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            character_coverage=1.0,
            byte_fallback=True,
            split_by_whitespace=False,
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


def _seed_pieces(lines: Counter[str]) -> str:
    """Candidate pieces with counts: every part of a word, every word, and the runs of words within a line.

    SentencePiece's own candidates are the parts that are followed by different characters, and a whole word, which
    is always followed by the next word's mark, is none of them.
    """
    seeds: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for line, count in lines.items():
        marked = [_MARK + word for word in line.split()]
        for word in marked:
            words[word] += count
        for start in range(len(marked)):
            run = marked[start]
            for word in marked[start + 1 :]:
                run += word
                if len(run) > _LONGEST_PIECE:
                    break
                seeds[run] += count
    for word, count in words.items():
        for size in range(2, min(len(word), _LONGEST_PART) + 1):
            for start in range(len(word) - size + 1):
                seeds[word[start : start + size]] += count
    # sorted by weight, as SentencePiece does: longer pieces of equal counts first
    ranked = sorted(seeds.items(), key=lambda item: (-len(item[0]) * item[1], item[0]))[:_MOST_SEEDS]
    return "".join(f"{piece}\t{count * len(piece)}\n" for piece, count in ranked)

"""The kit for a text tokenizer."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nasrlm.testing.common import require, step

FOREIGN = "nasrlm1 in 1x3x8x8 conv 999 k17 Ωoperator"


def check_tokenizer(tokenizer: Any, texts: Sequence[str]) -> None:
    """Checks a trained text tokenizer; returns when all is well.

    Ids within the vocabulary and never the padding id 0, texts that come back (white space is one space), different
    texts with different ids, foreign words, segmentation sampling, and saving.

    Args:
        tokenizer: has `vocabulary`, `encode`, `decode`, `save` and a class method `load`.
        texts: canonical texts, at least two different ones.

    Raises:
        ConformanceError: the first promise that is not kept.
    """
    with step("encoding and decoding"):
        rows = tokenizer.encode(list(texts))
        require(rows == tokenizer.encode(list(texts)), "the same texts give other ids the second time.")
        _check_ids(tokenizer, rows)
        for text, row in zip(texts, rows, strict=True):
            require(tokenizer.decode(row) == " ".join(text.split()), f"ids do not read back to their text:\n{text}")
        words = {" ".join(text.split()) for text in texts}
        require(len({tuple(row) for row in rows}) == len(words), "two different texts have the same ids.")
        (foreign,) = tokenizer.encode([FOREIGN])
        require(tokenizer.decode(foreign) == FOREIGN, "a text with words it has never seen does not read back.")
    with step("sampling segmentations"):
        drawn = tokenizer.encode(list(texts), sample=True, seed=1)
        require(drawn == tokenizer.encode(list(texts), sample=True, seed=1), "a seed does not repeat its segmentation.")
        _check_ids(tokenizer, drawn)
        for row, other in zip(rows, drawn, strict=True):
            same = tokenizer.decode(row) == tokenizer.decode(other)
            require(same, "a sampled segmentation reads back to another text.")
    with step("saving and loading"), tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tokenizer.model")
        tokenizer.save(file)
        require(type(tokenizer).load(file).encode(list(texts)) == rows, "a saved tokenizer gives other ids.")


def _check_ids(tokenizer: Any, rows: Sequence[Sequence[int]]) -> None:
    limit = int(tokenizer.vocabulary)
    for row in rows:
        require(all(isinstance(i, int) and 0 < i < limit for i in row), f"an id is outside 1 .. {limit - 1}: {row}.")

"""Damaged and hostile files: a text comes out, or an ExportError; never another exception, a hang or lost memory."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from onnx import ModelProto

from nasrlm.errors import ExportError
from nasrlm.graph import as_graph, costs, to_text
from nasrlm.graph.onnx_wire import without_weights
from tests.property.hostile import bases, damaged

resource = pytest.importorskip("resource")
FILES, PARTS = 2400, 8
SECONDS = 20
"""A hang is what takes that long; usual are milliseconds."""
MEBIBYTES = 400


class Hang(BaseException):
    """No Exception, so that nobody catches it on the way."""


@contextmanager
def no_hang(seconds: int = SECONDS) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(path: Path) -> str:
    """The text, or the error's message."""
    try:
        with no_hang():
            graph = as_graph(path)
            text = to_text(graph)
            costs(graph)
    except ExportError as error:
        return f"! {error}"
    return text


def skimmed(data: bytes, short: int) -> bytes:
    """What is left of a file if weights of more than so many bytes are left out."""
    try:
        with no_hang():
            return without_weights(data, short=short)
    except ExportError:
        return b""


def peak_mebibytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@pytest.fixture(scope="module")
def models() -> list:
    return bases()


def test_what_is_not_damaged_is_read(models: list, tmp_path: Path) -> None:
    for i, model in enumerate(models):
        path = tmp_path / f"{i}.onnx"
        path.write_bytes(model.SerializeToString())
        assert outcome(path).startswith("nasrlm")


@pytest.mark.parametrize("short", [0, 3, 20, 100, 10_000])
def test_nothing_but_weights_is_left_out(short: int, models: list) -> None:
    for model in models:
        left = ModelProto.FromString(skimmed(model.SerializeToString(), short))
        assert to_text(left, dead_work=True).count("\n") == to_text(model, dead_work=True).count("\n")
        assert costs(left) == costs(model)
        assert left.ByteSize() <= model.ByteSize() + 30 * len(model.graph.initializer)


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files_are_read_or_refused(part: int, models: list, tmp_path: Path) -> None:
    before = peak_mebibytes()
    path = tmp_path / "damaged.onnx"
    refused = 0
    seeds = range(part, FILES, PARTS)
    for seed in seeds:
        rng = random.Random(seed)
        data = damaged(rng.choice(models), rng)
        path.write_bytes(data)
        try:
            refused += outcome(path).startswith("!")
            skimmed(data, rng.choice([0, 3, 20, 100]))
        except (Exception, Hang) as error:
            pytest.fail(f"seed {seed}: {error!r} (see `damaged`)")
    assert len(seeds) / 4 < refused < len(seeds), "damage is too light or too heavy to test anything"
    assert peak_mebibytes() - before < MEBIBYTES

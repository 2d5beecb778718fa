"""Whether times repeat on this machine: what is kept, what is compared, what is forgiven."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from nasrlm.devices import Measurement, get_device, summarise
from nasrlm.devices import reference as module
from nasrlm.devices.reference import Look, ReferenceTimes, reference_model, share_apart
from nasrlm.errors import DeviceError


class Board:
    name, metric, runtime = "board", "latency_ms/board", "onnxruntime"

    def __init__(self, *times: float) -> None:
        self.times = list(times)

    def measure(self, model: bytes) -> Measurement:
        assert model == reference_model()
        if not self.times:
            raise DeviceError("no more")
        return summarise([self.times.pop(0)], 1, 0.1)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NASRLM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "reference_times.jsonl"


def process(monkeypatch: pytest.MonkeyPatch, name: str, *times: float) -> ReferenceTimes:
    """The times that a process of this name takes."""
    monkeypatch.setattr(module, "_PROCESS", name)
    reference = ReferenceTimes(Board(*times))
    for _ in times:
        reference.look()
    return reference


@pytest.mark.parametrize(("second", "repeats"), [(1.02, True), (0.98, True), (1.04, False), (0.96, False)])
def test_two_processes_repeat_where_they_agree_within_three_per_cent(
    monkeypatch: pytest.MonkeyPatch, second: float, repeats: bool
) -> None:
    assert process(monkeypatch, "first", 1.0).repeat()  # nothing to compare with
    there = process(monkeypatch, "second", second)
    assert there.repeat() is repeats
    assert [look.minimum_ms for look in there.others] == [1.0]
    low, high = sorted([1.0, second])
    assert f"took {low:.4g} to {high:.4g} ms at best, timed 1 x in this process and 1 x in others" in str(there)


def test_a_drift_inside_one_process_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not process(monkeypatch, "one", 1.0, 1.0, 1.05).repeat()


def test_one_odd_process_among_many_is_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(11):
        process(monkeypatch, f"quiet {i}", 1.0)
    assert not process(monkeypatch, "odd", 1.3).repeat()
    assert process(monkeypatch, "later", 1.0).repeat()


def test_the_share_of_pairs() -> None:
    a, b = Look(0, "a", 1.0), Look(1, "b", 1.1)
    assert share_apart([], [a, b]) == share_apart([a], []) == 0
    assert share_apart([a], [b]) == 1 and share_apart([a, a], [b]) == pytest.approx(2 / 3)


def test_only_like_is_compared(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    process(monkeypatch, "first", 1.0)
    Board.metric = "latency_ms/board_t2"
    try:
        assert process(monkeypatch, "second", 2.0).others == []
    finally:
        Board.metric = "latency_ms/board"
    entry = json.loads(cache.read_text().splitlines()[0])
    week = 7 * 86_400
    cache.write_text(json.dumps({**entry, "at": time.time() - week - 60}) + "\n" + json.dumps(entry) + "\n")
    assert len(ReferenceTimes(Board()).others) == 1


def test_settings_and_versions_keep_times_apart() -> None:
    one, two = (ReferenceTimes(get_device("onnxruntime_cpu", repeats=n)) for n in (5, 10))
    one.look()
    assert one.own[0].minimum_ms > 0
    assert one._what != two._what and "onnxruntime 1." in one._what


def test_a_damaged_record_costs_only_its_bad_lines(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    process(monkeypatch, "first", 1.0)
    good = cache.read_text()
    cache.write_bytes(b'[1]\n\xff\xfe\n{"what": 3}\n' + good.encode() + good[: len(good) // 2].encode())
    assert [look.minimum_ms for look in process(monkeypatch, "second").others] == [1.0]


def test_the_record_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(module, "_LARGEST", 2_000)
    for i in range(60):
        process(monkeypatch, f"number {i}", 1.0)
    lines = cache.read_text().splitlines()
    assert cache.stat().st_size <= 2_000 and "number 59" in lines[-1]
    assert all(json.loads(line)["minimum_ms"] == 1.0 for line in lines)


@pytest.mark.parametrize("where", ["file", "homeless"])
def test_a_folder_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "file":
        (tmp_path / "occupied").write_text("")
        monkeypatch.setenv("NASRLM_CACHE", str(tmp_path / "occupied"))
    else:
        monkeypatch.delenv("NASRLM_CACHE")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
        monkeypatch.chdir(tmp_path)
    reference = process(monkeypatch, "one", 1.0, 1.5)
    assert len(reference.own) == 2 and not reference.repeat()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == (["occupied"] if where == "file" else [])


def test_a_device_that_cannot_run_it_is_left_alone() -> None:
    reference = ReferenceTimes(Board())
    reference.look()
    assert reference.own == [] and reference.repeat()

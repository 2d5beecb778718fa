"""Ctrl-C waits until what is being written is whole."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import optuna
import pytest

from nasrlm.search.interrupts import finish_first
from nasrlm.search.storage import open_storage


@pytest.fixture(autouse=True)
def ctrl_c() -> object:
    """Tests that a shell started in the background inherit that Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_blocks_inside_blocks_wait_for_the_outermost() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), finish_first():
        with finish_first():
            signal.raise_signal(signal.SIGINT)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with finish_first():
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("call", ["symlink", "rename", "unlink"])
def test_a_journal_is_whole_and_unlocked_after_ctrl_c(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(f"journal:{tmp_path}/study.log")
    optuna.create_study(storage=storage, study_name="before")
    real = getattr(os, call)

    def pressed(*given: object) -> object:
        found = real(*given)
        signal.raise_signal(signal.SIGINT)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(os, call, pressed)
        with pytest.raises(KeyboardInterrupt):
            optuna.create_study(storage=storage, study_name="meanwhile")
    assert [file.name for file in tmp_path.iterdir() if "lock" in file.name] == []
    again = open_storage(f"journal:{tmp_path}/study.log")
    assert {study.study_name for study in again.get_all_studies()} == {"before", "meanwhile"}

"""Stopping and resuming from the command line: kill -9, Ctrl-C, other experiments, folders that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from nasrlm.cli import main

SLOW = '''\
"""MACs, slowly, so that a test can stop the search in the middle."""
import time

from nasrlm.evaluators import value_frame
from nasrlm.graph import costs


class Slow:
    name = "slow"
    metrics = ("my_metric/a", "my_metric/b")

    def __init__(self, space, seconds: float = 0.0):
        self.seconds = seconds

    def evaluate(self, architectures, metrics):
        time.sleep(self.seconds)
        counted = [costs(a) for a in architectures]
        values = {"my_metric/a": [float(c.macs) for c in counted], "my_metric/b": [float(-c.depth) for c in counted]}
        return value_frame(architectures, {m: values[m] for m in metrics})


EVALUATOR = Slow
'''

SEARCH = """\
schema: nasrlm/experiment@1
kind: search
name: slow
seed: 1
space: {name: tiny}
evaluators:
  - {path: slow.py, options: {seconds: SECONDS}}
objectives:
  - {metric: my_metric/a, direction: minimize}
  - {metric: my_metric/b, direction: minimize}
study: {n_trials: 60, batch_size: 5, sampler: {name: nsga2, options: {population_size: 10}}}
outputs: {folder: runs/FOLDER, plots: []}
"""


def write(folder: Path, name: str, seconds: float = 0.0) -> Path:
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    file = folder / f"{name}.yaml"
    file.write_text(SEARCH.replace("FOLDER", name).replace("SECONDS", str(seconds)), encoding="utf-8")
    return file


def start(file: Path) -> subprocess.Popen[str]:
    """`nasrlm search`, once it has stored some trials but not all."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nasrlm", "search", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that a shell started in the background inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    log = file.parent / "runs" / file.stem / "study.log"
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        if log.is_file() and log.stat().st_size > 6000:
            return process
        time.sleep(0.01)
    process.kill()
    out, err = process.communicate()
    raise AssertionError(f"the search ended too early ({process.returncode}): {out} {err}")


def trials(file: Path) -> pd.DataFrame:
    return pd.read_csv(file.parent / "runs" / file.stem / "trials.csv").drop(columns="failure")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    file = write(tmp_path_factory.mktemp("whole"), "whole")
    assert main(["search", str(file)]) == 0
    return trials(file)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_same_command_goes_on_and_gives_the_uninterrupted_study(
    how: signal.Signals, tmp_path: Path, uninterrupted: pd.DataFrame
) -> None:
    file = write(tmp_path, "stopped", seconds=0.2)
    process = start(file)
    os.kill(process.pid, how)
    _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130, err
        assert f"nasrlm search {file}" in err
        assert "Traceback" not in err
    else:
        assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "runs" / "stopped" / "trials.csv").exists()
    assert main(["search", str(file)]) == 0
    pd.testing.assert_frame_equal(trials(file), uninterrupted)


def test_a_finished_run_only_reports_and_more_trials_go_on(tmp_path: Path, uninterrupted: pd.DataFrame) -> None:
    file = write(tmp_path, "again")
    assert main(["search", str(file), "--set", "study.n_trials=30"]) == 0
    assert len(trials(file)) == 30
    front = tmp_path / "runs" / "again" / "front.csv"
    before = front.read_bytes()
    assert main(["search", str(file), "--set", "study.n_trials=30"]) == 0
    assert front.read_bytes() == before
    assert main(["search", str(file)]) == 0
    pd.testing.assert_frame_equal(trials(file), uninterrupted)


def test_a_folder_of_another_experiment_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "mine")
    assert main(["search", str(file)]) == 0
    files = {f: f.read_bytes() for f in (tmp_path / "runs" / "mine").iterdir() if f.is_file()}
    capsys.readouterr()
    assert main(["search", str(file), "--set", "seed=2", "--set", "study.batch_size=6"]) == 2
    error = capsys.readouterr().err
    assert "belongs to another experiment" in error
    assert "seed: 1 there, 2 here" in error
    assert "study.batch_size: 5 there, 6 here" in error
    assert {f: f.read_bytes() for f in (tmp_path / "runs" / "mine").iterdir() if f.is_file()} == files


def test_a_folder_with_other_things_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "full")
    (tmp_path / "runs" / "full").mkdir(parents=True)
    (tmp_path / "runs" / "full" / "letter.txt").write_text("Dear", encoding="utf-8")
    assert main(["search", str(file)]) == 2
    assert "holds other things (letter.txt ...)" in capsys.readouterr().err
    assert [f.name for f in (tmp_path / "runs" / "full").iterdir()] == ["letter.txt"]


def test_a_file_in_the_way_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "blocked")
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    assert main(["search", str(file)]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / 'runs'} is a file" in error
    assert "outputs.folder" in error


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "locked")
    (tmp_path / "runs").mkdir(mode=0o555)
    assert main(["search", str(file)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_an_evaluator_that_breaks_exits_with_1_and_keeps_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], uninterrupted: pd.DataFrame
) -> None:
    file = write(tmp_path, "broken")
    check = f"        if Path({str(tmp_path / 'break')!r}).exists():\n            raise ValueError('no power')\n"
    breaking = SLOW.replace("import time\n", "import time\nfrom pathlib import Path\n").replace(
        "        time.sleep", check + "        time.sleep"
    )
    (tmp_path / "slow.py").write_text(breaking, encoding="utf-8")
    assert main(["search", str(file), "--set", "study.n_trials=30"]) == 0
    (tmp_path / "break").touch()
    capsys.readouterr()
    assert main(["search", str(file)]) == 1
    error = capsys.readouterr().err
    assert "slow failed: ValueError" in error
    assert "no power" in error
    (tmp_path / "break").unlink()
    assert main(["search", str(file)]) == 0
    pd.testing.assert_frame_equal(trials(file), uninterrupted)


def test_sqlite_and_memory_give_the_same_trials(tmp_path: Path, uninterrupted: pd.DataFrame) -> None:
    for name, storage in (("lite", "sqlite:///study.db"), ("memory", "null")):
        file = write(tmp_path, name)
        assert main(["search", str(file), "--set", f"study.storage={storage}"]) == 0
        pd.testing.assert_frame_equal(trials(file), uninterrupted)
    assert (tmp_path / "runs" / "lite" / "study.db").is_file()

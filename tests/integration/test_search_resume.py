"""A study killed with SIGKILL, at any moment, goes on as if it had not been.

The file runs itself as the process that is killed: ``python test_search_resume.py FOLDER MOMENT COUNT``.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import optuna
import pandas as pd
import pytest

from nasrlm.search import search
from nasrlm.search import study as study_module
from nasrlm.spaces import get_space

ROOT = Path(__file__).resolve().parents[2]


class Toy:
    name, metrics = "toy", ("accuracy/toy", "latency_ms/toy")

    def evaluate(self, architectures, metrics):
        rows = []
        for architecture in architectures:
            p = architecture.params
            size = p["depth"] * p["width"] * (1 + p["kernel"]) + 3 * p["residual"] + p.get("skip_kernel", 0)
            rows.append((50 + 10 * math.log(size) + (p["pool"] == "max"), 0.1 * size))
        index = pd.Index([architecture.id for architecture in architectures], name="architecture_id")
        return pd.DataFrame(rows, index=index, columns=list(self.metrics))[list(metrics)]


def run(storage):
    return search(
        get_space("tiny"),
        Toy(),
        ["accuracy/toy:max", "latency_ms/toy:min"],
        sampler_options={"population_size": 6},
        n_trials=60,
        batch_size=6,
        seed=1,
        storage=storage,
    )


def kill_after(count, function):
    """Make a function that kills this process at its call number ``count``, before doing anything."""
    calls = []

    def wrapper(*args, **kwargs):
        calls.append(1)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    return wrapper


def main(folder, moment, count):
    if moment == "evaluate":
        Toy.evaluate = kill_after(count, Toy.evaluate)
    elif moment == "ask":
        optuna.Study.ask = kill_after(count, optuna.Study.ask)
    elif moment == "store":
        add = kill_after(count, optuna.Study.add_trial)
        original = optuna.Study.add_trial
        optuna.Study.add_trial = lambda study, trial: (original if study.study_name == "memory" else add)(study, trial)
    else:
        study_module.save_state = kill_after(count, study_module.save_state)
    run(f"journal:{folder}/study.log")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("kills", [["ask 21", "store 15", "evaluate 2"], ["state 3", "store 19", "ask 2", "state 2"]])
def test_killed_study_equals_uninterrupted(kills, tmp_path):
    whole = run(None)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for kill in kills:
        command = [sys.executable, __file__, str(tmp_path), *kill.split()]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    resumed = run(f"journal:{tmp_path}/study.log")
    pd.testing.assert_frame_equal(resumed.trials, whole.trials)
    pd.testing.assert_frame_equal(resumed.front, whole.front)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

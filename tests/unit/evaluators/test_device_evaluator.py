"""The device evaluator: what it remembers, why a value is missing, and a machine that is too noisy."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nasrlm.errors import ConfigError, DeviceError
from nasrlm.evaluators import get_evaluator
from nasrlm.graph import to_onnx
from nasrlm.spaces import get_space
from nasrlm.testing import check_evaluator

SPACE = get_space("tiny")
FEW = list(dict.fromkeys(SPACE.sample(12, seed=0)))[:8]
METRIC = "latency_ms/remote"


def remote(code: str, **options: Any) -> Any:
    return get_evaluator("device", SPACE, device="remote", command=[sys.executable, "-c", code], **options)


def sizes() -> list[int]:
    return [len(to_onnx(a, weights="random").SerializeToString()) for a in FEW]


FUSSY = """
import os, sys
size = os.path.getsize(sys.argv[1])
open(sys.argv[2], "a").write("x")
if size > {limit}:
    sys.exit("the board has no memory left")
print(size)
"""


def fussy(folder: Path, limit: int) -> Any:
    """Fails for networks above a size, and notes each call."""
    command = [sys.executable, "-c", FUSSY.format(limit=limit), "{model}", str(folder / "calls")]
    return get_evaluator("device", SPACE, device="remote", command=command)


def test_a_failed_measurement_has_a_reason_and_is_not_tried_again(tmp_path: Path) -> None:
    limit = sorted(sizes())[4]
    evaluator = fussy(tmp_path, limit)
    values = evaluator.evaluate(FEW, [METRIC])[METRIC]
    assert values.isna().tolist() == [size > limit for size in sizes()]
    assert set(evaluator.failures) == set(values.index[values.isna()]) != set()
    assert all("the board has no memory left" in reason for reason in evaluator.failures.values())
    again = evaluator.evaluate(FEW, [METRIC])[METRIC]
    assert again.equals(values)
    assert len((tmp_path / "calls").read_text()) == len(FEW)


def test_one_that_fails_alone_is_no_error_but_all_of_several_are(tmp_path: Path) -> None:
    evaluator = fussy(tmp_path, 1)
    assert evaluator.evaluate(FEW[:1], [METRIC])[METRIC].isna().all()
    assert "no memory left" in evaluator.failures[FEW[0].id]
    with pytest.raises(DeviceError, match="no memory left"):
        evaluator.evaluate(FEW[:3], [METRIC])


def test_a_search_goes_on_after_failures(tmp_path: Path) -> None:
    from nasrlm.search import Objective, search

    limit = sorted(sizes())[3]
    evaluator = fussy(tmp_path, limit)
    result = search(
        SPACE, [evaluator], [Objective(METRIC, "minimize")], sampler="random", n_trials=12, batch_size=1, seed=3
    )
    assert len(result.trials) > 0 and len(evaluator.failures) > 0
    assert (result.trials[METRIC].dropna() <= limit).all()


@pytest.mark.parametrize(
    ("code", "options", "words"),
    [
        ("import time; time.sleep(60)", {"timeout_s": 0.3}, "had not ended after 0.3 s"),
        ("print('nonsense')", {}, "printed no time"),
        ("import os; os.abort()", {}, "signal 6"),
    ],
)
def test_commands_that_hang_or_die_end_in_a_reason(code: str, options: dict[str, Any], words: str) -> None:
    evaluator = remote(code, **options)
    assert evaluator.evaluate(FEW[:1], [METRIC])[METRIC].isna().all()
    assert words in evaluator.failures[FEW[0].id]


def test_statistics() -> None:
    code = "print('1 2 3 4 5')"
    assert remote(code).evaluate(FEW[:1], [METRIC]).iloc[0].tolist() == [3.0, 2.0, 4.0]
    minimum = remote(code, statistic="minimum").evaluate(FEW[:1], [METRIC])
    assert list(minimum.columns) == [METRIC] and minimum.iloc[0].tolist() == [1.0]
    with pytest.raises(ConfigError, match="Nearest: median"):
        remote(code, statistic="medain")
    with pytest.raises(ConfigError, match="Nearest: command"):
        get_evaluator("device", SPACE, device="remote", comand="x")


def test_the_kit_with_the_minimum() -> None:
    options = {"repeats": 5, "tries": 1, "max_spread": 100.0}
    check_evaluator(get_evaluator("device", SPACE, device="onnxruntime_cpu", statistic="minimum", **options), FEW[:6])


def test_says_once_that_the_machine_is_too_noisy(caplog: pytest.LogCaptureFixture) -> None:
    evaluator = remote("print('1 5 9')")
    with caplog.at_level(logging.WARNING, logger="nasrlm.evaluators"):
        evaluator.evaluate(FEW[:5], [METRIC])
        assert caplog.messages == []  # too few to tell
        evaluator.evaluate(FEW[:6], [METRIC])
        evaluator.evaluate(FEW, [METRIC])
    (message,) = caplog.messages
    assert "too noisy: the times of 6 of 6 networks" in message and "statistic: minimum" in message
    assert evaluator.unstable == {a.id for a in FEW}


def test_a_quiet_machine_is_not_blamed(caplog: pytest.LogCaptureFixture) -> None:
    evaluator = remote("print('3 3 3')")
    evaluator.evaluate(FEW, [METRIC])
    assert caplog.messages == [] and evaluator.unstable == set()


DRIFTS = """
from nasrlm.devices import summarise
from nasrlm.devices.reference import reference_model
class DEVICE:
    name, metric, runtime = "board", "latency_ms/board", "onnxruntime"
    def __init__(self):
        self.reference = iter(float(ms) for ms in "{times}".split())
    def measure(self, model):
        return summarise([next(self.reference) if model == reference_model() else 7.0], 1, 0.1)
"""


@pytest.mark.parametrize(("times", "drifts"), [("2 2.05", False), ("2 2.1", True)])
def test_says_once_that_times_do_not_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, times: str, drifts: bool
) -> None:
    monkeypatch.setenv("NASRLM_CACHE", str(tmp_path))
    (tmp_path / "board.py").write_text(DRIFTS.format(times=times))
    evaluator = get_evaluator("device", SPACE, device=str(tmp_path / "board.py"))
    networks = list(dict.fromkeys(get_space("nasbench201").sample(40, seed=0)))[:22]
    with caplog.at_level(logging.WARNING, logger="nasrlm.evaluators"):
        values = evaluator.evaluate(networks[:20], ["latency_ms/board"])
        assert caplog.messages == [] and len(evaluator.reference.own) == 1
        evaluator.evaluate(networks, ["latency_ms/board"])
        evaluator.evaluate(networks, ["latency_ms/board"])
    assert (values["latency_ms/board"] == 7.0).all() and len(evaluator.reference.own) == 2
    assert len(caplog.messages) == drifts
    if drifts:
        assert "do not repeat within 3 %" in caplog.messages[0] and "2 to 2.1 ms at best" in caplog.messages[0]


COUNTS = """
from nasrlm.devices import summarise
class DEVICE:
    name, metric, counts_energy = "board", "latency_ms/board_b2", True
    def measure(self, model):
        return summarise([1.0], 1, 0.1, energy_mj=len(model) / 100)
"""


def test_energy_is_a_metric_where_it_is_counted(tmp_path: Path) -> None:
    (tmp_path / "board.py").write_text(COUNTS)
    evaluator = get_evaluator("device", SPACE, device=str(tmp_path / "board.py"))
    assert evaluator.metrics == ("latency_ms/board_b2", "energy_mj/board_b2")
    values = evaluator.evaluate(FEW, ["energy_mj/board_b2"])
    assert list(values.columns) == ["energy_mj/board_b2"]
    np.testing.assert_allclose(values["energy_mj/board_b2"], np.array(sizes()) / 100)
    check_evaluator(evaluator, FEW[:6])
    assert remote("print(1)").metrics == (METRIC,)

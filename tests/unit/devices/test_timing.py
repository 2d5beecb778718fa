"""The stopwatch: what counts as a run, which series counts, and the energy counters. No time itself is asserted."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nasrlm.devices import Measurement
from nasrlm.devices.energy import EnergyCounter
from nasrlm.devices.pace import Pace
from nasrlm.devices.settings import Settings
from nasrlm.devices.timing import Run, series, steadiest, timed, undisturbed
from nasrlm.errors import ConfigError


def measurements(*pairs: tuple[float, float]) -> Callable[[], Measurement]:
    """Gives, one a call, measurements of these minima and spreads (stable up to 0.1)."""
    left = iter(pairs)

    def measure() -> Measurement:
        minimum, spread = next(left)
        return Measurement(minimum, 1.0, 1.0, 1.0 + spread, 5, 1, spread <= 0.1)

    return measure


def test_the_first_stable_series_counts_with_the_minimum_of_all() -> None:
    found = steadiest(measurements((0.7, 0.5), (0.8, 0.3), (0.9, 0.05), (0.1, 0.01)), tries=4)
    assert found.stable and found.spread == pytest.approx(0.05) and found.minimum_ms == 0.7


def test_without_a_stable_one_the_steadiest_counts_and_says_so() -> None:
    found = steadiest(measurements((0.9, 0.5), (0.8, 0.3), (0.7, 0.4), (0.1, 0.01)), tries=3)
    assert not found.stable and found.spread == pytest.approx(0.3) and found.minimum_ms == 0.7


def paced(*looks: float, clock: Callable[[], float] = time.monotonic) -> Pace:
    """A pace of these looks, the last one for ever, after first ones at full speed."""
    left = itertools.chain([1.0] * 30, looks[:-1], itertools.repeat(looks[-1]))
    return Pace(lambda: next(left), clock)


STEADY = Pace(lambda: 1.0)


def test_runs_beside_which_the_processor_was_slow_do_not_count() -> None:
    calls = itertools.count(1)
    settings = Settings("mine", threads=2, repeats=5, seconds=30.0)  # a stretch of 20 ms is two runs
    found = series(lambda: time.sleep(0.012 * next(calls)), settings, pace=paced(1.0, 1.5, 1.5, 1.0))
    # The first three stretches were slowed before or after them: runs 1 to 4.
    assert found.slowdown == 1.0 and found.repeats == 5 and found.minimum_ms >= 12 * 5


def test_a_processor_that_stays_slow_makes_the_measurement_unstable() -> None:
    settings = Settings("mine", threads=2, repeats=5, tries=2, max_spread=1e9, seconds=0.05)
    found = timed(lambda: None, settings, pace=paced(1.5))
    assert not found.stable and found.slowdown == 1.5
    assert timed(lambda: None, settings, pace=STEADY).stable


def test_of_slowed_series_the_least_slowed_counts_however_steady() -> None:
    slowed = [Measurement(0.7, 1.0, 1.0, 1.01, 5, 1, False, slowdown=1.5), Measurement(0.9, 1, 1, 1.3, 5, 1, False)]
    assert steadiest(lambda: slowed.pop(0), tries=2).slowdown == 1.0


def test_full_speed_is_what_the_processor_does_now_and_then() -> None:
    pace = paced(0.5, 1.0)  # one burst of the clock rate counts for nothing
    assert pace.slowdown() == 0.5 and pace.slowdown() == 1.0
    seconds = itertools.count()
    slower = paced(2.0, clock=lambda: float(next(seconds)))
    assert slower.slowdown() == 2.0
    assert min(slower.slowdown() for _ in range(3000)) == 1.0  # a processor that stays slow is slow


def busy() -> None:
    end = time.thread_time() + 2e-4
    while time.thread_time() < end:
        pass


def test_runs_that_wait_do_not_count() -> None:
    calls = iter(range(10_000))

    def run() -> None:
        busy()
        if next(calls) % 2:
            time.sleep(0.05)  # as if the processor had gone to another program

    settings = Settings("mine", repeats=6, seconds=30.0)
    alone = series(run, settings, pace=STEADY)
    assert alone.repeats == 6 and alone.upper_quartile_ms < 50
    assert alone.thread_ms <= alone.median_ms * 1.1 + 0.1
    several = series(run, Settings("mine", repeats=6, threads=2), pace=STEADY)
    assert several.repeats == 6 and several.upper_quartile_ms > 50  # several threads wait for each other all the time


def test_a_run_that_only_waits_is_measured_all_the_same() -> None:
    waiting = series(lambda: time.sleep(0.01), Settings("mine", repeats=5, seconds=0.1))
    assert waiting.repeats >= 5 and waiting.minimum_ms >= 10
    assert math.isnan(series(busy, Settings("gpu", repeats=5), on_processor=False).thread_ms)


def test_undisturbed_runs_are_at_least_five() -> None:
    one, interrupted = Run(1.0, 1.0), Run(9.0, 1.0)
    few = [one] * 4 + [interrupted]
    assert undisturbed(few) == few
    assert undisturbed([*few, one, Run(1.0, 1.0, slowdown=1.5)]) == [one] * 5
    assert undisturbed([*few, Run(1.0, 1.0, slowdown=1.5)], alone=False) == few


def test_warm_up_and_tries() -> None:
    calls: list[int] = []
    timed(lambda: calls.append(0), Settings("mine", threads=2, warm_up=7, repeats=5, tries=1), pace=STEADY)
    assert len(calls) == 7 + 5


def test_settings_make_the_metric() -> None:
    assert Settings("a").metric == "latency_ms/a"
    assert Settings("a", threads=3, batch_size=2).metric == "latency_ms/a_b2_t3"
    with pytest.raises(ConfigError, match=r"device a: batch_size is 0\. Allowed: a whole number from 1 up\."):
        Settings("a", batch_size=0)


def zone(folder: Path, name: str, label: str, microjoule: int, size: int = 1000) -> Path:
    made = folder / name
    made.mkdir()
    (made / "name").write_text(f"{label}\n")
    (made / "energy_uj").write_text(f"{microjoule}\n")
    (made / "max_energy_range_uj").write_text(f"{size}\n")
    return made


def test_energy_of_all_packages_and_of_nothing_twice(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", "package-0", 100)
    second = zone(tmp_path, "intel-rapl:1", "package-1", 900)
    zone(tmp_path, "intel-rapl:0:0", "core", 50)
    zone(tmp_path, "intel-rapl:2", "psys", 5000)
    counter = EnergyCounter(tmp_path)
    before = counter.read()
    assert counter.readable and before == [100, 900]
    (first / "energy_uj").write_text("350")
    (second / "energy_uj").write_text("150")  # went round its 1000
    assert counter.used(before, counter.read()) == pytest.approx((250 + 250) / 1000)


def test_energy_is_absent_where_nothing_is_counted(tmp_path: Path) -> None:
    (tmp_path / "intel-rapl:0").mkdir()
    for folder in (tmp_path, tmp_path / "none"):
        counter = EnergyCounter(folder)
        assert not counter.readable and counter.used(counter.read(), counter.read()) == 0


def test_energy_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 0, size=10**12)
    monkeypatch.setattr("nasrlm.devices.timing.EnergyCounter", lambda: EnergyCounter(tmp_path))
    used = iter(range(1, 100))

    def run() -> None:
        (package / "energy_uj").write_text(str(2000 * next(used)))  # every run takes 2 mJ

    assert series(run, Settings("mine", threads=2, repeats=8), pace=STEADY).energy_mj == pytest.approx(2.0)

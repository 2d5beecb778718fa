"""The stopwatch that the devices of this machine share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nasrlm.devices.energy import EnergyCounter
from nasrlm.devices.measurement import Measurement, summarise
from nasrlm.devices.pace import PACE, SLOWED, Pace
from nasrlm.devices.settings import Settings

FEWEST = 5  # repeats, however slow the network is: quartiles need some
_SLACK, _SLACK_MS = 0.02, 0.02  # what two clocks, read one after the other, may differ by
_STRETCH = 0.02  # seconds of runs between two looks at the processor's pace, which take a fiftieth of that


def timed(
    run: Callable[[], object], settings: Settings, *, on_processor: bool = True, pace: Pace = PACE
) -> Measurement:
    """Times a function that runs a network once.

    After a warm-up, runs are timed one by one. A series whose quartiles lie too far apart (other programs were
    running) is measured again, and so is one during which the processor was slowed throughout; the steadiest series at
    full speed counts. The minimum is that of all series, because nothing makes a run faster than it is. See `series`
    for runs that were disturbed.

    Args:
        run: runs the network once and returns when it is done.
        settings: see Settings.
        on_processor: whether the calling thread does the work; it only waits for a graphics processor.
        pace: tells how fast the processor is.

    Example:
        >>> timed(lambda: sum(range(1000)), Settings("mine", repeats=5, tries=1)).repeats
        5
    """
    for _ in range(max(1, settings.warm_up)):  # the first run also shows that the model runs at all
        run()
    return steadiest(lambda: series(run, settings, on_processor=on_processor, pace=pace), settings.tries)


def steadiest(measure: Callable[[], Measurement], tries: int) -> Measurement:
    """The steadiest of at most `tries` measurements, the first stable one at best, with the minimum of all.

    Those beside which the processor was slowed come last, the slowest at the end.
    """
    best = measure()
    minimum = best.minimum_ms
    for _ in range(tries - 1):
        if best.stable:
            break
        again = measure()
        minimum = min(minimum, again.minimum_ms)
        best = min(best, again, key=lambda measured: (max(measured.slowdown, SLOWED), measured.spread))
    return replace(best, minimum_ms=minimum)


def series(
    run: Callable[[], object], settings: Settings, *, on_processor: bool = True, pace: Pace = PACE
) -> Measurement:
    """One series of timed runs.

    With one thread, a run that took longer than the processor time of its thread was interrupted: the operating
    system gave the processor to another program in between. Such runs do not count, nor do those before or after which
    the processor was slower than it can be (see `pace`), and others are timed in their place while `seconds` last.

    Args:
        run, settings, on_processor, pace: as for `timed`.
    """
    now = time.perf_counter
    alone = on_processor and settings.threads == 1
    runs: list[Run] = []
    counted = 0
    energy = EnergyCounter()
    before = energy.read()
    end = now() + settings.seconds
    slowdown = pace.slowdown() if on_processor else 1.0
    while counted < settings.repeats and (len(runs) < FEWEST or now() < end):
        stretch = [_timed_once(run)]
        until = min(now() + _STRETCH, end)
        while counted + len(stretch) < settings.repeats and now() < until:
            stretch.append(_timed_once(run))
        earlier, slowdown = slowdown, pace.slowdown() if on_processor else 1.0
        new = [Run(time_ms, processor_ms, max(earlier, slowdown)) for time_ms, processor_ms in stretch]
        runs += new
        counted += sum(one.counts(alone) for one in new)
    used = energy.used(before, energy.read()) / len(runs) if energy.readable else math.nan
    times, processor, slowdowns = np.array(undisturbed(runs, alone)).T
    thread_ms = float(np.median(processor)) if on_processor else math.nan
    measured = summarise(times, settings.threads, settings.max_spread, thread_ms=thread_ms, energy_mj=used)
    slowed = float(np.median(slowdowns))
    return replace(measured, slowdown=slowed, stable=measured.stable and slowed <= SLOWED)


class Run(NamedTuple):
    """One timed run: its time, its thread's processor time, and how much slower the processor was beside it."""

    time_ms: float
    processor_ms: float
    slowdown: float = 1.0

    def counts(self, alone: bool = True) -> bool:
        """Whether nothing disturbed it; `alone`: its time should be its processor time."""
        uninterrupted = self.time_ms <= (1 + _SLACK) * self.processor_ms + _SLACK_MS
        return self.slowdown <= SLOWED and (uninterrupted or not alone)


def undisturbed(runs: list[Run], alone: bool = True) -> list[Run]:
    """The runs that nothing disturbed; all where they are fewer than five.

    Example:
        >>> len(undisturbed([Run(1.0, 1.0)] * 5 + [Run(9.0, 1.0), Run(1.5, 1.5, slowdown=1.5)]))
        5
    """
    kept = [run for run in runs if run.counts(alone)]
    return kept if len(kept) >= FEWEST else runs


def _timed_once(run: Callable[[], object]) -> tuple[float, float]:
    thread_start, start = time.thread_time(), time.perf_counter()
    run()
    stop, thread_stop = time.perf_counter(), time.thread_time()
    return 1e3 * (stop - start), 1e3 * (thread_stop - thread_start)

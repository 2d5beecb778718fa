"""The stopwatch that the devices of this machine share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nasrlm.devices.energy import EnergyCounter
from nasrlm.devices.measurement import Measurement, summarise
from nasrlm.devices.pace import PACE, SLOWED, Pace
from nasrlm.devices.settings import Settings

FEWEST = 5  # repeats, however slow the network is: quartiles need some
_SLACK, _SLACK_MS = 0.02, 0.02  # what two clocks, read one after the other, may differ by
_WAIT = 0.5  # seconds at most for the processor to come back to full speed, before each series


def timed(
    run: Callable[[], object], settings: Settings, *, on_processor: bool = True, pace: Pace = PACE
) -> Measurement:
    """Times a function that runs a network once.

    After a warm-up, runs are timed one by one. A series whose quartiles lie too far apart (other programs were
    running) is measured again, and so is one beside which the processor was slower than it can be (see `pace`);
    the steadiest series at full speed counts. The minimum is that of all series, because nothing makes a run faster
    than it is. See `series` for runs that were interrupted.

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
    if not on_processor:
        return steadiest(lambda: series(run, settings, on_processor=False), settings.tries)

    def at_pace() -> Measurement:
        before = pace.settled(min(_WAIT, settings.seconds))
        measured = series(run, settings)
        slowdown = max(before, pace.slowdown())
        return replace(measured, slowdown=slowdown, stable=measured.stable and slowdown <= SLOWED)

    return steadiest(at_pace, settings.tries)


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


def series(run: Callable[[], object], settings: Settings, *, on_processor: bool = True) -> Measurement:
    """One series of timed runs.

    With one thread, a run that took longer than the processor time of its thread was interrupted: the operating
    system gave the processor to another program in between. Such runs do not count, and others are timed in their
    place while `seconds` last.

    Args:
        run, settings, on_processor: as for `timed`.
    """
    now, thread_now = time.perf_counter, time.thread_time
    alone = on_processor and settings.threads == 1
    runs: list[tuple[float, float]] = []
    counted = 0
    energy = EnergyCounter()
    before = energy.read()
    end = now() + settings.seconds
    while counted < settings.repeats and (len(runs) < FEWEST or now() < end):
        thread_start, start = thread_now(), now()
        run()
        stop, thread_stop = now(), thread_now()
        runs.append((1e3 * (stop - start), 1e3 * (thread_stop - thread_start)))
        counted += not alone or _uninterrupted(*runs[-1])
    used = energy.used(before, energy.read()) / len(runs) if energy.readable else math.nan
    times, processor = np.array(uninterrupted(runs) if alone else runs).T
    thread_ms = float(np.median(processor)) if on_processor else math.nan
    return summarise(times, settings.threads, settings.max_spread, thread_ms=thread_ms, energy_mj=used)


def uninterrupted(runs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The runs whose time is their processor time; all where fewer than five are.

    Args:
        runs: time and processor time of each, in milliseconds.

    Example:
        >>> uninterrupted([(1.0, 1.0)] * 5 + [(9.0, 1.0)])
        [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]
    """
    kept = [run for run in runs if _uninterrupted(*run)]
    return kept if len(kept) >= FEWEST else runs


def _uninterrupted(time_ms: float, processor_ms: float) -> bool:
    return time_ms <= (1 + _SLACK) * processor_ms + _SLACK_MS

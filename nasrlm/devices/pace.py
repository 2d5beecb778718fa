"""How fast the processor is just now, by a fixed calculation that is timed beside the networks.

A neighbour on the same physical core (another virtual machine, the core's second thread) slows every run alike, by half
and for seconds, and no quartile shows it. The calculation does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

SLOWED = 1.06
"""Times the fastest: beyond it a series does not count as measured at full speed."""
_RUNS, _LOOKS, _PAUSE = 30, 20, 0.01
_IN_VAIN = 3
"""After so many waits that were no use the processor is what it is, until it is fast again by itself."""


class Pace:
    """The processor's speed beside the fastest that this process has seen.

    Args:
        look: times the calculation, in any unit; by default small products of matrices, half a millisecond in all.

    Example:
        >>> times = iter([2.0] * 20 + [3.0, 2.0])
        >>> pace = Pace(lambda: next(times))
        >>> pace.slowdown(), pace.slowdown()
        (1.5, 1.0)
    """

    def __init__(self, look: Callable[[], float] | None = None) -> None:
        self._look = look or _products()
        self._fastest: float | None = None
        self._in_vain = 0

    def slowdown(self) -> float:
        """The calculation's time now, divided by its shortest so far; 1 is full speed. The first call takes longer."""
        if self._fastest is None:
            self._fastest = min(self._after_a_pause() for _ in range(_LOOKS))
        now = self._look()
        self._fastest = min(self._fastest, now)
        return now / self._fastest

    def settled(self, seconds: float) -> float:
        """The slowdown as soon as it is gone, or after so many seconds."""
        end = time.perf_counter() + (seconds if self._in_vain < _IN_VAIN else 0.0)
        found = self.slowdown()
        while found > SLOWED and time.perf_counter() < end:
            time.sleep(_PAUSE)
            found = self.slowdown()
        self._in_vain = self._in_vain + 1 if found > SLOWED else 0
        return found

    def _after_a_pause(self) -> float:
        time.sleep(_PAUSE)
        return self._look()


def _products() -> Callable[[], float]:
    matrix = np.random.default_rng(0).standard_normal((48, 48)).astype(np.float32)  # too small for a second thread

    def look() -> float:
        times = []
        for _ in range(_RUNS):
            start = time.perf_counter()
            for _ in range(3):
                matrix @ matrix
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    return look


PACE = Pace()

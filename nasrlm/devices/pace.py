"""How fast the processor is just now, by a fixed calculation that is timed between the runs of a network.

A neighbour on the same physical core (another virtual machine, the core's second thread) slows every run alike, by half
and for seconds, and no quartile shows it. The calculation does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np

SLOWED = 1.05
"""Times the usual: what is beyond it was not measured at full speed."""
_FIRST_LOOKS, _PAUSE = 30, 0.01
_REMEMBERED, _FULL_SPEED = 3000, 0.1
"""Full speed is the tenth percentile of so many looks, at most one in ten milliseconds: a burst of the clock rate is
forgotten, and so is how fast the processor was long ago."""
_RUNS = 20


class Pace:
    """The processor's speed beside the full speed that this process has seen.

    Args:
        look: times the calculation, in any unit; by default small products of matrices, 0.3 ms in all.
        clock: seconds.

    Example:
        >>> times = iter([2.0] * 30 + [3.0, 2.0])
        >>> pace = Pace(lambda: next(times))
        >>> pace.slowdown(), pace.slowdown()
        (1.5, 1.0)
    """

    def __init__(self, look: Callable[[], float] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._look, self._clock = look or _products(), clock
        self._last = -np.inf
        self._looks: deque[float] = deque(maxlen=_REMEMBERED)

    def slowdown(self) -> float:
        """The calculation's time now, divided by that at full speed. The first call takes a third of a second."""
        while len(self._looks) < _FIRST_LOOKS:
            time.sleep(_PAUSE)
            self._looks.append(self._look())
        now = self._look()
        if self._clock() >= self._last + _PAUSE:
            self._last = self._clock()
            self._looks.append(now)
        return now / float(np.quantile(self._looks, _FULL_SPEED))


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

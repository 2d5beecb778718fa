"""Which candidates to evaluate next: the batch that is expected to enlarge the dominated volume most.

Each of many worlds is a draw of all candidates' values. The first pick gains most on average over the worlds; then each
world takes its value of the pick as known, so the next pick gains most beside it: near copies of a pick gain nothing.

Source: Emmerich, Giannakoglou and Naujoks 2006 (expected hypervolume improvement); Wilson, Hutter and Deisenroth 2018
(greedy batches by sampling).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import moocore
import numpy as np
import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[np.float64]"

_WORLDS, _SHORTLIST = 64, 300
_POINTS, _DRAWN, _ROUNDS = 1000, 20_000, 10
"""With three objectives and more, where a volume costs much more, it is counted in points: so many, out of so many that
are drawn in each of at most so many rounds."""


@dataclass(frozen=True)
class Belief:
    """What is believed of candidates, in costs (all minimised).

    Attributes:
        means: (candidates, objectives), and `deviations` likewise, on scales where they are normal.
        back: for every objective the way from its scale to costs.
        feasible: (candidates,) probability that all constraints hold.
    """

    means: Array
    deviations: Array
    back: Sequence[object]
    feasible: Array

    def costs(self, rows: npt.NDArray[np.intp], z: Array) -> Array:
        """Costs (..., rows, objectives) at z standard deviations from the means."""
        values = self.means[rows] + self.deviations[rows] * z
        return np.stack([back(values[..., j]) for j, back in enumerate(self.back)], axis=-1)  # type: ignore[operator]


def choose(belief: Belief, known: Array, reference: Array, size: int, rng: np.random.Generator) -> list[int]:
    """Picks a batch.

    Args:
        belief: of the candidates.
        known: (trials, objectives) costs of feasible finished trials.
        reference: the point that bounds the volume.
        size: how many to pick, at most as many as there are candidates.

    Returns:
        Rows of the candidates, best first.

    Example:
        >>> class Same:
        ...     def __call__(self, z): return z
        >>> belief = Belief(np.array([[1.0, 1.0], [2.0, 2.0]]), np.full((2, 2), 0.1), [Same(), Same()], np.ones(2))
        >>> choose(belief, np.array([[3.0, 3.0]]), np.array([4.0, 4.0]), 1, np.random.default_rng(0))
        [0]
    """
    front = nondominated(known, reference)
    rows = _shortlist(belief, front, reference, _SHORTLIST)
    half = rng.standard_normal((_WORLDS // 2, len(rows), len(reference)))
    worlds = belief.costs(rows, np.concatenate([half, -half]))
    world_gains = (_Volumes if len(reference) <= 2 else _Points)(worlds, front, reference)
    chosen: list[int] = []
    for _ in range(min(size, len(rows))):
        gains = world_gains.mean() * belief.feasible[rows]
        if gains.max() <= 0:  # the front is as good as it can get by all that is believed
            gains = belief.feasible[rows].copy()
        gains[chosen] = -1.0
        chosen.append(int(gains.argmax()))
        world_gains.take(chosen[-1])
    return rows[chosen].tolist()


class _Volumes:
    """What candidates gain in each world (worlds, candidates, objectives), exactly: one or two objectives."""

    def __init__(self, worlds: Array, front: Array, reference: Array) -> None:
        self.worlds, self.reference = worlds, reference
        self.fronts = [front] * len(worlds)

    def mean(self) -> Array:
        """Of each candidate over the worlds."""
        gains = [gain(world, front, self.reference) for world, front in zip(self.worlds, self.fronts, strict=True)]
        return np.mean(gains, axis=0)

    def take(self, row: int) -> None:
        """From here on every world knows its value of this candidate."""
        self.fronts = [
            nondominated(np.vstack([front, world[row]]), self.reference)
            for world, front in zip(self.worlds, self.fronts, strict=True)
        ]


class _Points:
    """As `_Volumes`, counted in points: any number of objectives."""

    def __init__(self, worlds: Array, front: Array, reference: Array) -> None:
        points = points_to_gain(worlds.reshape(-1, len(reference)), front, reference)
        self.gained = np.stack([_covers(world, points) for world in worlds])

    def mean(self) -> Array:
        """Of each candidate over the worlds, in points."""
        found: Array = self.gained.sum((0, 2)) / len(self.gained)
        return found

    def take(self, row: int) -> None:
        """What it gains in a world is there to be gained no more."""
        self.gained &= ~self.gained[:, row, None, :]


def points_to_gain(costs: Array, front: Array, reference: Array) -> Array:
    """Points (points, objectives), uniform in the volume that rows of costs could add to a front; at most a thousand.

    >>> points = points_to_gain(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.5]]), np.ones(3))
    >>> len(points), bool((points[:, 2] < 0.5).all())
    (1000, True)
    """
    best = nondominated(costs, reference)
    if not len(best):
        return np.empty((0, len(reference)))
    rng = np.random.default_rng(0)
    found = []
    for _ in range(_ROUNDS):
        points = rng.uniform(best.min(axis=0), reference, (_DRAWN, len(reference)))
        points = points[~_covers(front, points).any(axis=0)]
        found.append(points[_covers(best, points).any(axis=0)])
        if sum(map(len, found)) >= _POINTS:
            break
    return np.concatenate(found)[:_POINTS]


def _covers(costs: Array, points: Array) -> npt.NDArray[np.bool_]:
    """Which rows are at least as good as which points in everything: (rows, points)."""
    found = np.ones((len(costs), len(points)), dtype=bool)
    for j in range(points.shape[1]):
        found &= costs[:, j, None] <= points[:, j]
    return found


def nondominated(costs: Array, reference: Array) -> Array:
    """The rows within the reference point that no other row dominates."""
    inside = costs[(costs < reference).all(axis=1)]
    if len(inside) < 2:
        return inside
    keep: npt.NDArray[np.bool_] = moocore.is_nondominated(inside)
    return inside[keep]


def gain(costs: Array, front: Array, reference: Array) -> Array:
    """Volume that each row would add to the front by itself, for one or two objectives: (rows,).

    >>> gain(np.array([[1.0, 1.0], [3.0, 3.0]]), np.array([[2.0, 2.0]]), np.array([4.0, 4.0])).tolist()
    [5.0, 0.0]
    """
    if len(reference) == 1:
        best = front.min() if len(front) else reference[0]
        return np.maximum(best - costs[:, 0], 0.0)
    steps = front[np.argsort(front[:, 0])]  # the area under the staircase of the front, strip by strip
    edges = np.concatenate([[-np.inf], steps[:, 0], reference[:1]])
    heights = np.concatenate([reference[1:], steps[:, 1]])
    widths = np.minimum(edges[1:], reference[0]) - np.maximum(costs[:, :1], edges[:-1])
    found: Array = (np.maximum(widths, 0.0) * np.maximum(heights - costs[:, 1:], 0.0)).sum(1)
    return found


def hopeful(belief: Belief, front: Array, reference: Array) -> Array:
    """What each candidate would gain if it turned out well, times the probability that it is feasible."""
    rows = np.arange(len(belief.means))
    costs = belief.costs(rows, np.full((1, 1), -0.7))
    if len(reference) <= 2:
        return gain(costs, front, reference) * belief.feasible
    found: Array = _covers(costs, points_to_gain(costs, front, reference)).sum(axis=1) * belief.feasible
    return found


def _shortlist(belief: Belief, front: Array, reference: Array, most: int) -> npt.NDArray[np.intp]:
    if len(belief.means) <= most:
        return np.arange(len(belief.means))
    best = np.argsort(-hopeful(belief, front, reference), kind="stable")[:most]
    found: npt.NDArray[np.intp] = np.sort(best)
    return found

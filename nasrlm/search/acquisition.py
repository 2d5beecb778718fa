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
_WORLDS_3, _SHORTLIST_3 = 16, 60
"""With three objectives and more, where a gain costs much more."""


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
    many = len(reference) > 2
    front = nondominated(known, reference)
    rows = _shortlist(belief, front, reference, _SHORTLIST_3 if many else _SHORTLIST)
    half = rng.standard_normal(((_WORLDS_3 if many else _WORLDS) // 2, len(rows), len(reference)))
    worlds = belief.costs(rows, np.concatenate([half, -half]))
    fronts = [front] * len(worlds)
    chosen: list[int] = []
    for _ in range(min(size, len(rows))):
        gains = sum(gain(world, known_front, reference) for world, known_front in zip(worlds, fronts, strict=True))
        gains = np.asarray(gains) * belief.feasible[rows]
        if gains.max() <= 0:  # the front is as good as it can get by all that is believed
            gains = belief.feasible[rows].copy()
        gains[chosen] = -1.0
        chosen.append(int(gains.argmax()))
        fronts = [
            nondominated(np.vstack([known_front, world[chosen[-1]]]), reference)
            for world, known_front in zip(worlds, fronts, strict=True)
        ]
    return rows[chosen].tolist()


def nondominated(costs: Array, reference: Array) -> Array:
    """The rows within the reference point that no other row dominates."""
    inside = costs[(costs < reference).all(axis=1)]
    if len(inside) < 2:
        return inside
    keep: npt.NDArray[np.bool_] = moocore.is_nondominated(inside)
    return inside[keep]


def gain(costs: Array, front: Array, reference: Array) -> Array:
    """Volume that each row would add to the front by itself: (rows,).

    >>> gain(np.array([[1.0, 1.0], [3.0, 3.0]]), np.array([[2.0, 2.0]]), np.array([4.0, 4.0])).tolist()
    [5.0, 0.0]
    """
    if len(reference) == 1:
        best = front.min() if len(front) else reference[0]
        return np.maximum(best - costs[:, 0], 0.0)
    if len(reference) == 2:
        return _gain_2(costs, front, reference)
    before = float(moocore.hypervolume(front, ref=reference)) if len(front) else 0.0
    found = np.zeros(len(costs))
    for i in np.flatnonzero((costs < reference).all(axis=1)):
        found[i] = float(moocore.hypervolume(np.vstack([front, costs[i]]), ref=reference)) - before
    return np.maximum(found, 0.0)


def _gain_2(costs: Array, front: Array, reference: Array) -> Array:
    """The area under the staircase of the front, strip by strip."""
    steps = front[np.argsort(front[:, 0])]
    edges = np.concatenate([[-np.inf], steps[:, 0], reference[:1]])
    heights = np.concatenate([reference[1:], steps[:, 1]])
    widths = np.minimum(edges[1:], reference[0]) - np.maximum(costs[:, :1], edges[:-1])
    found: Array = (np.maximum(widths, 0.0) * np.maximum(heights - costs[:, 1:], 0.0)).sum(1)
    return found


def hopeful(belief: Belief, front: Array, reference: Array) -> Array:
    """What each candidate would gain if it turned out well, times the probability that it is feasible."""
    rows = np.arange(len(belief.means))
    return _quick_gain(belief.costs(rows, np.full((1, 1), -0.7)), front, reference) * belief.feasible


def _shortlist(belief: Belief, front: Array, reference: Array, most: int) -> npt.NDArray[np.intp]:
    if len(belief.means) <= most:
        return np.arange(len(belief.means))
    best = np.argsort(-hopeful(belief, front, reference), kind="stable")[:most]
    found: npt.NDArray[np.intp] = np.sort(best)
    return found


def _quick_gain(costs: Array, front: Array, reference: Array) -> Array:
    """As `gain`, quick for many rows: with three objectives and more only layers of fronts are told apart."""
    if len(reference) <= 2:
        return gain(costs, front, reference)
    scale = reference - costs.min(axis=0)
    inside = (costs < reference).all(axis=1)
    box: Array = np.prod(np.maximum(reference - costs, 0.0) / np.maximum(scale, 1e-300), axis=1)
    dominated = np.array([bool(len(front)) and bool((front <= c).all(axis=1).any()) for c in costs])
    return np.where(inside, box * np.where(dominated, 1e-3, 1.0), 0.0)

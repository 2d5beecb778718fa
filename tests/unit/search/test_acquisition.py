"""Gains of hypervolume and the choice of a batch."""

from __future__ import annotations

import moocore
import numpy as np
import pytest

from nasrlm.search.acquisition import Belief, choose, gain, hopeful, nondominated, points_to_gain


def same(z: np.ndarray) -> np.ndarray:
    return z


def certain(costs: np.ndarray, deviation: float = 1e-9) -> Belief:
    objectives = costs.shape[1]
    return Belief(costs, np.full(costs.shape, deviation), [same] * objectives, np.ones(len(costs)))


def exact(rows: np.ndarray, front: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Differences of moocore's hypervolumes."""
    before = moocore.hypervolume(front, ref=reference) if len(front) else 0.0
    return np.array([moocore.hypervolume(np.vstack([front, row]), ref=reference) for row in rows]) - before


def test_gain_is_the_difference_of_hypervolumes() -> None:
    rng = np.random.default_rng(2)
    reference = np.full(2, 0.9)
    front = nondominated(rng.random((12, 2)), reference)
    rows = rng.random((40, 2))
    nothing = np.empty((0, 2))
    assert gain(rows, front, reference) == pytest.approx(exact(rows, front, reference), abs=1e-12)
    assert gain(rows, nothing, reference) == pytest.approx(exact(rows, nothing, reference), abs=1e-12)


@pytest.mark.parametrize("objectives", [3, 4])
def test_counted_in_points_gains_are_in_proportion_to_volumes(objectives: int) -> None:
    rng = np.random.default_rng(objectives)
    reference = np.full(objectives, 0.9)
    front = nondominated(0.2 + 0.8 * rng.random((12, objectives)), reference)
    rows = rng.random((40, objectives))
    counted = hopeful(certain(rows), front, reference)
    volumes = exact(rows, front, reference)
    assert np.corrcoef(counted, volumes)[0, 1] > 0.99
    assert not counted[volumes == 0].any()


def test_points_lie_where_rows_could_add_to_the_front() -> None:
    reference = np.ones(3)
    front = np.array([[0.5, 0.5, 0.5]])
    assert len(points_to_gain(front + 0.1, front, reference)) == 0
    assert len(points_to_gain(front + 1.0, front, reference)) == 0
    points = points_to_gain(np.array([[0.4, 0.6, 0.6]]), front, reference)
    assert len(points) == 1000 and (points >= [0.4, 0.6, 0.6]).all() and (points[:, 0] < 0.5).all()


def test_one_objective_gains_what_is_below_the_best() -> None:
    assert gain(np.array([[1.0], [3.0]]), np.array([[2.0]]), np.array([9.0])).tolist() == [1.0, 0.0]
    assert gain(np.array([[1.0]]), np.empty((0, 1)), np.array([9.0])).tolist() == [8.0]


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_the_best_of_certain_candidates_comes_first(objectives: int) -> None:
    rng = np.random.default_rng(0)
    costs = rng.random((200, objectives))
    reference = np.ones(objectives)
    known = np.full((1, objectives), 0.95)
    first = choose(certain(costs), known, reference, 3, np.random.default_rng(1))[0]
    volumes = exact(costs, nondominated(known, reference), reference)
    assert volumes[first] >= (0.97 if objectives > 2 else 1.0) * volumes.max()


def test_a_near_copy_of_a_pick_gains_nothing_more() -> None:
    costs = np.array([[0.1, 0.5], [0.1001, 0.5001], [0.6, 0.2], [0.9, 0.9]])
    assert sorted(choose(certain(costs), np.empty((0, 2)), np.ones(2), 2, np.random.default_rng(0))) == [0, 2]


def test_what_is_known_to_be_infeasible_is_not_picked() -> None:
    costs = np.array([[0.1, 0.1], [0.5, 0.5]])
    belief = Belief(costs, np.full((2, 2), 1e-9), [same, same], np.array([0.0, 1.0]))
    assert choose(belief, np.empty((0, 2)), np.ones(2), 1, np.random.default_rng(0)) == [1]


def test_uncertain_candidates_are_worth_more_than_certain_ones_that_are_as_good() -> None:
    means = np.array([[0.5, 0.5], [0.5, 0.5]])
    belief = Belief(means, np.array([[1e-9, 1e-9], [0.2, 0.2]]), [same, same], np.ones(2))
    known = np.array([[0.5, 0.5]])
    assert choose(belief, known, np.ones(2), 1, np.random.default_rng(0)) == [1]
    good = hopeful(belief, known, np.ones(2))
    assert good[1] > 1e3 * good[0]

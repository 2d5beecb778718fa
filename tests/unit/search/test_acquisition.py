"""Gains of hypervolume and the choice of a batch."""

from __future__ import annotations

import moocore
import numpy as np
import pytest

from nasrlm.search.acquisition import Belief, choose, gain, hopeful, nondominated


def same(z: np.ndarray) -> np.ndarray:
    return z


def certain(costs: np.ndarray, deviation: float = 1e-9) -> Belief:
    objectives = costs.shape[1]
    return Belief(costs, np.full(costs.shape, deviation), [same] * objectives, np.ones(len(costs)))


@pytest.mark.parametrize("objectives", [2, 3])
def test_gain_is_the_difference_of_hypervolumes(objectives: int) -> None:
    rng = np.random.default_rng(objectives)
    reference = np.full(objectives, 0.9)
    front = nondominated(rng.random((12, objectives)), reference)
    rows = rng.random((40, objectives))
    before = moocore.hypervolume(front, ref=reference)
    after = [moocore.hypervolume(np.vstack([front, row]), ref=reference) for row in rows]
    assert gain(rows, front, reference) == pytest.approx(np.array(after) - before, abs=1e-12)
    nothing = np.empty((0, objectives))
    alone = [moocore.hypervolume(row[None], ref=reference) for row in rows]
    assert gain(rows, nothing, reference) == pytest.approx(np.array(alone), abs=1e-12)


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
    assert first == int(gain(costs, nondominated(known, reference), reference).argmax())


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

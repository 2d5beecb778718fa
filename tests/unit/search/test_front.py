from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasrlm.errors import MetricError, UsageError
from nasrlm.search.front import (
    default_reference_point,
    hypervolume,
    hypervolume_history,
    knee_index,
    pareto_front,
)

DIRECTIONS = st.lists(st.sampled_from(["max", "min"]), min_size=1, max_size=3)
# Small whole numbers, so that ties and duplicates happen; now and then a value is missing.
NUMBERS = st.one_of(st.integers(-4, 4).map(float), st.just(math.nan))


@st.composite
def problems(draw, numbers=NUMBERS):
    objectives = [f"m{i}:{direction}" for i, direction in enumerate(draw(DIRECTIONS))]
    row = st.lists(numbers, min_size=len(objectives), max_size=len(objectives))
    rows = draw(st.lists(row, max_size=12))
    return np.array(rows, dtype=float).reshape(len(rows), len(objectives)), objectives


def costs(values, objectives):
    return values * [-1.0 if objective.endswith("max") else 1.0 for objective in objectives]


def dominates(a, b):
    return bool((a <= b).all() and (a < b).any())


@given(problems())
def test_front_is_what_no_row_dominates(problem):
    values, objectives = problem
    rows = costs(values, objectives)
    expected = [not np.isnan(row).any() and not any(dominates(other, row) for other in rows) for row in rows]
    assert pareto_front(values, objectives).tolist() == expected


@given(problems())
def test_distinct_front_keeps_the_first_of_equal_rows(problem):
    values, objectives = problem
    mask = pareto_front(values, objectives)
    seen, expected = set(), []
    for row, on_front in zip(values.tolist(), mask.tolist(), strict=True):
        expected.append(on_front and tuple(row) not in seen)
        seen.add(tuple(row))
    assert pareto_front(values, objectives, distinct=True).tolist() == expected


@given(problems(st.integers(-4, 4).map(float)))
def test_hypervolume_counts_the_unit_cells_below_the_reference_point(problem):
    values, objectives = problem
    rows = costs(values, objectives)
    point = np.full(len(objectives), 3.0)
    cells = np.stack(np.meshgrid(*[np.arange(-4, 3)] * len(objectives), indexing="ij"), -1)
    covered = [any((row <= cell).all() for row in rows) for cell in cells.reshape(-1, len(objectives))]
    assert hypervolume(values, objectives, costs(point, objectives)) == pytest.approx(sum(covered))


@given(problems())
def test_history_is_the_hypervolume_of_each_prefix(problem):
    values, objectives = problem
    point = costs(np.full(len(objectives), 3.0), objectives)
    expected = [hypervolume(values[: n + 1], objectives, point) for n in range(len(values))]
    np.testing.assert_allclose(hypervolume_history(values, objectives, point), expected)


@given(problems(st.integers(-4, 4).map(float)))
def test_every_row_dominates_the_default_reference_point(problem):
    values, objectives = problem
    point = default_reference_point(values, objectives)
    if len(values):
        assert (costs(values, objectives) < costs(np.array(point), objectives)).all()
    else:
        assert all(math.isnan(x) for x in point)


def test_reference_point_leaves_out_rows_that_are_not_finite():
    assert default_reference_point([[1.0, 5.0], [math.inf, 2.0]], ["a:min", "b:min"]) == (1.1, 5.5)


def test_a_data_frame_gives_its_columns_by_metric():
    frame = pd.DataFrame({"b": [3.0, 2.0], "other": [0, 0], "a": [1.0, 1.0]})
    assert pareto_front(frame, ["a:max", "b:min"]).tolist() == [False, True]
    with pytest.raises(MetricError, match="Nearest: other"):
        pareto_front(frame, ["othr:max"])


def test_knee_of_one_two_and_bent_fronts():
    objectives = ["a:max", "b:min"]
    assert knee_index([[5, 5]], objectives) == 0
    assert knee_index([[5, 5], [4, 1]], objectives) == 0
    assert knee_index([[10, 10], [9, 2], [1, 1]], objectives) == 1
    assert knee_index([[10, 10], [7, 7], [4, 4]], objectives) == 0  # on the chord: the first
    with pytest.raises(UsageError, match="empty front"):
        knee_index([], objectives)


def test_knee_does_not_depend_on_units():
    front = np.array([[90.0, 9.0], [88.0, 3.0], [60.0, 1.0]])
    assert knee_index(front, ["a:max", "b:min"]) == knee_index(front * [1e-3, 1e6], ["a:max", "b:min"]) == 1


@pytest.mark.parametrize("point", [[1.0], [1.0, 2.0, 3.0]])
def test_reference_point_must_fit(point):
    with pytest.raises(UsageError, match="needs 2 values"):
        hypervolume([[1.0, 2.0]], ["a:max", "b:min"], point)


def test_values_must_be_a_table():
    with pytest.raises(UsageError, match="two dimensions"):
        pareto_front([1.0, 2.0], ["a:max", "b:min"])

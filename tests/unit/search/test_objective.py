from __future__ import annotations

import numpy as np
import pytest

from nasrlm.errors import UnknownNameError, UsageError
from nasrlm.search.objective import Constraint, Objective, parse_constraints, parse_objectives, to_minimize


@pytest.mark.parametrize("given", ["a/b:max", "a/b:maximize", {"metric": "a/b", "direction": "maximize"}])
def test_objective_is_read_from_text_and_mapping(given):
    assert parse_objectives([given]) == (Objective("a/b", "maximize"),)


def test_one_objective_needs_no_list():
    assert parse_objectives("params:min") == (Objective("params", "minimize"),)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["accuracy"], "has no direction"),
        (["accuracy:maximise"], "Nearest: maximize"),
        ([], "no objective"),
        (["a:max", "a:min"], "given twice"),
        ([{"metric": "a", "directions": "maximize"}], "Nearest: direction"),
        ([{"metric": "a"}], "lacks 'direction'"),
        ([{"metric": "", "direction": "maximize"}], "needs the name of a metric"),
    ],
)
def test_wrong_objectives_say_what_to_do(given, words):
    with pytest.raises(UsageError, match=words):
        parse_objectives(given)


def test_unknown_direction_names_the_nearest():
    with pytest.raises(UnknownNameError) as error:
        Objective("accuracy", "maximum")
    assert error.value.nearest[0] == "maximize"


def test_signs_are_flipped_for_maximised_columns_only():
    objectives = parse_objectives(["a:max", "b:min"])
    np.testing.assert_array_equal(to_minimize([[1.0, 2.0], [-3.0, 4.0]], objectives), [[-1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(to_minimize([1.0, 2.0], objectives), [-1.0, 2.0])


def test_values_must_fit_the_objectives():
    with pytest.raises(UsageError, match="one column each"):
        to_minimize([[1.0, 2.0, 3.0]], parse_objectives(["a:max", "b:min"]))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metric": "params"}, "has no limit"),
        ({"metric": "params", "at_most": float("nan")}, "finite number"),
        ({"metric": "params", "at_most": True}, "finite number"),
        ({"metric": "params", "at_most": "1e6"}, "finite number"),
        ({"metric": "params", "at_most": 1.0, "at_least": 2.0}, "Nothing fits"),
        ({"metric": "params", "atmost": 1.0}, "Nearest: at_most"),
        ("params<1e6", "no limit"),
        ("params<=much", "'much' is not a number"),
    ],
)
def test_wrong_constraints_say_what_to_do(given, words):
    with pytest.raises(UsageError, match=words):
        parse_constraints([given])


def test_violation_is_a_share_of_the_limit_and_zero_at_it():
    both = Constraint("latency_ms/x", at_most=4.0, at_least=2.0)
    assert both.violations(4.0) == {"latency_ms/x<=4.0": 0.0, "latency_ms/x>=2.0": -1.0}
    assert both.violations(1.0)["latency_ms/x>=2.0"] == 0.5
    assert Constraint("x", at_most=0.0).violations(3.0) == {"x<=0.0": 3.0}


def test_holds_includes_the_limit_and_refuses_nan():
    constraint = Constraint.parse("params<=10")
    assert constraint.holds([9.0, 10.0, 10.001, float("nan")]).tolist() == [True, True, False, False]

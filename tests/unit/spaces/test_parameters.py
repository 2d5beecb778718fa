"""Parameters: what may be declared, and which values are taken."""

from __future__ import annotations

import numpy as np
import pytest

from nasrlm.errors import SpaceError
from nasrlm.spaces import Choice, Integer, When
from nasrlm.spaces.parameters import check_parameters, check_params, enumerate_params, size

CONDITIONAL = (
    Integer("depth", 1, 2),
    Choice("first", ("a", "b")),
    Choice("second", ("a", "b", "c"), when=When("depth", (2,))),
    Choice("flag", (False, True), when=When("second", ("b", "c"))),
    Integer("ratio", 2, 6, step=2, when=When("second", ("c",))),
)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Choice("x", ()), "has no values"),
        (lambda: Choice("x", (1, True)), "equal values"),
        (lambda: Choice("x", (1, 1.0)), "equal values"),
        (lambda: Choice("x", (None,)), "has the value None"),  # type: ignore[arg-type]
        (lambda: Choice("x", (float("nan"),)), "has the value nan"),
        (lambda: Choice("x", (float("inf"),)), "has the value inf"),
        (lambda: Integer("x", 3, 1), "from 3 to 1 by 1"),
        (lambda: Integer("x", 1, 3, step=0), "from 1 to 3 by 0"),
        (lambda: Integer("x", 1.5, 3), "1.5 where a whole number belongs"),  # type: ignore[arg-type]
        (lambda: Integer("x", False, 3), "False where a whole number belongs"),
        (lambda: When("x", ()), "has no values"),
    ],
)
def test_a_wrong_declaration_is_refused(make: object, expected: str) -> None:
    with pytest.raises(SpaceError, match=expected):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ((Choice("x", (1,)), Choice("x", (2,))), "two parameters are called 'x'"),
        ((Choice("x", (1,), when=When("y", (1,))), Choice("y", (1,))), "'y', which is not declared before"),
        ((Choice("y", (1,)), Choice("x", (1,), when=When("y", (2,)))), "condition of 'x' cannot be met.*is 2"),
    ],
)
def test_parameters_that_do_not_fit_together(parameters: tuple[Choice, ...], expected: str) -> None:
    with pytest.raises(SpaceError, match=expected):
        check_parameters(parameters)


def test_values_come_back_as_declared() -> None:
    width = Choice("width", (8, 16, "all", True, 0.5))
    assert width.check(8.0) == 8
    assert isinstance(width.check(np.float64(8)), int)
    assert width.check(np.int64(16)) == 16
    assert width.check(np.str_("all")) == "all"
    assert width.check(np.True_) is True
    assert width.check(np.float32(0.5)) == 0.5
    depth = Integer("depth", 1, 5, step=2)
    assert depth.check(np.int32(3)) == 3
    assert isinstance(depth.check(3.0), int)


@pytest.mark.parametrize("value", [7, "8", None, True, float("nan"), "al"])
def test_other_values_of_a_choice_are_refused(value: object) -> None:
    with pytest.raises(SpaceError, match="parameter 'width' is .* Allowed: 8, 16, all"):
        Choice("width", (8, 16, "all")).check(value)


@pytest.mark.parametrize("value", [0, 2, 7, "3", None, True, 3.5, float("nan")])
def test_other_values_of_an_integer_are_refused(value: object) -> None:
    with pytest.raises(SpaceError, match=r"parameter 'depth' is .* Allowed: 1 to 5 by 2\."):
        Integer("depth", 1, 6, step=2).check(value)


def test_the_nearest_value_is_suggested() -> None:
    with pytest.raises(SpaceError, match="Nearest: nor_conv_3x3"):
        Choice("op", ("none", "nor_conv_3x3")).check("nor_conv3x3")


def test_size_counts_what_enumeration_yields() -> None:
    everything = [tuple(params.items()) for params in enumerate_params(CONDITIONAL)]
    # depth 1: two; depth 2: first (2) x (a: 1 + b: flag 2 + c: flag 2 x ratio 3)
    assert len(everything) == 2 + 2 * (1 + 2 + 2 * 3)
    assert size(CONDITIONAL) == len(everything) == len(set(everything))


def test_size_of_a_huge_space_is_exact() -> None:
    parameters = tuple(Choice(f"p{i}", (0, 1, 2)) for i in range(100))
    assert size(parameters) == 3**100
    assert size((Integer("a", 1, 10**9), Integer("b", 1, 10**9))) == 10**18


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"depth": 1}, "'first' is missing"),
        ({"depth": 1, "frist": "a"}, "'first' is missing. Nearest given: frist"),
        ({"depth": 1, "first": "a", "extra": 1}, "unknown parameter 'extra'.*Known parameters: depth, first"),
        ({"depth": 1, "first": "a", "second": "a"}, "'second' is given.*only if 'depth' is one of: 2; here it is 1"),
        ({"depth": 1, "first": "a", "ratio": 2}, "'ratio' is given.*here it is not active itself"),
        ({"depth": 2, "first": "a", "second": "c", "flag": True, "ratio": 3}, "'ratio' is 3. Allowed: 2 to 6 by 2"),
    ],
)
def test_params_outside_are_refused(given: dict[str, object], expected: str) -> None:
    with pytest.raises(SpaceError, match=expected):
        check_params(CONDITIONAL, given)


def test_params_come_back_in_declared_order() -> None:
    given = {"ratio": 4, "flag": False, "second": "c", "first": "b", "depth": 2}
    assert list(check_params(CONDITIONAL, given)) == ["depth", "first", "second", "flag", "ratio"]

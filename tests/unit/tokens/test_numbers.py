"""Number tokens: rounding, order, grammar, errors."""

from __future__ import annotations

import numpy as np
import pytest

from nasrlm.errors import UsageError
from nasrlm.tokens import NumberTokens


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (9.9995, "+e1 1 0 0 0"),  # carries
        (9.9994, "+e0 9 9 9 9"),
        (0.0, "zero 0 0 0 0"),
        (-0.0, "zero 0 0 0 0"),
        (94.37333, "+e1 9 4 3 7"),
        (-94.37333, "-e1 9 4 3 7"),
        (1.0005, "+e0 1 0 0 0"),  # half to even, as people write the number
        (1.0015, "+e0 1 0 0 2"),
        (1e-12, "+e-12 1 0 0 0"),
        (9.999e15, "+e15 9 9 9 9"),
        (1e23 / 1e8, "+e15 1 0 0 0"),
    ],
)
def test_rounding(number: float, text: str) -> None:
    numbers = NumberTokens()
    assert numbers.text(numbers.encode(number)) == text


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e16, -1e16, 9.9996e15, 9.9e-13, 5e-324])
def test_what_cannot_be_written_is_an_error_that_shows_the_value(bad: float) -> None:
    with pytest.raises(UsageError, match="the value " + (repr(bad).replace("+", r"\+"))):
        NumberTokens().encode(bad)


def test_arrays_agree_with_single_numbers() -> None:
    numbers = NumberTokens(mantissa_digits=3)
    values = np.random.default_rng(0).lognormal(0, 4, (50, 4)) * np.array([1, -1, 1, 0])
    ids = numbers.encode_array(values)
    assert ids.shape == (50, 4, 4)
    assert [tuple(row) for row in ids.reshape(-1, 4).tolist()] == [numbers.encode(v) for v in values.reshape(-1)]
    assert numbers.decode_array(ids).reshape(-1).tolist() == [numbers.decode(row) for row in ids.reshape(-1, 4)]


def test_grammar_allows_what_is_written_and_no_leading_zero() -> None:
    numbers = NumberTokens()
    assert numbers.grammar.shape == (numbers.length, numbers.vocabulary)
    ids = numbers.encode(-123.4)
    assert all(numbers.grammar[place, token] for place, token in enumerate(ids))
    assert not numbers.grammar[1, numbers.digit]
    assert numbers.grammar[2, numbers.digit]


@pytest.mark.parametrize(
    "wrong", [(57, 57, 57, 57, 57), (28, 57, 57, 57, 58), (58, 58, 58, 58, 58), (30, 58, 0, 58, 58)]
)
def test_sequences_outside_the_grammar_do_not_decode(wrong: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="are no number"):
        NumberTokens().decode(wrong)


def test_wrong_length_does_not_decode() -> None:
    with pytest.raises(UsageError, match="has 5 tokens, not 3"):
        NumberTokens().decode((29, 58, 58))


@pytest.mark.parametrize(
    "arguments",
    [{"mantissa_digits": 0}, {"mantissa_digits": 10}, {"min_exponent": 3, "max_exponent": 2}, {"max_exponent": 30}],
)
def test_wrong_arguments(arguments: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        NumberTokens(**arguments)

"""Number tokens, for all numbers."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nasrlm.tokens import NumberTokens

DIGITS = st.integers(1, 7)
NUMBERS = st.one_of(
    st.floats(1e-11, 9e15),
    st.floats(-9e15, -1e-11),
    st.just(0.0),
    st.integers(-(10**6), 10**6).map(lambda i: i / 1000),
    st.integers(1, 10**6).map(lambda i: (i + 0.5) / 100),  # ties
)


@given(NUMBERS, DIGITS)
def test_decoded_within_half_a_unit_of_the_last_digit(x: float, digits: int) -> None:
    numbers = NumberTokens(digits)
    exact = Decimal(repr(x))
    unit = Decimal(1).scaleb((exact.adjusted() if x else 0) - digits + 1)
    error = abs(Decimal(repr(numbers.decode(numbers.encode(x)))) - exact)
    assert error <= unit / 2


@given(NUMBERS, NUMBERS, DIGITS)
def test_order_of_tokens_is_order_of_numbers(a: float, b: float, digits: int) -> None:
    numbers = NumberTokens(digits)
    tokens_a, tokens_b = numbers.encode(a), numbers.encode(b)
    key_a, key_b = (tuple(numbers.order_key(t)) for t in (tokens_a, tokens_b))
    value_a, value_b = numbers.decode(tokens_a), numbers.decode(tokens_b)
    assert (key_a < key_b) == (value_a < value_b)
    assert (key_a == key_b) == (value_a == value_b)
    if a < b:
        assert key_a <= key_b
    if tokens_a[0] != tokens_b[0]:  # the first token alone has the order of numbers
        assert (tokens_a[0] < tokens_b[0]) == (value_a < value_b)


@settings(max_examples=50)
@given(DIGITS, st.integers(0, 2**32 - 1))
def test_every_sequence_of_the_grammar_decodes_and_comes_back(digits: int, seed: int) -> None:
    numbers = NumberTokens(digits)
    rng = np.random.default_rng(seed)
    ids = np.array([rng.choice(np.nonzero(allowed)[0], 20) for allowed in numbers.grammar]).T
    ids[:, 1:][ids[:, 0] == numbers.zero] = numbers.digit
    values = numbers.decode_array(ids)
    assert np.isfinite(values).all()
    assert (numbers.encode_array(values) == ids).all()

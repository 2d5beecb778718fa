"""Number tokens: one token for sign and exponent together, then the digits of the mantissa.

The order of token sequences is the order of numbers, so a quantile of a distribution over sequences can be found
by walking down the tokens (see `nasrlm.rlm.decoding`). Below zero the digits run backwards.

    first token   -9.99e15 ... -1.0e-12   zero   1.0e-12 ... 9.99e15        one id an exponent
    then          `mantissa_digits` digits d.ddd; the first is 1-9; behind zero all are 0
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nasrlm.errors import UsageError

Ids = NDArray[np.int64]

_TIE = 1e-4  # scaled mantissas this near to a half are rounded by Decimal, the rest by numpy


@dataclass(frozen=True)
class NumberTokens:
    """The number vocabulary: its size, its grammar, and both directions of the translation.

    Args:
        mantissa_digits: decimal digits kept of a number, 1 to 9.
        min_exponent: smallest decimal exponent; smaller numbers are errors, never clipped.
        max_exponent: largest decimal exponent.

    Example:
        >>> numbers = NumberTokens(mantissa_digits=3)
        >>> numbers.decode(numbers.encode(9.9951))
        10.0
        >>> numbers.text(numbers.encode(-0.0123))
        '-e-2 1 2 3'
    """

    mantissa_digits: int = 4
    min_exponent: int = -12
    max_exponent: int = 15

    def __post_init__(self) -> None:
        if not 1 <= self.mantissa_digits <= 9:
            raise UsageError(f"mantissa_digits is {self.mantissa_digits}. Allowed: 1 to 9.")
        if self.min_exponent > self.max_exponent:
            raise UsageError(
                f"min_exponent {self.min_exponent} is larger than max_exponent {self.max_exponent}. Swap them."
            )
        if self.min_exponent - self.mantissa_digits < -22 or self.max_exponent > 22:
            raise UsageError(
                f"exponents {self.min_exponent} to {self.max_exponent} with {self.mantissa_digits} digits cannot be "
                "decoded exactly. Allowed: max_exponent at most 22, min_exponent - mantissa_digits at least -22."
            )

    @property
    def exponents(self) -> int:
        """How many exponents there are on each side of zero."""
        return self.max_exponent - self.min_exponent + 1

    @property
    def zero(self) -> int:
        """Id of the token that stands for the number zero."""
        return self.exponents

    @property
    def digit(self) -> int:
        """Id of digit 0; digit k is `digit + k`. All smaller ids are first tokens, in the order of numbers."""
        return 2 * self.exponents + 1

    @property
    def vocabulary(self) -> int:
        """Number of ids."""
        return self.digit + 10

    @property
    def length(self) -> int:
        """Tokens in one number."""
        return 1 + self.mantissa_digits

    @cached_property
    def grammar(self) -> NDArray[np.bool_]:
        """Which ids may stand where, bool (length, vocabulary).

        Behind the zero token every digit is 0; decoders force that (`NumberTokens.zero`), it is no choice.
        """
        table = np.zeros((self.length, self.vocabulary), dtype=bool)
        table[0, : self.digit] = True
        table[1, self.digit + 1 :] = True
        table[2:, self.digit :] = True
        return table

    def encode(self, x: float) -> tuple[int, ...]:
        """Tokens of one number, rounded half to even in decimal.

        Raises:
            UsageError: `x` is NaN, infinite, or beyond the exponents of this vocabulary.
        """
        return tuple(self.encode_array(np.asarray([x], dtype=np.float64))[0].tolist())

    def decode(self, ids: ArrayLike) -> float:
        """The number that one token sequence stands for.

        Raises:
            UsageError: the sequence breaks the grammar.
        """
        return float(self.decode_array(np.asarray(ids)[None])[0])

    def encode_array(self, x: ArrayLike) -> Ids:
        """Tokens of many numbers: shape (...,) to (..., length)."""
        values = np.asarray(x, dtype=np.float64)
        self._check_finite(values)
        exponent, mantissa = self._round(np.abs(values))
        self._check_range(values, exponent, mantissa)
        first = np.where(values > 0, self.zero + 1 + exponent - self.min_exponent, self.max_exponent - exponent)
        first = np.where(mantissa == 0, self.zero, first)
        powers = 10 ** np.arange(self.mantissa_digits - 1, -1, -1, dtype=np.int64)
        digits = mantissa[..., None] // powers % 10 + self.digit
        return np.concatenate([first[..., None], digits], axis=-1).astype(np.int64)

    def decode_array(self, ids: ArrayLike) -> NDArray[np.float64]:
        """Numbers of many token sequences: shape (..., length) to (...,). Exact to the last bit."""
        tokens = np.asarray(ids, dtype=np.int64)
        self._check_grammar(tokens)
        first, digits = tokens[..., 0], tokens[..., 1:] - self.digit
        powers = 10 ** np.arange(self.mantissa_digits - 1, -1, -1, dtype=np.int64)
        mantissa = (digits * powers).sum(-1).astype(np.float64)
        exponent = np.where(first > self.zero, first - self.zero - 1 + self.min_exponent, self.max_exponent - first)
        shift = np.where(first == self.zero, 0, exponent - self.mantissa_digits + 1)
        # powers of ten up to 22 are exact in float64, so one multiplication or division rounds only once
        scaled = np.where(shift >= 0, mantissa * 10.0 ** np.maximum(shift, 0), mantissa)
        scaled = scaled / 10.0 ** np.maximum(-shift, 0)
        return np.where(first < self.zero, -scaled, scaled)

    def order_key(self, ids: ArrayLike) -> Ids:
        """Sequences whose lexicographic order is the order of the numbers (digits reversed below zero)."""
        tokens = np.array(ids, dtype=np.int64)
        below = tokens[..., :1] < self.zero
        tokens[..., 1:] = np.where(below, 2 * self.digit + 9 - tokens[..., 1:], tokens[..., 1:])
        return tokens

    def text(self, ids: ArrayLike) -> str:
        """A readable form of one sequence, for logs and messages."""
        first, *digits = (int(i) for i in np.asarray(ids))
        if first == self.zero:
            head = "zero"
        elif first > self.zero:
            head = f"+e{first - self.zero - 1 + self.min_exponent}"
        else:
            head = f"-e{self.max_exponent - first}"
        return " ".join([head, *(str(d - self.digit) for d in digits)])

    def to_dict(self) -> dict[str, int]:
        """The three arguments, for a configuration file."""
        return {
            "mantissa_digits": self.mantissa_digits,
            "min_exponent": self.min_exponent,
            "max_exponent": self.max_exponent,
        }

    def _round(self, size: NDArray[np.float64]) -> tuple[Ids, Ids]:
        """Exponent and integer mantissa of sizes >= 0; mantissa 0 for zero."""
        nonzero = size > 0
        safe = np.where(nonzero, size, 1.0)
        exponent = np.floor(np.log10(safe)).astype(np.int64)
        scaled = self._scale(safe, exponent)
        low, high = 10 ** (self.mantissa_digits - 1), 10**self.mantissa_digits
        mantissa = np.rint(scaled).astype(np.int64)
        doubtful = (np.abs(scaled - np.floor(scaled) - 0.5) < _TIE) | (scaled < low) | (mantissa >= high)
        for where in zip(*np.nonzero(np.atleast_1d(doubtful & nonzero)), strict=True):
            spot: Any = where if size.ndim else ()
            exponent[spot], mantissa[spot] = self._round_exactly(float(size[spot]))
        return exponent, np.where(nonzero, mantissa, 0)

    def _scale(self, size: NDArray[np.float64], exponent: Ids) -> NDArray[np.float64]:
        shift = self.mantissa_digits - 1 - exponent
        # two steps keep the power of ten in range for subnormal numbers
        half = shift // 2
        return size * 10.0 ** half.astype(np.float64) * 10.0 ** (shift - half).astype(np.float64)

    def _round_exactly(self, size: float) -> tuple[int, int]:
        number = Decimal(repr(size))
        exponent = number.adjusted()
        unit = Decimal(1).scaleb(exponent - self.mantissa_digits + 1)
        mantissa = int((number / unit).to_integral_value(rounding=ROUND_HALF_EVEN))
        if mantissa == 10**self.mantissa_digits:
            return exponent + 1, 10 ** (self.mantissa_digits - 1)
        return exponent, mantissa

    def _check_finite(self, values: NDArray[np.float64]) -> None:
        bad = values[~np.isfinite(values)]
        if bad.size:
            raise UsageError(
                f"{_shown(bad)} cannot be written as number tokens. Allowed: finite numbers; leave unknown ones blank."
            )

    def _check_range(self, values: NDArray[np.float64], exponent: Ids, mantissa: Ids) -> None:
        outside = (exponent < self.min_exponent) | (exponent > self.max_exponent)
        bad = values[outside & (mantissa != 0)]
        if bad.size:
            raise UsageError(
                f"{_shown(bad)} is beyond the number tokens. Allowed: 0 and sizes from 1e{self.min_exponent} to "
                f"{10 - 10 ** (1 - self.mantissa_digits):g}e{self.max_exponent}. Use another unit, or other exponents."
            )

    def _check_grammar(self, tokens: Ids) -> None:
        if tokens.shape[-1] != self.length:
            raise UsageError(f"a number has {self.length} tokens, not {tokens.shape[-1]}.")
        inside = (tokens >= 0) & (tokens < self.vocabulary)
        if inside.all():
            # behind zero the grammar is "all digits 0"
            is_zero = (tokens[..., 0] == self.zero) & (tokens[..., 1:] == self.digit).all(-1)
            inside = self.grammar[np.arange(self.length), tokens] & (tokens[..., :1] != self.zero)
            inside |= is_zero[..., None]
        if not inside.all():
            bad = tokens[~inside.all(-1)][0]
            raise UsageError(f"tokens {bad.tolist()} are no number. Allowed: see NumberTokens.grammar.")


def _shown(bad: NDArray[np.float64]) -> str:
    more = f" (and {bad.size - 1} more)" if bad.size > 1 else ""
    first = float(bad.flat[0])
    return f"the value {first!r}{more}" if math.isfinite(first) else f"the value {first}{more}"

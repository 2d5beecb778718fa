"""What the kits share: one error, one way to raise it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nasrlm.errors import UsageError


class ConformanceError(UsageError, AssertionError):
    """A space, device, evaluator or tokenizer does not keep its contract; the message says where.

    It is an AssertionError for test runners and a UsageError for the command line.
    """


def require(condition: bool, message: str) -> None:
    """Raises ConformanceError with the message unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Turns any error inside into a ConformanceError that says during what it happened."""
    try:
        yield
    except ConformanceError:
        raise
    except Exception as error:  # the code under test is anybody's
        raise ConformanceError(f"{what} failed: {type(error).__name__}: {error}") from error

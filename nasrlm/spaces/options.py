"""Options of search spaces: checks that many of them share."""

from __future__ import annotations

from collections.abc import Mapping

from nasrlm.errors import SpaceError


def check_sizes(
    space: str,
    options: Mapping[str, object],
    multiples: Mapping[str, int] | None = None,
    least: Mapping[str, int] | None = None,
) -> None:
    """Check options that must be whole numbers from 1 up.

    Args:
        space: The space's name, for messages.
        options: Values by the options' names.
        multiples: Of which number an option must be a multiple.
        least: The smallest value of an option, where it is not 1.

    Raises:
        SpaceError: An option is none.

    >>> check_sizes("tiny", {"num_classes": 10, "image_size": 32}, {"image_size": 4})
    """
    for option, value in options.items():
        smallest = (least or {}).get(option, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < smallest:
            raise SpaceError(f"option {option!r} of {space} is {value!r}. Allowed: integers >= {smallest}.")
        multiple = (multiples or {}).get(option, 1)
        if value % multiple:
            raise SpaceError(f"option {option!r} of {space} is {value}. Allowed: multiples of {multiple}.")

"""The errors nasrlm raises: one message each, written for people.

A message says what is wrong with its value, where, what is allowed (nearest first) and what to do. The
command line prints ``str(error)`` and exits with 2 for a :class:`UsageError`, with 1 for a :class:`RunError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

_LISTED = 40  # names shown in a message before "..."


class NasrlmError(Exception):
    """Base of every error of nasrlm; ``str(error)`` is one message for people."""


class UsageError(NasrlmError):
    """Wrong use or configuration; the command line exits with 2."""


class UnknownNameError(UsageError):
    """A name that is not registered.

    Attributes:
        kind: What was looked for, singular (``"space"``).
        value: The name as given.
        nearest: Allowed names that look like it, nearest first.
        allowed: Every allowed name.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        value: str = "",
        nearest: Sequence[str] = (),
        allowed: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.kind, self.value = kind, value
        self.nearest, self.allowed = tuple(nearest), tuple(allowed)


class ConfigError(UsageError):
    """A wrong YAML experiment or option; the place is put in front of the message.

    Args:
        message: What is wrong, what is allowed, what to do.
        file: The file, if there is one.
        line: The line in it, counted from 1.
        key: The key's path, such as ``"study.sampler.name"``.

    >>> str(ConfigError("must be at least 1.", file="a.yaml", line=4, key="study.n_trials"))
    'a.yaml:4: study.n_trials: must be at least 1.'
    """

    def __init__(
        self, message: str, *, file: str | Path | None = None, line: int | None = None, key: str | None = None
    ) -> None:
        place = "" if file is None else f"{file}:{line}" if line else str(file)
        super().__init__(": ".join(part for part in (place, key, message) if part))
        self.file, self.line, self.key = file, line, key

    def __reduce__(self) -> tuple[object, ...]:
        # The composed message must not be composed again when it comes out of another process.
        return _rebuild_config_error, (str(self), self.file, self.line, self.key)


def _rebuild_config_error(text: str, file: str | None, line: int | None, key: str | None) -> ConfigError:
    error = ConfigError(text)
    error.file, error.line, error.key = file, line, key
    return error


class SpaceError(UsageError):
    """Parameters or an official string outside the search space."""


class TableError(UsageError):
    """A table that cannot be used: unknown architectures, text for numbers, no rows."""


class CheckpointError(UsageError):
    """A checkpoint with a missing file, cut short, or of another text version."""


class MetricError(UsageError):
    """A metric that no evaluator gives, or that the model does not know."""


class RunFolderError(UsageError):
    """A run folder that cannot be written or belongs to another experiment."""


class ExportError(UsageError):
    """A network that cannot be read or written."""


class TextError(UsageError):
    """Network text that does not parse."""


class TextTooLongError(TextError):
    """A network text with more tokens than the model reads."""


class RunError(NasrlmError):
    """The run itself failed; the command line exits with 1."""


class DeviceError(RunError):
    """A device that cannot measure here."""


def nearest(word: str, allowed: Iterable[str], n: int = 3) -> list[str]:
    """Return up to ``n`` allowed words that look like ``word``, nearest first; case does not count.

    >>> nearest("nasbench2O1", ["tiny", "nasbench101", "nasbench201"])
    ['nasbench201', 'nasbench101']
    """
    folded: dict[str, str] = {}
    for name in allowed:
        folded.setdefault(name.casefold(), name)
    target = word.casefold()
    close = difflib.get_close_matches(target, folded, n=n, cutoff=0.6)
    # "cifar10" is far from "accuracy/cifar10" letter by letter, yet certainly what was meant.
    inside = [name for name in folded if len(target) > 2 and target in name and name not in close]
    return [folded[name] for name in [*close, *inside][:n]]


def unknown_name(
    kind: str, value: object, allowed: Iterable[str], *, where: str | None = None, hint: str | None = None
) -> UnknownNameError:
    """Make the error for a name that is not among those allowed (the caller raises it).

    Args:
        kind: What was looked for, singular: ``"space"``.
        value: The name as given.
        allowed: The names that would do.
        where: Where it was found, ``"quickstart.yaml:4"``.
        hint: What to do, a sentence.

    >>> print(unknown_name("space", "tinny", ["nasbench201", "tiny"], where="a.yaml:4"))
    unknown space 'tinny' in a.yaml:4. Nearest: tiny. Known spaces: nasbench201, tiny.
    """
    names = [str(name) for name in allowed]
    close = nearest(str(value), names)
    parts = [f"unknown {kind} {str(value)!r}" + (f" in {where}" if where else "") + "."]
    if close:
        parts.append(f"Nearest: {', '.join(close)}.")
    parts.append(_known(kind, names))
    if hint:
        parts.append(hint)
    return UnknownNameError(" ".join(parts), kind=kind, value=str(value), nearest=close, allowed=names)


def _known(kind: str, names: Sequence[str]) -> str:
    plural = kind[:-1] + "ies" if kind.endswith("y") and not kind.endswith("ey") else kind + "s"
    if not names:
        return f"No {plural} are known here."
    more = f" ... ({len(names)} in all)" if len(names) > _LISTED else ""
    return f"Known {plural}: {', '.join(names[:_LISTED])}{more}."

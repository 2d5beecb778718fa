"""What there is to say about a search space: for `nasrlm list spaces` and for docs/reference/spaces.md."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from nasrlm.errors import SpaceError
from nasrlm.spaces import Architecture, SearchSpace

_WHOLE = 10**9  # sizes from here on are rounded
_MANY = 12  # values from here on are cut

Facts = dict[str, Any]


def size_text(size: int) -> str:
    """A number of architectures, short enough to read.

    >>> size_text(423624), size_text(9**22)
    ('423,624', '9.8e20')
    """
    return f"{size:,}" if size < _WHOLE else f"{Decimal(size):.1e}".replace("e+", "e")


def metrics_text(metrics: Iterable[str]) -> str:
    """Metrics by kind, with a number where there are several.

    >>> metrics_text(["accuracy/cifar10", "accuracy/cifar100", "latency_ms/pixel3", "params"])
    'accuracy (2), latency_ms/pixel3, params'
    """
    kinds: dict[str, list[str]] = {}
    for metric in metrics:
        kinds.setdefault(metric.split("/")[0], []).append(metric)
    return ", ".join(names[0] if len(names) == 1 else f"{kind} ({len(names)})" for kind, names in kinds.items())


def metrics_in_full(metrics: Iterable[str]) -> str:
    """Every metric, those of a kind together.

    >>> metrics_in_full(["latency_ms/pixel3", "latency_ms/fpga", "params"])
    'latency_ms/{pixel3, fpga}, params'
    """
    kinds: dict[str, list[str]] = {}
    for metric in metrics:
        kind, _, rest = metric.partition("/")
        kinds.setdefault(kind, []).append(rest)
    return ", ".join(
        f"{kind}/{{{', '.join(rests)}}}" if len(rests) > 1 else "/".join(filter(None, [kind, rests[0]]))
        for kind, rests in kinds.items()
    )


def plain(docstring: str) -> str:
    """A docstring without the marks that only documentation programs read.

    >>> plain("the position in :data:`OPERATIONS`, ``k3``")
    'the position in `OPERATIONS`, `k3`'
    """
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", docstring).replace("``", "`")


def space_facts(space: SearchSpace) -> Facts:
    """Everything about a space that its page and `nasrlm list spaces NAME` show, as plain values."""
    return {
        "name": space.name,
        "what it is": summary(type(space)),
        "architectures": space.size(),
        "source": space.source,
        "metrics": list(space.metrics),
        "options": options(type(space)),
        "parameters": parameter_groups(space),
        "encoding": encoding(type(space)),
        "example": example(space).string,
    }


def example(space: SearchSpace) -> Architecture:
    """The EXAMPLE of the space's own file, or its first sample."""
    module = sys.modules[type(space).__module__]
    given = getattr(module, "EXAMPLE", None)
    try:
        return space.architecture(given) if given is not None else space.sample(1, seed=0)[0]
    except SpaceError:  # an example of another form than the official string, or of other options
        return space.sample(1, seed=0)[0]


def summary(thing: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    return _line((inspect.getdoc(thing) or "").split("\n\n")[0])


def encoding(kind: type[SearchSpace]) -> str:
    """What the official string is."""
    if kind.to_string is SearchSpace.to_string:
        return "JSON of the parameters"
    return summary(kind.to_string).removeprefix("Return ").rstrip(".")


def methods(kind: type[SearchSpace]) -> list[Facts]:
    """Public methods that this space has and others need not have, such as other encodings."""
    found = []
    for name in dir(kind):
        method = getattr(kind, name)
        if not name.startswith("_") and callable(method) and not hasattr(SearchSpace, name):
            found.append({"name": name, "what it does": summary(method)})
    return found


def options(kind: type[SearchSpace]) -> list[Facts]:
    """The arguments that the space is made with: name, default and meaning."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):  # what a class says of an option counts before what it inherits
        meanings |= _arguments(inspect.cleandoc(base.__doc__ or ""))
    found = []
    for name, parameter in inspect.signature(kind).parameters.items():
        default = None if parameter.default is parameter.empty else parameter.default
        found.append({"option": name, "default": default, "meaning": meanings.get(name, "")})
    return found


def _arguments(docstring: str) -> dict[str, str]:
    """The section Args of a docstring: name -> meaning."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n(?=[ ]))+)", docstring, re.M)
    entries = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section[1], re.M) if section else []
    return {name: _line(text) for name, text in entries}


def parameter_groups(space: SearchSpace) -> list[Facts]:
    """Parameters that differ in a number only, together: names, how many, their values and when they are there."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for parameter in space.parameters:
        groups.setdefault((_pattern(parameter.name), values_text(parameter.options)), []).append(parameter)
    rows = []
    for (_, values), members in groups.items():
        first, last = members[0].name, members[-1].name
        names = first if len(members) == 1 else f"{first}, {last}" if len(members) == 2 else f"{first} ... {last}"
        rows.append({"parameter": names, "number": len(members), "values": values, "only if": _condition(members)})
    return rows


def values_text(values: Sequence[Any]) -> str:
    """The values of a parameter; of many, the first and the last.

    >>> values_text((8, 16)), values_text(range(128, 228, 4))
    ('8, 16', '128, 132, ..., 224')
    """
    if len(values) > _MANY and all(isinstance(value, int | float) for value in values):
        return f"{values[0]}, {values[1]}, ..., {values[-1]}"
    return ", ".join(map(str, values))


def _condition(members: Sequence[Any]) -> str:
    """When the parameters of a group are there; "" for always."""
    conditions = [member.when for member in members]
    if all(when is None for when in conditions):
        return ""
    texts = {"" if when is None else f"{when.parent}: {values_text(when.values)}" for when in conditions}
    if len(texts) == 1:
        return texts.pop()
    texts = {"" if when is None else f"{_pattern(when.parent)}: {values_text(when.values)}" for when in conditions}
    if len(texts) == 1:
        return texts.pop().replace("#", "i")
    parents = dict.fromkeys(_pattern(when.parent).replace("#", "i") for when in conditions if when is not None)
    return f"by {', '.join(parents)}"


def _pattern(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _line(text: str) -> str:
    return " ".join(plain(text).split())

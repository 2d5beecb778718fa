"""Spaces whose official encoding is a dictionary, and how such dictionaries are read."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nasrlm.graph import Graph
from nasrlm.spaces import Architecture, Choice, Params, SearchSpace, SpaceError, Value


class DictionarySpace(SearchSpace):
    """A space that is published as dictionaries; its string is the dictionary as JSON.

    Attributes:
        example: Compact JSON of an architecture, for messages.
    """

    example: ClassVar[str]

    @abstractmethod
    def build(self, params: Params) -> Graph:
        """Describe the network."""

    @abstractmethod
    def _dict(self, params: Params) -> dict[str, Any]:
        """Return the dictionary of checked parameters."""

    @abstractmethod
    def _read(self, given: Mapping[str, Any]) -> dict[str, Value]:
        """Return the parameters of a dictionary.

        Raises:
            SpaceError: A key is missing or unknown, or an entry is not allowed; the message names its place.
        """

    def to_dict(self, a: Architecture) -> dict[str, Any]:
        """Return the published dictionary."""
        return self._dict(self.architecture(a).params)

    def from_dict(self, given: Mapping[str, Any]) -> Architecture:
        """Return the architecture of a published dictionary.

        Raises:
            SpaceError: A key is missing or unknown, or an entry is not allowed; the message names its place.
        """
        return self.architecture(self._read(read_object(self.name, given, self.example)))

    def to_string(self, params: Params) -> str:
        """Return the published dictionary as compact JSON."""
        return json.dumps(self._dict(params), separators=(",", ":"))

    def from_string(self, text: str) -> Params:
        """Return the parameters of a published dictionary as JSON.

        Raises:
            SpaceError: As :meth:`from_dict`, or the text is not JSON.
        """
        return self._read(read_object(self.name, text, self.example))


def read_object(space: str, given: str | Mapping[str, Any], example: str) -> Mapping[str, Any]:
    """Return the object that a JSON text holds, or the mapping given.

    Raises:
        SpaceError: It is neither.
    """
    data: Any = given
    if isinstance(given, str):
        try:
            data = json.loads(given)
        except ValueError:
            data = None
    if not isinstance(data, Mapping):
        shown = repr(given[:200] if isinstance(given, str) else given)
        raise SpaceError(f"{shown} is no architecture of {space}. The form is JSON such as {example}")
    return data


def check_keys(
    space: str, given: Mapping[str, Any], required: Mapping[str, Any] | Sequence[str], optional: Sequence[str]
) -> None:
    """Raise SpaceError if a key is missing or unknown."""
    known = Choice("key", tuple(dict.fromkeys((*required, *optional))))
    for key in given:
        try:
            known.check(key)
        except SpaceError as error:
            raise SpaceError(f"an architecture of {space} has an unknown key: {error}") from error
    for key in required:
        if key not in given:
            raise SpaceError(f"key {key!r} is missing. An architecture of {space} has: {', '.join(required)}.")


def read_list(key: str, value: Any, length: int) -> list[Any]:
    """Return a list of the right length; a tuple or numpy array will do.

    Raises:
        SpaceError: Not a list, or of another length.
    """
    plain = value.tolist() if callable(getattr(value, "tolist", None)) else value
    if not isinstance(plain, list | tuple):
        raise SpaceError(f"{key!r} is {value!r}, not a list. Give a list of {length} numbers.")
    if len(plain) != length:
        raise SpaceError(f"{key!r} has {len(plain)} entries: {list(plain)}. Give {length}.")
    return list(plain)


def entry(key: str, position: int, lists: Mapping[str, list[Any]], allowed: Sequence[Value]) -> Value:
    """Return one entry of a list as the allowed value it equals.

    Raises:
        SpaceError: It equals none; the message names the position, counted from 0.
    """
    return Choice(f"{key}[{position}]", tuple(allowed)).check(lists[key][position])

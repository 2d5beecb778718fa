"""A YAML file as plain values that remember where they stand, and the mistakes found in it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarbool import ScalarBoolean

from nasrlm.errors import ConfigError, nearest

Key = str | int
KeyPath = tuple[Key, ...]


@dataclass(frozen=True)
class Problem:
    """One mistake: the key's path and what is wrong with its value."""

    path: KeyPath
    message: str


@dataclass
class Document:
    """The values of a YAML file, the line of each key, and what `--set` changed.

    Attributes:
        file: the file, as the user gave it.
        data: plain dicts, lists and scalars.
        lines: line of each key path, from 1.
        sets: key path -> the `--set` argument it came from.
    """

    file: str
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    sets: dict[KeyPath, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from."""
        return Path(os.path.abspath(self.file)).parent

    def command(self, verb: str) -> str:
        """The command line that runs this file with these `--set`."""
        words = ["nasrlm", verb, self.file, *(word for text in self.sets.values() for word in ("--set", text))]
        return " ".join(shlex.quote(word) for word in words)

    def place(self, path: KeyPath) -> tuple[str, int | None]:
        """The file and line of a key, or the `--set` that gave it; of the nearest enclosing key if absent."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.sets:
                return f"--set {self.sets[path[:end]]}", None
            if path[:end] in self.lines:
                return self.file, self.lines[path[:end]]
        return self.file, None

    def error(self, problems: Sequence[Problem]) -> ConfigError:
        """Make one ConfigError of all mistakes, in the order of the file."""
        ordered = sorted(problems, key=lambda problem: self.place(problem.path)[1] or 0)
        errors = [self._one(problem) for problem in ordered]
        if len(errors) == 1:
            return errors[0]
        return ConfigError(f"{self.file}: {len(errors)} mistakes\n" + "\n".join(f"  {error}" for error in errors))

    def _one(self, problem: Problem) -> ConfigError:
        file, line = self.place(problem.path)
        return ConfigError(problem.message, file=file, line=line, key=key_text(problem.path))


def key_text(path: Iterable[Key]) -> str:
    """The path as `--set` takes it.

    >>> key_text(("objectives", 0, "direction"))
    'objectives.0.direction'
    """
    return ".".join(str(key) for key in path)


def read_document(path: str | Path) -> Document:
    """Read a YAML 1.2 file: duplicate keys are errors, `no` is a word, 1e-4 a number.

    Raises:
        ConfigError: No such file, not YAML, or not a mapping; with file and line.
    """
    file = Path(path)
    document = Document(str(path), {})
    values = _plain(_load(_text(file), str(path)), (), document)
    if not isinstance(values, dict):
        raise ConfigError("is no experiment: a mapping such as `kind: search` is needed.", file=path, line=1)
    document.data = values
    return document


def apply_sets(document: Document, sets: Sequence[str]) -> None:
    """Change values as `--set KEY=VALUE` says; the value is read as YAML, list places are numbers.

    Raises:
        ConfigError: No `=`, a list place that does not exist, or a value that is not YAML.
    """
    for text in sets:
        key, equals, value = text.partition("=")
        where = f"--set {text}"
        if not equals or not key.strip(". "):
            raise ConfigError("has the form --set KEY=VALUE, such as --set study.n_trials=100.", file=where)
        path = tuple(int(part) if part.isdigit() else part for part in key.strip().split("."))
        plain = _plain(_load(value, where), (), Document(where, {}))
        path = _assign(document.data, path, plain, where)
        document.sets[path] = text


def _assign(data: dict[str, Any], path: KeyPath, value: Any, where: str) -> KeyPath:
    """Set one value, making missing mappings on the way; returns the path with keys as they are in the data."""
    here: Any = data
    done: list[Key] = []
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(here, list):
            if not isinstance(part, int) or part > len(here) or (part == len(here) and not last):
                raise ConfigError(
                    f"{key_text(done)} is a list of {len(here)}: use its places 0 to {max(len(here) - 1, 0)}"
                    f" (or {len(here)} to add one), not {part!r}.",
                    file=where,
                )
            if part == len(here):
                here.append(None)
        elif isinstance(here, dict):
            part = str(part)
            here.setdefault(part, None if last else {})
            if here[part] is None and not last:
                here[part] = {}
        else:
            raise ConfigError(f"{key_text(done)} is the single value {here!r}; it has no key {part!r}.", file=where)
        done.append(part)
        if last:
            here[part] = value
        else:
            here = here[part]
    return tuple(done)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = sorted(p.name for p in file.parent.glob("*.y*ml")) if file.parent.is_dir() else []
        close = nearest(file.name, known) or known[:5]
        also = f" In that folder: {', '.join(close)}." if close else ""
        raise ConfigError(
            f"no such file.{also} `nasrlm new search {file.stem or 'my'}.yaml` writes one to start from.", file=file
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start}). Save it as UTF-8.", file=file) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}. Give the path of a YAML file.", file=file) from None


def _load(text: str, where: str) -> Any:
    try:
        return YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(mark.line + 1, max(1, len(text.splitlines()))) if mark is not None else None
        what = ": ".join(str(part) for part in (error.context, error.problem) if part)
        if "duplicate key" in what:
            what = f"{what}. Keep one of them"
        elif "\\t" in what:
            what = f"{what}. Indent with spaces"
        raise ConfigError(f"is not valid YAML: {what}.", file=where, line=line) from None
    except (YAMLError, ValueError) as error:
        raise ConfigError(f"is not valid YAML: {error}.", file=where) from None


def _plain(node: Any, path: KeyPath, document: Document) -> Any:
    """Turn ruamel's round-trip values into plain ones and note their lines."""
    if isinstance(node, dict):
        return {key: _plain(value, (*path, key), document) for key, value in _items(node, path, document)}
    if isinstance(node, list):
        for i in range(len(node)):
            document.lines[(*path, i)] = _line(node, i)
        return [_plain(value, (*path, i), document) for i, value in enumerate(node)]
    if node is None or isinstance(node, bool):
        return node
    if isinstance(node, ScalarBoolean):
        return bool(node)
    for plain in (int, float, str):
        if isinstance(node, plain):
            return plain(node)
    if hasattr(node, "tag") and hasattr(node, "value"):
        file, line = document.place(path)
        raise ConfigError(f"tags such as {node.tag} are not used here. Remove it.", file=file, line=line)
    return str(node) if hasattr(node, "isoformat") else node


def _items(node: Any, path: KeyPath, document: Document) -> list[tuple[str, Any]]:
    items = []
    for key, value in node.items():
        line = _line(node, key)
        if not isinstance(key, str):
            if isinstance(key, bool) or key is None or not isinstance(key, int | float):
                raise ConfigError(f"the key {key!r} must be a word.", file=document.file, line=line)
            key = str(key)  # a column may be called 1080
        key = str(key)
        document.lines[(*path, key)] = line
        items.append((key, value))
    return items


def _line(node: Any, key: Any) -> int:
    try:
        mark = node.lc.data[key]
    except (AttributeError, KeyError, TypeError):
        return int(getattr(node.lc, "line", 0)) + 1  # a key that came in by a merge (<<)
    return int(mark[0]) + 1

"""Names to objects: spaces, devices, evaluators, checkpoints; from nasrlm, plugins and users' files.

An entry point of group ``nasrlm.KIND`` gives names. One that names ``module:object`` gives that object under
the entry point's own name. One that names a package stands for every public module in it that defines the
kind's attribute (``SPACE``, ``DEVICE``, ``EVALUATOR`` ...) at top level; modules are found by reading text, so
listing imports nothing. A module that says ``ALIAS_OF = "other"`` instead is a second name of another object; modules
whose names begin with an underscore are helpers. A package of checkpoints stands for its folders that hold a
``config.json``.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from nasrlm.errors import UsageError, nearest, unknown_name

CHECKPOINTS = "checkpoints"
_OWNER = "nasrlm"
_ALIAS = re.compile(r"""^ALIAS_OF\s*=\s*["'](\w+)["']""", re.M)


@dataclass(frozen=True)
class _Entry:
    """One registered name: who gives it, and how to get the object."""

    name: str
    giver: str
    load: Callable[[], Any]
    alias_of: str | None = None


def names(kind: str) -> list[str]:
    """Return every registered name of a kind, sorted; imports none of them.

    Args:
        kind: ``"spaces"``, ``"devices"``, ``"evaluators"``, ``"checkpoints"``, or a plugin's own kind.

    Raises:
        UsageError: A name is given twice, or a package that should be there is not.

    >>> "tiny" in names("spaces")
    True
    """
    return sorted(_entries(kind))


def get(kind: str, name: str) -> Any:
    """Return the object registered under a name: a class, or the folder of a checkpoint.

    Raises:
        UnknownNameError: No such name; the message lists the nearest and all.
        UsageError: A name is given twice, or its module cannot be imported.

    >>> get("spaces", "tiny").name
    'tiny'
    """
    table = _entries(kind)
    if name not in table:
        hint = f"Run `nasrlm list {kind}` to see them."
        raise unknown_name(_singular(kind), name, sorted(table), hint=hint)
    try:
        return table[name].load()
    except ImportError as error:
        raise UsageError(
            f"{_singular(kind)} {name!r} (from {table[name].giver}) cannot be loaded: {error}. "
            "Install what it needs, or choose another."
        ) from error


def alias_of(kind: str, name: str) -> str | None:
    """Return the name that a registered name is a second one of; None if it is a first one, or not registered."""
    entry = _entries(kind).get(name)
    return entry.alias_of if entry is not None else None


def load_file(kind: str, path: str | Path) -> Any:
    """Return what a user's own ``.py`` file defines: its ``SPACE``, ``DEVICE`` or ``EVALUATOR``.

    The same content at the same place is executed once a process.

    Raises:
        UsageError: The file is missing, raises while it is read (with its line), or lacks the attribute.
    """
    module, attribute = load_code(path, _singular(kind)), _attribute(kind)
    if not hasattr(module, attribute):
        raise UsageError(
            f"{path} defines no {attribute}, so it gives no {_singular(kind)}. "
            f"Add `{attribute} = YourClass` at the end of the file."
        )
    return getattr(module, attribute)


def load_code(path: str | Path, what: str) -> Any:
    """Return a user's own ``.py`` file as a module; the same content at the same place is executed once a process.

    Args:
        path: The file.
        what: What is looked for in it, for messages.

    Raises:
        UsageError: The file is missing, or raises while it is read (with its line).
    """
    file = Path(path).expanduser().resolve()
    if not file.is_file() or file.suffix != ".py":
        close = nearest(file.name, (p.name for p in sorted(file.parent.glob("*.py"))))
        also = f" Nearest in {file.parent}: {', '.join(close)}." if close else ""
        raise UsageError(
            f"there is no Python file {str(path)!r} to load a {what} from.{also} Give the path of a .py file."
        )
    return _execute(file)


def _singular(kind: str) -> str:
    return kind.removesuffix("s")


def _attribute(kind: str) -> str:
    return _singular(kind).upper()


def _entries(kind: str) -> dict[str, _Entry]:
    table: dict[str, _Entry] = {}
    for point in entry_points(group=f"nasrlm.{kind}"):
        for entry in _expand(kind, point):
            if entry.name in table:
                raise UsageError(
                    f"the {_singular(kind)} name {entry.name!r} is given twice: by {table[entry.name].giver} "
                    f"and by {entry.giver}. Rename one, or uninstall the package you do not need."
                )
            table[entry.name] = entry
    for entry in table.values():
        if entry.alias_of is not None and (entry.alias_of not in table or table[entry.alias_of].alias_of is not None):
            raise UsageError(
                f"the {_singular(kind)} name {entry.name!r}, given by {entry.giver}, is an alias of "
                f"{entry.alias_of!r}, which is no {_singular(kind)}. Correct its ALIAS_OF."
            )
    return {name: replace(e, load=table[e.alias_of].load) if e.alias_of else e for name, e in table.items()}


def _expand(kind: str, point: EntryPoint) -> Iterator[_Entry]:
    dist = point.dist.name if point.dist is not None else "an unknown package"
    if ":" in point.value:
        yield _Entry(point.name, f"{point.value} ({dist})", point.load)
        return
    spec = _package(kind, point.value, dist)
    if kind == CHECKPOINTS:
        yield from _checkpoints(spec, dist)
        return
    for module, source, alias in _modules(spec, _attribute(kind)):
        load = _loader(f"{point.value}.{module}", _attribute(kind))
        yield _Entry(module, f"{source} ({dist})", load, alias)


def _loader(module: str, attribute: str) -> Callable[[], Any]:
    return lambda: getattr(importlib.import_module(module), attribute)


def _package(kind: str, name: str, dist: str) -> ModuleSpec:
    """Find a package without running it, and see that it is the one that its distribution installed."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise UsageError(f"the package {name!r}, where {dist} keeps {kind}, is gone. Install {dist} again.")
    top_level = "." not in name
    if dist == _OWNER and top_level and not _provided_by_owner(spec):
        raise UsageError(
            f"{_place(spec)} hides the {kind} that come with nasrlm, because it is also called {name!r} and "
            f"Python finds it first. Rename it (for example to my_{name}), or run from another folder."
        )
    return spec


def _provided_by_owner(spec: ModuleSpec) -> bool:
    if not spec.submodule_search_locations or spec.origin is None:
        return False
    return re.search(rf'^PROVIDED_BY = "{_OWNER}"', _read(Path(spec.origin)), re.M) is not None


def _place(spec: ModuleSpec) -> str:
    folders = list(spec.submodule_search_locations or ())
    return f"the folder {folders[0]}" if folders else f"the file {spec.origin}"


def _modules(spec: ModuleSpec, attribute: str) -> Iterator[tuple[str, Path, str | None]]:
    """Yield name, file and alias of every public module that defines the attribute or is an alias."""
    defines = re.compile(rf"^(?:{attribute}\s*[:=]|class {attribute}\b)", re.M)
    for folder in spec.submodule_search_locations or ():
        for info in pkgutil.iter_modules([folder]):
            inside = f"{info.name}/__init__.py" if info.ispkg else f"{info.name}.py"
            file = Path(folder, inside)
            if info.name.startswith("_") or not file.is_file():
                continue
            text = _read(file)
            alias = _ALIAS.search(text)
            if alias is not None or defines.search(text):
                yield info.name, file, alias[1] if alias is not None else None


def _checkpoints(spec: ModuleSpec, dist: str) -> Iterator[_Entry]:
    for folder in spec.submodule_search_locations or ():
        for config in sorted(Path(folder).glob("*/config.json")):
            yield _Entry(config.parent.name, f"{config.parent} ({dist})", lambda found=config.parent: found)  # type: ignore[misc]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _execute(file: Path) -> ModuleType:
    digest = hashlib.sha256(str(file).encode() + file.read_bytes()).hexdigest()[:12]
    name = f"nasrlm_user_{re.sub(r'[^0-9A-Za-z]', '_', file.stem)}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} cannot be loaded as a Python module. Give the path of a .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        line = _line(error, file)
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"{file}:{line}: {what}. Fix the file and try again.") from error
    return module


def _line(error: Exception, file: Path) -> int:
    """Return the line of the user's file where things went wrong."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return (lines[-1] if lines else 1) or 1

"""Paths of an experiment, made absolute: they are written relative to the YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from nasrlm.experiment.schema import BaseExperiment, Part

_T = TypeVar("_T", bound=BaseExperiment)

# Options of spaces, evaluators and devices that hold a path; those of the second row may also be a name.
PATH_KEYS = ("path", "file", "folder", "torch_module", "split", "calibration")
NAME_OR_PATH_KEYS = ("checkpoint", "init", "device", "data")


def resolve_paths(experiment: _T, folder: Path) -> _T:
    """A copy of the experiment in which every path is absolute; names stay names.

    Args:
        experiment: as loaded.
        folder: the folder of its YAML file.
    """
    changed = {name: _resolved(name, getattr(experiment, name), folder) for name in type(experiment).model_fields}
    return experiment.model_copy(update=changed)


def absolute(path: str, folder: Path) -> str:
    """The path as seen from `folder`; `~` is the home folder.

    >>> absolute("../runs/a", Path("/work/experiments"))
    '/work/runs/a'
    """
    # Not Path.resolve: a link that a user made stays the name he knows.
    import os.path

    return os.path.normpath(folder / Path(path).expanduser())


def _resolved(key: str, value: Any, folder: Path) -> Any:
    if isinstance(value, Part):
        changed = {name: _resolved(name, getattr(value, name), folder) for name in type(value).model_fields}
        return value.model_copy(update=changed)
    if isinstance(value, Mapping):
        if key in ("metrics", "model", "train"):
            return value
        return {name: _resolved(name, item, folder) for name, item in value.items()}
    if isinstance(value, list):
        return [_resolved(key, item, folder) if isinstance(item, Part | Mapping) else item for item in value]
    if isinstance(value, str) and (key in PATH_KEYS or (key in NAME_OR_PATH_KEYS and _is_path(value, folder))):
        return absolute(value, folder)
    return value


def _is_path(value: str, folder: Path) -> bool:
    return (
        value.startswith((".", "/", "~"))
        or "/" in value
        or "\\" in value
        or value.endswith((".py", ".npz"))
        or ".py:" in value  # a function of a file
        or ((folder / value).exists())
    )

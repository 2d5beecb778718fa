"""The folder of a run: which experiment it belongs to, what it was made with, and what happened in it."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from nasrlm.errors import RunFolderError
from nasrlm.experiment.files import make_folder, write_json, write_text
from nasrlm.experiment.versions import versions

EXPERIMENT, VERSIONS, LOG, SUMMARY = "experiment.yaml", "versions.json", "log.jsonl", "summary.json"
# What may change between two runs of one experiment: more trials, and how results are shown.
FREE = ("study.n_trials", "outputs", "confirm", "description", "tags")
_SHOWN = 6  # differences that a message lists


@dataclass(frozen=True)
class RunFolder:
    """A run folder that is ours to write.

    Attributes:
        path: the folder.
        resumed: whether the same experiment ran here before.
    """

    path: Path
    resumed: bool

    def log(self, event: str, **values: Any) -> None:
        """Add one line to log.jsonl."""
        line = json.dumps({"time": _now(), "event": event, **values}, ensure_ascii=False, default=str)
        with open(self.path / LOG, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def open_run_folder(path: str | Path, resolved: Mapping[str, Any], free: tuple[str, ...] = FREE) -> RunFolder:
    """Make or re-open the folder of an experiment and write experiment.yaml and versions.json.

    Args:
        path: the folder.
        resolved: the experiment as plain values, defaults filled in, paths absolute.
        free: key paths that may differ from the last run's.

    Raises:
        RunFolderError: The folder cannot be written, is not a run folder but holds files, or belongs to another
            experiment (the message says what differs).
    """
    folder = make_folder(path)
    file = folder / EXPERIMENT
    resumed = file.exists()
    if resumed:
        _refuse_other(folder, _read(file), resolved, free)
    elif any(not entry.name.startswith(".") for entry in folder.iterdir()) and not file.exists():  # by another worker
        names = ", ".join(sorted(entry.name for entry in folder.iterdir())[:3])
        raise RunFolderError(
            f"the folder {folder} holds other things ({names} ...) and no {EXPERIMENT}, so it is no run folder. "
            "Set outputs.folder to a new or empty folder."
        )
    text = to_yaml(resolved)
    if not resumed or file.read_text(encoding="utf-8") != text:
        write_text(file, text)
    write_json(folder / VERSIONS, versions())
    return RunFolder(folder, resumed)


def read_run_experiment(folder: str | Path) -> dict[str, Any]:
    """The resolved experiment of a run folder.

    Raises:
        RunFolderError: Not a run folder, or its experiment.yaml is damaged.
    """
    path = Path(folder)
    if not (path / EXPERIMENT).is_file():
        raise RunFolderError(
            f"{path} is no run folder: it has no {EXPERIMENT}. Give the folder that `nasrlm search` wrote "
            "(outputs.folder of the experiment)."
        )
    return _read(path / EXPERIMENT)


def to_yaml(values: Mapping[str, Any]) -> str:
    """Plain values as YAML text."""
    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 4096
    yaml.dump(dict(values), stream)
    return stream.getvalue()


def _read(file: Path) -> dict[str, Any]:
    try:
        values = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (YAMLError, ValueError, OSError) as error:
        reason = type(error).__name__
        raise RunFolderError(f"{file} is damaged ({reason}). Set outputs.folder to a new folder.") from None
    if not isinstance(values, dict):
        raise RunFolderError(f"{file} is damaged (no mapping in it). Set outputs.folder to a new folder.")
    return values


def _refuse_other(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any], free: tuple[str, ...]) -> None:
    old, new = dict(_flat(before)), dict(_flat(now))
    keys = [key for key in [*new, *(key for key in old if key not in new)] if not _is_free(key, free)]
    differing = [key for key in keys if old.get(key) != new.get(key)]
    if not differing:
        return
    lines = [f"  {key}: {_shown(old, key)} there, {_shown(new, key)} here" for key in differing[:_SHOWN]]
    if len(differing) > _SHOWN:
        lines.append(f"  ... and {len(differing) - _SHOWN} more")
    raise RunFolderError(
        f"the run folder {_near(folder)} belongs to another experiment:\n"
        + "\n".join(lines)
        + "\nSet outputs.folder to another folder, or remove that one. (Only "
        + ", ".join(free)
        + " may change between runs.)"
    )


def _near(folder: Path) -> str:
    """The folder as seen from here, if it lies below."""
    relative = os.path.relpath(folder)
    return str(folder) if relative.startswith("..") else relative


def _is_free(key: str, free: tuple[str, ...]) -> bool:
    return any(key == name or key.startswith(name + ".") for name in free)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping | list) and value:
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif value is not None and value not in ({}, []):
        yield path, value


def _shown(values: Mapping[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "nothing"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")

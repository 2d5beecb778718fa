"""YAML file -> checked experiment; every mistake in one message with line, key, nearest word and what is allowed."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from nasrlm.errors import nearest
from nasrlm.experiment.document import Document, Key, KeyPath, Problem, apply_sets, read_document
from nasrlm.experiment.schema import KINDS, MODELS, SCHEMA, Experiment

_SHOWN = 60  # characters of a wrong value that a message quotes


def load_experiment(path: str | Path, sets: Sequence[str] = ()) -> Experiment:
    """Read and check the form of an experiment file.

    Args:
        path: the YAML file.
        sets: changes such as `"study.n_trials=100"`, which go through the same checks.

    Returns:
        The experiment, a frozen pydantic model of its kind.

    Raises:
        ConfigError: Any mistake; all of them in one message.
    """
    return load_document(path, sets)[0]


def load_document(path: str | Path, sets: Sequence[str] = ()) -> tuple[Experiment, Document]:
    """The same as `load_experiment`, with the document that knows each key's line."""
    document = read_document(path)
    apply_sets(document, sets)
    _check_head(document)
    model = MODELS[document.data["kind"]]
    try:
        experiment = model.model_validate(document.data)
    except ValidationError as error:
        raise document.error(_problems(model, [dict(item) for item in error.errors()])) from None
    return typing.cast(Experiment, experiment), document


def _check_head(document: Document) -> None:
    """`schema` and `kind` first: without them no other message would make sense."""
    problems = []
    for key, allowed in (("schema", (SCHEMA,)), ("kind", KINDS)):
        value = document.data.get(key)
        if key not in document.data:
            close = [word for word in nearest(key, document.data) if word not in ("schema", "kind")]
            instead = f" Is {close[0]!r} meant for it?" if close else ""
            problems.append(Problem((key,), f"is missing.{instead} Allowed: {', '.join(allowed)}."))
        elif value not in allowed:
            problems.append(Problem((key,), _wrong_word(key, value, allowed)))
    if problems:
        raise document.error(problems)


def _problems(model: type[BaseModel], errors: list[dict[str, Any]]) -> list[Problem]:
    """One problem an error; a key that is missing because it is misspelt is told once."""
    missing = {error["loc"] for error in errors if error["type"] == "missing"}
    misspelt = set()
    for error in errors:
        if error["type"] == "extra_forbidden":
            *parent, key = error["loc"]
            meant = nearest(str(key), [str(loc[-1]) for loc in missing if loc[:-1] == tuple(parent)], n=1)
            misspelt |= {(*parent, word) for word in meant}
    return [_problem(model, error) for error in errors if error["type"] != "missing" or error["loc"] not in misspelt]


def _problem(model: type[BaseModel], error: dict[str, Any]) -> Problem:
    path: KeyPath = tuple(key for key in error["loc"] if key != "[key]")
    if error["type"] == "extra_forbidden":
        return Problem(path, unknown_key(path, list(_fields(_model_at(model, path[:-1])))))
    if error["type"] == "missing":
        return Problem(path, f"is missing.{_wanted(model, path)}")
    if error["type"] == "literal_error":
        allowed = _words(error["ctx"]["expected"])
        return Problem(path, _wrong_word(_singular(path), error["input"], allowed))
    if error["type"] == "value_error":
        return Problem(path, f"{error['ctx']['error']}.")
    return Problem(path, f"{quoted(error['input'])} {_reason(error)}.{_wanted(model, path)}")


def unknown_key(path: KeyPath, allowed: Sequence[str]) -> str:
    """The message for a key that is not among those allowed."""
    close = nearest(str(path[-1]), allowed)
    near = f" Nearest: {', '.join(close)}." if close else ""
    return f"unknown key {str(path[-1])!r}.{near} Allowed here: {', '.join(allowed)}."


def quoted(value: Any) -> str:
    """The value as a message shows it.

    >>> quoted("no"), quoted({"a": 1}), quoted(None)
    ("'no'", "a mapping ({'a': 1})", 'null (nothing)')
    """
    text = repr(value)
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    if value is None:
        return "null (nothing)"
    if isinstance(value, dict | list):
        return f"{'a mapping' if isinstance(value, dict) else 'a list'} ({text})"
    return {"True": "true", "False": "false"}.get(text, text)


_REASONS = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text (put quotes around it)",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping (key: value)",
    "model_type": "must be a mapping (key: value)",
    "model_attributes_type": "must be a mapping (key: value)",
    "finite_number": "must be a finite number",
}


def _reason(error: dict[str, Any]) -> str:
    context = error.get("ctx", {})
    if error["type"] in _REASONS:
        return _REASONS[error["type"]]
    if error["type"] == "greater_than_equal":
        return f"must be at least {context['ge']}"
    if error["type"] == "too_short":
        return f"must have at least {context['min_length']} entry"
    if error["type"] == "string_pattern_mismatch":
        return "has letters that are not allowed here"
    return str(error["msg"])


def _wrong_word(what: str, value: Any, allowed: Sequence[str]) -> str:
    close = nearest(str(value), allowed)
    near = f" Nearest: {', '.join(close)}." if close else ""
    return f"unknown {what} {quoted(value)}.{near} Allowed: {', '.join(allowed)}."


def _words(expected: str) -> list[str]:
    """pydantic's "'a', 'b' or 'c'" as a list."""
    return [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(", ")]


def _singular(path: KeyPath) -> str:
    words = [str(key) for key in path if isinstance(key, str)]
    last = words[-1] if words else "value"
    return last.removesuffix("s") if isinstance(path[-1], int) else last


def _wanted(model: type[BaseModel], path: KeyPath) -> str:
    """What the key should hold, from its field's description."""
    info = _field_at(model, path)
    return f" Give {info.description}." if info is not None and info.description else ""


def _fields(model: type[BaseModel] | None) -> dict[str, FieldInfo]:
    if model is None:
        return {}
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _field_at(model: type[BaseModel], path: KeyPath) -> FieldInfo | None:
    owner = _model_at(model, path[:-1])
    return _fields(owner).get(str(path[-1])) if path else None


def _model_at(model: type[BaseModel] | None, path: Sequence[Key]) -> type[BaseModel] | None:
    """The model that holds the keys under a path, seen through lists, mappings and `| None`."""
    inside_mapping = False
    for key in path:
        if isinstance(key, int) or inside_mapping:
            inside_mapping = False
            continue
        info = _fields(model).get(key)
        if info is None:
            return None
        model = _inner_model(info.annotation)
        inside_mapping = typing.get_origin(info.annotation) is dict
    return model


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    found = (_inner_model(part) for part in typing.get_args(annotation))
    return next((part for part in found if part is not None), None)

"""Networks as the command line names them: official strings, JSON, model files; and what is said about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasrlm.errors import CheckpointError, ExportError, SpaceError, UsageError, unknown_name

if TYPE_CHECKING:
    from nasrlm.spaces import Architecture

_FUNCTION = re.compile(r"(.+\.py):([A-Za-z_]\w*)")

Counter = tuple[str, Callable[[str], int]]


def find_architecture(text: str, space: str | None = None) -> Architecture:
    """The architecture of an official string or of `Architecture.to_json`.

    Args:
        text: the string.
        space: the space's name or .py file; None = the registered space that it fits.

    Raises:
        SpaceError: It fits no space; the reason of the given one, or the spaces that were tried.
    """
    from nasrlm import registry
    from nasrlm.spaces import Architecture, get_space

    if space is not None:
        return get_space(space).architecture(text)
    if text.startswith('{"space"'):
        return Architecture.from_json(text)
    tried = registry.names("spaces")
    for name in tried:
        try:
            return get_space(name).architecture(text)
        except SpaceError:
            continue
    raise SpaceError(
        f"{text!r} is neither a folder nor an architecture of a known space ({', '.join(tried)}). "
        "Check the string (in quotes), or name its space with --space."
    )


def find_network(text: str, space: str | None) -> Any:
    """A model file's path, a canonical text, a torch module with its inputs, or an architecture.

    Raises:
        ExportError: A model or text file that is not there, or a function that gives no module.
        SpaceError: An architecture that fits no space.
    """
    if text.endswith(".txt"):
        found = _read(Path(text)).strip()
        if not found.startswith("nasrlm"):
            raise ExportError(f"{text} begins with {found[:20]!r}; a canonical text begins with 'nasrlm1'")
        return found
    if (parts := _FUNCTION.fullmatch(text)) is not None:
        return _module(Path(parts[1]), parts[2])
    if text.endswith(".onnx"):
        if not Path(text).is_file():
            raise ExportError(f"there is no file {text}. Give the path of an .onnx file, or an architecture string.")
        return text
    return find_architecture(text, space)


def _module(file: Path, name: str) -> Any:
    """What a user's function gives: (torch module, example inputs)."""
    from nasrlm import registry

    code = registry.load_code(file, "network")
    make = getattr(code, name, None)
    if not callable(make):
        known = [n for n, v in vars(code).items() if callable(v) and not n.startswith("_")]
        raise unknown_name("function", name, known, where=str(file))
    made = make()
    if not (isinstance(made, tuple) and len(made) == 2 and callable(getattr(made[0], "state_dict", None))):
        raise ExportError(
            f"{name}() in {file} gives {type(made).__name__}; it must give (torch module, example inputs)"
        )
    return made


def network_name(network: Any) -> str:
    """A short name for files: the architecture's id, the model file's stem, or the module's class."""
    if hasattr(network, "id"):
        return str(network.id)
    if isinstance(network, tuple):
        return type(network[0]).__name__
    return "network" if network.startswith("nasrlm") else Path(str(network)).stem


def tokenizer_of(checkpoint: str | None, space: str | None) -> Counter | None:
    """A checkpoint's name and token counter: the given one, else the shipped one of that space's name or the first.

    None if nothing is shipped.

    Raises:
        CheckpointError: The given checkpoint cannot be used.
    """
    from nasrlm import registry

    shipped = registry.names("checkpoints")
    name = checkpoint or (space if space in shipped else next(iter(shipped), None))
    if name is None:
        return None
    from nasrlm.rlm import RegressionLM

    try:
        model = RegressionLM.from_pretrained(name)
    except CheckpointError:
        if checkpoint is not None:
            raise
        return None
    return str(name), lambda text: len(model.tokenizer.encode([text])[0])


def describe(network: Any, counter: Counter | None, *, dead_work: bool = False) -> dict[str, Any]:
    """Text, costs, and the text's size in words and (with a tokenizer) tokens."""
    from nasrlm.graph import costs, to_text

    text = to_text(network, dead_work=dead_work)
    counted = costs(network)
    lines, words = text.count("\n") + 1, len(text.split())
    facts: dict[str, Any] = {
        "text": text,
        "costs": {name: int(value) for name, value in counted.metrics().items()},
        "operators": dict(counted.operators),
        "lines": lines,
        "words": words,
        "size": f"{lines} lines, {words} words",
    }
    if counter is not None:
        name, count = counter
        facts["tokens"] = count(text)
        facts["size"] += f", {facts['tokens']} tokens (checkpoint {name})"
    return facts


def read_lines(given: Sequence[str], file: str | None) -> list[str]:
    """Networks from the arguments and a file (- is standard input), one a line; blank lines and # comments left out.

    A CSV with a column `arch` will do as well.

    Raises:
        UsageError: No network at all, or a file that cannot be read.
    """
    import sys

    found = [text for text in given if text != "-"]
    if file is not None or "-" in given:
        text = sys.stdin.read() if file in (None, "-") else _read(Path(str(file)))
        found += _column(text) if file is not None and file.endswith(".csv") else text.splitlines()
    networks = [line.strip() for line in found if line.strip() and not line.lstrip().startswith("#")]
    if not networks:
        raise UsageError("no network was given. Give architecture strings or .onnx files, or --file FILE (- = stdin).")
    return networks


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{file} cannot be read: {reason}. Give a text file.") from None


def _column(text: str) -> list[str]:
    import csv

    rows = csv.DictReader(text.splitlines())
    if "arch" not in (rows.fieldnames or ()):
        raise UsageError(f"the CSV has no column 'arch', only {', '.join(rows.fieldnames or ())}. Rename the column.")
    return [row["arch"] for row in rows]

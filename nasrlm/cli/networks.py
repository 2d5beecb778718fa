"""Networks as the command line names them: official strings, JSON, model files; and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nasrlm.errors import CheckpointError, ExportError, SpaceError, UsageError

if TYPE_CHECKING:
    from nasrlm.spaces import Architecture

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
    """A model file's path, or an architecture.

    Raises:
        ExportError: A model file that is not there.
        SpaceError: An architecture that fits no space.
    """
    if text.endswith(".onnx"):
        if not Path(text).is_file():
            raise ExportError(f"there is no file {text}. Give the path of an .onnx file, or an architecture string.")
        return text
    return find_architecture(text, space)


def network_name(network: Any) -> str:
    """A short name for files: the architecture's id, or the model file's stem."""
    return network.id if hasattr(network, "id") else Path(str(network)).stem


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

"""nasrlm new: write a commented template to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from nasrlm.cli.common import out, say
from nasrlm.errors import RunFolderError, UsageError, unknown_name

TEMPLATES = {
    "search": "search.yaml",
    "train": "train.yaml",
    "evaluate": "evaluate.yaml",
    "label": "label.yaml",
    "benchmark": "benchmark.yaml",
    "space": "space.py",
    "device": "device.py",
    "evaluator": "evaluator.py",
}


def command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{', '.join(TEMPLATES)}.")],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The file to write; - for standard output.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented template to start from."""
    if kind not in TEMPLATES:
        raise unknown_name("template", kind, TEMPLATES)
    text = template(kind, path.stem)
    if str(path) == "-":
        out(text.rstrip("\n"))
        return
    suffix = Path(TEMPLATES[kind]).suffix
    if path.suffix not in (suffix, ".yml" if suffix == ".yaml" else suffix):
        raise UsageError(f"the file {str(path)!r} must end in {suffix}. Try {path.with_suffix(suffix)}.")
    if path.exists() and not force:
        raise UsageError(f"{path} exists already. Choose another name, or replace it with --force.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror}. Choose another place.") from None
    check = f" Check it: nasrlm check {path}" if kind not in ("device", "evaluator") else ""
    say(f"wrote {path}.{check}")


def template(kind: str, name: str) -> str:
    """The text of a template, with the name filled in.

    >>> "kind: search" in template("search", "mine")
    True
    """
    word = "".join(c if c.isalnum() or c in "_-" else "_" for c in name).strip("_-") or "mine"
    file = resources.files("nasrlm.experiment").joinpath("templates", TEMPLATES[kind])
    return file.read_text(encoding="utf-8").replace("MY_NAME", word)

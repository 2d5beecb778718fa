"""nasrlm show: a run folder's front, a checkpoint, or what an architecture is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nasrlm.cli.common import Json, out, out_json, out_table
from nasrlm.cli.networks import describe, find_architecture, tokenizer_of
from nasrlm.errors import UsageError


def command(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="A run folder, a checkpoint folder, or an architecture string."),
    ],
    space: Annotated[
        str | None, typer.Option(metavar="NAME", help="The architecture's space; default: the one it fits.")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="NAME", help="The checkpoint whose tokens are counted.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a run, a checkpoint or an architecture."""
    path = Path(target)
    if path.is_dir() and (path / "config.json").is_file() and not (path / "trials.csv").exists():
        _checkpoint(path, as_json)
    elif path.is_dir():
        from nasrlm.cli.search import report
        from nasrlm.experiment.saved_run import load_run

        report(load_run(path), as_json)
    elif path.is_file() or (space is None and target.startswith((".", "/"))):
        raise UsageError(
            f"{target} is no run folder, checkpoint folder or architecture string. "
            f"For a model file: nasrlm export {target}"
        )
    else:
        _architecture(target, space, checkpoint, as_json)


def _architecture(text: str, space: str | None, checkpoint: str | None, as_json: bool) -> None:
    architecture = find_architecture(text, space)
    facts: dict[str, Any] = {
        "architecture_id": architecture.id,
        "space": architecture.space.name,
        "arch": architecture.string,
        "params": architecture.params,
        **describe(architecture, tokenizer_of(checkpoint, architecture.space.name)),
    }
    if as_json:
        out_json(facts)
        return
    out(f"{facts['architecture_id']}\n{facts['arch']}\n\n{facts['text']}\n")
    out_table([{"metric": name, "value": value} for name, value in facts["costs"].items()])
    out(facts["size"])


def _checkpoint(folder: Path, as_json: bool) -> None:
    import json

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if as_json:
        out_json(config)
        return
    card = folder / "README.md"
    out(card.read_text(encoding="utf-8").rstrip() if card.is_file() else json.dumps(config, indent=2))

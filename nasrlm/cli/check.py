"""nasrlm check: find every mistake before any work is done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nasrlm.cli.common import Json, Sets, out, out_json, say


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An experiment (.yaml) or a search space (.py).")],
    sets: Sets = None,
    as_json: Json = False,
) -> None:
    """Check an experiment file or a search space of your own."""
    if Path(file).suffix == ".py":
        _check_space(file, as_json)
        return
    from nasrlm.experiment.run import check
    from nasrlm.experiment.run_folder import to_yaml

    experiment, notes = check(file, list(sets or []))
    resolved: dict[str, Any] = experiment.model_dump(by_alias=True, exclude_none=True)
    for note in notes:
        say(f"note: {note}")
    if as_json:
        out_json({"file": file, "ok": True, "notes": notes, "experiment": resolved})
        return
    out(f"{file} is a correct experiment of kind {experiment.kind}. With its defaults:\n")
    out(to_yaml(resolved).rstrip())


def _check_space(file: str, as_json: bool) -> None:
    from nasrlm.graph import costs, to_text
    from nasrlm.spaces import get_space
    from nasrlm.testing import check_space

    space = get_space(Path(file))
    check_space(space)
    first = space.sample(1, seed=0)[0]
    facts = {
        "file": file,
        "ok": True,
        "name": space.name,
        "architectures": space.size(),
        "example": first.string,
        "text_lines": to_text(first).count("\n") + 1,
        **costs(first).metrics(),
    }
    if as_json:
        out_json(facts)
        return
    out(f"{file} is a correct search space.\n")
    for key in ("name", "architectures", "example"):
        out(f"{key}: {facts[key]}")

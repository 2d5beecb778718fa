"""nasrlm plot: draw the plots of a run folder (again)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nasrlm.cli.common import out
from nasrlm.errors import unknown_name

FORMATS = ("png", "svg", "html")


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="A folder that `nasrlm search` wrote.")],
    formats: Annotated[
        str, typer.Option("--format", metavar="png,svg,html", help="The formats, with commas between them.")
    ] = "png,html",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Where to put them; default: the run folder."),
    ] = None,
) -> None:
    """Draw the front and the history of a run."""
    wanted = [word.strip() for word in formats.split(",") if word.strip()]
    for word in wanted:
        if word not in FORMATS:
            raise unknown_name("format", word, FORMATS, where="--format")
    from nasrlm.experiment.files import make_folder
    from nasrlm.experiment.saved_run import load_run
    from nasrlm.experiment.search_outputs import draw

    saved = load_run(run)
    folder = make_folder(output) if output is not None else run
    for file in draw(saved.result, folder, wanted):
        out(str(file))

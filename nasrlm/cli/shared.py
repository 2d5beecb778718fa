"""What the verbs have in common whose work several processes and machines can share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from nasrlm.cli.common import progress_bar, resumable, say

Storage = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The same as --set study.storage=URL.", show_default=False),
]
Workers = Annotated[int, typer.Option(metavar="N", min=1, help="Processes that share the study here.")]
AsWorker = Annotated[bool, typer.Option("--as-worker", hidden=True)]


def run_shared(
    experiment: str, kind: str, sets: Sequence[str] | None, storage: str | None, workers: int, as_worker: bool
) -> Any:
    """Run an experiment by so many processes; None in one of them, which has nothing to report."""
    from nasrlm.experiment.run import run
    from nasrlm.experiment.run_workers import fill_study, work

    changes = [*(sets or []), *([f"study.storage={storage}"] if storage else [])]
    if as_worker:
        work(experiment, changes)
        return None
    with resumable(), progress_bar() as progress:
        if workers > 1:
            fill_study(experiment, changes, workers, progress, say)
        return run(experiment, changes, kind=kind, progress=progress)

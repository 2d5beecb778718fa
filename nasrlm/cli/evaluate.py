"""nasrlm evaluate: compare predictions with a table of true values."""

from __future__ import annotations

from nasrlm.cli.common import Experiment, Json, Sets, out_frame, out_json, progress_bar, resumable, say


def command(experiment: Experiment, sets: Sets = None, as_json: Json = False) -> None:
    """Score predictions against a table of true values."""
    from nasrlm.experiment.run import run

    with resumable(), progress_bar() as progress:
        done = run(experiment, list(sets or []), kind="evaluate", progress=progress)
    if as_json:
        out_json(done.summary())
        return
    out_frame(done.table(), title=f"{done.name}: {done.rows} rows, {done.unseen_rows} of them unseen graphs")
    say(f"results: {done.folder}")

"""nasrlm benchmark: compare speeds, sizes of texts, samplers or predictors in one run."""

from __future__ import annotations

from nasrlm.cli.common import Experiment, Json, Sets, out_frame, out_json, progress_bar, resumable, say


def command(experiment: Experiment, sets: Sets = None, as_json: Json = False) -> None:
    """Compare speeds, samplers, and predictors in one run."""
    from nasrlm.experiment.run import run

    with resumable(), progress_bar() as progress:
        done = run(experiment, list(sets or []), kind="benchmark", progress=progress)
    if as_json:
        out_json(done.summary())
        return
    out_frame(done.table, title=done.name)
    say(f"results: {done.folder}")

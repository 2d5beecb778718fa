"""nasrlm train: train a Regression Language Model."""

from __future__ import annotations

from nasrlm.cli.common import Experiment, Json, Sets, out_frame, out_json, progress_bar, resumable, say


def command(experiment: Experiment, sets: Sets = None, as_json: Json = False) -> None:
    """Train a model, or go on with its training."""
    from nasrlm.experiment.run import run

    with resumable(), progress_bar() as progress:
        done = run(experiment, list(sets or []), kind="train", progress=progress)
    if as_json:
        out_json(done.summary())
        return
    out_frame(done.table(), title=f"{done.name}: {done.train_rows} training rows, {done.test_rows} held out")
    say(f"checkpoint: {done.folder}")

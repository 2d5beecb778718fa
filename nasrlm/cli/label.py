"""nasrlm label: make a table of labelled architectures."""

from __future__ import annotations

from nasrlm.cli.common import Experiment, Json, Sets, out, out_frame, out_json, say
from nasrlm.cli.shared import AsWorker, Storage, Workers, run_shared


def command(
    experiment: Experiment,
    sets: Sets = None,
    storage: Storage = None,
    workers: Workers = 1,
    as_json: Json = False,
    as_worker: AsWorker = False,
) -> None:
    """Label random architectures, or go on with it.

    The same command on other machines joins in, where they reach the storage.
    """
    from nasrlm.experiment.data_card import metric_ranges, seed_noise, spread_noise

    done = run_shared(experiment, "label", sets, storage, workers, as_worker)
    if done is None:
        return
    if as_json:
        out_json(done.summary())
        return
    if len(done.labels):
        out_frame(
            metric_ranges(done.labels, done.metrics)[["metric", "smallest", "median", "largest"]],
            title=f"{done.name}: {len(done.labels):,} rows, {len(done.failures):,} failures",
        )
    else:
        out(f"{done.name}: no row, {len(done.failures):,} failures (failures.csv says why)")
    for title, found in (
        ("Between seeds (tau is the noise ceiling)", seed_noise(done.labels, done.metrics)),
        ("Quartiles' distance in percent of the median", spread_noise(done.labels, done.metrics)),
    ):
        if len(found):
            out_frame(found, title=title)
    say(f"table: {done.file}")

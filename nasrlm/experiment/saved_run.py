"""A run folder read back."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from nasrlm.errors import RunFolderError
from nasrlm.experiment.run_folder import EXPERIMENT, read_run_experiment
from nasrlm.experiment.run_search import SearchRun, objectives_of
from nasrlm.experiment.schema import SearchExperiment
from nasrlm.experiment.search_outputs import CONFIRMED, TRIALS
from nasrlm.search import make_result


def load_run(folder: str | Path) -> SearchRun:
    """The result of a search, from its run folder.

    Raises:
        RunFolderError: No run folder, not of a search, or one without trials yet.
    """
    path = Path(folder)
    experiment = _experiment(path)
    trials = path / TRIALS
    if not trials.is_file():
        raise RunFolderError(
            f"{path} has no {TRIALS} yet: its search was stopped. Go on with it: nasrlm search EXPERIMENT.yaml"
        )
    try:
        frame = pd.read_csv(trials)
        confirmed = pd.read_csv(path / CONFIRMED) if (path / CONFIRMED).is_file() else None
        if "failure" in frame:
            frame["failure"] = frame["failure"].astype(object).fillna("")
        objectives, constraints, point = objectives_of(experiment)
        result = make_result(frame, objectives, constraints, reference_point=point or None, confirmed=confirmed)
    except (ValueError, KeyError) as error:
        remedy = "Run the search again; it only reads its storage."
        raise RunFolderError(f"{trials} is damaged ({error}). {remedy}") from None
    return SearchRun(experiment.name, path, result)


def _experiment(path: Path) -> SearchExperiment:
    values = read_run_experiment(path)
    if values.get("kind") != "search":
        kind = values.get("kind")
        raise RunFolderError(f"{path} is the folder of a run of kind {kind!r}. Give the folder of a search.")
    try:
        return SearchExperiment.model_validate(values)
    except ValidationError as error:
        raise RunFolderError(
            f"{path / EXPERIMENT} was changed or written by another version ({error.error_count()} mistakes). "
            "Set outputs.folder to a new folder and run again."
        ) from None

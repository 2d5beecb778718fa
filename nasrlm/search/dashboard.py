"""What Optuna's dashboard shows of a study beyond its trials: the front's networks, and plots."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.storages import BaseStorage

from nasrlm.search.interrupts import quiet_optuna
from nasrlm.search.storage import open_storage, storage_errors


def publish(
    storage: str | BaseStorage | None,
    study_name: str,
    attributes: Mapping[str, Any],
    figures: Callable[[], Mapping[str, Any]],
) -> None:
    """Add to a study what optuna-dashboard shows with it.

    Args:
        storage: the study's; nothing is done for memory.
        study_name: the study's.
        attributes: become user attributes of the study; plain JSON values.
        figures: makes plotly figures by name. They are added where optuna-dashboard is installed, when the
            attributes have changed.

    Raises:
        RunError: The storage failed.
    """
    with quiet_optuna(), storage_errors(storage):
        opened = open_storage(storage)
        if opened is None:
            return
        study = optuna.load_study(study_name=study_name, storage=opened)
        before = study.user_attrs
        if all(before.get(key) == value for key, value in attributes.items()):
            return
        for key, value in attributes.items():
            study.set_user_attr(key, value)
        if importlib.util.find_spec("optuna_dashboard"):
            save = importlib.import_module("optuna_dashboard").save_plotly_graph_object
            for name, figure in figures().items():
                save(study, figure, graph_object_id=name)

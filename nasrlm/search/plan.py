"""What a study is made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from nasrlm.evaluators import Evaluator
from nasrlm.search.objective import Constraint, Objective
from nasrlm.search.samplers import sampler_key
from nasrlm.spaces import SearchSpace


@dataclass(frozen=True)
class StudyPlan:
    """All that a study is made from, checked."""

    space: SearchSpace
    evaluators: tuple[Evaluator, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    sampler: str | BaseSampler
    sampler_options: dict[str, object]
    n_trials: int
    batch_size: int
    seed: int
    storage: str | BaseStorage | None
    study_name: str
    folder: Path | None
    reference_point: tuple[float, ...] | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that a trial must have, objectives first."""
        metrics = [item.metric for item in self.objectives] + [item.metric for item in self.constraints]
        return tuple(dict.fromkeys(metrics))

    @property
    def settings(self) -> dict[str, object]:
        """What must not change while a study grows; plain JSON, kept in the storage."""
        return {
            "space": self.space.name,
            "objectives": [[item.metric, item.direction] for item in self.objectives],
            "constraints": [[item.metric, item.at_most, item.at_least] for item in self.constraints],
            "evaluators": [evaluator.name for evaluator in self.evaluators],
        }

    @property
    def sampler_context(self) -> dict[str, object]:
        """What a sampler may want to know of the search."""
        known = {"space": self.space, "batch_size": self.batch_size, "reference_point": self.reference_point}
        return {**known, "folder": self.folder}

    @property
    def key(self) -> str:
        """What must not change for a saved sampler to fit."""
        sampler = sampler_key(self.sampler, self.sampler_options, self.seed)
        return f"{self.study_name} batch_size={self.batch_size} {sampler}"

"""One worker of a study: ask a batch, evaluate what is new, tell, store; and go on exactly where it was
stopped.

The sampler works on a study in memory, which is fast. Each finished batch is added to the storage, then the
sampler's state is replaced. Whatever the moment a worker is killed at, the state on disk is that before some
batch: the batch is asked again, gives the same candidates, and the trials of it that had reached the storage
are not added twice.
"""

from __future__ import annotations

import logging
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from nasrlm.errors import RunError
from nasrlm.evaluators import Evaluator
from nasrlm.search.evaluate import Row, evaluate_batch
from nasrlm.search.objective import Constraint, Objective
from nasrlm.search.result import ARCH, ARCHITECTURE_ID, BATCH, FAILURE, WORKER, metric_values
from nasrlm.search.samplers import make_sampler, sampler_key
from nasrlm.search.state import SamplerState, claim_state, load_state, save_state, state_path
from nasrlm.search.storage import describe_storage, flush_storage, open_storage, open_study, set_metric_names
from nasrlm.spaces import Architecture, SearchSpace

_FAILED_IN_A_ROW = 10  # so many failed candidates one after another mean that the evaluator is broken


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
    def key(self) -> str:
        """What must not change for a saved sampler to fit."""
        sampler = sampler_key(self.sampler, self.sampler_options, self.seed)
        return f"{self.study_name} batch_size={self.batch_size} {sampler}"


class Worker:
    """Runs a study to its number of trials; made anew for each call of :func:`nasrlm.search.search`."""

    def __init__(self, plan: StudyPlan) -> None:
        self._plan = plan
        self._stored = _open_stored(plan)
        self._state_path, self._claim = claim_state(state_path(plan.storage, plan.folder))
        self._memory: dict[str, Row] = {}  # architecture id -> values of every candidate evaluated so far
        self._repeat: list[FrozenTrial] = []  # own trials of a half-stored batch, which is asked again
        self._seen = 0  # trials of the storage that are known here
        self._alone = True  # no other worker's trial has been seen
        self._failures_in_a_row = 0
        try:
            self._restore(self._finished() if self._stored else [])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let another worker have this one's state."""
        if self._claim:
            self._claim.close()

    @property
    def done(self) -> int:
        """Finished trials of the study, of all workers."""
        if self._stored is None:
            return self._told
        return self._seen - len(self._repeat)

    def run(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Add trials until the study has as many as planned."""
        total = self._plan.n_trials
        if progress:
            progress(min(self.done, total), total)
        while self.done < total:
            told = self._told_batch(min(self._plan.batch_size, total - self.done))
            with finish_first():
                self._store(told)
                self._learn_from_others()
                self._save()
            if progress:
                progress(min(self.done, total), total)

    def trials(self) -> list[FrozenTrial]:
        """Return the study's finished trials, of all workers."""
        return self._finished()

    def _finished(self) -> list[FrozenTrial]:
        trials = (self._stored or self._study).get_trials(deepcopy=False)
        return [trial for trial in trials if trial.state.is_finished()]

    def _restore(self, trials: Sequence[FrozenTrial]) -> None:
        plan, state = self._plan, load_state(self._state_path) if self._stored else None
        mine = [trial for trial in trials if state and trial.user_attrs.get(WORKER) == state.worker]
        kept = state is not None and state.key == plan.key and len(mine) >= state.told
        if state is None or not kept:
            state = _first_state(plan, len(trials))
        self._worker, self._batch, self._told = state.worker, state.batch, state.told
        self._alone = not any(trial.user_attrs.get(WORKER) != state.worker for trial in trials)
        if self._alone:
            self._repeat = [trial for trial in mine if trial.user_attrs[BATCH] >= state.batch]
        self._study = _memory_study(state.sampler, plan.objectives)
        for trial in trials[: len(trials) - len(self._repeat)]:
            self._study.add_trial(trial)
        for trial in trials:
            self._remember(trial)
        self._seen = len(trials)
        if self._alone:
            _set_attributes(self._study, state)
        elif kept:
            self._study.sampler.reseed_rng()
        self._save()

    def _told_batch(self, size: int) -> list[FrozenTrial]:
        asked = [self._ask() for _ in range(size)]
        new = {candidate.id: candidate for _, candidate in asked if candidate.id not in self._memory}
        outcome = evaluate_batch(self._plan.evaluators, list(new.values()), self._plan.metrics)
        self._memory.update(outcome.rows)
        self._check_failures([outcome.failures.get(architecture.id, "") for _, architecture in asked])
        return [self._tell(trial, architecture, outcome.failures) for trial, architecture in asked]

    def _store(self, told: Sequence[FrozenTrial]) -> None:
        if self._stored:
            for trial in told[len(self._repeat) :]:
                self._stored.add_trial(trial)
            flush_storage(self._plan.storage)
        self._repeat = []
        self._batch += 1
        self._told += len(told)

    def _ask(self) -> tuple[optuna.Trial, Architecture]:
        trial = self._study.ask()
        return trial, self._plan.space.suggest(trial)

    def _tell(self, trial: optuna.Trial, architecture: Architecture, failures: Mapping[str, str]) -> FrozenTrial:
        row = self._memory.get(architecture.id)
        trial.set_user_attr(ARCHITECTURE_ID, architecture.id)
        trial.set_user_attr(ARCH, architecture.string)
        trial.set_user_attr(BATCH, self._batch)
        trial.set_user_attr(WORKER, self._worker)
        for name, value in (row or {}).items():
            trial.set_user_attr(name, value)
        if row is None:
            trial.set_user_attr(FAILURE, failures[architecture.id])
            return self._study.tell(trial, state=TrialState.FAIL)
        for constraint in self._plan.constraints:
            for name, violation in constraint.violations(row[constraint.metric]).items():
                trial.set_constraint(name, violation)
        return self._study.tell(trial, [row[objective.metric] for objective in self._plan.objectives])

    def _check_failures(self, reasons: Sequence[str]) -> None:
        for reason in reasons:
            self._failures_in_a_row = self._failures_in_a_row + 1 if reason else 0
        whole_batch = len(reasons) > 1 and all(reasons)
        if whole_batch or self._failures_in_a_row >= max(_FAILED_IN_A_ROW, len(reasons)):
            raise RunError(
                f"every candidate of batch {self._batch} failed ({reasons[-1]}). "
                f"The {self.done} trials before it are kept; correct the evaluator and run the same again."
            )

    def _learn_from_others(self) -> None:
        """Take in what other workers have stored meanwhile."""
        if self._stored is None:
            return
        trials = self._finished()
        others = [trial for trial in trials[self._seen :] if trial.user_attrs.get(WORKER) != self._worker]
        for trial in others:
            self._remember(trial)
            self._study.add_trial(trial)
        if others and self._alone:
            # Workers that started together have the same seed; from here on they go different ways.
            self._study.sampler.reseed_rng()
            self._alone = False
        self._seen = len(trials)

    def _remember(self, trial: FrozenTrial) -> None:
        if trial.state == TrialState.COMPLETE and ARCHITECTURE_ID in trial.user_attrs:
            self._memory[trial.user_attrs[ARCHITECTURE_ID]] = metric_values(trial)

    def _save(self) -> None:
        if self._state_path is None or self._stored is None:
            return
        attributes = dict(self._study._storage.get_study_system_attrs(self._study._study_id))
        state = SamplerState(self._plan.key, self._worker, self._batch, self._told, self._study.sampler, attributes)
        if not save_state(self._state_path, state):
            self._state_path = None


def _first_state(plan: StudyPlan, n_stored: int) -> SamplerState:
    """Begin with the plan's seed; in a study that has trials with another, for the same would repeat them."""
    seed = int(np.random.SeedSequence([plan.seed, n_stored]).generate_state(1)[0]) if n_stored else plan.seed
    sampler = make_sampler(plan.sampler, plan.sampler_options, seed=seed)
    return SamplerState(plan.key, uuid.uuid4().hex[:12], batch=0, told=0, sampler=sampler)


@contextmanager
def finish_first() -> Iterator[None]:
    """Hold a Ctrl-C back until what is being written is whole."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna's notes about studies made and opened off standard error; its warnings stay."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _open_stored(plan: StudyPlan) -> optuna.Study | None:
    storage = open_storage(plan.storage)
    if storage is None:
        return None
    return open_study(storage, plan.study_name, plan.objectives, plan.settings, describe_storage(plan.storage))


def _memory_study(sampler: BaseSampler, objectives: Sequence[Objective]) -> optuna.Study:
    directions = [objective.direction for objective in objectives]
    study = optuna.create_study(storage=InMemoryStorage(), sampler=sampler, directions=directions, study_name="memory")
    set_metric_names(study, objectives)
    return study


def _set_attributes(study: optuna.Study, state: SamplerState) -> None:
    for key, value in state.attributes.items():
        study._storage.set_study_system_attr(study._study_id, key, value)

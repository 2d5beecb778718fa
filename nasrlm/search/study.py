"""One worker of a study: ask a batch of new candidates, evaluate, tell, store; and go on exactly where it was stopped.

Samplers of discrete spaces repeat themselves: a genetic algorithm proposes its best again and again. A proposal that
the study has had is dropped and the sampler asked for another, up to as many times a batch as the batch has trials (ten
where it has fewer).

The sampler works on a study in memory, which is fast. Each finished batch is added to the storage, then the
sampler's state is replaced. Whatever the moment a worker is killed at, the state on disk is that before some
batch: the batch is asked again, gives the same candidates, and the trials of it that had reached the storage
are not added twice.

Workers that share a study claim a batch before they evaluate it (:mod:`nasrlm.search.claims`): the study ends with
exactly as many trials as planned, no architecture is evaluated by two, and what a dead worker was at is run again.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from nasrlm.errors import RunError
from nasrlm.search.claims import Claim, Claims
from nasrlm.search.evaluate import Row, evaluate_batch
from nasrlm.search.interrupts import finish_first
from nasrlm.search.objective import Objective
from nasrlm.search.plan import StudyPlan
from nasrlm.search.result import ARCH, ARCHITECTURE_ID, BATCH, FAILURE, WORKER, metric_values
from nasrlm.search.samplers import make_sampler
from nasrlm.search.state import SamplerState, claim_state, load_state, save_state, state_path
from nasrlm.search.storage import (
    describe_storage,
    flush_storage,
    open_storage,
    open_study,
    set_metric_names,
    storage_errors,
)
from nasrlm.spaces import Architecture

_FAILED_IN_A_ROW = 10  # so many failed candidates one after another mean that the evaluator is broken
_ASKED_AGAIN = 10  # so often a sampler is asked for a candidate that no other worker has
_REPEATS = 10  # of a worker alone that become no trial, at least, a batch; up to the batch size where that is more
_WAIT_S = (0.05, 1.0)  # how long to wait, first and at most, for what other workers are at


class Worker:
    """Runs a study to its number of trials; made anew for each call of :func:`nasrlm.search.search`."""

    def __init__(self, plan: StudyPlan) -> None:
        self._plan = plan
        self._stored = _open_stored(plan)
        self._state_path, self._claim = claim_state(state_path(plan.storage, plan.folder))
        self._claims: Claims | None = None
        self._memory: dict[str, Row] = {}  # architecture id -> values of every candidate evaluated so far
        self._had: set[str] = set()  # ids of the candidates that are a trial
        self._repeat: list[FrozenTrial] = []  # own trials of a half-stored batch, which is asked again
        self._again: list[str] = []  # candidates that a dead worker left
        self._dropped: list[int] = []  # numbers of the proposals that became no trial
        self._seen = 0  # trials of the storage that are known here
        self._stored_of: Counter[tuple[str, int]] = Counter()  # and how many of them a worker's batch has
        self._alone = True  # no other worker has been seen
        self._failures_in_a_row = 0
        try:
            with storage_errors(plan.storage):
                self._restore(self._finished() if self._stored else [])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let other workers have this one's claim and state."""
        if self._claims:
            self._claims.close()
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
        total, wait = self._plan.n_trials, _WAIT_S[0]
        if progress:
            progress(min(self.done, total), total)
        while self.done < total:
            with storage_errors(self._plan.storage):
                if self._next_batch():
                    wait = _WAIT_S[0]
                else:  # all that is left is with other workers
                    time.sleep(wait)
                    wait = min(2 * wait, _WAIT_S[1])
            if progress:
                progress(min(self.done, total), total)

    def _next_batch(self) -> bool:
        """Ask, claim, evaluate and store a batch. False: nothing was left to do."""
        others = self._others()
        size = min(self._plan.batch_size, self._room(others))
        told = self._told_batch(size, {arch for claim in others for arch in claim.archs}) if size > 0 else []
        if told:
            with finish_first():
                self._store(told)
                self._learn_from_others()
                self._save()
        return bool(told)

    def trials(self) -> list[FrozenTrial]:
        """Return the study's finished trials, of all workers, numbered one after another."""
        if self._stored:
            return self._finished()
        dropped = set(self._dropped)
        return [_numbered(i, t) for i, t in enumerate(t for t in self._finished() if t.number not in dropped)]

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
        left = self._open_claims()
        self._alone &= state.alone and not any(trial.user_attrs.get(WORKER) != state.worker for trial in trials)
        if self._alone:
            self._repeat = [trial for trial in mine if trial.user_attrs[BATCH] >= state.batch]
        else:
            self._batch = max([self._batch, *(trial.user_attrs[BATCH] + 1 for trial in mine)])
        self._study = _memory_study(state.sampler, plan.objectives)
        self._dropped = list(state.dropped) if self._alone else []
        whole = trials[: len(trials) - len(self._repeat)]
        for trial in _with_dropped(whole, self._dropped):
            self._study.add_trial(trial)
        self._had.update(trial.user_attrs.get(ARCHITECTURE_ID, "") for trial in whole)
        for trial in trials:
            self._remember(trial)
        self._count(trials)
        if self._alone:
            _set_attributes(self._study, state)
        else:
            self._run_again(left)
            if kept:
                self._study.sampler.reseed_rng()
        self._save()

    def _open_claims(self) -> list[Claim]:
        """Returns the claims that this worker left when it was killed."""
        if self._stored is None:
            return []
        self._claims = Claims(self._stored, self._worker)
        left = self._claims.take_over()
        self._alone = not self._claims.others()
        return left

    def _others(self) -> list[Claim]:
        """What other workers are at; what a dead one left is taken over."""
        if self._claims is None or self._alone:
            return []  # the next claim will show whether others have come
        others = self._claims.others()
        self._run_again(self._claims.orphans())
        self._learn_from_others()
        return others

    def _run_again(self, claims: Sequence[Claim]) -> None:
        self._again += [arch for claim in claims for arch in claim.archs]

    def _room(self, claims: Sequence[Claim]) -> int:
        """Trials that the study still needs, beside those that are claimed. Who wants fewer leaves the others theirs,
        and does not wait for those who go on anyway."""
        total = self._plan.n_trials
        most = max([total, *(claim.total for claim in claims)])
        all_left = sum(map(self._left, claims))
        mine_left = sum(self._left(claim) for claim in claims if claim.total <= total)
        return min(total - mine_left, most - all_left) - self.done

    def _left(self, claim: Claim) -> int:
        """Trials of a claim that are not stored yet."""
        return max(0, len(claim.archs) - self._stored_of[claim.worker, claim.batch])

    def _told_batch(self, size: int, busy: set[str]) -> list[FrozenTrial]:
        asked = self._asked_batch(size, busy)
        kept = self._claimed([(architecture.id, architecture.string) for _, architecture in asked])
        for i in set(range(len(asked))) - set(kept):
            self._drop(asked[i][0])
        asked = [asked[i] for i in kept]
        new = {candidate.id: candidate for _, candidate in asked if candidate.id not in self._memory}
        outcome = evaluate_batch(self._plan.evaluators, list(new.values()), self._plan.metrics)
        self._memory.update(outcome.rows)
        self._had.update(candidate.id for _, candidate in asked)
        self._check_failures([outcome.failures.get(architecture.id, "") for _, architecture in asked])
        return [self._tell(trial, architecture, outcome.failures) for trial, architecture in asked]

    def _claimed(self, candidates: Sequence[tuple[str, str]]) -> list[int]:
        """Claim candidates (id, string); returns which of them this worker has."""
        if self._claims is None or not candidates:
            return list(range(len(candidates)))
        strings = [string for _, string in candidates]
        before = self._claims.take(self._batch, self._plan.n_trials, strings)
        # Claims are read before trials: a batch that ends in between is seen twice, never not at all.
        done = {trial.user_attrs.get(ARCHITECTURE_ID) for trial in self._learn_from_others()}
        taken = {arch for claim in before for arch in claim.archs}
        if before:
            self._not_alone()
        kept = [i for i, (identity, string) in enumerate(candidates) if string not in taken and identity not in done]
        kept = kept[: max(0, self._room(before))]
        if not kept:
            self._claims.release()
        elif len(kept) < len(candidates):
            self._claims.keep([strings[i] for i in kept])
        return kept

    def _store(self, told: Sequence[FrozenTrial]) -> None:
        if self._stored and self._claims:
            if not self._claims.held():
                # This process slept so long that others held it for dead: only what none of them has is stored.
                ids = [(trial.user_attrs[ARCHITECTURE_ID], trial.user_attrs[ARCH]) for trial in told]
                told = [told[i] for i in self._claimed(ids)]
            there = Counter(trial.user_attrs[ARCHITECTURE_ID] for trial in self._repeat)
            for trial in told:
                if there[trial.user_attrs[ARCHITECTURE_ID]] > 0:
                    there[trial.user_attrs[ARCHITECTURE_ID]] -= 1
                else:
                    self._stored.add_trial(trial)
            flush_storage(self._plan.storage)
            self._claims.finish(len(told))
        self._repeat = []
        self._batch += 1
        self._told += len(told)

    def _asked_batch(self, size: int, busy: set[str]) -> list[tuple[optuna.Trial, Architecture]]:
        """Ask the sampler for candidates that no worker has had or is at; for known ones if it finds no other."""
        new: list[tuple[optuna.Trial, Architecture]] = []
        known: list[tuple[optuna.Trial, Architecture]] = []
        again: list[tuple[optuna.Trial, Architecture]] = []
        seen = set(busy)
        # Asking costs some samplers seconds. Alone, a batch is filled with repeats, which cost no evaluation.
        for _ in range(size + max(_REPEATS, size) if self._alone else _ASKED_AGAIN * size):
            trial, architecture = self._ask()
            kind = again if architecture.string in seen else known if architecture.id in self._had else new
            kind.append((trial, architecture))
            seen.add(architecture.string)
            if len(new) == size:
                break
        repeats = [*known, *again] if self._alone else [] if new else known
        asked = [*new, *repeats[: size - len(new)]]
        kept = {trial.number for trial, _ in asked}
        for trial, _ in (*known, *again):
            if trial.number not in kept:
                self._drop(trial)
        return sorted(asked, key=lambda one: one[0].number)

    def _ask(self) -> tuple[optuna.Trial, Architecture]:
        if self._again:
            self._study.enqueue_trial(dict(self._plan.space.architecture(self._again.pop(0)).params))
        trial = self._study.ask()
        return trial, self._plan.space.suggest(trial)

    def _drop(self, trial: optuna.Trial) -> None:
        self._dropped.append(trial.number)
        self._study.tell(trial, state=TrialState.FAIL)

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

    def _learn_from_others(self) -> list[FrozenTrial]:
        """Take in what other workers have stored meanwhile, and return it."""
        if self._stored is None:
            return []
        trials = self._finished()
        others = [trial for trial in trials[self._seen :] if trial.user_attrs.get(WORKER) != self._worker]
        for trial in others:
            self._remember(trial)
            self._had.add(trial.user_attrs.get(ARCHITECTURE_ID, ""))
            self._study.add_trial(trial)
        if others:
            self._not_alone()
        self._count(trials)
        return others

    def _not_alone(self) -> None:
        """Workers that started together have the same seed; from here on they go different ways."""
        if self._alone:
            self._study.sampler.reseed_rng()
            self._alone = False

    def _count(self, trials: Sequence[FrozenTrial]) -> None:
        for trial in trials[self._seen :]:
            self._stored_of[trial.user_attrs.get(WORKER, ""), trial.user_attrs.get(BATCH, 0)] += 1
        self._seen = len(trials)

    def _remember(self, trial: FrozenTrial) -> None:
        if trial.state == TrialState.COMPLETE and ARCHITECTURE_ID in trial.user_attrs:
            self._memory[trial.user_attrs[ARCHITECTURE_ID]] = metric_values(trial)

    def _save(self) -> None:
        if self._state_path is None or self._stored is None:
            return
        attributes = dict(self._study._storage.get_study_system_attrs(self._study._study_id))
        state = SamplerState(
            self._plan.key,
            self._worker,
            self._batch,
            self._told,
            self._study.sampler,
            attributes,
            self._alone,
            tuple(sorted(self._dropped)),
        )
        if not save_state(self._state_path, state):
            self._state_path = None


def _first_state(plan: StudyPlan, n_stored: int) -> SamplerState:
    """Begin with the plan's seed; in a study that has trials with another, for the same would repeat them."""
    seed = int(np.random.SeedSequence([plan.seed, n_stored]).generate_state(1)[0]) if n_stored else plan.seed
    sampler = make_sampler(plan.sampler, plan.sampler_options, seed=seed, context=plan.sampler_context)
    return SamplerState(plan.key, uuid.uuid4().hex[:12], batch=0, told=0, sampler=sampler)


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


def _numbered(number: int, trial: FrozenTrial) -> FrozenTrial:
    trial = copy(trial)
    trial.number = number
    return trial


def _with_dropped(trials: Sequence[FrozenTrial], dropped: Sequence[int]) -> Iterator[FrozenTrial]:
    """Trials under the numbers that they had in memory: dropped proposals come between them."""
    left, rest = set(dropped), iter(trials)
    for number in range(len(trials) + len(left)):
        yield optuna.trial.create_trial(state=TrialState.FAIL) if number in left else next(rest)


def _set_attributes(study: optuna.Study, state: SamplerState) -> None:
    for key, value in state.attributes.items():
        study._storage.set_study_system_attr(study._study_id, key, value)

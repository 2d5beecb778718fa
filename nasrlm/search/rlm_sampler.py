"""RLMSampler: an Optuna sampler that learns from finished trials and proposes what should enlarge the front most."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from scipy.stats import norm

from nasrlm.errors import SpaceError, UsageError
from nasrlm.graph import to_text
from nasrlm.search.acquisition import Array, Belief, choose, hopeful, nondominated
from nasrlm.search.knowledge import Knowledge, is_constant, pretrained_reader
from nasrlm.search.objective import Direction, Objective, to_minimize
from nasrlm.search.surrogate import Exact, Surrogate
from nasrlm.spaces import Architecture, SearchSpace, get_space

PROPOSED_BY = "proposed_by"
"""System attribute of a trial: "rlm", or "random" and why."""
_GENERATIONS = 2
_RANDOM_SHARE = 0.3
_BATCHES = 40
"""A space with no more architectures than so many batches would look at is looked at as a whole."""
_log = logging.getLogger("nasrlm.search")


@dataclass(frozen=True)
class _Seen:
    """Finished trials: architectures, costs (trials, objectives), violations, which are feasible; and what runs."""

    architectures: Sequence[Architecture]
    costs: Array
    violations: Array
    feasible: NDArray[np.bool_]
    running: Sequence[Architecture]


class RLMSampler(BaseSampler):
    """Proposes architectures by what an RLM reads in them and what the finished trials have shown.

    An RLM - a checkpoint, or one that is pretrained on free labels when the study starts - reads each candidate; its
    reading and exact counts are the features of Gaussian processes, one an objective and constraint, which take a
    fraction of a second to fit and know what they do not know. Candidates are bred from the front, known and predicted
    (mutation, crossover) and drawn at random; they stay in a pool, so that thousands are compared after a few batches.
    Of a small space (at most 40 times `candidates`, and `pool`) every architecture is a candidate from the start.
    Networks whose output does not depend on their input, which some spaces hold, are never proposed.
    The batch with the largest expected gain of hypervolume is proposed (`nasrlm.search.acquisition`). Trials that run
    elsewhere count as finished with their predicted values.

    Until `startup_trials` different architectures are finished, and whenever there is nothing to learn from, proposals
    are random; the system attribute "proposed_by" of each trial says so.

    Args:
        space: the space whose `suggest(trial)` the objective calls, or its name.
        checkpoint: an RLM that reads; None = pretrain one on `pretrain_networks` random networks;
            "none" = counts alone.
        reference_point: one value an objective in its own unit, which bounds the hypervolume; by default a tenth of
            the front's range beyond its worst values.
        batch_size: proposals made at once, from one fit.
        startup_trials: random trials before the first fit.
        candidates: new candidates looked at for each batch; four times as many for the first.
        pool: candidates that are remembered at most.
        pretrain_networks, pretrain_epochs: what the reader learns from when there is no checkpoint.
        folder: where that reader is kept for other workers and the next time.
        seed: of all draws.

    Raises:
        UsageError: a number out of its range.
        CheckpointError: a checkpoint that cannot be used (when the first batch is proposed).

    Example:
        >>> import optuna
        >>> from nasrlm import costs
        >>> space = get_space("tiny")
        >>> sampler = RLMSampler(space, checkpoint="none", startup_trials=4, seed=0)
        >>> study = optuna.create_study(sampler=sampler)
        >>> study.optimize(lambda trial: costs(space.suggest(trial)).macs, n_trials=8)
        >>> study.trials[7].system_attrs["proposed_by"]
        'rlm'
    """

    def __init__(
        self,
        space: SearchSpace | str,
        *,
        checkpoint: str | None = None,
        reference_point: Sequence[float] | None = None,
        batch_size: int = 5,
        startup_trials: int = 10,
        candidates: int = 500,
        pool: int = 20_000,
        pretrain_networks: int = 2000,
        pretrain_epochs: int = 10,
        folder: str | Path | None = None,
        seed: int | None = None,
    ) -> None:
        numbers = {"batch_size": batch_size, "startup_trials": startup_trials, "candidates": candidates, "pool": pool}
        numbers |= {"pretrain_networks": pretrain_networks, "pretrain_epochs": pretrain_epochs}
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"RLMSampler: {name} is {value!r}. It must be a whole number of at least 1.")
        self.space = get_space(space) if isinstance(space, str) else space
        self.checkpoint, self.folder = checkpoint, None if folder is None else Path(folder)
        self.reference_point = None if reference_point is None else tuple(float(x) for x in reference_point)
        self.batch_size, self.startup_trials, self.candidates, self.pool = batch_size, startup_trials, candidates, pool
        self.pretrain_networks, self.pretrain_epochs = pretrain_networks, pretrain_epochs
        self._rng = np.random.default_rng(seed)
        self._independent = RandomSampler(seed=int(self._rng.integers(2**31)))
        self._queue: list[Architecture] = []
        self._why = ""
        self._pool: dict[str, Architecture] = {}
        self._bred_from: list[Architecture] = []
        self._knowledge: Knowledge | None = None
        self._architectures: dict[int, Architecture | None] = {}

    # -- Optuna's interface ----------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All parameters of the space; an architecture takes those that are active in it."""
        return {parameter.name: _distribution(parameter.options) for parameter in self.space.parameters}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of the next architecture in the queue, which is filled when it is empty."""
        trials = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number]
        if self._queue and self._taken(trials, self._queue[0]):
            self._drop_queue()  # another worker was faster; what it found is worth a look
        if not self._queue:
            self._queue, self._why = self._propose(trials, study)
        study._storage.set_trial_system_attr(trial._trial_id, PROPOSED_BY, self._why)
        return self._queue.pop(0).params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Parameters that are not the space's are drawn at random."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Other draws from here on, as a second worker needs them."""
        self._rng = np.random.default_rng()
        self._independent.reseed_rng()
        self._drop_queue()

    def __getstate__(self) -> dict[str, Any]:
        """What is computed again is not saved."""
        return {**self.__dict__, "_knowledge": None, "_architectures": {}}

    def _drop_queue(self) -> None:
        """What is not proposed after all stays a candidate."""
        self._pool.update({a.id: a for a in self._queue})
        self._queue = []

    # -- proposals ---------------------------------------------------------------------------------------------------

    def _propose(self, trials: Sequence[FrozenTrial], study: Study) -> tuple[list[Architecture], str]:
        directions = study.directions
        known = {t.number: a for t in trials if (a := self._architecture(t)) is not None}
        done = [t for t in trials if t.number in known and t.state == TrialState.COMPLETE and _finite(t)]
        taken = {a.id for a in known.values()}
        different = len({known[t.number].id for t in done})
        if different < self.startup_trials:
            return self._random(taken), f"random: {different} of {self.startup_trials} trials to learn from"
        costs = to_minimize([t.values for t in done], _objectives(directions))
        if not np.ptp(costs, axis=0).any():
            return self._random(taken), f"random: all {len(done)} trials have the same values"
        running = [known[t.number] for t in trials if t.number in known and not t.state.is_finished()]
        violations = _violations(done)
        feasible: NDArray[np.bool_] = np.all(violations <= 0, axis=1)
        reference = self._reference(costs[feasible] if feasible.sum() > 1 else costs, directions)
        seen = [known[t.number] for t in done]
        if self._knowledge is None:
            self._knowledge = Knowledge(self.space, self._reader(), study.metric_names or ())
        return self._best(self._knowledge, _Seen(seen, costs, violations, feasible, running), taken, reference)

    def _best(
        self, knowledge: Knowledge, seen: _Seen, taken: set[str], reference: Array
    ) -> tuple[list[Architecture], str]:
        knowledge.learn([*seen.architectures, *seen.running])
        ids = [a.id for a in seen.architectures]
        varied = seen.violations[:, np.ptp(seen.violations, axis=0) > 0]
        learnt = _models(knowledge, ids, np.hstack([seen.costs, varied]))
        models, limits = learnt[: seen.costs.shape[1]], learnt[seen.costs.shape[1] :]
        front = np.vstack([seen.costs[seen.feasible], _believed(knowledge, models, seen.running)])
        best = nondominated(seen.costs[seen.feasible], reference)
        parents = [a for a, cost in zip(seen.architectures, seen.costs, strict=True) if (best == cost).all(1).any()]
        candidates: list[Architecture] = []
        belief = None
        count = self.candidates if self._pool else 4 * self.candidates
        small = self.space.size() <= min(self.pool, _BATCHES * self.candidates)
        if small and not self._pool:
            self._pool = {a.id: a for a in self.space.enumerate()}
        self._pool = {identity: a for identity, a in self._pool.items() if identity not in taken}
        for _ in range(1 if small else _GENERATIONS):
            if not small:
                self._breed([*parents, *self._bred_from], taken, max(1, count // _GENERATIONS))
            candidates = knowledge.useful(self._pool.values())
            if not candidates:
                return self._random(taken), "random: every architecture has been tried"
            belief = _belief(models, limits, knowledge, [a.id for a in candidates])
            order = np.argsort(-hopeful(belief, nondominated(front, reference), reference), kind="stable")
            self._bred_from = [candidates[i] for i in order[: 2 * self.batch_size + 10]]
            self._pool = {candidates[i].id: candidates[i] for i in sorted(order[: self.pool].tolist())}
        rows = choose(belief, front, reference, self.batch_size, self._rng) if belief is not None else []
        chosen = [candidates[i] for i in rows]
        for architecture in chosen:
            self._pool.pop(architecture.id, None)
        return chosen, "rlm"

    def _breed(self, parents: Sequence[Architecture], taken: set[str], count: int) -> None:
        """Adds new candidates to the pool: children of the parents, and random ones."""
        space, rng = self.space, self._rng
        added = 0
        for _ in range(4 * count):
            if added == count:
                return
            if not parents or rng.random() < _RANDOM_SHARE:
                child = space.sample(1, rng)[0]
            else:
                child = parents[int(rng.integers(len(parents)))]
                if rng.random() < 0.5:
                    child = space.crossover(child, parents[int(rng.integers(len(parents)))], rng)
                child = space.mutate(child, rng)
            if child.id not in taken and child.id not in self._pool:
                self._pool[child.id] = child
                added += 1

    def _random(self, taken: set[str]) -> list[Architecture]:
        """One architecture that is new and no constant, if a few draws find one."""
        for _ in range(100):
            found = self.space.sample(1, self._rng)[0]
            if found.id not in taken and not _constant(found):
                break
        return [found]

    def _reader(self) -> Any:
        if self.checkpoint == "none":
            return None
        if self.checkpoint is not None:
            from nasrlm.rlm import RegressionLM

            return RegressionLM.from_pretrained(self.checkpoint)
        _log.info("pretraining an RLM on the free labels of %d networks", self.pretrain_networks)
        return pretrained_reader(self.space, self.pretrain_networks, self.pretrain_epochs, folder=self.folder)

    def _reference(self, costs: Array, directions: Sequence[StudyDirection]) -> Array:
        if self.reference_point is not None:
            if len(self.reference_point) != len(directions):
                raise UsageError(
                    f"RLMSampler: reference_point has {len(self.reference_point)} values, the study {len(directions)} "
                    "objectives. Give one value an objective."
                )
            return to_minimize(self.reference_point, _objectives(directions))
        front = nondominated(costs, np.full(costs.shape[1], np.inf))
        spread = np.ptp(front, axis=0) if len(front) > 1 else np.ptp(costs, axis=0)
        spread = np.where(spread > 0, spread, np.ptp(costs, axis=0))
        worst: Array = front.max(axis=0) + 0.1 * np.where(spread > 0, spread, 1.0)
        return worst

    def _architecture(self, trial: FrozenTrial) -> Architecture | None:
        """None for a trial without all parameters of an architecture, such as one that was added by hand."""
        if trial.number not in self._architectures or not trial.state.is_finished():
            names = {parameter.name for parameter in self.space.parameters}
            try:
                found = self.space.repaired({k: v for k, v in trial.params.items() if k in names})
            except SpaceError:
                found = None
            self._architectures[trial.number] = found
        return self._architectures[trial.number]

    def _taken(self, trials: Sequence[FrozenTrial], architecture: Architecture) -> bool:
        return any((a := self._architecture(t)) is not None and a.id == architecture.id for t in trials)


def _constant(architecture: Architecture) -> bool:
    try:
        return is_constant(to_text(architecture))
    except Exception:  # it cannot be built: the evaluator will say why
        return False


def _distribution(options: Any) -> BaseDistribution:
    if isinstance(options, range):
        return IntDistribution(options[0], options[-1], step=options.step)
    return CategoricalDistribution(list(options))


def _objectives(directions: Sequence[StudyDirection]) -> list[Objective]:
    words: list[Direction] = ["maximize" if d == StudyDirection.MAXIMIZE else "minimize" for d in directions]
    return [Objective(f"objective {i}", word) for i, word in enumerate(words)]


def _finite(trial: FrozenTrial) -> bool:
    return bool(trial.values) and all(np.isfinite(v) for v in trial.values)


def _violations(trials: Sequence[FrozenTrial]) -> Array:
    """(trials, constraints), feasible at most 0; a constraint that a trial does not state holds."""
    names = sorted({name for trial in trials for name in trial.constraints})
    found = [[trial.constraints.get(name, 0.0) for name in names] for trial in trials]
    return np.array(found, dtype=float).reshape(len(trials), len(names))


def _models(knowledge: Knowledge, ids: Sequence[str], columns: Array) -> list[Surrogate | Exact]:
    """A model for each column of values: what is a cost is computed, the rest is learnt."""
    costs, features = knowledge.costs(ids), knowledge.features(ids)
    return [Exact.found(costs, column) or Surrogate(features, column) for column in columns.T]


def _belief(
    models: Sequence[Surrogate | Exact], limits: Sequence[Surrogate | Exact], knowledge: Knowledge, ids: Sequence[str]
) -> Belief:
    costs, features = knowledge.costs(ids), knowledge.features(ids)
    means, deviations = np.zeros((2, len(ids), len(models)))
    for j, model in enumerate(models):
        if isinstance(model, Exact):
            means[:, j] = model(costs)
        else:
            means[:, j], deviations[:, j] = model.predict(features)
    feasible = np.ones(len(ids))
    for limit in limits:
        if isinstance(limit, Exact):
            feasible *= limit(costs) <= 0
        else:
            mean, deviation = limit.predict(features)
            feasible *= norm.cdf((limit.warp(np.zeros(1)) - mean) / deviation)
    back = [_as_it_is if isinstance(model, Exact) else model.warp.back for model in models]
    return Belief(means, deviations, back, feasible)


def _as_it_is(values: Array) -> Array:
    return values


def _believed(knowledge: Knowledge, models: Sequence[Surrogate | Exact], running: Sequence[Architecture]) -> Array:
    """Costs that running trials will probably have."""
    if not running:
        return np.empty((0, len(models)))
    belief = _belief(models, [], knowledge, [a.id for a in running])
    return belief.costs(np.arange(len(running)), np.zeros((1, 1)))

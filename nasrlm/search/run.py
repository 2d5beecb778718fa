"""`search`: the whole way from a search space and evaluators to a front."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

from nasrlm.errors import UsageError
from nasrlm.evaluators import Evaluator, assign_metrics
from nasrlm.search.confirmation import check_top
from nasrlm.search.confirmation import confirm as confirm_front
from nasrlm.search.evaluate import as_evaluators
from nasrlm.search.interrupts import quiet_optuna
from nasrlm.search.objective import Constraint, Objective, parse_constraints, parse_objectives
from nasrlm.search.plan import StudyPlan
from nasrlm.search.result import SearchResult, fill_reference, make_result, trials_frame
from nasrlm.search.samplers import make_sampler
from nasrlm.search.storage import describe_storage
from nasrlm.search.study import Worker
from nasrlm.spaces import SearchSpace, get_space


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search: everything finished is stored; the message says how to resume.

    Attributes:
        done: Finished trials in the storage.
    """

    def __init__(self, message: str, done: int) -> None:
        super().__init__(message)
        self.done = done


def search(
    space: SearchSpace | str,
    evaluators: Evaluator | Iterable[Evaluator],
    objectives: Iterable[Objective | Mapping[str, Any] | str],
    constraints: Iterable[Constraint | Mapping[str, Any] | str] = (),
    *,
    sampler: str | BaseSampler = "nsga2",
    sampler_options: Mapping[str, Any] | None = None,
    n_trials: int = 1000,
    batch_size: int = 50,
    seed: int = 0,
    storage: str | BaseStorage | None = None,
    study_name: str = "nasrlm",
    folder: str | Path | None = None,
    reference_point: Mapping[str, float] | Sequence[float] | None = None,
    confirm: Evaluator | Iterable[Evaluator] = (),
    confirm_top: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    """Search a space for the front of the objectives, in batches that an Optuna sampler proposes.

    Every evaluator is asked once a batch, for candidates the study has not seen: a sampler that repeats itself is asked
    again, and where it goes on to repeat itself, a known one is a trial again. With a storage the same call goes on
    where it was stopped, as if it had not been; on several machines at once it works on one study together.

    Args:
        space: A search space or the name of one.
        evaluators: Each metric comes from the first that computes or measures it, else from the first that predicts it.
        objectives: Such as ``Objective("accuracy/cifar10", "maximize")`` or ``"latency_ms/pixel3:min"``.
        constraints: Such as ``Constraint("params", at_most=1.2e6)`` or ``"params<=1.2e6"``.
        sampler, sampler_options: random, tpe, nsga2, nsga3, gp, qmc, rlm or a dotted path, and arguments for its class;
            or an Optuna sampler.
        n_trials: In total, over all resumptions and workers.
        batch_size, seed: Candidates evaluated together; seed of the sampler.
        storage, study_name: None for memory, ``"journal:FILE"``, ``"sqlite:///FILE"``, ``"postgresql+psycopg://..."``
            or ``"grpc://HOST:PORT"``.
        folder: Where the sampler's state is kept; by default beside the storage's file.
        reference_point: Bounds the hypervolume, by metric; by default the worst feasible value and 10 % of the range.
        confirm, confirm_top: Evaluators that measure the best candidates afterwards, and how many.
        progress: Called with (trials done, trials in total), first before any work.

    Raises:
        UsageError: Something given is wrong (MetricError: a metric that no evaluator gives; RunFolderError: a storage
            of another experiment, or one that cannot be written); nothing has been evaluated.
        RunError, SearchInterrupted: An evaluator failed, or Ctrl-C; finished batches are kept.

    >>> from nasrlm.evaluators import get_evaluator
    >>> from nasrlm.spaces import get_space
    >>> tiny = get_space("tiny")
    >>> len(search(tiny, get_evaluator("cost", tiny), ["params:min", "depth:max"], n_trials=20).trials)
    20
    """
    goals, limits = parse_objectives(objectives), parse_constraints(constraints)
    place = storage, study_name, folder
    after = _After(reference_point, as_evaluators(confirm), confirm_top).checked(goals)
    plan = _plan(space, evaluators, goals, limits, sampler, sampler_options, n_trials, batch_size, seed, place)
    plan = replace(plan, reference_point=_whole_point(reference_point, goals))
    return after.result(plan, _run(plan, progress))


def _plan(
    space: SearchSpace | str,
    evaluators: Evaluator | Iterable[Evaluator],
    objectives: tuple[Objective, ...],
    constraints: tuple[Constraint, ...],
    sampler: str | BaseSampler,
    sampler_options: Mapping[str, Any] | None,
    n_trials: int,
    batch_size: int,
    seed: int,
    place: tuple[str | BaseStorage | None, str, str | Path | None],
) -> StudyPlan:
    """Refuse at the door what would fail later, before anything is written."""
    for name, value, least in (("n_trials", n_trials, 1), ("batch_size", batch_size, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} is {value!r}. It must be a whole number of at least {least}.")
    storage, study_name, folder = place
    plan = StudyPlan(
        space=get_space(space) if isinstance(space, str) else space,
        evaluators=as_evaluators(evaluators),
        objectives=objectives,
        constraints=constraints,
        sampler=sampler,
        sampler_options=dict(sampler_options or {}),
        n_trials=n_trials,
        batch_size=batch_size,
        seed=seed,
        storage=storage,
        study_name=study_name,
        folder=None if folder is None else Path(folder),
    )
    assign_metrics(plan.evaluators, plan.metrics)
    make_sampler(sampler, sampler_options, seed=seed, context=plan.sampler_context)
    return plan


def _whole_point(
    point: Mapping[str, float] | Sequence[float] | None, goals: Sequence[Objective]
) -> tuple[float, ...] | None:
    """The reference point in the order of the objectives, if it was given in full."""
    if point is None or len(point) < len(goals):
        return None
    return tuple(float(x) for x in ([point[g.metric] for g in goals] if isinstance(point, Mapping) else point))


@dataclass(frozen=True)
class _After:
    """What is to be done once the trials are there."""

    reference_point: Mapping[str, float] | Sequence[float] | None
    confirmers: tuple[Evaluator, ...]
    top: int

    def checked(self, goals: Sequence[Objective]) -> _After:
        fill_reference(self.reference_point, goals, (0.0,) * len(goals))
        check_top(self.top)
        return self

    def result(self, plan: StudyPlan, trials: Sequence[FrozenTrial]) -> SearchResult:
        table = trials_frame(trials, plan.metrics)
        result = make_result(table, plan.objectives, plan.constraints, reference_point=self.reference_point)
        if not self.confirmers:
            return result
        return replace(result, confirmed=confirm_front(result, self.confirmers, plan.space, top=self.top))


def _run(plan: StudyPlan, progress: Callable[[int, int], None] | None) -> list[FrozenTrial]:
    with quiet_optuna():
        worker = Worker(plan)
        try:
            worker.run(progress)
        except KeyboardInterrupt as error:
            raise SearchInterrupted(_how_to_resume(plan, worker.done), worker.done) from error
        finally:
            worker.close()
        return worker.trials()


def _how_to_resume(plan: StudyPlan, done: int) -> str:
    start = f"interrupted after {done:,} of {plan.n_trials:,} trials."
    if plan.storage in (None, "", "memory", "none"):
        return f"{start} The study was in memory and is gone; with a storage (journal:study.log) it resumes."
    return f"{start} They are stored in {describe_storage(plan.storage)}; run the same again to go on."

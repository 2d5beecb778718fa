"""From a checked form to the real things: space, evaluators, sampler. Mistakes are collected, then raised as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nasrlm.datasets.read import shipped_tables
from nasrlm.errors import CheckpointError, ConfigError, NasrlmError, UnknownNameError, UsageError, nearest, unknown_name
from nasrlm.evaluators import Evaluator, get_evaluator
from nasrlm.experiment.document import Document, KeyPath, Problem
from nasrlm.experiment.schema import (
    VERBS,
    BenchmarkExperiment,
    CompareExperiment,
    EvaluateExperiment,
    EvaluatorSpec,
    Experiment,
    FewLabelsExperiment,
    LabelExperiment,
    SamplerSpec,
    SearchExperiment,
    SpaceSpec,
    TableSpec,
    TrainExperiment,
)
from nasrlm.spaces import SearchSpace, get_space

_T = TypeVar("_T")
_STORAGE = re.compile(r"memory$|journal:.+|sqlite:///.+|postgresql(\+psycopg)?://.+|grpc://.+:\d+$")


@dataclass
class Prepared:
    """What an experiment runs with.

    Attributes:
        space: the search space.
        command: what a user types to run it.
        evaluators: in the order of the file.
        confirm_evaluators: those of `confirm`.
        notes: what is not wrong but will be needed, such as a table that is not there yet.
    """

    space: SearchSpace
    command: str = ""
    evaluators: list[Evaluator] = field(default_factory=list)
    confirm_evaluators: list[Evaluator] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Findings:
    """Problems found so far; `attempt` turns an error into one of them."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def attempt(self, path: KeyPath, make: Callable[[], _T]) -> _T | None:
        """Return what `make` makes, or None after noting why it cannot."""
        try:
            return make()
        except UsageError as error:
            self.problems.append(located(path, error))
            return None

    def error(self) -> ConfigError:
        """All problems as one error."""
        return self.document.error(self.problems)


def located(path: KeyPath, error: NasrlmError) -> Problem:
    """The error as a problem at a key path; a ConfigError's own key is added to it."""
    message, key = str(error), getattr(error, "key", None)
    if isinstance(error, ConfigError) and key:
        message = message.removeprefix(f"{key}: ")
        path = (*path, *str(key).split("."))
    return Problem(path, message)


def prepare(experiment: Experiment, document: Document) -> Prepared:
    """Make everything the experiment names, before any work is done.

    Raises:
        ConfigError: Unknown names, wrong options, metrics that nothing gives; all of them, with their lines.
    """
    findings = Findings(document)
    space = _space(experiment.space, findings)
    if space is None:
        raise findings.error()
    prepared = Prepared(space, command=document.command(VERBS.get(experiment.kind, experiment.kind)))
    if isinstance(experiment, SearchExperiment):
        _prepare_search(experiment, prepared, findings)
    elif isinstance(experiment, TrainExperiment):
        _prepare_train(experiment, prepared, findings)
    elif isinstance(experiment, EvaluateExperiment):
        prepared.evaluators = _evaluators(experiment.evaluators, space, ("evaluators",), findings)
        _note_missing(experiment.table.path, "the table", prepared)
    elif isinstance(experiment, LabelExperiment):
        _prepare_label(experiment, prepared, findings)
    elif isinstance(experiment, CompareExperiment):
        _prepare_compare(experiment, prepared, findings)
    elif isinstance(experiment, FewLabelsExperiment):
        _prepare_few_labels(experiment, prepared, findings)
    else:
        _prepare_benchmark(experiment, findings)
    if findings.problems:
        raise findings.error()
    return prepared


def _space(spec: SpaceSpec, findings: Findings) -> SearchSpace | None:
    target = spec.name if spec.name is not None else Path(str(spec.path))
    key = "name" if spec.name is not None else "path"

    def make() -> SearchSpace:
        return get_space(target, **spec.options)

    return _named(("space",), key, make, findings)


def _evaluators(
    specs: Sequence[EvaluatorSpec], space: SearchSpace, path: KeyPath, findings: Findings
) -> list[Evaluator]:
    made = []
    for i, spec in enumerate(specs):

        def make(spec: EvaluatorSpec = spec) -> Evaluator:
            return get_evaluator(spec.target, space, **spec.options)

        made.append(_named((*path, i), "name" if spec.name is not None else "path", make, findings))
    return [evaluator for evaluator in made if evaluator is not None]


def _named(path: KeyPath, key: str, make: Callable[[], _T], findings: Findings) -> _T | None:
    """Make something given by name or path: its name's errors belong to that key, others to its options."""
    try:
        return make()
    except ConfigError as error:
        findings.problems.append(located((*path, "options"), error))
    except UnknownNameError as error:
        inside = ("options", "device") if error.kind == "device" else (key,)
        findings.problems.append(Problem((*path, *inside), str(error)))
    except CheckpointError as error:
        findings.problems.append(Problem((*path, "options", "checkpoint"), str(error)))
    except UsageError as error:
        findings.problems.append(Problem((*path, key if key == "path" else "options"), str(error)))
    return None


def _prepare_search(experiment: SearchExperiment, prepared: Prepared, findings: Findings) -> None:
    prepared.evaluators = _evaluators(experiment.evaluators, prepared.space, ("evaluators",), findings)
    if len(prepared.evaluators) == len(experiment.evaluators):
        wanted: list[tuple[KeyPath, str]] = [
            (("objectives", i, "metric"), spec.metric) for i, spec in enumerate(experiment.objectives)
        ]
        wanted += [(("constraints", i, "metric"), spec.metric) for i, spec in enumerate(experiment.constraints)]
        _check_metrics(wanted, prepared.evaluators, findings)
    if experiment.confirm is not None:
        path = ("confirm", "evaluators")
        prepared.confirm_evaluators = _evaluators(experiment.confirm.evaluators, prepared.space, path, findings)
    _check_sampler(experiment.study.sampler, experiment.seed, ("study", "sampler"), prepared, findings)
    _check_storage(experiment.study.storage, findings)


def _check_sampler(sampler: SamplerSpec, seed: int, path: KeyPath, prepared: Prepared, findings: Findings) -> None:
    from nasrlm.search import make_sampler

    try:
        make_sampler(sampler.name, sampler.options, seed=seed, context={"space": prepared.space})
    except UnknownNameError as error:
        key: KeyPath = ("options", error.value) if error.kind == "option" else ("name",)
        findings.problems.append(Problem((*path, *key), str(error)))
    except UsageError as error:
        findings.problems.append(Problem((*path, "options"), str(error)))


def _prepare_compare(experiment: CompareExperiment, prepared: Prepared, findings: Findings) -> None:
    prepared.evaluators = _evaluators(experiment.evaluators, prepared.space, ("evaluators",), findings)
    if len(prepared.evaluators) == len(experiment.evaluators):
        wanted: list[tuple[KeyPath, str]] = [
            (("objectives", i, "metric"), spec.metric) for i, spec in enumerate(experiment.objectives)
        ]
        _check_metrics(wanted, prepared.evaluators, findings)
    for i, sampler in enumerate(experiment.samplers):
        _check_sampler(sampler, experiment.seed, ("samplers", i), prepared, findings)


def _prepare_label(experiment: LabelExperiment, prepared: Prepared, findings: Findings) -> None:
    prepared.evaluators = _evaluators(experiment.evaluators, prepared.space, ("evaluators",), findings)
    if len(prepared.evaluators) == len(experiment.evaluators):
        wanted: list[tuple[KeyPath, str]] = [(("metrics", i), m) for i, m in enumerate(experiment.metrics or ())]
        _check_metrics(wanted, prepared.evaluators, findings)
    for i, evaluator in enumerate(prepared.evaluators):
        if getattr(evaluator, "predicts", False):
            message = f"evaluator {evaluator.name} predicts, and labels are measured. Leave it out."
            findings.problems.append(Problem(("evaluators", i), message))
    _check_storage(experiment.study.storage, findings)


def _check_storage(storage: str | None, findings: Findings) -> None:
    if storage is not None and not _STORAGE.match(storage):
        findings.problems.append(Problem(("study", "storage"), _wrong_storage(storage)))


def _wrong_storage(storage: str) -> str:
    kind = storage.partition(":")[0]
    close = nearest(kind, ("journal", "sqlite", "postgresql", "grpc", "memory"))
    near = f" Nearest: {', '.join(close)}." if close else ""
    return (
        f"unknown storage {storage!r}.{near} Allowed: journal:FILE, sqlite:///FILE, "
        "postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, grpc://HOST:PORT, or null for memory."
    )


def _check_metrics(wanted: Sequence[tuple[KeyPath, str]], evaluators: Sequence[Evaluator], findings: Findings) -> None:
    """Sees that some evaluator gives each metric; a metric comes with the key that names it."""
    given = list(dict.fromkeys(metric for evaluator in evaluators for metric in evaluator.metrics))
    names = ", ".join(evaluator.name for evaluator in evaluators)
    hint = "Correct it, or add an evaluator that gives it (`nasrlm list evaluators`)."
    for path, metric in wanted:
        if metric not in given:
            error = unknown_name("metric", metric, given, where=f"the evaluators ({names})", hint=hint)
            findings.problems.append(Problem(path, str(error)))


def _prepare_train(experiment: TrainExperiment, prepared: Prepared, findings: Findings) -> None:
    from nasrlm.rlm import RLMConfig, TrainConfig

    _check_columns(experiment.table, experiment.costs, findings)
    findings.attempt(("model",), lambda: RLMConfig.from_dict(experiment.model))
    findings.attempt(("train",), lambda: TrainConfig.from_dict(experiment.train))
    _check_decided({"model": experiment.model, "train": experiment.train}, findings)
    _note_missing(experiment.table.path, "the table", prepared)


def _check_columns(table: TableSpec, costs: Sequence[str], findings: Findings) -> None:
    names = [scaled.metric for scaled in table.metrics.values()]
    for column, scaled in table.metrics.items():
        if names.count(scaled.metric) > 1 or scaled.metric in costs:
            message = f"the metric {scaled.metric!r} is given twice (columns and costs). Keep one of them."
            findings.problems.append(Problem(("table", "metrics", column), message))


def _check_decided(options: Mapping[str, Mapping[str, Any]], findings: Findings) -> None:
    """Metrics and seeds are the experiment's to say."""
    for where, given in options.items():
        for key, instead in (("metrics", "table.metrics and costs"), ("seed", "the experiment's seed")):
            if key in given:
                findings.problems.append(Problem((*where.split("."), key), f"is not set here: {instead} decides."))


def _prepare_few_labels(experiment: FewLabelsExperiment, prepared: Prepared, findings: Findings) -> None:
    from nasrlm.rlm import RLMConfig, TrainConfig

    pretrain = experiment.pretrain
    _check_columns(experiment.table, () if pretrain is None else pretrain.costs, findings)
    trains = {"train": experiment.train, "head": experiment.head}
    if pretrain is not None:
        trains["pretrain.train"] = pretrain.train
    findings.attempt(("model",), lambda: RLMConfig.from_dict(experiment.model))
    for where, given in trains.items():
        findings.attempt(tuple(where.split(".")), lambda options=given: TrainConfig.from_dict(options))  # type: ignore[misc]
    _check_decided({"model": experiment.model, **trains}, findings)
    _note_missing(experiment.table.path, "the table", prepared)


def _prepare_benchmark(experiment: BenchmarkExperiment, findings: Findings) -> None:
    from nasrlm.rlm import RegressionLM

    model = findings.attempt(("checkpoint",), lambda: RegressionLM.from_pretrained(experiment.checkpoint))
    for i, metric in enumerate(experiment.metrics):
        if model is not None and metric not in model.metrics:
            error = unknown_name("metric", metric, model.metrics, where=f"the checkpoint {experiment.checkpoint}")
            findings.problems.append(Problem(("metrics", i), str(error)))
    module = experiment.torch_module
    if "export" in experiment.measures and module is None:
        message = "is missing: the measure export needs the same networks in torch. Give a .py file."
        findings.problems.append(Problem(("torch_module",), message))
    if module is not None and not Path(module).is_file():
        findings.problems.append(Problem(("torch_module",), f"there is no file {module}. Give a .py file."))


def _note_missing(path: str, what: str, prepared: Prepared) -> None:
    if not Path(path).exists() and Path(path).name not in shipped_tables():
        remedy = "Put it there, or give another with --set table.path=FILE."
        prepared.notes.append(f"{what} is not there yet: {path}. {remedy}")

"""What an experiment file may say: one pydantic model a kind, unknown keys forbidden.

The models hold plain values only. Names (of spaces, evaluators, metrics ...) are looked up in `prepare`, where the
real things are made; here the form is checked, so that `nasrlm check` can say everything about form at once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

SCHEMA = "nasrlm/experiment@1"
KINDS = ("search", "train", "evaluate", "label", "benchmark", "few_labels", "compare")
VERBS = {"few_labels": "benchmark", "compare": "benchmark"}  # kind -> the verb that runs it, where it has another name
METRIC_PATTERN = r"^[A-Za-z0-9_.\-]+(/[A-Za-z0-9_.\-]+)?$"

Scalar = str | int | float | bool
Metric = Annotated[str, Field(pattern=METRIC_PATTERN, description="the name of a metric, such as accuracy/cifar10")]
Options = dict[str, Any]
Cost = Literal["params", "macs", "activation_bytes", "depth"]
Baseline = Literal["macs", "forest", "head"]
PlotFormat = Literal["png", "svg", "html"]


class Part(BaseModel):
    """Base of every part of an experiment: frozen, strict (`no` is a word, "12" no number), no unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Named(Part):
    """Something registered (`name`) or a user's own file (`path`), with its options."""

    name: str | None = Field(default=None, description="a registered name")
    path: str | None = Field(default=None, description="your own .py file, relative to this YAML file")
    options: Options = Field(default_factory=dict, description="a mapping of options")

    @model_validator(mode="after")
    def _one_of_two(self) -> Named:
        if (self.name is None) == (self.path is None):
            raise ValueError("give either name (a registered one) or path (your own .py file), not both or none")
        return self

    @property
    def target(self) -> str:
        """The name or the path."""
        return self.name if self.name is not None else str(self.path)


class SpaceSpec(Named):
    """`space: {name: nasbench201}` or `{path: my_space.py, options: {...}}`."""


class EvaluatorSpec(Named):
    """`{name: rlm, options: {checkpoint: nasbench201}}`."""


class ObjectiveSpec(Part):
    """A metric, which way is better, and optionally the reference point's value for it."""

    metric: Metric
    direction: Literal["maximize", "minimize"] = Field(description="maximize or minimize")
    reference: float | None = Field(default=None, description="the worst value worth having, for the hypervolume")


class ConstraintSpec(Part):
    """A limit on a metric, in its unit: `at_most`, `at_least`, or both."""

    metric: Metric
    at_most: float | None = None
    at_least: float | None = None

    @model_validator(mode="after")
    def _some_limit(self) -> ConstraintSpec:
        if self.at_most is None and self.at_least is None:
            raise ValueError("give at_most, at_least, or both")
        if self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}: nothing could pass")
        return self


class SamplerSpec(Part):
    """An Optuna sampler by short name or dotted path, with its constructor's options."""

    name: str = Field(default="nsga2", description="random, tpe, nsga2, nsga3, gp, qmc, rlm, or a dotted path")
    options: Options = Field(default_factory=dict, description="a mapping of options")


STORAGE = Field(
    default="journal:study.log",
    description="journal:study.log, sqlite:///study.db, postgresql+psycopg://..., grpc://HOST:PORT, or null",
)


class StudySpec(Part):
    """How the search runs."""

    sampler: SamplerSpec = SamplerSpec()
    n_trials: int = Field(ge=1, description="trials in total, over all resumptions and workers")
    batch_size: int = Field(default=50, ge=1, description="candidates evaluated at once")
    storage: str | None = STORAGE


class ConfirmSpec(Part):
    """Evaluate the best again, by other means."""

    top: int = Field(default=8, ge=1, description="how many networks to confirm, the front's first")
    evaluators: list[EvaluatorSpec] = Field(min_length=1, description="a list of evaluators")


class RunOutputs(Part):
    """Where a search leaves its run folder, and the plots it draws."""

    folder: str = Field(description="the run folder, relative to this YAML file")
    plots: list[PlotFormat] = Field(default=["png", "html"], description="a list of png, svg, html")


class FolderOutputs(Part):
    """Where results go."""

    folder: str = Field(description="a folder, relative to this YAML file")


class TrainOutputs(FolderOutputs):
    """Where a training leaves its run folder (the checkpoint is in checkpoint/), and how it stores weights."""

    weights: Literal["float32", "float16", "bfloat16"] = "float32"


class ScaledMetric(Part):
    """A column in another unit than its metric: `{metric: macs, scale: 1.0e6}` (value times scale)."""

    metric: Metric
    scale: float = Field(default=1.0, description="column value times scale = metric value")

    @model_validator(mode="before")
    @classmethod
    def _word(cls, value: Any) -> Any:
        return {"metric": value} if isinstance(value, str) else value


class TableSpec(Part):
    """A table of labelled architectures."""

    path: str = Field(description="a CSV (.csv, .csv.gz) or parquet file, relative to this YAML file")
    arch_column: str = Field(default="arch", description="the column that holds the architecture strings")
    metrics: dict[str, ScaledMetric] = Field(min_length=1, description="a mapping of column: metric name")
    limit: int | None = Field(default=None, ge=1, description="use only so many rows, drawn by the seed")


class SplitSpec(Part):
    """Which rows are kept out of training."""

    by: Literal["graph", "seed"] = Field(default="graph", description="graph (equal networks stay together) or seed")
    train: int | None = Field(default=None, ge=1, description="training rows; default: all that are not held out")
    test: int = Field(default=1500, ge=1, description="held-out rows, at least so many")


class BaseExperiment(Part):
    """What every kind has."""

    schema_: Literal["nasrlm/experiment@1"] = Field(alias="schema", description=f"the word {SCHEMA}")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$", description="letters, digits, _ . -")
    description: str = ""
    tags: list[str] = Field(default_factory=list)
    seed: int = Field(default=0, ge=0, description="a whole number from 0")


class SearchExperiment(BaseExperiment):
    """kind: search."""

    kind: Literal["search"]
    space: SpaceSpec
    evaluators: list[EvaluatorSpec] = Field(min_length=1, description="a list of evaluators")
    objectives: list[ObjectiveSpec] = Field(min_length=1, description="a list of {metric, direction}")
    constraints: list[ConstraintSpec] = Field(default_factory=list)
    study: StudySpec
    confirm: ConfirmSpec | None = None
    outputs: RunOutputs

    @field_validator("objectives")
    @classmethod
    def _distinct(cls, objectives: list[ObjectiveSpec]) -> list[ObjectiveSpec]:
        metrics = [objective.metric for objective in objectives]
        twice = sorted({m for m in metrics if metrics.count(m) > 1})
        if twice:
            raise ValueError(f"name {', '.join(twice)} twice; keep one of them")
        return objectives


class TrainExperiment(BaseExperiment):
    """kind: train. Trains an RLM on a table; `outputs.folder` becomes the checkpoint."""

    kind: Literal["train"]
    space: SpaceSpec
    table: TableSpec
    costs: list[Cost] = Field(
        default_factory=list, description="free metrics to learn too, counted on the networks themselves"
    )
    split: SplitSpec = SplitSpec()
    init: str | None = Field(default=None, description="a checkpoint to fine-tune: a shipped name or a folder")
    model: Options = Field(default_factory=dict, description="fields of RLMConfig")
    train: Options = Field(default_factory=dict, description="fields of TrainConfig")
    baselines: list[Baseline] = Field(
        default=["macs", "forest"],
        description="a list of macs, forest, head (a regression head on the same encoder; costs a training)",
    )
    outputs: TrainOutputs


class EvaluateExperiment(BaseExperiment):
    """kind: evaluate. Compares evaluators with a table of true values."""

    kind: Literal["evaluate"]
    space: SpaceSpec
    evaluators: list[EvaluatorSpec] = Field(min_length=1, description="a list of evaluators")
    table: TableSpec
    split: str | None = Field(
        default=None, description="held-out rows to score: the split.json that training wrote; null = all rows"
    )
    baselines: list[Baseline] = Field(
        default=["macs", "forest"],
        description="a list of macs, forest, head (a regression head on the same encoder; costs a training)",
    )
    outputs: FolderOutputs


class LabelStudySpec(Part):
    """How many architectures are labelled, and where their trials are kept."""

    n_trials: int = Field(ge=1, description="architectures in total, over all resumptions and workers")
    batch_size: int = Field(default=16, ge=1, description="architectures evaluated at once; a kill loses so many")
    storage: str | None = STORAGE


class LabelOutputs(FolderOutputs):
    """Where labels go."""

    table: str = Field(
        default="labels.parquet",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*\.parquet$",
        description="a .parquet file's name",
    )


class LabelExperiment(BaseExperiment):
    """kind: label. Evaluates a random sample of a space, each metric for real, and writes a table of labels."""

    kind: Literal["label"]
    space: SpaceSpec
    evaluators: list[EvaluatorSpec] = Field(min_length=1, description="a list of evaluators")
    metrics: list[Metric] | None = Field(
        default=None, min_length=1, description="a list of metrics; left out = all that the evaluators give"
    )
    study: LabelStudySpec
    outputs: LabelOutputs


class BenchmarkExperiment(BaseExperiment):
    """kind: benchmark. Measures speed as ratios in one run, and tokens a network."""

    kind: Literal["benchmark"]
    space: SpaceSpec
    checkpoint: str = Field(description="a shipped name or a checkpoint folder")
    metrics: list[Metric] = Field(min_length=1, description="the metrics to predict in the throughput measure")
    measures: list[Literal["median", "throughput", "export", "linear", "tokens"]] = Field(
        min_length=1, description="a list of median, throughput, export, linear, tokens"
    )
    torch_module: str | None = Field(default=None, description="a .py file with the same networks in torch")
    repeats: int = Field(default=5, ge=1, description="how often each is measured; the median counts")
    threads: int = Field(default=2, ge=1, description="CPU threads")
    architectures: int = Field(default=1000, ge=10, description="networks a measure uses")
    outputs: FolderOutputs


class PretrainSpec(Part):
    """What a model learns before it sees a label: costs of every network of the table, counted on the networks."""

    costs: list[Cost] = Field(
        default=["params", "macs", "activation_bytes", "depth"], min_length=1, description="a list of costs"
    )
    train: Options = Field(default_factory=dict, description="fields of TrainConfig")


class ReserveSpec(Part):
    """Rows (with all their isomorphic copies) that settings are chosen on; otherwise neither trained on nor scored."""

    rows: int = Field(ge=2, description="rows, at least so many")
    use: bool = Field(default=False, description="true: train and score on these rows alone, to choose settings")


class ComparedSampler(SamplerSpec):
    """A sampler of a comparison, under its own title and with the batch that suits it."""

    title: str | None = Field(default=None, description="what the table calls it; default: its name")
    batch_size: int = Field(default=5, ge=1, description="candidates evaluated at once")

    @property
    def label(self) -> str:
        """What the table calls it."""
        return self.title or self.name


class CompareExperiment(BaseExperiment):
    """kind: compare. How soon samplers find the front of true values; `nasrlm benchmark` runs it."""

    kind: Literal["compare"]
    space: SpaceSpec
    evaluators: list[EvaluatorSpec] = Field(min_length=1, description="a list of evaluators")
    objectives: list[ObjectiveSpec] = Field(min_length=1, description="a list of {metric, direction, reference}")
    samplers: list[ComparedSampler] = Field(min_length=1, description="a list of samplers")
    evaluations: list[Annotated[int, Field(ge=1)]] = Field(min_length=1, description="numbers of true evaluations")
    seeds: int = Field(default=8, ge=1, description="how often each sampler searches")
    outputs: FolderOutputs

    @model_validator(mode="after")
    def _complete(self) -> CompareExperiment:
        if missing := [o.metric for o in self.objectives if o.reference is None]:
            raise ValueError(f"the objectives {', '.join(missing)} have no reference, which bounds the hypervolume")
        labels = [sampler.label for sampler in self.samplers]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ValueError(f"two samplers are called {', '.join(twice)}; give each a title")
        return self


class FewLabelsExperiment(BaseExperiment):
    """kind: few_labels. How well predictors rank a table from a few labels; `nasrlm benchmark` runs it."""

    kind: Literal["few_labels"]
    space: SpaceSpec
    table: TableSpec
    labels: list[Annotated[int, Field(ge=2)]] = Field(min_length=1, description="a list of training architectures")
    seeds: int = Field(default=3, ge=1, description="how often each is repeated with other training rows")
    test: int | None = Field(default=None, ge=2, description="score so many rows; null = all that are not trained on")
    reserve: ReserveSpec | None = None
    members: int = Field(default=1, ge=1, description="models whose predictions are averaged")
    texts: list[Literal["folded", "written_out"]] = Field(
        default=["folded"], min_length=1, description="a list of folded, written_out: how texts write repetition"
    )
    pretrain: PretrainSpec | None = None
    model: Options = Field(default_factory=dict, description="fields of RLMConfig")
    train: Options = Field(default_factory=dict, description="fields of TrainConfig")
    head: Options = Field(default_factory=dict, description="fields of TrainConfig for the regression head")
    baselines: list[Baseline] = Field(default=["macs", "forest", "head"], description="a list of macs, forest, head")
    outputs: FolderOutputs


Experiment = (
    SearchExperiment
    | TrainExperiment
    | EvaluateExperiment
    | LabelExperiment
    | BenchmarkExperiment
    | FewLabelsExperiment
    | CompareExperiment
)
MODELS: dict[str, type[BaseExperiment]] = {
    "search": SearchExperiment,
    "train": TrainExperiment,
    "evaluate": EvaluateExperiment,
    "label": LabelExperiment,
    "benchmark": BenchmarkExperiment,
    "few_labels": FewLabelsExperiment,
    "compare": CompareExperiment,
}

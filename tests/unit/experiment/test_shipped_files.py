"""Every YAML that ships is read, and every template that `nasrlm new` writes passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nasrlm import registry
from nasrlm.cli.new import TEMPLATES, template
from nasrlm.errors import MetricError
from nasrlm.experiment import load_experiment
from nasrlm.experiment.run import check
from nasrlm.experiment.schema import SearchExperiment
from nasrlm.spaces import Architecture, SearchSpace, get_space

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
FILES = sorted(EXPERIMENTS.rglob("*.yaml"))


def test_there_are_experiments() -> None:
    names = [file.relative_to(EXPERIMENTS).as_posix() for file in FILES]
    for name in ("quickstart.yaml", "train/nasbench201.yaml", "evaluate/nasbench201.yaml", "benchmarks/speed.yaml"):
        assert name in names


@pytest.mark.parametrize("file", FILES, ids=[file.relative_to(EXPERIMENTS).as_posix() for file in FILES])
def test_every_experiment_is_read(file: Path) -> None:
    load_experiment(file)


SEARCHES = [file for file in FILES if file.parent.name == "search"]


def test_every_family_of_spaces_has_a_search() -> None:
    spaces = {str(load_experiment(file).space.name) for file in SEARCHES}  # type: ignore[attr-defined]
    families = ("nasbench101 nasbench201 nats_sss nasbench_macro transnas_micro fbnet ofa_mobilenetv3 mnasnet darts "
                "nds_resnet hiaml snas vit conv1d_audio")  # fmt: skip
    assert spaces >= set(families.split())


@pytest.mark.parametrize("file", SEARCHES, ids=[file.stem for file in SEARCHES])
def test_searches_pass_the_check_with_a_table(file: Path, tmp_path: Path) -> None:
    experiment = load_experiment(file)
    sets = []
    if isinstance(experiment, SearchExperiment):
        for i, evaluator in enumerate(experiment.evaluators):
            if "metrics" in evaluator.options:
                table = _table(get_space(str(experiment.space.name), **experiment.space.options), evaluator.options)
                table.to_csv(tmp_path / f"{i}.csv", index=False)
                sets.append(f"evaluators.{i}.options.path={tmp_path / f'{i}.csv'}")
    check(str(file), sets)


def _table(space: SearchSpace, options: dict[str, Any]) -> pd.DataFrame:
    """A small table of the columns that an evaluator of an experiment reads."""
    archs = list(dict.fromkeys(a.string for a in space.sample(30, seed=0)))
    values = {column: [float(10 + i) for i in range(len(archs))] for column in options["metrics"]}
    return pd.DataFrame({"arch": archs, **values})


def test_additive_finds_what_each_choice_adds(tmp_path: Path) -> None:
    space = get_space("nasbench_macro")
    known = space.sample(400, seed=0)

    def latency(a: Architecture) -> float:
        return 3.0 + sum((i + 1) * "012".index(digit) for i, digit in enumerate(a.string))

    table = pd.DataFrame({"arch": [a.string for a in known], "latency_ms/board": [latency(a) for a in known]})
    table.to_csv(tmp_path / "table.csv", index=False)
    evaluator = registry.load_file("evaluators", EXPERIMENTS / "search" / "additive.py")(
        space, tmp_path / "table.csv", ["latency_ms/board"], shrink=1e-6
    )
    unknown = space.sample(20, seed=1)
    found = evaluator.evaluate(unknown, ["latency_ms/board"])["latency_ms/board"]
    assert found.tolist() == pytest.approx([latency(a) for a in unknown], abs=1e-3)
    assert evaluator.scores["latency_ms/board"]["rho"] > 0.999
    with pytest.raises(MetricError, match="latency_ms/board"):
        evaluator.evaluate(unknown, ["latency_ms/bord"])


@pytest.mark.parametrize("kind", [kind for kind, file in TEMPLATES.items() if file.endswith(".yaml")])
def test_every_template_is_read(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(template(kind, "mine"), encoding="utf-8")
    experiment = load_experiment(file)
    assert (experiment.kind, experiment.name) == (kind, "mine")

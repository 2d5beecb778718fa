"""Every YAML that ships is read, and every template that `nasrlm new` writes passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasrlm.cli.new import TEMPLATES, template
from nasrlm.experiment import load_experiment

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
FILES = sorted(EXPERIMENTS.rglob("*.yaml"))


def test_there_are_experiments() -> None:
    names = [file.relative_to(EXPERIMENTS).as_posix() for file in FILES]
    for name in ("quickstart.yaml", "train/nasbench201.yaml", "evaluate/nasbench201.yaml", "benchmarks/speed.yaml"):
        assert name in names


@pytest.mark.parametrize("file", FILES, ids=[file.relative_to(EXPERIMENTS).as_posix() for file in FILES])
def test_every_experiment_is_read(file: Path) -> None:
    load_experiment(file)


@pytest.mark.parametrize("kind", [kind for kind, file in TEMPLATES.items() if file.endswith(".yaml")])
def test_every_template_is_read(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(template(kind, "mine"), encoding="utf-8")
    experiment = load_experiment(file)
    assert (experiment.kind, experiment.name) == (kind, "mine")

"""The experiments tagged quick run, and the quickstart finds nearly the whole front."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from nasrlm import registry
from nasrlm.datasets import load_table
from nasrlm.experiment import load_experiment, run_experiment
from nasrlm.experiment.schema import SearchExperiment
from nasrlm.graph import costs
from nasrlm.search import Objective, hypervolume
from nasrlm.spaces import get_space

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
QUICK = [file for file in sorted(EXPERIMENTS.rglob("*.yaml")) if "quick" in load_experiment(file).tags]
QUICKSTART = EXPERIMENTS / "quickstart.yaml"

needs_checkpoint = pytest.mark.skipif(
    "nasbench201" not in registry.names("checkpoints"), reason="the checkpoint nasbench201 is not in nasrlm/pretrained"
)


@needs_checkpoint
@pytest.mark.parametrize("file", QUICK, ids=[file.stem for file in QUICK])
def test_quick_experiments_run(file: Path, tmp_path: Path) -> None:
    result = run_experiment(file, ["study.n_trials=100", f"outputs.folder={tmp_path / 'run'}", "confirm.top=2"])
    assert len(result.trials) == 100
    assert len(result.front) > 0
    assert (tmp_path / "run" / "front.html").is_file()


@needs_checkpoint
@pytest.mark.data
@pytest.mark.slow
def test_the_true_values_of_the_quickstart_front_dominate_nearly_everything(tmp_path: Path, data_folder: Path) -> None:
    experiment = load_experiment(QUICKSTART)
    assert isinstance(experiment, SearchExperiment)
    result = run_experiment(QUICKSTART, [f"outputs.folder={tmp_path / 'run'}", "confirm=null", "outputs.plots=[]"])
    columns = {"cifar10_test_acc": "accuracy/cifar10", "pixel3_ms": "latency_ms/pixel3"}
    table = load_table(data_folder / "nasbench201.csv.gz", space=get_space("nasbench201"), metrics=columns)
    objectives = [Objective(spec.metric, spec.direction) for spec in experiment.objectives]
    point = [spec.reference for spec in experiment.objectives if spec.reference is not None]
    assert len(point) == 2
    limit = experiment.constraints[0].at_most
    feasible = pd.Series([costs(a).params <= limit for a in table.architectures], index=table.values.index)
    whole = hypervolume(table.values[feasible.to_numpy()], objectives, point)
    found = hypervolume(table.values.loc[result.front["architecture_id"]], objectives, point)
    assert found / whole >= 0.97

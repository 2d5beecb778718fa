"""The rlm evaluator with a small model, trained here for a moment on exact costs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nasrlm.errors import CheckpointError, MetricError, UnknownNameError
from nasrlm.evaluators import evaluate_all, get_evaluator
from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig
from nasrlm.spaces import get_space
from nasrlm.testing import check_evaluator

SPACE = get_space("tiny")
FEW = list(dict.fromkeys(SPACE.sample(8, seed=0)))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    architectures = list(SPACE.enumerate())
    labels = get_evaluator("cost", SPACE).evaluate(architectures, ["params", "macs"])
    config = RLMConfig(width=32, heads=2, encoder_layers=1, decoder_layers=1, dead_work=False)
    model = RegressionLM(config).fit(architectures, labels, train=TrainConfig(steps=60, batch_size=32, patience=0))
    folder = tmp_path_factory.mktemp("model") / "tiny"
    model.save_pretrained(folder)
    return folder


def test_it_keeps_the_contract(checkpoint: Path) -> None:
    check_evaluator(get_evaluator("rlm", SPACE, checkpoint=str(checkpoint)), FEW)


def test_predictions_vary_and_are_those_of_the_model(checkpoint: Path) -> None:
    evaluator = get_evaluator("rlm", SPACE, checkpoint=str(checkpoint), quantiles=(0.25,))
    values = evaluator.evaluate(FEW, ["macs"])
    assert list(values.columns) == ["macs", "macs@0.25"]
    assert values["macs"].nunique() > 1
    direct = RegressionLM.from_pretrained(checkpoint).predict(FEW, ["macs"])
    assert values["macs"].tolist() == direct["macs"].tolist()
    plain = get_evaluator("rlm", SPACE, checkpoint=str(checkpoint), quantiles=[])
    assert list(plain.evaluate(FEW, ["macs"]).columns) == ["macs"]


def test_exact_costs_win_over_predicted_ones(checkpoint: Path) -> None:
    rlm, cost = get_evaluator("rlm", SPACE, checkpoint=str(checkpoint)), get_evaluator("cost", SPACE)
    values = evaluate_all([rlm, cost], FEW, ["params"])
    assert values["params"].tolist() == cost.evaluate(FEW, ["params"])["params"].tolist()
    with pytest.raises(MetricError, match="Nearest: macs"):
        rlm.evaluate(FEW, ["mac"])


def test_checkpoints_that_are_none(tmp_path: Path) -> None:
    for name in ("nasbench2O1x", str(tmp_path)):
        with pytest.raises((CheckpointError, UnknownNameError)):
            get_evaluator("rlm", SPACE, checkpoint=name)

"""Names, options and metrics are checked before any work, each mistake with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasrlm.errors import ConfigError
from nasrlm.experiment.run import check
from tests.unit.experiment.test_load import GOOD, write


def test_a_good_file_passes_and_paths_are_absolute(tmp_path: Path) -> None:
    experiment, notes = check(write(tmp_path, GOOD))
    assert notes == []
    assert experiment.outputs.folder == str(tmp_path / "runs/small")


@pytest.mark.parametrize(
    ("old", "new", "line", "parts"),
    [
        ("name: tiny", "name: tinny", 4, ["space.name", "unknown space 'tinny'", "Nearest: tiny"]),
        ("{name: tiny}", "{name: tiny, options: {depht: 3}}", 4, ["space", "depht"]),
        ("{name: tiny}", "{path: none.py}", 4, ["space.path", "none.py"]),
        ("name: cost", "name: costs", 6, ["evaluators.0.name", "unknown evaluator 'costs'", "Nearest: cost"]),
        ("{name: cost}", "{name: cost, options: {fast: true}}", 6, ["evaluators.0.options.fast", "'fast'"]),
        ("metric: params", "metric: parms", 8, ["objectives.0.metric", "unknown metric 'parms'", "Nearest: params"]),
        ("metric: macs", "metric: mac", 11, ["constraints.0.metric", "Nearest: macs", "add an evaluator"]),
        ("study:\n", "study:\n  sampler: {name: nsga4}\n", 13, ["study.sampler.name", "nsga2"]),
        ("study:\n", "study:\n  sampler: {name: nsga2, options: {popsize: 3}}\n", 13, ["popsize"]),
        ("study:\n", "study:\n  sampler: {name: nsga2, options: {population_size: 1}}\n", 13, ["population_size"]),
        ("study:\n", "study:\n  storage: jurnal:a.log\n", 13, ["study.storage", "Nearest: journal"]),
        (
            "outputs:",
            "confirm: {top: 2, evaluators: [{name: device, options: {device: onnxruntime_gpu}}]}\noutputs:",
            15,
            ["confirm.evaluators.0.options.device", "Nearest: onnxruntime_cpu"],
        ),
    ],
)
def test_unknown_names_and_options(tmp_path: Path, old: str, new: str, line: int, parts: list[str]) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        check(write(tmp_path, GOOD.replace(old, new)))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'a.yaml'}:{line}: "), text
    for part in parts:
        assert part in text


def test_mistakes_of_different_parts_come_together(tmp_path: Path) -> None:
    bad = GOOD.replace("metric: params", "metric: parms").replace("study:\n", "study:\n  sampler: {name: nsga4}\n")
    with pytest.raises(ConfigError, match="2 mistakes"):
        check(write(tmp_path, bad))


def test_nothing_is_written_by_a_check(tmp_path: Path) -> None:
    check(write(tmp_path, GOOD))
    assert [file.name for file in tmp_path.iterdir()] == ["a.yaml"]


TRAIN = """\
schema: nasrlm/experiment@1
kind: train
name: t
space: {name: tiny}
table: {path: t.csv, metrics: {a: accuracy/x}}
costs: [params]
split: {test: 5}
model: {width: 32}
train: {epochs: 1}
outputs: {folder: out}
"""


def test_a_table_that_is_not_there_yet_is_a_note(tmp_path: Path) -> None:
    _, notes = check(write(tmp_path, TRAIN))
    assert len(notes) == 1
    assert str(tmp_path / "t.csv") in notes[0]


@pytest.mark.parametrize(
    ("old", "new", "line", "parts"),
    [
        ("{width: 32}", "{widht: 32}", 8, ["model.widht", "Nearest: width"]),
        ("{width: 32}", "{width: 33}", 8, ["model.width", "33"]),
        ("{width: 32}", "{metrics: [a]}", 8, ["model.metrics", "table.metrics and costs"]),
        ("{epochs: 1}", "{epochs: -1}", 9, ["train.epochs"]),
        ("{epochs: 1}", "{seed: 1}", 9, ["train.seed", "the experiment's seed"]),
        ("a: accuracy/x", "a: params", 5, ["table.metrics.a", "'params' is given twice"]),
    ],
)
def test_mistakes_of_a_training(tmp_path: Path, old: str, new: str, line: int, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        check(write(tmp_path, TRAIN.replace(old, new)))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'a.yaml'}:{line}: "), text
    for part in parts:
        assert part in text

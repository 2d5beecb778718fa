"""Strict reading of experiment files: each mistake with its line, the nearest word, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasrlm.errors import ConfigError
from nasrlm.experiment import load_experiment
from nasrlm.experiment.schema import SearchExperiment

GOOD = """\
schema: nasrlm/experiment@1
kind: search
name: small
space: {name: tiny}
evaluators:
  - {name: cost}
objectives:
  - {metric: params, direction: minimize}
  - {metric: depth, direction: maximize}
constraints:
  - {metric: macs, at_most: 1.2e6}
study:
  n_trials: 20
  batch_size: 10
outputs: {folder: runs/small, plots: []}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "a.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def message(folder: Path, old: str, new: str, *sets: str) -> str:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        load_experiment(write(folder, GOOD.replace(old, new)), sets)
    return str(caught.value)


def test_a_good_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD))
    assert isinstance(experiment, SearchExperiment)
    assert experiment.constraints[0].at_most == 1.2e6
    assert experiment.study.sampler.name == "nsga2"
    assert experiment.study.storage == "journal:study.log"
    assert experiment.seed == 0


def test_numbers_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD.replace("1.2e6", "1e-4")))
    assert isinstance(experiment, SearchExperiment)
    assert experiment.constraints[0].at_most == 1e-4


def test_no_is_a_word(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD.replace("name: small", "name: no")))
    assert experiment.name == "no"


@pytest.mark.parametrize(
    ("old", "new", "line", "parts"),
    [
        ("n_trials: 20", "n_trails: 20", 13, ["study.n_trails", "Nearest: n_trials", "batch_size, storage"]),
        ("direction: minimize", "direction: minimise", 8, ["objectives.0.direction", "Nearest: minimize"]),
        ("n_trials: 20", "n_trials: many", 13, ["study.n_trials", "'many' must be a whole number"]),
        ("n_trials: 20", "n_trials: '20'", 13, ["'20' must be a whole number"]),
        ("n_trials: 20", "n_trials: 0", 13, ["0 must be at least 1"]),
        ("name: small", "name: 3", 3, ["name", "must be text"]),
        ("{name: tiny}", "{}", 4, ["space", "name (a registered one) or path"]),
        ("{name: tiny}", "{name: tiny, path: a.py}", 4, ["not both"]),
        ("at_most: 1.2e6", "at_most: .inf", 11, ["constraints.0.at_most", "finite"]),
        (", at_most: 1.2e6", "", 11, ["constraints.0", "at_most, at_least, or both"]),
        ("metric: depth", "metric: params", 7, ["objectives: name params twice"]),
        ("plots: []", "plots: [pdf]", 15, ["outputs.plots.0", "unknown plot 'pdf'", "png, svg, html"]),
        ("kind: search", "kind: serch", 2, ["unknown kind 'serch'", "Nearest: search"]),
        ("kind: search\n", "kin: search\n", None, ["kind: is missing", "Is 'kin' meant for it?"]),
        ("nasrlm/experiment@1", "nasrlm/experiment@2", 1, ["schema", "nasrlm/experiment@1"]),
    ],
)
def test_mistakes_name_line_key_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, line: int | None, parts: list[str]
) -> None:
    text = message(tmp_path, old, new)
    place = f"{tmp_path / 'a.yaml'}:{line}: " if line else f"{tmp_path / 'a.yaml'}: "
    assert text.startswith(place)
    for part in parts:
        assert part in text


def test_several_mistakes_are_listed_together_in_the_order_of_the_file(tmp_path: Path) -> None:
    bad = GOOD.replace("minimize", "down").replace("n_trials: 20", "n_trials: -1").replace("{name: tiny}", "tiny")
    with pytest.raises(ConfigError) as caught:
        load_experiment(write(tmp_path, bad))
    first, *lines = str(caught.value).splitlines()
    assert first.endswith("a.yaml: 3 mistakes")
    assert [line.split(": ")[1] for line in lines] == ["space", "objectives.0.direction", "study.n_trials"]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a: 1\na: 2\n", 2, "duplicate key"),
        ("a: [1,\nb: 2\n", 2, "not valid YAML"),
        ("a:\n\t- b\n", 2, "Indent with spaces"),
        ("- 1\n", 1, "mapping"),
        ("", 1, "mapping"),
        ("a: !!python/object:os.system x\n", 1, "tags"),
        ("null: 1\n", 1, "must be a word"),
        ("a: 1\n---\nb: 2\n", 2, "single document"),
    ],
)
def test_broken_yaml_is_one_message_with_its_line(tmp_path: Path, text: str, line: int, part: str) -> None:
    with pytest.raises(ConfigError, match=part) as caught:
        load_experiment(write(tmp_path, text))
    assert caught.value.line == line


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(ConfigError, match=r"b\.yaml: no such file\. In that folder: a\.yaml"):
        load_experiment(tmp_path / "b.yaml")


def test_set_changes_values_and_is_read_as_yaml(tmp_path: Path) -> None:
    sets = ["study.n_trials=7", "objectives.0.direction=maximize", "study.storage=null", "constraints=[]",
            "study.sampler.options.population_size=4"]  # fmt: skip
    experiment = load_experiment(write(tmp_path, GOOD), sets)
    assert isinstance(experiment, SearchExperiment)
    assert experiment.study.n_trials == 7
    assert experiment.objectives[0].direction == "maximize"
    assert experiment.study.storage is None
    assert experiment.constraints == []
    assert experiment.study.sampler.options == {"population_size": 4} if experiment.study.sampler else False


def test_set_can_add_to_a_list(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD), ["constraints.1={metric: params, at_most: 10}"])
    assert isinstance(experiment, SearchExperiment)
    assert [constraint.metric for constraint in experiment.constraints] == ["macs", "params"]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("study.n_trials=x", "--set study.n_trials=x: study.n_trials: 'x' must be a whole number"),
        ("study.n_trails=3", "--set study.n_trails=3: study.n_trails: unknown key"),
        ("objectives.5.metric=a", "objectives is a list of 2: use its places 0 to 1"),
        ("objectives.first.metric=a", "not 'first'"),
        ("name.x=1", "name is the single value 'small'"),
        ("study", "--set KEY=VALUE"),
        ("=3", "--set KEY=VALUE"),
        ("study.n_trials=[1", "not valid YAML"),
    ],
)
def test_mistakes_in_set_name_the_set(tmp_path: Path, given: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiment(write(tmp_path, GOOD), [given])
    assert part in str(caught.value)
    assert "--set" in str(caught.value)


def test_a_scaled_column_has_two_forms(tmp_path: Path) -> None:
    text = (
        "schema: nasrlm/experiment@1\nkind: train\nname: t\nspace: {name: tiny}\n"
        "table: {path: t.csv, metrics: {a: accuracy/x, b: {metric: macs, scale: 1e6}}}\noutputs: {folder: out}\n"
    )
    experiment = load_experiment(write(tmp_path, text))
    assert {c: (m.metric, m.scale) for c, m in experiment.table.metrics.items()} == {  # type: ignore[union-attr]
        "a": ("accuracy/x", 1.0),
        "b": ("macs", 1e6),
    }
    with pytest.raises(ConfigError, match=r"a\.yaml:5: table\.metrics\.b\.scael: unknown key 'scael'\. Nearest: scale"):
        load_experiment(write(tmp_path, text.replace("scale", "scael")))

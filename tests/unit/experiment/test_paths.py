"""Paths are relative to the YAML file; names stay names."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasrlm.experiment.load import load_document
from nasrlm.experiment.paths import resolve_paths
from nasrlm.experiment.schema import SearchExperiment
from tests.unit.experiment.test_load import GOOD, write


def test_paths_become_absolute_and_names_stay(tmp_path: Path) -> None:
    text = GOOD.replace("{name: tiny}", "{path: sub/space.py, options: {file: data.csv, width: 3}}").replace(
        "- {name: cost}",
        "- {name: rlm, options: {checkpoint: nasbench201}}\n"
        "  - {name: rlm, options: {checkpoint: ../runs/mine}}\n"
        "  - {name: table, options: {path: t.csv, metrics: {path: accuracy/x}}}",
    )
    experiment, document = load_document(write(tmp_path, text))
    resolved = resolve_paths(experiment, document.folder)
    assert isinstance(resolved, SearchExperiment)
    assert resolved.space.path == str(tmp_path / "sub/space.py")
    assert resolved.space.options == {"file": str(tmp_path / "data.csv"), "width": 3}
    shipped, folder, table = (evaluator.options for evaluator in resolved.evaluators)
    assert shipped == {"checkpoint": "nasbench201"}
    assert folder == {"checkpoint": str(tmp_path.parent / "runs/mine")}
    assert table == {"path": str(tmp_path / "t.csv"), "metrics": {"path": "accuracy/x"}}
    assert resolved.outputs.folder == str(tmp_path / "runs/small")
    assert resolved.objectives == experiment.objectives  # type: ignore[union-attr]


def test_a_checkpoint_folder_beside_the_file_goes_before_a_name(tmp_path: Path) -> None:
    (tmp_path / "nasbench201").mkdir()
    text = GOOD.replace("{name: cost}", "{name: rlm, options: {checkpoint: nasbench201}}")
    experiment, document = load_document(write(tmp_path, text))
    resolved = resolve_paths(experiment, document.folder)
    assert isinstance(resolved, SearchExperiment)
    assert resolved.evaluators[0].options["checkpoint"] == str(tmp_path / "nasbench201")


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ("digits", "digits"),
        ("package.module:function", "package.module:function"),
        ("things.npz", "HERE/things.npz"),
        ("photos/", "HERE/photos"),
        ("mine.py:function", "HERE/mine.py:function"),
        ("/data/x.npz", "/data/x.npz"),
    ],
)
def test_data_is_a_name_or_a_path(given: str, resolved: str, tmp_path: Path) -> None:
    text = GOOD.replace("{name: cost}", f"{{name: training, options: {{data: '{given}'}}}}")
    experiment, document = load_document(write(tmp_path, text))
    found = resolve_paths(experiment, document.folder).evaluators[0].options  # type: ignore[union-attr]
    assert found == {"data": resolved.replace("HERE", str(tmp_path))}

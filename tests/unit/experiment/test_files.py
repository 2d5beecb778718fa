"""Files that appear whole or not at all, and the run folder's record of what it belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nasrlm.errors import RunFolderError
from nasrlm.experiment.files import finite, make_folder, write_atomic, write_json
from nasrlm.experiment.run_folder import open_run_folder, read_run_experiment, to_yaml
from nasrlm.experiment.run_search import storage_in


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old", encoding="utf-8")

    def fail(part: Path) -> None:
        part.write_text("half", encoding="utf-8")
        raise OSError(28, "No space left on device")

    with pytest.raises(RunFolderError, match="No space left on device"):
        write_atomic(file, fail)
    assert file.read_text(encoding="utf-8") == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["a.txt"]


def test_the_temporary_file_keeps_the_ending(tmp_path: Path) -> None:
    seen = []
    write_atomic(tmp_path / "a.png", lambda part: (seen.append(part.suffix), part.touch()))
    assert seen == [".png"]


def test_json_has_no_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": float("nan"), "b": [np.float64(1.5), float("inf")], "c": np.int64(3)})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"a": None, "b": [1.5, None], "c": 3}
    assert finite((1, True, "x", None)) == [1, True, "x", None]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(RunFolderError, match=r"a is a file"):
        make_folder(tmp_path / "a" / "b" / "c")


VALUES = {"kind": "search", "seed": 0, "study": {"n_trials": 10, "batch_size": 5}, "outputs": {"plots": ["png"]}}


def test_only_named_keys_may_change(tmp_path: Path) -> None:
    assert not open_run_folder(tmp_path / "run", VALUES).resumed
    more = {**VALUES, "study": {"n_trials": 20, "batch_size": 5}, "outputs": {"plots": []}}
    assert open_run_folder(tmp_path / "run", more).resumed
    assert read_run_experiment(tmp_path / "run") == more
    other = {**VALUES, "seed": 1, "space": {"name": "tiny"}}
    with pytest.raises(RunFolderError) as caught:
        open_run_folder(tmp_path / "run", other)
    assert "seed: 0 there, 1 here" in str(caught.value)
    assert "space.name: nothing there, 'tiny' here" in str(caught.value)
    assert read_run_experiment(tmp_path / "run") == more


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    open_run_folder(tmp_path / "run", VALUES)
    (tmp_path / "run" / "experiment.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(RunFolderError, match="damaged"):
        open_run_folder(tmp_path / "run", VALUES)


def test_the_log_gets_a_line_an_event(tmp_path: Path) -> None:
    folder = open_run_folder(tmp_path / "run", VALUES)
    folder.log("start", trials=3)
    folder.log("done")
    lines = (folder.path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["start", "done"]
    versions = json.loads((folder.path / "versions.json").read_text(encoding="utf-8"))
    assert versions["packages"]["optuna"]


def test_yaml_text_keeps_the_order_and_reads_back() -> None:
    assert to_yaml({"b": 1, "a": {"x": [1.5, "no"]}}).startswith("b: 1\n")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("journal:study.log", "journal:/runs/a/study.log"),
        ("journal:/tmp/x.log", "journal:/tmp/x.log"),
        ("sqlite:///study.db", "sqlite:////runs/a/study.db"),
        ("postgresql+psycopg://u:p@h/db", "postgresql+psycopg://u:p@h/db"),
    ],
)
def test_storage_files_are_in_the_run_folder(given: str | None, expected: str | None) -> None:
    assert storage_in(given, Path("/runs/a")) == expected

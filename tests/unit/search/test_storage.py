from __future__ import annotations

import json
import multiprocessing
import sys

import optuna
import pytest

from nasrlm.errors import RunError, RunFolderError, UsageError
from nasrlm.search.objective import parse_objectives
from nasrlm.search.state import SamplerState, load_state, save_state, state_path
from nasrlm.search.storage import describe_storage, open_storage, open_study

OBJECTIVES = parse_objectives(["a:max", "b:min"])


@pytest.mark.parametrize("storage", [None, "memory", "none", ""])
def test_memory(storage):
    assert open_storage(storage) is None


@pytest.mark.parametrize("form", ["journal:{}/new/study.log", "sqlite:///{}/new/study.db"])
def test_file_storages_make_their_folder_and_keep_a_study(form, tmp_path):
    place = form.format(tmp_path)
    study = open_study(open_storage(place), "s", OBJECTIVES, {"space": "tiny"}, place)
    study.add_trial(optuna.trial.create_trial(values=[1.0, 2.0]))
    again = open_study(open_storage(place), "s", OBJECTIVES, {"space": "tiny"}, place)
    assert [trial.values for trial in again.trials] == [[1.0, 2.0]]
    assert again.metric_names == ["a", "b"]


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        ("jornal:study.log", "Nearest: journal"),
        ("mysql://me:secret@host/db", "Allowed: memory, journal:FILE"),
        ("journal:", "unknown storage"),
        ("sqlite:/study.db", "unknown storage"),
        ("study.db", "unknown storage"),
    ],
)
def test_unknown_storages_say_what_is_allowed(storage, words):
    with pytest.raises(UsageError, match=words):
        open_storage(storage)


def test_passwords_stay_secret():
    with pytest.raises(UsageError) as error:
        open_storage("mysql://me:secret@host/db")
    assert "secret" not in str(error.value)
    assert describe_storage("postgresql+psycopg://host/db") == "postgresql+psycopg://host/db"


def test_foreign_files_are_refused_and_kept(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("buy milk\nand bread")
    with pytest.raises(UsageError, match="not an Optuna journal"):
        open_storage(f"journal:{notes}")
    with pytest.raises(RunError, match="not a database"):
        open_storage(f"sqlite:///{notes}")
    assert notes.read_text() == "buy milk\nand bread"


def test_a_folder_in_the_way_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match="cannot write"):
        open_storage(f"journal:{tmp_path}")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot write"):
        open_storage(f"journal:{tmp_path}/file/study.log")


def test_a_torn_last_line_is_dropped(tmp_path):
    path = tmp_path / "study.log"
    open_study(open_storage(f"journal:{path}"), "s", OBJECTIVES, {}, "")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op_code":4,"worker_id"')
    study = open_study(open_storage(f"journal:{path}"), "s", OBJECTIVES, {}, "")
    study.add_trial(optuna.trial.create_trial(values=[1.0, 2.0]))
    assert path.read_bytes().startswith(whole)
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_another_experiments_study_is_refused(tmp_path):
    storage = open_storage(f"journal:{tmp_path}/study.log")
    open_study(storage, "s", OBJECTIVES, {"space": "tiny", "evaluators": ["cost"]}, "here")
    with pytest.raises(RunFolderError, match="space is 'tiny' there, 'other' here"):
        open_study(storage, "s", OBJECTIVES, {"space": "other", "evaluators": ["cost"]}, "here")


def test_a_study_of_plain_optuna_is_refused(tmp_path):
    storage = open_storage(f"journal:{tmp_path}/study.log")
    study = optuna.create_study(storage=storage, study_name="s", directions=["maximize", "minimize"])
    study.add_trial(optuna.trial.create_trial(values=[1.0, 2.0]))
    with pytest.raises(RunFolderError, match="nasrlm did not make"):
        open_study(storage, "s", OBJECTIVES, {}, "here")


def _open(url, queue):
    try:
        open_storage(url)
        queue.put("fine")
    except Exception as error:
        queue.put(repr(error))


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_workers_that_start_together_make_the_tables_once(tmp_path):
    import sqlalchemy  # noqa: F401  (loaded before the fork, so that the workers reach the database together)

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_open, args=(f"sqlite:///{tmp_path}/s.db", queue)) for _ in range(4)]
    for worker in workers:
        worker.start()
    assert [queue.get(timeout=60) for _ in workers] == ["fine"] * 4
    for worker in workers:
        worker.join()


def state(sampler=None):
    return SamplerState("key", "me", batch=2, told=10, sampler=sampler or optuna.samplers.RandomSampler(seed=0))


def test_state_round_trip_restores_the_random_numbers(tmp_path):
    path = tmp_path / "sampler.pkl"
    saved = state()
    saved.sampler._rng.rng.rand(3)
    assert save_state(path, saved)
    found = load_state(path)
    assert (found.key, found.worker, found.batch, found.told) == ("key", "me", 2, 10)
    assert found.sampler._rng.rng.rand() == saved.sampler._rng.rng.rand()
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_state_says_to_delete_it(tmp_path):
    path = tmp_path / "sampler.pkl"
    save_state(path, state())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RunFolderError, match="Delete it"):
        load_state(path)


def test_another_users_state_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "sampler.pkl"
    save_state(path, state())
    monkeypatch.setattr("os.getuid", lambda: -1)
    with pytest.raises(RunFolderError, match="another user's"):
        load_state(path)


def test_a_sampler_that_cannot_be_saved_is_reported(tmp_path):
    sampler = optuna.samplers.RandomSampler(seed=0)
    sampler.hook = lambda: None
    with pytest.warns(UserWarning, match="cannot be saved"):
        assert not save_state(tmp_path / "sampler.pkl", state(sampler))


def test_where_the_state_lies(tmp_path):
    assert state_path("journal:a/study.log", None).as_posix() == "a/study.log.sampler.pkl"
    assert state_path("journal:a/study.log", tmp_path) == tmp_path / "sampler.pkl"
    assert state_path("postgresql://host/db", None) is None
    assert state_path(None, tmp_path) is None

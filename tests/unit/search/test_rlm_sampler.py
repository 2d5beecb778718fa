"""RLMSampler: in nasrlm's search and in anybody's Optuna study."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest

from nasrlm.errors import CheckpointError, UsageError
from nasrlm.evaluators import get_evaluator
from nasrlm.graph import costs, to_text
from nasrlm.rlm import RegressionLM, RLMConfig, TrainConfig
from nasrlm.search import hypervolume, search
from nasrlm.search.knowledge import Knowledge, is_constant, living_counts, pretrained_reader
from nasrlm.search.rlm_sampler import PROPOSED_BY, RLMSampler
from nasrlm.spaces import get_space

SPACE = get_space("nasbench201", cells=1, image_size=8, channels=4)
GOALS = ["depth:maximize", "macs:minimize"]


def sampler(**options: Any) -> RLMSampler:
    return RLMSampler(SPACE, **{"checkpoint": "none", "candidates": 60, "seed": 0, **options})


def objective(trial: optuna.Trial) -> tuple[float, float]:
    counted = costs(SPACE.suggest(trial))
    return float(counted.depth), float(counted.macs)


def study(chosen: optuna.samplers.BaseSampler, n: int) -> optuna.Study:
    made = optuna.create_study(directions=["maximize", "minimize"], sampler=chosen)
    made.optimize(objective, n_trials=n)
    return made


def volume(made: optuna.Study) -> float:
    values = [t.values for t in made.trials if t.state.is_finished() and t.values]
    return hypervolume(values, ["depth:max", "macs:min"], [0.0, 3e6])


def architectures(made: optuna.Study) -> list[str]:
    return [SPACE.architecture(t.params).id for t in made.trials]


def test_it_beats_random_in_a_study_of_anybodys() -> None:
    found = [volume(study(sampler(seed=seed), 30)) for seed in range(3)]
    random = [volume(study(optuna.samplers.RandomSampler(seed=seed), 30)) for seed in range(3)]
    assert np.mean(found) > np.mean(random)
    assert min(found) > np.mean(random)


def test_trials_say_who_proposed_them_and_none_comes_twice() -> None:
    made = study(sampler(), 25)
    words = [t.system_attrs[PROPOSED_BY] for t in made.trials]
    assert words[0] == "random: 0 of 10 trials to learn from"
    assert all(word.startswith("random: ") for word in words[:10])
    assert set(words[10:]) == {"rlm"}
    assert len(set(architectures(made))) == 25


def test_a_seed_repeats_and_seeds_differ() -> None:
    assert architectures(study(sampler(), 22)) == architectures(study(sampler(), 22))
    assert architectures(study(sampler(), 22)) != architectures(study(sampler(seed=1), 22))


def test_pickled_in_the_middle_it_goes_on_the_same() -> None:
    whole = architectures(study(sampler(), 30))
    first = study(sampler(), 18)
    again = optuna.create_study(directions=["maximize", "minimize"], sampler=pickle.loads(pickle.dumps(first.sampler)))
    for trial in first.trials:
        again.add_trial(trial)
    again.optimize(objective, n_trials=12)
    assert architectures(again) == whole


def test_it_says_that_equal_values_teach_nothing() -> None:
    made = optuna.create_study(sampler=sampler(startup_trials=3))
    made.optimize(lambda trial: 0.0 if SPACE.suggest(trial) else 1.0, n_trials=6)
    assert made.trials[5].system_attrs[PROPOSED_BY] == "random: all 5 trials have the same values"


def test_failed_trials_and_other_parameters_do_no_harm() -> None:
    def failing(trial: optuna.Trial) -> float:
        found = costs(SPACE.suggest(trial)).macs * trial.suggest_float("mine", 1.0, 1.001)
        if trial.number % 3 == 0:
            raise ValueError("no")
        return found

    made = optuna.create_study(sampler=sampler(startup_trials=5))
    made.optimize(failing, n_trials=20, catch=ValueError)
    assert made.trials[19].system_attrs[PROPOSED_BY] == "rlm"
    assert len({SPACE.architecture({k: v for k, v in t.params.items() if k != "mine"}).id for t in made.trials}) == 20


def test_trials_that_run_elsewhere_are_not_proposed_again() -> None:
    made = study(sampler(), 12)
    running = [made.ask() for _ in range(15)]
    asked = [SPACE.suggest(trial).id for trial in running]
    assert len(set(asked) | set(architectures(made)[:12])) == 27


def test_two_workers_of_one_study_propose_different_architectures() -> None:
    made = study(sampler(), 12)
    other = optuna.create_study(
        storage=made._storage, study_name=made.study_name, load_if_exists=True, sampler=sampler(seed=5),
        directions=["maximize", "minimize"],
    )  # fmt: skip
    asked = [SPACE.suggest(one.ask()).id for _ in range(6) for one in (made, other)]
    assert len(set(asked)) == 12


def macs_limit() -> float:
    return float(np.quantile([costs(a).macs for a in SPACE.sample(200, seed=9)], 0.3))


def test_a_limit_on_a_cost_is_kept_from_the_first_proposal_on() -> None:
    result = search(
        SPACE, get_evaluator("cost", SPACE), ["depth:max"], [f"macs<={macs_limit()}"], sampler="rlm",
        sampler_options={"checkpoint": "none", "candidates": 60}, n_trials=40, batch_size=5,
    )  # fmt: skip
    feasible = result.trials["feasible"].to_numpy()
    assert 0 < feasible[:10].mean() < 1
    assert feasible[10:].all()


def test_other_constraints_are_learnt() -> None:
    limit = np.log(macs_limit())

    def deep_and_small(trial: optuna.Trial) -> tuple[float, float]:
        counted = costs(SPACE.suggest(trial))
        trial.set_constraint("heavy", float(np.log(counted.macs) - limit))
        return float(counted.depth**1.5), float(np.log(counted.activation_bytes * counted.params))

    made = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler())
    made.optimize(deep_and_small, n_trials=40)
    kept = [t.constraints["heavy"] <= 0 for t in made.trials]
    assert np.mean(kept[20:]) > 0.6  # .3 at random, and depth pulls the other way


@pytest.mark.parametrize("goals", [["macs:min"], [*GOALS, "params:min"]])
def test_one_objective_and_three(goals: list[str]) -> None:
    options = {"checkpoint": "none", "candidates": 40, "startup_trials": 8}
    result = search(
        SPACE, get_evaluator("cost", SPACE), goals, sampler="rlm", sampler_options=options, n_trials=20, batch_size=4
    )
    assert result.trials["architecture_id"].nunique() == 20


def test_a_small_space_is_searched_to_its_end() -> None:
    tiny = get_space("tiny")
    made = optuna.create_study(sampler=RLMSampler(tiny, checkpoint="none", seed=0, batch_size=30))
    made.optimize(lambda trial: float(costs(tiny.suggest(trial)).macs), n_trials=tiny.size() + 2)
    ids = [tiny.architecture(t.params).id for t in made.trials]
    assert len(set(ids)) == tiny.size()
    assert made.trials[-1].system_attrs[PROPOSED_BY] == "random: every architecture has been tried"


def test_a_reader_is_pretrained_once_and_kept(tmp_path: Path) -> None:
    first = pretrained_reader(SPACE, 60, 1, folder=tmp_path)
    (kept,) = tmp_path.iterdir()
    stamp = (kept / "model.safetensors").stat().st_mtime_ns
    again = pretrained_reader(SPACE, 60, 1, folder=tmp_path)
    assert (kept / "model.safetensors").stat().st_mtime_ns == stamp
    networks = SPACE.sample(5, seed=1)
    np.testing.assert_allclose(first.read(networks), again.read(networks), rtol=0.05, atol=0.05)
    (kept / "model.safetensors").write_bytes(b"cut")
    assert pretrained_reader(SPACE, 60, 1, folder=tmp_path).metrics == first.metrics


def test_the_reading_is_a_feature(tmp_path: Path) -> None:
    made = study(sampler(checkpoint=None, pretrain_networks=60, pretrain_epochs=1, folder=tmp_path), 16)
    assert made.trials[-1].system_attrs[PROPOSED_BY] == "rlm"
    knowledge = Knowledge(SPACE, pretrained_reader(SPACE, 60, 1, folder=tmp_path))
    networks = SPACE.sample(8, seed=2)
    knowledge.learn(networks)
    found = knowledge.features([a.id for a in networks])
    assert set(found) == {"structure", "structure, counts alone", "costs", "all"}
    for x in found.values():
        assert x.shape[0] == 8 and np.isfinite(x).all()
        assert 0.1 < (x**2).mean() < 10


def test_equal_networks_have_equal_structure_and_other_costs() -> None:
    dead = SPACE.architecture("|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|")
    live = SPACE.architecture("|none~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|")
    knowledge = Knowledge(SPACE, None)
    knowledge.learn([dead, live])
    found = knowledge.features([dead.id, live.id])
    assert (found["structure, counts alone"][0] == found["structure, counts alone"][1]).all()
    assert (found["costs"][0] != found["costs"][1]).any()


def test_counts_of_a_text() -> None:
    found = living_counts("nasrlm1\nin 1x3x8x8\nconv 4 k3\nrelu")
    assert (found["macs"], found["conv operators"], found["most_layers"], found["most_reach"]) == (6912, 1, 1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0. It must be a whole number of at least 1"),
        ({"pool": 1.5}, "pool is 1.5"),
        ({"startup_trials": True}, "startup_trials is True"),
    ],
)
def test_numbers_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sampler(**options)


def test_a_reference_point_of_another_length() -> None:
    with pytest.raises(UsageError, match="reference_point has 1 values, the study 2 objectives"):
        study(sampler(reference_point=[3.0]), 12)


def test_a_checkpoint_that_is_not_there() -> None:
    with pytest.raises(CheckpointError, match="no_such"):
        study(sampler(checkpoint="no_such"), 12)


def test_without_a_space_it_says_so() -> None:
    from nasrlm.search import make_sampler

    with pytest.raises(UsageError, match="space"):
        make_sampler("rlm")
    assert isinstance(make_sampler("rlm", context={"space": SPACE, "batch_size": 7}), RLMSampler)


def test_networks_that_ignore_their_input_are_never_proposed() -> None:
    made = study(sampler(), 40)  # the smallest MACs are those of networks without a path
    found = [SPACE.architecture(t.params) for t in made.trials]
    assert not [a for a in found if is_constant(to_text(a))]
    assert any(is_constant(to_text(a)) for a in SPACE.sample(300, seed=0))


def test_architectures_that_cannot_be_built_are_no_candidates(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(type(SPACE)):  # type: ignore[misc]
        def build(self, params: Any) -> Any:
            if params["edge_0_1"] == "avg_pool_3x3":
                raise ValueError("no pool here")
            return super().build(params)

    space = Broken(cells=1, image_size=8, channels=4)
    chosen = RLMSampler(space, checkpoint="none", candidates=40, seed=0)

    def macs(trial: optuna.Trial) -> float:
        return float(costs(space.suggest(trial)).macs)

    made = optuna.create_study(sampler=chosen)
    made.optimize(macs, n_trials=24, catch=ValueError)
    later = [t for t in made.trials if t.system_attrs[PROPOSED_BY] == "rlm"]
    assert later
    assert all(t.state == optuna.trial.TrialState.COMPLETE for t in later)
    assert "no pool here" in caplog.text


def test_what_a_checkpoint_predicts_of_the_objectives_is_a_feature(tmp_path: Path) -> None:
    sample = SPACE.sample(60, seed=1)
    labels = pd.DataFrame({m: [float(costs(a).macs) for a in sample] for m in ("accuracy/mine", "latency_ms/mine")})
    labels["accuracy/mine"] = 99 - labels["accuracy/mine"] / 1e6
    model = RegressionLM(RLMConfig(width=32, vocab_size=512)).fit(sample, labels, train=TrainConfig(epochs=20))
    model.save_pretrained(tmp_path / "mine")
    knowledge = Knowledge(SPACE, model, ["latency_ms/mine"])
    knowledge.learn(sample[:5])
    found = knowledge.features([a.id for a in sample[:5]])
    assert list(found) == ["told", "told, structure", "told, costs", "told, all"]
    assert found["told"].shape == (5, 2)  # as it is, and its logarithm
    made = study(sampler(checkpoint=str(tmp_path / "mine"), startup_trials=5, candidates=30), 8)
    assert made.trials[7].system_attrs[PROPOSED_BY] == "rlm"


def test_every_architecture_of_a_small_space_is_a_candidate() -> None:
    small = get_space("tiny")
    made = optuna.create_study(sampler=RLMSampler(small, checkpoint="none", candidates=4, startup_trials=4, seed=0))
    made.optimize(lambda trial: costs(small.suggest(trial)).macs, n_trials=small.size() + 2)
    found = [small.architecture(t.params).id for t in made.trials[: small.size()]]
    assert len(set(found)) == small.size()


def test_what_a_dropped_queue_held_stays_a_candidate() -> None:
    """Of a small space nothing is looked at twice, so what another worker's haste pushes aside must not be lost."""
    chosen = sampler(candidates=400)
    study(chosen, 11)  # the first of a batch has run
    waiting = {a.id for a in chosen._queue}
    assert waiting and not waiting & set(chosen._pool)
    chosen.reseed_rng()
    assert not chosen._queue and waiting <= set(chosen._pool)

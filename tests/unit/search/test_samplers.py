from __future__ import annotations

import optuna
import pytest

from nasrlm.errors import UnknownNameError, UsageError
from nasrlm.search.samplers import SAMPLERS, make_sampler


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_name_makes_a_seeded_sampler(name, tiny):
    def params(seed):
        sampler = make_sampler(name, seed=seed, context={"space": tiny})
        study = optuna.create_study(directions=["maximize"], sampler=sampler)
        return [tiny.suggest(study.ask()).params for _ in range(4)]

    assert params(0) == params(0)
    assert params(0) != params(1)


@pytest.mark.parametrize("path", ["optuna.samplers:RandomSampler", "optuna.samplers.RandomSampler"])
def test_dotted_path(path):
    assert isinstance(make_sampler(path, seed=3), optuna.samplers.RandomSampler)


def test_a_sampler_is_used_as_it_is():
    sampler = optuna.samplers.RandomSampler(seed=1)
    assert make_sampler(sampler, seed=2) is sampler
    with pytest.raises(UsageError, match="already made"):
        make_sampler(sampler, {"seed": 2})


def test_options_reach_the_sampler():
    assert make_sampler("nsga2", {"population_size": 7}, seed=0).population_size == 7


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("nsga4", {}, "Nearest: nsga"),
        ("nsga2", {"populaton_size": 7}, "Nearest: population_size"),
        ("nsga2", {"seed": 7}, "seed of the study"),
        ("nsga2", {"constraints_func": 7}, "constraints"),
        ("nsga2", {"population_size": 1}, "greater than or equal to 2"),
        ("nsga2", {"population_size": "50"}, "does not take the options"),
        ("no_such_module.x:Y", {}, "cannot import 'no_such_module.x'"),
        ("optuna.samplers:RandomSamplr", {}, "Nearest: RandomSampler"),
        ("optuna.study:Study", {}, "not a subclass"),
        (":", {}, "cannot import"),
        (7, {}, "unknown sampler '7'"),
    ],
)
def test_wrong_samplers_say_what_to_do(name, options, words):
    with pytest.raises(UsageError, match=words):
        make_sampler(name, options, seed=0)


def test_unknown_option_lists_what_is_allowed():
    with pytest.raises(UnknownNameError) as error:
        make_sampler("random", {"colour": 1}, seed=0)
    assert "seed" not in error.value.allowed

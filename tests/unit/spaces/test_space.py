"""Search spaces and architectures: sampling, moves, identity, Optuna."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import optuna
import pytest

from nasrlm import Architecture, Choice, Integer, SearchSpace, When, get_space
from nasrlm.errors import SpaceError, UnknownNameError, UsageError
from nasrlm.spaces import generator


class Toy(SearchSpace):
    """Conditions two levels deep, no network."""

    name = "toy"
    source = "this test"
    parameters = (
        Integer("depth", 1, 2),
        Choice("first", ("a", "b")),
        Choice("second", ("a", "b", "c"), when=When("depth", (2,))),
        Choice("flag", (False, True), when=When("second", ("b", "c"))),
        Integer("ratio", 2, 6, step=2, when=When("second", ("c",))),
    )

    def build(self, params: Mapping[str, Any]) -> Any:
        raise NotImplementedError


class One(Toy):
    """A space of one architecture."""

    name = "one"
    parameters = (Choice("only", ("x",)),)


class Falling(Toy):
    """Valid: widths that do not grow. Repair lowers those that do."""

    name = "falling"
    parameters = tuple(Integer(f"width_{i}", 1, 3) for i in range(3))

    def repair(self, params: Mapping[str, Any]) -> dict[str, Any]:
        widths = np.minimum.accumulate(list(params.values())).tolist()
        return dict(zip(params, widths, strict=True))

    def size(self) -> int:
        return 10


TOY = Toy()
FALLING = Falling()
ALL = frozenset(TOY.enumerate())


def test_enumerate_yields_the_size() -> None:
    assert len(ALL) == TOY.size() == 20


def test_sampling_depends_on_the_seed_alone() -> None:
    assert TOY.sample(20, seed=1) == TOY.sample(20, seed=1)
    assert TOY.sample(20, seed=1) != TOY.sample(20, seed=2)
    assert TOY.sample(20, seed=1)[:7] == TOY.sample(7, seed=1)


def test_a_generator_moves_on() -> None:
    rng = np.random.default_rng(1)
    assert TOY.sample(5, rng) + TOY.sample(5, rng) == TOY.sample(10, seed=1)


def test_sampling_covers_the_space_with_every_parameter_uniform() -> None:
    drawn = TOY.sample(4000, seed=0)
    assert set(drawn) == ALL
    second = Counter(a.params["second"] for a in drawn if "second" in a.params)
    assert abs(sum(second.values()) - 2000) < 200
    assert all(abs(count - 667) < 110 for count in second.values())


def test_sampling_none_and_fewer() -> None:
    assert TOY.sample(0, seed=0) == []
    with pytest.raises(UsageError, match="cannot sample -1"):
        TOY.sample(-1, seed=0)


@pytest.mark.parametrize("seed", [None, "0", 1.5, -1, True])
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(UsageError, match="seed is .* Allowed: a whole number >= 0, or a numpy"):
        generator(seed)


def test_moves_leave_the_global_random_state_alone() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    a, b = TOY.sample(2, seed=0)
    TOY.mutate(a, seed=0)
    TOY.crossover(a, b, seed=0)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index,union-attr]


def test_neighbours_change_one_parameter() -> None:
    a = TOY.architecture({"depth": 2, "first": "a", "second": "b", "flag": True})
    found = [n.params for n in TOY.neighbours(a)]
    assert found == [
        {"depth": 1, "first": "a"},
        {"depth": 2, "first": "b", "second": "b", "flag": True},
        {"depth": 2, "first": "a", "second": "a"},
        {"depth": 2, "first": "a", "second": "c", "flag": True, "ratio": 2},
        {"depth": 2, "first": "a", "second": "b", "flag": False},
    ]


def test_all_moves_stay_inside_and_mutation_changes_something() -> None:
    rng = np.random.default_rng(0)
    architectures = sorted(ALL, key=lambda a: a.id)
    for a in architectures:
        assert set(TOY.neighbours(a)) <= ALL - {a}
        for b in architectures:
            assert TOY.crossover(a, b, rng) in ALL
        assert {TOY.mutate(a, rng) for _ in range(20)} <= ALL - {a}


def test_mutation_reaches_every_value_of_a_parameter_equally() -> None:
    a = TOY.architecture({"depth": 1, "first": "a"})
    rng = np.random.default_rng(0)
    counts = Counter("first" if TOY.mutate(a, rng).params["first"] == "b" else "depth" for _ in range(1000))
    assert abs(counts["first"] - 500) < 80


def test_crossover_takes_from_the_parents() -> None:
    space = get_space("nasbench201")
    a, b = space.sample(2, seed=3)
    child = space.crossover(a, b, seed=0)
    assert all(value in (a.params[name], b.params[name]) for name, value in child.values)
    assert space.crossover(a, a, seed=0) == a
    assert space.crossover(a, b, seed=5) == space.crossover(a, b, seed=5)
    assert len({space.crossover(a, b, seed) for seed in range(20)}) > 5


def test_mutation_in_a_space_of_one() -> None:
    only = next(One().enumerate())
    assert One().mutate(only, seed=0) == only
    assert One().neighbours(only) == []


def test_suggest_asks_optuna_for_active_parameters_only() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = set()
    for _ in range(60):
        trial = study.ask()
        a = TOY.suggest(trial)
        assert trial.params == a.params
        assert a in ALL
        seen.add(a)
    assert len(seen) > 10


def test_architecture_from_every_form() -> None:
    a = TOY.architecture({"first": "a", "depth": 1.0})
    assert a.params == {"depth": 1, "first": "a"}
    assert TOY.architecture(a) is a
    assert TOY.architecture(a.string) == a
    assert a.string == '{"depth":1,"first":"a"}'
    assert Toy().architecture(a) == a
    assert Toy().architecture(a).space is not TOY


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ("nonsense", "'nonsense' is no architecture. Allowed: a JSON object of parameters such as {\"depth\":1"),
        ("[1]", "is no architecture"),
        ('{"depth":3,"first":"a"}', "'depth' is 3"),
        (12, "12 is no architecture of toy. Allowed: a mapping of parameters, the official string"),
        (None, "None is no architecture"),
    ],
)
def test_what_is_no_architecture(x: Any, expected: str) -> None:
    with pytest.raises(SpaceError) as caught:
        TOY.architecture(x)
    assert expected in str(caught.value)


def test_another_spaces_architecture_is_refused() -> None:
    with pytest.raises(SpaceError, match="of the space 'toy', not of 'tiny'"):
        get_space("tiny").architecture(TOY.sample(1, seed=0)[0])


def test_identity_is_space_name_and_values() -> None:
    a = TOY.architecture({"depth": 1, "first": "a"})
    b = Toy().architecture({"depth": 1, "first": "a"})
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b}) == 1
    assert a != TOY.architecture({"depth": 1, "first": "b"})
    assert a != "a"
    assert repr(a) == 'Architecture(toy: {"depth":1,"first":"a"})'


def test_an_architecture_is_frozen() -> None:
    with pytest.raises(AttributeError):
        TOY.sample(1, seed=0)[0].values = ()  # type: ignore[misc]


def test_the_id_is_ten_digits_of_the_canonical_json() -> None:
    a = TOY.architecture({"depth": 1, "first": "a"})
    text = '{"space":"toy","params":{"depth":1,"first":"a"}}'
    assert a.to_json() == text
    assert a.id == "toy-" + hashlib.sha256(text.encode()).hexdigest()[:10]
    assert len({a.id for a in ALL}) == len(ALL)


def test_ids_never_change() -> None:
    first = next(get_space("nasbench201").enumerate())
    assert first.id == "nasbench201-1429dbf0bd"


def test_json_round_trip() -> None:
    for a in ALL:
        assert Architecture.from_json(a.to_json(), TOY) == a
    tiny = get_space("tiny").sample(1, seed=0)[0]
    assert Architecture.from_json(tiny.to_json()) == tiny


def test_architectures_survive_another_process() -> None:
    a = get_space("tiny").sample(1, seed=0)[0]
    again = pickle.loads(pickle.dumps(a))
    assert again == a
    assert again.id == a.id


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("{", SpaceError, "is no architecture"),
        ("{}", SpaceError, 'Allowed: {"space": name'),
        ('{"space":"tinny","params":{}}', UnknownNameError, "Nearest: tiny"),
        ('{"space":"tiny","params":{}}', SpaceError, "'depth' is missing"),
    ],
)
def test_json_that_is_no_architecture(text: str, kind: type[Exception], expected: str) -> None:
    with pytest.raises(kind) as caught:
        Architecture.from_json(text)
    assert expected in str(caught.value)


def test_json_of_another_space() -> None:
    with pytest.raises(SpaceError, match="is of the space 'tiny', not of 'toy'"):
        Architecture.from_json('{"space":"tiny","params":{}}', TOY)


def test_what_is_drawn_or_moved_is_repaired() -> None:
    valid = set(FALLING.enumerate())
    assert len(valid) == FALLING.size()
    assert set(FALLING.sample(500, seed=0)) == valid
    rng = np.random.default_rng(0)
    for a in sorted(valid, key=lambda a: a.id):
        around = FALLING.neighbours(a)
        assert len(set(around)) == len(around)
        assert set(around) <= valid - {a}
        assert {FALLING.mutate(a, rng) for _ in range(20)} <= valid - {a}
        assert FALLING.crossover(a, a, rng) == a
        assert {FALLING.crossover(a, b, rng) for b in valid} <= valid
        assert FALLING.repaired(a.params) == a


def test_suggest_repairs_what_optuna_gave() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"width_0": 1, "width_1": 3, "width_2": 2})
    trial = study.ask()
    a = FALLING.suggest(trial)
    assert trial.params == {"width_0": 1, "width_1": 3, "width_2": 2}
    assert a.params == {"width_0": 1, "width_1": 1, "width_2": 1}
    assert FALLING.repaired(trial.params) == a


def test_invalid_parameters_are_refused_where_they_are_given() -> None:
    given = {"width_0": 1, "width_1": 3, "width_2": 1}
    expected = (
        "these parameters are no valid architecture of falling: 'width_1' is 3. Nearest valid: "
        '\'{"width_0":1,"width_1":1,"width_2":1}\', where \'width_1\' would be 1. space.repaired(params) gives'
    )
    for x in (given, '{"width_0":1,"width_1":3,"width_2":1}'):
        with pytest.raises(SpaceError) as caught:
            FALLING.architecture(x)
        assert expected in str(caught.value)
    with pytest.raises(SpaceError, match="'width_2' is missing"):
        FALLING.repaired({"width_0": 1, "width_1": 3})

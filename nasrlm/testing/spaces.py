"""The kit for a search space: everything that the other rooms count on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from nasrlm.devices import get_device
from nasrlm.errors import SpaceError
from nasrlm.graph import costs, parse_text, to_onnx, to_text
from nasrlm.spaces import Architecture, Choice, Integer, SearchSpace
from nasrlm.testing.common import ConformanceError, require, step
from nasrlm.testing.sampling import check_sampling, overrides_repair

ENUMERATED = 2_000  # spaces up to this size are gone through completely
PROBE = "no architecture looks like this"


def check_space(space: SearchSpace, samples: int = 20, seed: int = 0, networks: int = 5) -> None:
    """Checks a search space; returns when all is well.

    Names, exact size, ids, round trips through strings, JSON and parameters, sampling, moves (neighbours, mutate,
    crossover, suggest), and networks that pass onnx.checker, run in onnxruntime, have costs, and whose text reads
    back to the same text. A space with both build and build_module must give the same text by both.

    A space that overrides `repair` may let a move change more than one parameter, have fewer neighbours and sample
    otherwise than each parameter uniformly; but repairing must be stable, and everything drawn or moved valid.

    Args:
        space: the space to check.
        samples: architectures to try the strings and moves with.
        seed: of the samples.
        networks: how many of them to build and run; seconds each for large networks.

    Raises:
        ConformanceError: the first promise that is not kept, and for which architecture.

    Example:
        >>> from nasrlm.spaces import get_space
        >>> check_space(get_space("tiny"), samples=3, networks=1)
    """
    require(isinstance(space, SearchSpace), f"{space!r} is no nasrlm.SearchSpace: derive your class from it.")
    _check_declaration(space)
    with step(f"sampling {samples} architectures of {space.name}"):
        drawn = space.sample(samples, seed)
    require(len(drawn) == samples, f"sample({samples}) gave {len(drawn)} architectures.")
    _check_size(space)
    check_sampling(space, seed)
    rng = np.random.default_rng(seed)
    for a, b in zip(drawn, [*drawn[1:], drawn[0]], strict=True):
        with step(f"{a.string}: strings, JSON and moves"):
            _check_round_trips(space, a)
            _check_moves(space, a, b, rng)
    for a in drawn[:networks]:
        with step(f"{a.string}: its network"):
            check_network(a)
    with step("refusing a foreign string"):
        _check_refusal(space)


def check_network(a: Architecture) -> None:
    """Builds one architecture's network, writes it as text and ONNX, counts its costs and runs it.

    Raises:
        ConformanceError: what does not hold.
    """
    graph = a.graph()
    if type(a.space).build_module is not SearchSpace.build_module and type(a.space).build is not SearchSpace.build:
        from nasrlm.graph.exporters import graph_of

        exported = to_text(graph_of(a.space.build_module(a.params), a.space.example_shape))
        own = to_text(graph)
        require(exported == own, f"build and build_module describe two networks:\n{own}\n--- and\n{exported}")
    require(graph == a.graph(), "build gave two different networks for the same parameters.")
    for dead_work in (False, True):
        text = to_text(graph, dead_work=dead_work)
        again = to_text(parse_text(text), dead_work=dead_work)
        became = f"(dead_work={dead_work}):\n{text}\n--- became\n{again}"
        require(again == text, f"its text reads back to another text {became}")
    counted = costs(graph)
    for name, value in counted.metrics().items():
        require(value >= 0, f"the cost {name} is {value}.")
    require(counted.depth >= 1, "no operation lies between input and output.")
    model = to_onnx(graph, weights="random").SerializeToString()  # onnx.checker and shape inference pass, or it raises
    for name, output in get_device("onnxruntime_cpu").run(model).items():  # type: ignore[attr-defined]
        require(bool(np.isfinite(output).all()), f"the output {name} is not finite with random weights.")


def _check_declaration(space: SearchSpace) -> None:
    require(isinstance(space.name, str) and space.name != "", f"{type(space).__name__} has no name.")
    require(
        space.name.isidentifier() and space.name == space.name.lower(),
        f"the name {space.name!r} should be lower-case letters, digits and _, like a file's.",
    )
    require(bool(str(space.source).strip()), f"{space.name}: source is empty. Name the paper or repository.")
    require(len(space.parameters) > 0, f"{space.name}: it has no parameters.")
    for parameter in space.parameters:
        require(isinstance(parameter, Choice | Integer), f"{space.name}: {parameter!r} is no Choice or Integer.")


def _check_size(space: SearchSpace) -> None:
    with step(f"{space.name}: size and enumeration"):
        size = space.size()
        require(isinstance(size, int) and size >= 1, f"size() is {size!r}, not a whole number from 1 up.")
        found = list(islice(space.enumerate(), min(size, ENUMERATED) + 1))
        gives = "more" if len(found) > size else f"only {len(found)}"
        require(len(found) == min(size, ENUMERATED + 1), f"size() is {size}, but enumerate() gives {gives}.")
        require(len(set(found)) == len(found), "enumerate() gives an architecture twice.")
        for what, values in (("id", [a.id for a in found]), ("string", [a.string for a in found])):
            require(len(set(values)) == len(found), f"two architectures have the same {what}.")


def _check_round_trips(space: SearchSpace, a: Architecture) -> None:
    require(space.architecture(a.string) == a, f"the string {a.string!r} reads back as other parameters.")
    require(space.architecture(a.string).string == a.string, "the string changes when it is read and written.")
    require(Architecture.from_json(a.to_json(), space) == a, "its JSON reads back as another architecture.")
    params = json.loads(json.dumps(a.params))
    require(params == a.params, f"the parameters {a.params} do not survive JSON; use str, int, float and bool.")
    again = space.architecture(params)
    same = (again, again.id, hash(again)) == (a, a.id, hash(a))
    require(same, "the same parameters give another architecture or id.")
    require(a.id.startswith(f"{space.name}-"), f"the id {a.id!r} does not begin with the space's name.")


def _check_moves(space: SearchSpace, a: Architecture, b: Architecture, rng: np.random.Generator) -> None:
    free = {p.name: len(p.options) for p in space.parameters if p.name in a.params}
    around = space.neighbours(a)
    expected = sum(n - 1 for n in free.values())
    repairs = overrides_repair(space)
    right = len(around) <= expected if repairs else len(around) == expected
    require(right, f"it has {len(around)} neighbours; one changed parameter makes {expected}.")
    require(len(set(around)) == len(around) and a not in around, "a neighbour is given twice, or is itself.")
    seeds = rng.integers(2**31, size=2).tolist()
    mutated, again = (space.mutate(a, seeds[0]) for _ in range(2))
    require(mutated == again, "mutate gives two results for the same seed.")
    require(mutated != a or not around, "mutate changed nothing.")
    for moved in [*around, *([mutated] if around else [])]:
        _check_inside(space, moved)
        if not repairs:
            _check_one_change(space, a, moved)
    child = space.crossover(a, b, seeds[1])
    _check_inside(space, child)
    for name, value in child.values if not repairs else ():
        parents = [p.params[name] for p in (a, b) if name in p.params]
        require(value in parents, f"crossover gave {name} = {value!r}; the parents have {parents}.")
    require(space.crossover(a, a, seeds[1]) == a, "crossover with itself gave another architecture.")
    _check_suggest(space, rng)


def _check_inside(space: SearchSpace, a: Architecture) -> None:
    try:
        same = space.architecture(a.params) == a
    except SpaceError as error:
        raise ConformanceError(f"a move led out of the space, to {a.params}: {error}") from error
    require(same, f"a move gave parameters in another order or form than declared: {a.params}.")
    require(space.repaired(a.params) == a, f"repair changes what a move gave, which should be valid: {a.params}.")


def _check_one_change(space: SearchSpace, a: Architecture, moved: Architecture) -> None:
    """One parameter differs; besides it only parameters that became active or inactive."""
    changed = [name for name, value in moved.values if name in a.params and a.params[name] != value]
    require(len(changed) == 1, f"a move by one parameter changed {changed or 'nothing'}: {moved.params}.")


class _Trial:
    """Answers `suggest_*` with random values, as Optuna's trials do, and remembers what was asked."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.params = rng, dict[str, Any]()

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        self.params[name] = choices[int(self.rng.integers(len(choices)))]
        return self.params[name]

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1) -> int:
        self.params[name] = low + step * int(self.rng.integers((high - low) // step + 1))
        return int(self.params[name])


def _check_suggest(space: SearchSpace, rng: np.random.Generator) -> None:
    trial = _Trial(rng)
    suggested = space.suggest(trial)
    _check_inside(space, suggested)
    same = suggested == space.repaired(trial.params) if overrides_repair(space) else suggested.params == trial.params
    require(same, f"suggest asked for {trial.params} but made {suggested.params}.")


def _check_refusal(space: SearchSpace) -> None:
    try:
        space.architecture(PROBE)
    except SpaceError as error:
        require(PROBE in str(error), "the SpaceError for a foreign string should quote it.")
    else:
        raise ConformanceError(f"{space.name} takes {PROBE!r} for an architecture; it must raise SpaceError.")

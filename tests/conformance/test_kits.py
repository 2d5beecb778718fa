"""The kits themselves: each must catch what it is there to catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nasrlm.devices import Measurement
from nasrlm.errors import DeviceError, UsageError
from nasrlm.evaluators import check_metrics, value_frame
from nasrlm.graph import Graph, GraphBuilder, to_text
from nasrlm.spaces import Architecture, Choice, Params, SearchSpace, get_space
from nasrlm.testing import (
    ConformanceError,
    check_device,
    check_evaluator,
    check_measurement,
    check_sampling,
    check_space,
    check_tokenizer,
)
from nasrlm.tokens import TextTokenizer


class Good(SearchSpace):
    name = "good"
    source = "made up for a test"
    parameters = (Choice("width", (2, 4, 8)), Choice("kernel", (1, 3)))

    def build(self, params: Params) -> Graph:
        b = GraphBuilder()
        b.output(b.conv(b.input((3, 8, 8)), int(params["width"]), int(params["kernel"])))
        return b.build()


def test_a_good_space_passes() -> None:
    check_space(Good())


class WrongString(Good):
    def to_string(self, params: Params) -> str:
        return super().to_string({**params, "width": 2})


class WrongSize(Good):
    def size(self) -> int:
        return 7


class Repeats(Good):
    def enumerate(self) -> Iterator[Architecture]:
        first = next(super().enumerate())
        return iter([first] * 6)


class Unfair(Good):
    def sample(self, n: int, seed: Any) -> list[Architecture]:
        return [
            a if a.params["width"] == 2 or i % 2 else super(Unfair, self).architecture({**a.params, "width": 2})
            for i, a in enumerate(super().sample(n, seed))
        ]


class Forgetful(Good):
    def sample(self, n: int, seed: Any) -> list[Architecture]:
        return super().sample(n, np.random.default_rng())


class TooFew(Good):
    def neighbours(self, a: Architecture) -> list[Architecture]:
        return super().neighbours(a)[1:]


class StandsStill(Good):
    def mutate(self, a: Architecture, seed: Any) -> Architecture:
        return a


class Leaps(Good):
    def mutate(self, a: Architecture, seed: Any) -> Architecture:
        other = {"width": 2 if a.params["width"] != 2 else 4, "kernel": 4 - int(a.params["kernel"])}
        return self.architecture(other)


class Outside(Good):
    def crossover(self, a: Architecture, b: Architecture, seed: Any) -> Architecture:
        return Architecture(self, (("width", 5), ("kernel", 3)))


class Asks(Good):
    def suggest(self, trial: Any) -> Architecture:
        trial.suggest_int("kernel", 1, 1)
        return next(self.enumerate())


class Restless(Good):
    built = 0

    def build(self, params: Params) -> Graph:
        type(self).built += 1
        return super().build({**params, "width": 2 + self.built % 2})


class Rounds(Good):
    """A kernel of 3 needs a width of 4 or more: one of the six is not valid."""

    def repair(self, params: Params) -> Params:
        return {**params, "kernel": 1} if params["width"] == 2 else params

    def size(self) -> int:
        return 5


class RepairsBadly(Rounds):
    def repair(self, params: Params) -> Params:
        return {**params, "width": {2: 4, 4: 8, 8: 2}[int(params["width"])]}


class DoesNotRepair(Rounds):
    def crossover(self, a: Architecture, b: Architecture, seed: Any) -> Architecture:
        return Architecture(self, (("width", 2), ("kernel", 3)))


def test_a_space_that_repairs_passes() -> None:
    check_space(Rounds())


class Broken(Good):
    def build(self, params: Params) -> Graph:
        raise KeyError("width")


class Nameless(Good):
    name = "Not A Name"


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (WrongString, "same string"),
        (WrongSize, "size\\(\\) is 7"),
        (Repeats, "twice"),
        (Unfair, "'width' are not drawn equally often"),
        (Forgetful, "same seed"),
        (TooFew, "2 neighbours; one changed parameter makes 3"),
        (StandsStill, "mutate changed nothing"),
        (Leaps, "a move by one parameter changed"),
        (Outside, "out of the space"),
        (Asks, "suggest asked for"),
        (Restless, "two different networks"),
        (Broken, "KeyError"),
        (Nameless, "'Not A Name'"),
        (RepairsBadly, "size\\(\\) is 5, but enumerate\\(\\) gives only 0"),
        (DoesNotRepair, "led out of the space"),
    ],
)
def test_the_space_kit_catches(space: type[SearchSpace], words: str) -> None:
    with pytest.raises(ConformanceError, match=words):
        check_space(space(), samples=5, networks=1)


def test_a_failed_check_is_an_assertion_and_a_usage_error() -> None:
    assert issubclass(ConformanceError, AssertionError) and issubclass(ConformanceError, UsageError)


def test_sampling_kit_knows_conditions() -> None:
    check_sampling(get_space("tiny"), draws=500)


class Timer:
    name, metric = "timer", "latency_ms/timer"

    def __init__(
        self, times: Sequence[float] = (1.0, 2.0, 3.0, 4.0), broken: type[Exception] | None = DeviceError
    ) -> None:
        self.times, self.broken = times, broken

    def measure(self, model: bytes) -> Measurement:
        if len(model) < 100 and self.broken is not None:
            raise self.broken("no network")
        return Measurement(*self.times, repeats=4, threads=1, stable=True)  # type: ignore[misc]


def test_the_device_kit() -> None:
    check_device(Timer())
    for device, words in (
        (Timer((2.0, 1.0, 3.0, 4.0)), "not in order"),
        (Timer((0.0, 1.0, 3.0, 4.0)), "above zero"),
        (Timer(broken=ValueError), "must be a DeviceError"),
        (Timer(broken=None), "which is no network"),
        (object(), "lacks"),
    ):
        with pytest.raises(ConformanceError, match=words):
            check_device(device)  # type: ignore[arg-type]
    unnamed = Timer()
    unnamed.metric = "latency/timer"
    with pytest.raises(ConformanceError, match="latency_ms/"):
        check_device(unnamed)
    with pytest.raises(ConformanceError, match="at least 1"):
        check_measurement(Measurement(1.0, 1.0, 1.0, 1.0, 0, 1, True))


class Lengths:
    """A good evaluator; `change` spoils what it gives."""

    name, metrics = "lengths", ("a", "b")

    def __init__(self, change: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame) -> None:
        self.change = change

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        check_metrics(self, metrics)
        values = [float(sum(map(ord, a.id))) for a in architectures]
        columns = {metric: values for metric in metrics}
        return self.change(value_frame(architectures, columns | {f"{metric}@0.1": values for metric in metrics}))


def test_the_evaluator_kit() -> None:
    few = list(dict.fromkeys(get_space("tiny").sample(8, seed=0)))
    check_evaluator(Lengths(), few)
    for change, words in (
        (lambda f: f.reset_index(drop=True), "architecture_id"),
        (lambda f: f.iloc[::-1], "order given"),
        (lambda f: f.iloc[1:], "order given"),
        (lambda f: f.drop(columns="b", errors="ignore"), "'b' is missing"),
        (lambda f: f.astype("int64"), "int64"),
        (lambda f: f.assign(c=1.0), "'c' is neither"),
        (lambda f: f.rename(columns={"a@0.1": "a@1.1"}), "'a@1.1' is neither"),
        (lambda f: f.assign(**{"a@0.9": f["b@0.1"] - 1} if "b@0.1" in f else {}), "a@0.1 is above a@0.9"),
        (lambda f: f * np.inf, "infinity"),
        (lambda f: f * 0, "same values"),
        (lambda f: f * np.nan, "no value"),
        (lambda f: f.assign(a=np.arange(len(f)) + 1.0) if "a" in f else f, "order of the architectures"),
        (lambda f: f * len(f.columns), "which other metrics"),
    ):
        with pytest.raises(ConformanceError, match=words):
            check_evaluator(Lengths(change), few)

    class Lenient(Lengths):
        def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
            return super().evaluate(architectures, [m for m in metrics if m in self.metrics])

    with pytest.raises(ConformanceError, match="does not list"):
        check_evaluator(Lenient(), few)


def test_the_tokenizer_kit() -> None:
    texts = [to_text(a) for a in list(get_space("tiny").enumerate())[:30]]
    tokenizer = TextTokenizer.train(texts)
    check_tokenizer(tokenizer, texts)

    class Blurred(TextTokenizer):
        def encode(self, texts: Sequence[str], *args: Any, **options: Any) -> list[list[int]]:
            return super().encode([text.replace("k3", "k1") for text in texts], *args, **options)

    with pytest.raises(ConformanceError, match="read back"):
        check_tokenizer(Blurred(tokenizer.to_bytes()), texts)

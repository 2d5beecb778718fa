"""The training evaluator: what it learns, that it can be repeated, and that failures stay failures."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch

from nasrlm import search
from nasrlm.errors import ConfigError, RunError
from nasrlm.evaluators import get_evaluator
from nasrlm.evaluators.training import TrainingEvaluator
from nasrlm.evaluators.training_loop import augmented
from nasrlm.evaluators.training_network import make_network
from nasrlm.evaluators.training_options import AUGMENTATIONS, TrainingOptions
from nasrlm.spaces import get_space
from tests.unit.evaluators.training_spaces import Deep, Digits, Modules, pictures

ACCURACY = "accuracy/digits"


def value(evaluator: TrainingEvaluator, **params: object) -> float:
    architecture = evaluator.space.architecture(params)
    return float(evaluator.evaluate([architecture], evaluator.metrics[:1]).iloc[0, 0])


def test_a_small_cnn_learns_digits_and_says_how() -> None:
    evaluator = TrainingEvaluator(Digits(), steps=60)
    found = value(evaluator, width=16, kind="norm")
    assert 93 < found <= 100
    assert evaluator.failures == {}
    log = evaluator.logs[Digits().architecture({"width": 16, "kind": "norm"}).id]
    assert [entry["step"] for entry in log] == [*range(6, 61, 6), 60]
    assert log[0]["loss"] > 5 * log[-2]["loss"] and log[-1]["validation_accuracy"] == found
    assert {entry["seed"] for entry in log} == {0}


def test_networks_without_normalisation_learn_too() -> None:
    assert value(TrainingEvaluator(Digits(), steps=60), width=16, kind="bare") > 90


def test_normalize_puts_batch_norm_behind_biases() -> None:
    options = {"steps": 40, "optimizer": "sgd", "learning_rate": 0.1}
    values = {way: value(TrainingEvaluator(Deep(), normalize=way, **options), depth=12) for way in (False, True)}
    assert values[True] > 2 * values[False]
    graph_has = make_network(Deep().architecture({"depth": 12}), 0, True)
    norms = [m for m in graph_has.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert len(norms) == 12
    assert all(m.bias is None for n, m in graph_has.named_children() if n.startswith("conv_") for m in [m[0]])
    squeezed = make_network(get_space("tiny").sample(1, seed=0)[0], 0, True)
    plain = make_network(get_space("tiny").sample(1, seed=0)[0], 0, False)
    assert list(squeezed.state_dict()) == list(plain.state_dict()), "it has BatchNorm already"


def test_the_seed_decides_and_nothing_else() -> None:
    options = {"steps": 15, "augmentation": ["flip", "shift"]}
    one = value(TrainingEvaluator(Digits(), **options), width=8, kind="norm")
    torch.manual_seed(99)
    torch.rand(3)
    after = TrainingEvaluator(Digits(), **options)
    value(after, width=16, kind="bare")
    assert value(after, width=8, kind="norm") == one
    with_other_seed = TrainingEvaluator(Digits(), seed=1, **options)
    assert value(with_other_seed, width=8, kind="norm") != one


def test_global_state_is_left_as_it_was() -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    threads, state, other = torch.get_num_threads(), torch.get_rng_state(), np.random.get_state()[1].copy()
    evaluator = TrainingEvaluator(Modules(), steps=3, threads=threads + 1)
    value(evaluator, how="good")
    value(evaluator, how="huge")
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], other)
    assert random.getstate() == random.Random(5).getstate()
    assert torch.get_num_threads() == threads


def test_several_seeds_are_averaged_and_shown() -> None:
    evaluator = TrainingEvaluator(Digits(), steps=8, seed=3, seeds=2, per_seed=True)
    assert evaluator.metrics == (ACCURACY, f"{ACCURACY}_seed3", f"{ACCURACY}_seed4")
    row = evaluator.evaluate(Digits().sample(1, seed=0), evaluator.metrics).iloc[0]
    assert row[ACCURACY] == pytest.approx((row[f"{ACCURACY}_seed3"] + row[f"{ACCURACY}_seed4"]) / 2)
    assert row[f"{ACCURACY}_seed3"] != row[f"{ACCURACY}_seed4"]
    alone = TrainingEvaluator(Digits(), steps=8, seed=4)
    assert float(alone.evaluate(Digits().sample(1, seed=0), [ACCURACY]).iloc[0, 0]) == row[f"{ACCURACY}_seed4"]


def test_each_is_trained_once() -> None:
    evaluator = TrainingEvaluator(Digits(), steps=2)
    architectures = Digits().sample(1, seed=0) * 3
    evaluator.evaluate(architectures, [])
    assert evaluator.logs == {}
    assert len(evaluator.evaluate(architectures, [ACCURACY])) == 3
    (log,) = evaluator.logs.values()
    evaluator.evaluate(architectures, [ACCURACY])
    assert list(evaluator.logs.values()) == [log] and next(iter(evaluator.logs.values())) is log


def test_a_hopeless_learning_rate_is_a_failure_with_its_reason() -> None:
    evaluator = TrainingEvaluator(Digits(), steps=10, learning_rate=1e30)
    assert math.isnan(value(evaluator, width=8, kind="bare"))
    (reason,) = evaluator.failures.values()
    assert "diverged: the loss is" in reason and "of 10" in reason and "learning_rate (1e+30)" in reason


def test_candidates_that_fail_are_told_apart_and_stop_nothing() -> None:
    space = Modules()
    evaluator = TrainingEvaluator(space, steps=10)
    values = evaluator.evaluate(list(space.enumerate()), [ACCURACY])[ACCURACY]
    reasons = {how: evaluator.failures.get(space.architecture({"how": how}).id, "") for how in values_of(space)}
    assert values.isna().tolist() == [False, True, True, True, True]
    assert reasons["good"] == ""
    assert "KeyError" in reasons["raises"] and "no such block" in reasons["raises"]
    assert "out of memory; lower batch_size (128)" in reasons["huge"]
    assert "(1280,) for 128 samples" in reasons["single"]
    assert "no weights to train" in reasons["fixed"]


def values_of(space: Modules) -> list[str]:
    return [str(a.params["how"]) for a in space.enumerate()]


def test_an_interrupt_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = TrainingEvaluator(Digits(), steps=2)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Digits, "build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(Digits().sample(1, seed=0), [ACCURACY])
    assert evaluator.failures == {}


def test_a_search_goes_on_over_failures() -> None:
    space = Modules()
    evaluator = TrainingEvaluator(space, steps=4)
    objective = search.Objective(ACCURACY, "maximize")
    result = search(space, [evaluator], [objective], sampler="random", n_trials=5, batch_size=5, seed=1)
    assert set(result.trials["state"]) == {"complete", "failed"}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_precisions_and_optimisers_learn(precision: str, optimizer: str) -> None:
    evaluator = TrainingEvaluator(Digits(), steps=30, precision=precision, optimizer=optimizer)
    assert value(evaluator, width=16, kind="norm") > 80


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
@pytest.mark.parametrize("precision", ["auto", "float16", "bfloat16", "float32"])
def test_a_gpu_learns(precision: str) -> None:
    evaluator = TrainingEvaluator(Digits(), steps=40, device="cuda", precision=precision)
    assert value(evaluator, width=16, kind="norm") > 85


def test_score_on_test_scores_other_samples() -> None:
    on = {part: TrainingEvaluator(Digits(), steps=10, score_on=part) for part in ("validation", "test")}
    values = {part: value(evaluator, width=8, kind="norm") for part, evaluator in on.items()}
    assert values["validation"] != values["test"]


def test_augmentation_moves_and_flips() -> None:
    x = torch.zeros(64, 1, 16, 16)
    x[:, :, 5, 4] = 1
    rng = torch.Generator().manual_seed(0)
    assert augmented(x, (), rng) is x
    flipped = augmented(x, ("flip",), rng)
    columns = flipped.amax((1, 2)).argmax(1)
    assert set(columns.tolist()) == {4, 11}
    moved = augmented(x, ("shift",), rng)
    assert set(moved.amax((1, 3)).argmax(1).tolist()) == {3, 4, 5, 6, 7}
    assert set(moved.amax((1, 2)).argmax(1).tolist()) == {2, 3, 4, 5, 6}
    assert bool((moved.sum((1, 2, 3)) == 1).all())


def test_length_by_steps_or_epochs() -> None:
    assert TrainingOptions(steps=7).length(1000) == 7
    assert TrainingOptions(epochs=2, batch_size=100).length(1000) == 20
    assert TrainingOptions(epochs=0.001).length(1000) == 1
    assert TrainingOptions(epochs=3, batch_size=128).length(40) == 3
    assert TrainingOptions(batch_size=100).length(1000) == 100


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "steps is 0. Allowed: a whole number from 1"),
        ({"steps": 3, "epochs": 1}, "both steps (3) and epochs (1)"),
        ({"epochs": -1}, "epochs is -1"),
        ({"epochs": math.nan}, "epochs is nan"),
        ({"batch_size": 1.5}, "batch_size is 1.5"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"optimizer": "adam"}, "optimizer is 'adam'. Nearest: adamw"),
        ({"weight_decay": -1}, "weight_decay is -1"),
        ({"warm_up": 1}, "warm_up is 1"),
        ({"augmentation": "flipp"}, "augmentation is 'flipp'. Nearest: flip. Allowed: flip, shift, or none"),
        ({"augmentation": 3}, "augmentation is '3'"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"device": "gpu"}, "device is 'gpu'"),
        ({"seed": -1}, "seed is -1"),
        ({"seeds": True}, "seeds is True"),
        ({"threads": 0}, "threads is 0"),
        ({"normalize": 1}, "normalize is 1. Allowed: true or false"),
        ({"per_seed": "yes"}, "per_seed is 'yes'"),
        ({"score_on": "train"}, "score_on is 'train'"),
        ({"held_out": 0.9}, "held_out is 0.9"),
        ({"workers": -1}, "workers is -1"),
        ({"label": "a b"}, "label is 'a b'"),
        ({"label": ""}, "label is ''"),
        ({"data_options": [1]}, "data_options is [1]"),
        ({"stepps": 3}, "'stepps' in evaluator training. Nearest: steps"),
    ],
)
def test_bad_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        get_evaluator("training", Digits(), **options)
    assert words in str(caught.value)
    assert caught.value.key in options


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
def test_no_gpu_here() -> None:
    with pytest.raises(ConfigError, match="no CUDA GPU"):
        TrainingEvaluator(Digits(), device="cuda")
    with pytest.raises(ConfigError, match="'float16', which needs a CUDA GPU"):
        TrainingEvaluator(Digits(), precision="float16")


def test_networks_and_data_must_fit() -> None:
    for space, words in (
        (Digits((3, 8, 8)), "take the shape (3, 8, 8), and the samples of digits have (1, 8, 8)"),
        (get_space("tiny"), "(3, 16, 16), and the samples of digits have (1, 8, 8)"),
    ):
        with pytest.raises(ConfigError) as caught:
            TrainingEvaluator(space)
        assert words in str(caught.value) and "resize: true" in str(caught.value)
    few = TrainingEvaluator(Digits(classes=4), steps=2)
    with pytest.raises(ConfigError, match="have 4 outputs, and digits has 10 classes"):
        few.evaluate(few.space.sample(1, seed=0), [ACCURACY])
    assert not math.isnan(value(TrainingEvaluator(Digits(classes=12), steps=2), width=8, kind="norm"))


def test_a_space_of_which_nothing_can_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Digits, "build", lambda *_: {}["width"])
    with pytest.raises(RunError, match="digits_cnn cannot be built: KeyError: 'width'"):
        TrainingEvaluator(Digits())


def test_every_augmentation_has_a_word() -> None:
    for kind in AUGMENTATIONS:
        evaluator = TrainingEvaluator(Digits(classes=2), data=pictures, steps=5, augmentation=kind)
        assert not math.isnan(value(evaluator, width=8, kind="norm"))

"""Errors: their kinds, and the words people read."""

from __future__ import annotations

import pickle

import pytest

from nasrlm import errors
from nasrlm.errors import ConfigError, NasrlmError, RunError, UnknownNameError, UsageError, nearest, unknown_name


def test_every_kind_is_either_wrong_use_or_a_failed_run() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, NasrlmError)]
    for kind in set(kinds) - {NasrlmError}:
        assert issubclass(kind, UsageError) != issubclass(kind, RunError), kind


@pytest.mark.parametrize(
    ("word", "allowed", "expected"),
    [
        ("nasbench2O1", ["tiny", "nasbench201"], ["nasbench201"]),
        ("TINY", ["tiny", "other"], ["tiny"]),
        ("cifar10", ["params", "accuracy/cifar10"], ["accuracy/cifar10"]),
        ("zzz", ["tiny", "other"], []),
        ("", ["tiny"], []),
        ("a", [], []),
    ],
)
def test_nearest(word: str, allowed: list[str], expected: list[str]) -> None:
    assert nearest(word, allowed) == expected


def test_nearest_gives_no_more_than_asked() -> None:
    assert len(nearest("abc1", ["abc2", "abc3", "abc4", "abc5"], n=2)) == 2


def test_unknown_name_says_what_where_nearest_allowed_and_what_to_do() -> None:
    error = unknown_name(
        "space", "nasbench2O1", ["nasbench201", "tiny"], where="quickstart.yaml:4", hint="Run `nasrlm list spaces`."
    )
    assert str(error) == (
        "unknown space 'nasbench2O1' in quickstart.yaml:4. Nearest: nasbench201. "
        "Known spaces: nasbench201, tiny. Run `nasrlm list spaces`."
    )
    assert (error.kind, error.value) == ("space", "nasbench2O1")
    assert error.nearest == ("nasbench201",)
    assert error.allowed == ("nasbench201", "tiny")


def test_unknown_name_among_none_or_many() -> None:
    assert "No devices are known here." in str(unknown_name("device", "cpu", []))
    many = str(unknown_name("key", "zzz", [f"k{i}" for i in range(200)]))
    assert "(200 in all)" in many
    assert "k199" not in many


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "bad."),
        ({"key": "study"}, "study: bad."),
        ({"file": "a.yaml"}, "a.yaml: bad."),
        ({"file": "a.yaml", "line": 3}, "a.yaml:3: bad."),
        ({"file": "a.yaml", "line": 3, "key": "study.x"}, "a.yaml:3: study.x: bad."),
    ],
)
def test_config_error_puts_the_place_in_front(place: dict[str, object], text: str) -> None:
    assert str(ConfigError("bad.", **place)) == text  # type: ignore[arg-type]


def test_errors_survive_another_process() -> None:
    config = pickle.loads(pickle.dumps(ConfigError("bad.", file="a.yaml", line=3, key="k")))
    assert (str(config), config.line) == ("a.yaml:3: k: bad.", 3)
    unknown = pickle.loads(pickle.dumps(unknown_name("space", "tinny", ["tiny"])))
    assert isinstance(unknown, UnknownNameError)
    assert unknown.nearest == ("tiny",)

"""Every registered space, device and evaluator goes through its kit, without being named here.

Only evaluators and devices whose options have no defaults need an entry in RECIPES or DEVICES.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from nasrlm import registry
from nasrlm.devices import device_class, get_device, option_names
from nasrlm.errors import DeviceError
from nasrlm.evaluators import evaluator_class, get_evaluator
from nasrlm.graph import to_onnx
from nasrlm.spaces import Architecture, SearchSpace, get_space
from nasrlm.testing import check_device, check_evaluator, check_space
from tests.conformance.spaces import affordable, spaces


def few(space: SearchSpace) -> list[Architecture]:
    return list(dict.fromkeys(space.sample(12, seed=1)))[:6]


def table_recipe(space: SearchSpace, folder: Path) -> dict[str, Any]:
    rows = {
        "arch": [a.string for a in few(space)],
        "ms": [1.5 + i for i in range(6)],
        "acc": [90.0 + i for i in range(6)],
    }
    pd.DataFrame(rows).to_csv(folder / "table.csv", index=False)
    return {"path": folder / "table.csv", "metrics": {"ms": "latency_ms/toy", "acc": "accuracy/toy"}}


def device_recipe(space: SearchSpace, folder: Path) -> dict[str, Any]:
    return {"device": "onnxruntime_cpu", "repeats": 5, "tries": 1, "max_spread": 100.0}


def rlm_recipe(space: SearchSpace, folder: Path) -> dict[str, Any]:
    if "nasbench201" not in registry.names("checkpoints"):
        pytest.skip("the checkpoint nasbench201 is not there yet")
    return {"checkpoint": "nasbench201"}


def training_recipe(space: SearchSpace, folder: Path) -> dict[str, Any]:
    return {"data": "digits", "resize": True, "steps": 12, "seeds": 2, "per_seed": True}


LARGE = 300
"""Operators of a network from which on a space is checked on fewer of them."""

RECIPES: dict[str, Callable[[SearchSpace, Path], dict[str, Any]]] = {
    "device": device_recipe,
    "rlm": rlm_recipe,
    "table": table_recipe,
    "training": training_recipe,
}
SPACES = {"rlm": "nasbench201"}


def table_device(folder: Path) -> dict[str, Any]:
    (row,) = get_space("tiny").sample(1, seed=0)
    pd.DataFrame({"arch": [row.string], "board_ms": [1.5]}).to_csv(folder / "table.csv", index=False)
    return {"path": str(folder / "table.csv"), "column": "board_ms", "space": "tiny"}


DEVICES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "remote": lambda folder: {"command": [sys.executable, "-c", "print(2.5)"]},
    "roofline": lambda folder: {"peak_gmacs": 10.0, "bandwidth_gbs": 10.0},
    "table": table_device,
}
ABSENT = ("needs an NVIDIA GPU", "needs the package")


def device_here(name: str, folder: Path) -> Any:
    """The device, or a skipped test that says what this machine lacks for it."""
    options = DEVICES[name](folder) if name in DEVICES else {}
    try:
        return get_device(name, **options)
    except DeviceError as error:
        if not any(words in str(error) for words in ABSENT):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", spaces())
def test_space(name: str) -> None:
    space = affordable(name)
    assert space.name == name
    large = len(space.sample(1, seed=0)[0].graph()) > LARGE
    check_space(space, samples=5 if large else 10, networks=1 if large else 2)


@pytest.mark.parametrize("name", registry.names("devices"))
def test_device(name: str, tmp_path: Path) -> None:
    assert device_class(name).name == name
    device = device_here(name, tmp_path)
    (network,) = get_space("tiny").sample(1, seed=0)
    check_device(device, to_onnx(network, weights="random").SerializeToString())


@pytest.mark.parametrize("name", registry.names("evaluators"))
def test_evaluator(name: str, tmp_path: Path) -> None:
    space = get_space(SPACES.get(name, "tiny"))
    options = RECIPES[name](space, tmp_path) if name in RECIPES else {}
    kind = evaluator_class(name)
    required = [
        option
        for option in option_names(kind, positional=1)
        if inspect.signature(kind).parameters[option].default is inspect.Parameter.empty
    ]
    assert set(required) <= set(options), f"{name} needs {required}: add a recipe for it to {__file__}"
    evaluator = get_evaluator(name, space, **options)
    assert evaluator.name == name
    check_evaluator(evaluator, few(space))


def test_something_is_registered() -> None:
    assert {"nasbench201", "tiny"} <= set(registry.names("spaces"))
    assert {"onnxruntime_cpu", "onnxruntime_int8", "openvino_cpu", "onnxruntime_cuda", "triton_gpu"} <= set(
        registry.names("devices")
    )
    assert {"remote", "roofline", "table"} <= set(registry.names("devices"))
    assert {"cost", "device", "rlm", "table", "training"} <= set(registry.names("evaluators"))

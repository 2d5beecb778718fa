"""The public names, and that `nasrlm.search` stays a function."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import nasrlm


def test_every_public_name_resolves() -> None:
    for name in nasrlm.__all__:
        assert getattr(nasrlm, name) is not None
    assert set(nasrlm.__all__) <= set(dir(nasrlm))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        nasrlm.frobnicate  # noqa: B018


@pytest.mark.parametrize("first", ["import nasrlm.search", "from nasrlm import search", "import nasrlm.search.front"])
def test_search_is_the_function_whatever_was_imported_first(first: str) -> None:
    code = f"{first}\nimport nasrlm\nassert callable(nasrlm.search)\nfrom nasrlm.search import Objective\n"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_loads_nothing_heavy() -> None:
    heavy = ("torch", "onnx", "onnxruntime", "optuna", "pandas", "numpy", "sklearn", "matplotlib")
    code = f"import sys, nasrlm\nprint([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_spaces_load_without_torch_onnx_optuna() -> None:
    code = (
        "import sys\nfrom nasrlm import get_space\nget_space('tiny').sample(3, seed=0)[0].graph()\n"
        "print([m for m in ('torch', 'onnx', 'optuna') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_installed_one() -> None:
    assert importlib.import_module("importlib.metadata").version("nasrlm") == nasrlm.__version__

"""What is built: the wheel's files and metadata. setup.cfg ignores keys it does not know, so the result is read."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest

import nasrlm

BUILD = "import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])"
CORE = {
    "matplotlib",
    "moocore",
    "networkx",
    "numpy",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "optuna",
    "pandas",
    "plotly",
    "protobuf",
    "pyarrow",
    "pydantic",
    "rich",
    "ruamel.yaml",
    "safetensors",
    "scikit-learn",
    "scipy",
    "sentencepiece",
    "sympy",
    "torch",
    "typer",
}
EXTRAS = {
    "t5gemma",
    "triton",
    "openvino",
    "html",
    "dashboard",
    "postgres",
    "grpc",
    "benchmarks",
    "test",
    "docs",
    "dev",
}


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from a copy so that nothing is left in the working tree."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("wheel")
    skip = shutil.ignore_patterns("__pycache__", ".*", "runs", "data", "build", "dist", "venv", "*.egg-info")
    shutil.copytree(root, folder / "source", ignore=skip)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=folder / "source", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return HeaderParser().parsestr(wheel.read(name).decode())


def test_the_wheel_holds_every_file_of_the_packages(wheel: zipfile.ZipFile, root: Path) -> None:
    wanted = {
        str(path.relative_to(root))
        for folder in ("nasrlm", "search_spaces")
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"nasrlm/py.typed", "nasrlm/pretrained/__init__.py", "search_spaces/tiny.py"} <= wanted
    assert wanted <= set(wheel.namelist())


def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"nasrlm", "search_spaces", f"nasrlm-{nasrlm.__version__}.dist-info"}
    tables = [name for name in wheel.namelist() if name.endswith((".csv.gz", ".parquet", ".pyc"))]
    assert tables == ["nasrlm/tables/snas_digits.parquet"]  # our own; no published table


def test_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "nasrlm"
    assert metadata["Version"] == nasrlm.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Summary"]
    assert "nasrlm" in metadata.get_payload()


def test_requirements(metadata: Message) -> None:
    required = metadata.get_all("Requires-Dist") or []
    core = {line.split(">=")[0].split(";")[0].strip() for line in required if "extra ==" not in line}
    assert core == CORE
    assert set(metadata.get_all("Provides-Extra") or []) == EXTRAS
    used = {extra for extra in EXTRAS if any(f'extra == "{extra}"' in line for line in required)}
    assert used == EXTRAS


def test_entry_points(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read_string(wheel.read(name).decode())
    assert {section: dict(parser[section]) for section in parser.sections()} == {
        "console_scripts": {"nasrlm": "nasrlm.cli:main"},
        "nasrlm.spaces": {"builtin": "search_spaces"},
        "nasrlm.devices": {"builtin": "nasrlm.devices"},
        "nasrlm.evaluators": {"builtin": "nasrlm.evaluators"},
        "nasrlm.checkpoints": {"builtin": "nasrlm.pretrained"},
        "nasrlm.importers": {"builtin": "nasrlm.datasets.importers"},
    }


def test_setup_cfg_is_not_hidden_by_a_project_table(root: Path) -> None:
    assert "\n[project]" not in (root / "pyproject.toml").read_text()


def test_every_direct_requirement_has_a_tested_version(root: Path) -> None:
    pinned = {
        line.split("==")[0].strip().lower().replace(".", "-")
        for line in (root / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    }
    parser = configparser.RawConfigParser()
    parser.read(root / "setup.cfg")
    lines = parser["options"]["install_requires"].splitlines()
    lines += [line for value in parser["options.extras_require"].values() for line in value.splitlines()]
    names = {line.split(">=")[0].split("[")[0].strip().lower().replace(".", "-") for line in lines}
    assert names - {"", "setuptools"} <= pinned

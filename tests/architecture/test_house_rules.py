"""The house rules that a program can check, on every file of nasrlm, search_spaces and the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("nasrlm", "search_spaces") for path in (ROOT / folder).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FILE_LINES, FUNCTION_LINES = 400, 60
WRONG_WORDS = re.compile(r'(?<!")genotype(?!\()|fitness|\boracle|frontier', re.I)  # "genotype" is a published key

sources = pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
everything = pytest.mark.parametrize("path", SOURCES + TESTS, ids=lambda path: str(path.relative_to(ROOT)))


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def test_there_is_something_to_check() -> None:
    assert len(SOURCES) > 20
    assert len(TESTS) > 5


@everything
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < FILE_LINES
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno + 1 < FUNCTION_LINES, node.name


@sources
def test_no_print_outside_cli(path: Path) -> None:
    if path.is_relative_to(ROOT / "nasrlm" / "cli"):
        return
    calls = [n.lineno for n in nodes(path) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "print"]
    assert calls == []


@sources
def test_no_bare_except_no_eval_no_assert(path: Path) -> None:
    for node in nodes(path):
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), f"bare except, line {node.lineno}"
        if isinstance(node, ast.Assert):
            # `assert x is not None` only tells the type checker what is known; anything else would check something.
            assert ast.unparse(node.test).endswith(" is not None"), f"assert, line {node.lineno}"
        if isinstance(node, ast.Call):
            assert getattr(node.func, "id", "") not in ("eval", "exec"), f"eval, line {node.lineno}"


@sources
def test_public_names_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "module"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name


@sources
def test_words(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert WRONG_WORDS.findall(text) == []

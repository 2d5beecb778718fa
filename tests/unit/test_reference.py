"""docs/reference/spaces.md: every space has a section and a picture, and both are as the spaces are now."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from nasrlm import registry


@pytest.fixture(scope="module")
def reference(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", root / "docs" / "make_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def test_the_page_and_the_pictures_are_up_to_date(reference: ModuleType) -> None:
    assert reference.outdated() == [], "run: python docs/make_reference.py"


def test_every_space_has_a_section_and_a_picture(reference: ModuleType, root: Path) -> None:
    text = reference.PAGE.read_text(encoding="utf-8")
    for name in registry.names("spaces"):
        first = registry.alias_of("spaces", name) or name
        assert f"\n## {first}\n" in text
        assert f'src="../images/spaces/{first}.svg"' in text
        assert (root / "docs" / "images" / "spaces" / f"{first}.svg").is_file()


def test_pictures_are_small(reference: ModuleType) -> None:
    sizes = [file.stat().st_size for file in reference.PICTURES.iterdir()]
    assert max(sizes) < 100_000
    assert sum(sizes) < 2_500_000


def test_a_picture_is_cut_between_boxes(reference: ModuleType) -> None:
    rows = "".join(
        f'<path d="M 10 {y} L 90 {y} L 90 {y + 20} z" style="fill: #a6cee9; stroke: #777777"/>'
        for y in range(10, 3000, 50)
    )
    svg = reference.in_columns(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 3000">{rows}</svg>')
    assert svg.count("<use ") == 4
    cuts = [float(top) for top in re.findall(r'viewBox="0 ([\d.]+) 100.0 [\d.]+" overflow', svg)]
    assert len(cuts) == 4
    assert all(cut % 50 == 45 for cut in cuts[1:])

"""The recipe of CONTRIBUTING.md works as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from nasrlm import get_space
from nasrlm.testing import check_space


def test_the_space_of_the_recipe_passes_its_kit(root: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (root / "CONTRIBUTING.md").read_text(), re.S)
    assert len(blocks) == 1
    file = tmp_path / "my_space.py"
    file.write_text(blocks[0])
    space = get_space(file)
    assert space.size() == 2 + 4
    check_space(space)

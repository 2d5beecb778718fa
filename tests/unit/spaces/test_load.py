"""get_space: names, options, users' files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nasrlm import get_space
from nasrlm.errors import UnknownNameError, UsageError

FILE = """
from nasrlm import Choice, GraphBuilder, SearchSpace

class Mine(SearchSpace):
    name = "mine"
    source = "me"
    parameters = (Choice("width", (4, 8)),)

    def __init__(self, classes=10):
        self.classes = classes

    def build(self, params):
        b = GraphBuilder()
        x = b.conv(b.input((3, 8, 8)), params["width"], 3)
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), self.classes))
        return b.build()

SPACE = Mine
"""


def test_a_users_file_is_a_space(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    space = get_space(file, classes=3)
    assert space.size() == 2
    assert get_space(str(file)).sample(1, seed=0)[0].graph().outputs


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ('    name = "mine"\n', "lacks: name"),
        ('    source = "me"\n', "lacks: source"),
        ("    def build(self, params):", "describes no network"),
        ("SPACE = Mine\n", "defines no SPACE"),
    ],
)
def test_a_users_file_that_lacks_something(tmp_path: Path, cut: str, expected: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.replace(cut, "    def other(self, params):" if "def" in cut else ""))
    with pytest.raises(UsageError, match=expected):
        get_space(file)


def test_space_must_be_a_class(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("SPACE = 3\n")
    with pytest.raises(UsageError, match=r"is 3\. It must be a subclass of nasrlm\.SearchSpace"):
        get_space(tmp_path / "mine.py")


def test_names_are_suggested() -> None:
    with pytest.raises(UnknownNameError, match="Nearest: nasbench201"):
        get_space("nasbench2O1")


def test_a_missing_path_is_a_path() -> None:
    with pytest.raises(UsageError, match="no Python file './none/there.py'"):
        get_space("./none/there.py")


def test_options_are_checked_by_name() -> None:
    with pytest.raises(UsageError, match="no option 'num_clases'. Nearest: num_classes"):
        get_space("nasbench201", num_clases=10)
    with pytest.raises(UsageError, match="'tiny' has no option 'depth'.*has no options"):
        get_space("tiny", depth=10)

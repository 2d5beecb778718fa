"""The registry: names without imports, plugins, names given twice, shadowed folders, users' files."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from nasrlm import registry
from nasrlm.errors import UnknownNameError, UsageError

PLUGIN = "nasrlm_test_plugin"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed third-party package: its folder of spaces and its entry points, ready to be filled."""
    info = tmp_path / "site" / f"{PLUGIN}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PLUGIN}\nVersion: 1.0\n")
    package = info.parent / PLUGIN
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(info.parent))
    yield package
    for name in [name for name in sys.modules if name.startswith(PLUGIN)]:
        del sys.modules[name]


def entry_points(package: Path, text: str) -> None:
    (package.parent / f"{PLUGIN}-1.0.dist-info" / "entry_points.txt").write_text(dedent(text))


def test_builtin_spaces_are_listed_sorted() -> None:
    found = registry.names("spaces")
    assert {"nasbench201", "tiny"} <= set(found)
    assert found == sorted(found)


def test_an_unknown_kind_has_no_names() -> None:
    assert registry.names("frobnicators") == []


def test_get_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        registry.get("spaces", "nasbench2O1")
    assert "unknown space 'nasbench2O1'. Nearest: nasbench201, " in str(caught.value)
    assert " Known spaces: " in str(caught.value)
    assert "nasrlm list spaces" in str(caught.value)


def test_a_package_gives_the_modules_that_define_the_attribute_without_importing_them(plugin: Path) -> None:
    entry_points(plugin, f"[nasrlm.spaces]\nmine = {PLUGIN}\n")
    (plugin / "good.py").write_text("SPACE = 'good space'\n")
    (plugin / "typed.py").write_text("SPACE: str = 'typed'\n")
    (plugin / "helper.py").write_text("def make():\n    SPACE = 1\n    return SPACE\n")
    (plugin / "_private.py").write_text("SPACE = 1\n")
    (plugin / "boom.py").write_text("SPACE = 1 / 0\n")
    (plugin / "folder").mkdir()
    (plugin / "folder" / "__init__.py").write_text("SPACE = 'folder'\n")
    assert set(registry.names("spaces")) >= {"good", "typed", "boom", "folder", "tiny"}
    assert not {"helper", "_private"} & set(registry.names("spaces"))
    assert PLUGIN not in sys.modules
    assert registry.get("spaces", "good") == "good space"
    assert registry.get("spaces", "folder") == "folder"


def test_an_alias_is_a_second_name(plugin: Path) -> None:
    entry_points(plugin, f"[nasrlm.spaces]\nmine = {PLUGIN}\n")
    (plugin / "good.py").write_text("SPACE = 'good space'\n")
    (plugin / "best.py").write_text('"""Good, under the name of another paper."""\n\nALIAS_OF = "good"\n')
    assert {"good", "best"} <= set(registry.names("spaces"))
    assert registry.get("spaces", "best") == "good space"
    assert registry.alias_of("spaces", "best") == "good"
    assert registry.alias_of("spaces", "good") is registry.alias_of("spaces", "nobody") is None
    (plugin / "worse.py").write_text("ALIAS_OF = 'goood'\n")
    with pytest.raises(UsageError, match="'worse', given by .*worse.py .* is an alias of 'goood', which is no space"):
        registry.names("spaces")


def test_an_entry_point_may_name_one_object(plugin: Path) -> None:
    entry_points(plugin, f"[nasrlm.devices]\nquick = {PLUGIN}.things:Quick\n")
    (plugin / "things.py").write_text("class Quick: pass\n")
    assert "quick" in registry.names("devices")
    assert registry.get("devices", "quick").__name__ == "Quick"


def test_a_name_given_twice_names_both_givers(plugin: Path) -> None:
    entry_points(plugin, f"[nasrlm.spaces]\nmine = {PLUGIN}\n")
    (plugin / "tiny.py").write_text("SPACE = 1\n")
    with pytest.raises(UsageError, match="'tiny' is given twice") as caught:
        registry.names("spaces")
    assert f"({PLUGIN})" in str(caught.value)
    assert "(nasrlm)" in str(caught.value)


def test_what_a_module_lacks_is_said(plugin: Path) -> None:
    entry_points(plugin, f"[nasrlm.devices]\nmine = {PLUGIN}\n")
    (plugin / "needy.py").write_text("import a_package_nobody_has\nDEVICE = 1\n")
    with pytest.raises(UsageError, match="device 'needy' .* cannot be loaded: .*a_package_nobody_has"):
        registry.get("devices", "needy")


def test_a_package_that_is_gone_is_said(plugin: Path) -> None:
    entry_points(plugin, "[nasrlm.spaces]\nmine = no_such_package_here\n")
    with pytest.raises(UsageError, match="'no_such_package_here'.* is gone"):
        registry.names("spaces")


def test_checkpoints_are_folders_with_a_config(plugin: Path) -> None:
    entry_points(plugin, f"[nasrlm.checkpoints]\nmine = {PLUGIN}\n")
    (plugin / "small").mkdir()
    (plugin / "small" / "config.json").write_text("{}")
    (plugin / "empty").mkdir()
    assert "small" in registry.names("checkpoints")
    assert "empty" not in registry.names("checkpoints")
    assert registry.get("checkpoints", "small") == plugin / "small"


def test_a_users_folder_that_hides_the_spaces_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "search_spaces"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "search_spaces"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UsageError) as caught:
        registry.names("spaces")
    assert f"the folder {folder} hides the spaces that come with nasrlm" in str(caught.value)
    assert "Rename it" in str(caught.value)


def test_a_users_file(tmp_path: Path) -> None:
    file = tmp_path / "my-space.py"
    file.write_text(
        "from __future__ import annotations\nimport dataclasses\n"
        "@dataclasses.dataclass\nclass A:\n    x: int = 1\nSPACE = A\n"
    )
    first = registry.load_file("spaces", file)
    assert first().x == 1
    assert registry.load_file("spaces", str(file)) is first
    file.write_text("SPACE = 2\n")
    assert registry.load_file("spaces", file) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\ny = x / 0\n", r"my\.py:2: ZeroDivisionError: division by zero"),
        ("x = 1\n\nif x\n", r"my\.py:3: SyntaxError"),
        ("import nobody_has_this\n", r"my\.py:1: ModuleNotFoundError"),
        ("OTHER = 1\n", "defines no SPACE.*Add `SPACE = YourClass`"),
    ],
)
def test_a_users_file_with_a_mistake(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "my.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=expected):
        registry.load_file("spaces", file)


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "my_space.py").write_text("SPACE = 1\n")
    with pytest.raises(UsageError, match=r"my_spase\.py.*Nearest in .*my_space\.py"):
        registry.load_file("spaces", tmp_path / "my_spase.py")

"""What every test folder shares: where the published tables lie, and what is skipped without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if DATA.is_dir():
        return
    skip = pytest.mark.skip(reason=f"the published tables are not in {DATA}")
    for item in items:
        if "data" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests time is not kept beside the user's times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NASRLM_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of published tables; ask for it in tests marked ``data``."""
    return DATA


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT

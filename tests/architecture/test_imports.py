"""The import contracts of setup.cfg hold, and no module imports itself round a circle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp
import networkx as nx

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"


def test_import_contracts(root: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LINT], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_cycles() -> None:
    graph = grimp.build_graph("nasrlm", "search_spaces", exclude_type_checking_imports=True, cache_dir=None)
    imports = nx.DiGraph(
        (module, other) for module in graph.modules for other in graph.find_modules_directly_imported_by(module)
    )
    assert [sorted(group) for group in nx.strongly_connected_components(imports) if len(group) > 1] == []

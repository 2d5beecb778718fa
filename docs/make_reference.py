"""Writes docs/reference/spaces.md and the pictures in docs/images/spaces: python docs/make_reference.py

Everything on the page comes from the spaces themselves: their docstrings, parameters, options and EXAMPLE. A test holds
the page to them (tests/unit/test_reference.py), so run this when a space changes. `--check` only says what is outdated.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nasrlm import registry
from nasrlm.cli.space_facts import example, metrics_in_full, metrics_text, plain, size_text, space_facts
from nasrlm.cli.space_facts import methods as extra_methods
from nasrlm.graph import costs, to_text
from nasrlm.graph.picture import draw
from nasrlm.graph.picture_plan import plan
from nasrlm.spaces import Architecture, SearchSpace, get_space
from nasrlm.spaces.parameters import is_active

sys.path.insert(0, str(Path(__file__).parent))
from svg_columns import in_columns

DOCS = Path(__file__).parent
PAGE = DOCS / "reference" / "spaces.md"
PICTURES = DOCS / "images" / "spaces"

MOST_BOXES, FEW_LAYERS = 120, 4
"""Boxes that a picture may have; layers of the network that is drawn if it has more."""

HEAD = """\
# Search spaces

Made from the spaces by `python docs/make_reference.py`; do not edit. `nasrlm list spaces` prints the same in short,
`nasrlm list spaces NAME` one space in full. "Objectives known" are metrics that somebody has published for
architectures of the space: a table brings them (`nasrlm list evaluators`), the costs `params`, `macs`,
`activation_bytes` and `depth` are known for every architecture of every space.

A picture shows a network of the space as the model reads it: a box is a line of the canonical text, a frame a block
that comes again, blue the shape of a value where it changes (without the batch). Long pictures go on in the next
column.
"""


def names() -> list[str]:
    """The spaces of this project, without aliases."""
    found = registry.names("spaces")
    own = [name for name in found if get_space(name).__class__.__module__.startswith("search_spaces.")]
    return [name for name in own if registry.alias_of("spaces", name) is None]


def page() -> str:
    """The page as Markdown."""
    spaces = {name: get_space(name) for name in names()}
    rows = [
        [f"[{name}](#{name})", size_text(space.size()), metrics_text(space.metrics) or "none"]
        for name, space in spaces.items()
    ]
    parts = [HEAD, _table(["space", "architectures", "objectives known"], rows)]
    parts += [_section(space) for space in spaces.values()]
    return "\n".join(parts)


def _section(space: SearchSpace) -> str:
    facts, shown = space_facts(space), example(space)
    size, exact = size_text(facts["architectures"]), f"{facts['architectures']:,}"
    counted = costs(shown).metrics()
    aliases = [name for name in registry.names("spaces") if registry.alias_of("spaces", name) == space.name]
    rows = [
        ["architectures", size if size == exact else f"{size} = {exact}"],
        ["source", facts["source"]],
        ["objectives known", metrics_in_full(facts["metrics"]) or "none"],
        ["official string", facts["encoding"]],
        *[[f"`{row['name']}`", row["what it does"]] for row in extra_methods(type(space))],
        *([["other names", ", ".join(aliases)]] if aliases else []),
        ["the example below", f"{int(counted['params']):,} parameters, {int(counted['macs']):,} MACs"],
    ]
    parts = [f"## {space.name}\n", f"{_escaped(facts['what it is'])}\n", _table(["", ""], rows)]
    parts += [f"```\n{facts['example']}\n```\n", _parameters(facts["parameters"])]
    if facts["options"]:
        rows = [[f"`{row['option']}`", f"`{row['default']}`", row["meaning"]] for row in facts["options"]]
        parts.append(_table(["option", "default", "meaning"], rows))
    notes = inspect.getdoc(sys.modules[type(space).__module__]) or ""
    parts.append(f"{_escaped(plain(notes))}\n")
    _, words = drawn(space)
    parts.append(f"Below: {words}.\n")
    parts.append(f'<img src="../images/spaces/{space.name}.svg" alt="A network of the space {space.name}">\n')
    return "\n".join(parts)


def _parameters(groups: list[dict[str, Any]]) -> str:
    conditional = any(row["only if"] for row in groups)
    columns = ["parameter", "number", "values", *(["only if"] if conditional else [])]
    return _table(columns, [[str(row[column]) for column in columns] for row in groups])


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    cells = [[_escaped(cell).replace("|", "\\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")


def drawn(space: SearchSpace) -> tuple[Architecture, str]:
    """The architecture of the picture and what it is: the example, or something like it that is less deep."""
    a = example(space)
    if len(plan(a).boxes) <= MOST_BOXES:
        return a, "the example"
    if "layers" in inspect.signature(type(space)).parameters:
        return example(get_space(space.name, layers=FEW_LAYERS)), f"the example with {FEW_LAYERS} layers"
    first = {parameter.name: parameter.options[0] for parameter in space.parameters}
    if "depth" in first and a.params["depth"] != first["depth"]:
        return space.repaired({**a.params, "depth": first["depth"]}), f"the example with depth {first['depth']}"
    active: dict[str, Any] = {}
    for parameter in space.parameters:
        if is_active(parameter, active):
            active[parameter.name] = parameter.options[0]
    return space.repaired(active), "the network whose parameters have their first values"


def mark(a: Architecture) -> str:
    """The line in a picture that says of which text it is."""
    return f"<!-- sha256 of the canonical text: {hashlib.sha256(to_text(a).encode()).hexdigest()} -->"


def picture(a: Architecture) -> str:
    """The picture of an architecture as SVG, in columns."""
    with TemporaryDirectory() as folder:
        svg = draw(a, Path(folder) / "network.svg").read_text(encoding="utf-8")
    return f"{in_columns(svg)}{mark(a)}\n"


def outdated() -> list[Path]:
    """Files that are not as the spaces are now, or are there without a space."""
    found = [] if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page() else [PAGE]
    wanted = {PICTURES / f"{name}.svg": drawn(get_space(name))[0] for name in names()}
    for file, shown in wanted.items():
        if not file.is_file() or mark(shown) not in file.read_text(encoding="utf-8"):
            found.append(file)
    return found + [file for file in sorted(PICTURES.glob("*")) if file not in wanted]


def main() -> int:
    """Write what is outdated, or with --check only name it."""
    changed = outdated()
    for file in changed:
        print(file.relative_to(DOCS.parent))
    if "--check" in sys.argv[1:]:
        return int(bool(changed))
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for file in changed:
        if file == PAGE:
            file.write_text(page(), encoding="utf-8")
        elif file.stem in names():
            file.write_text(picture(drawn(get_space(file.stem))[0]), encoding="utf-8")
        else:
            file.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

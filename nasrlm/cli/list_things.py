"""nasrlm list: what there is to choose from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from nasrlm.cli.common import WIDTH, Json, broken, out, out_json, out_table
from nasrlm.errors import NasrlmError, UsageError, unknown_name

Row = dict[str, Any]
_LONG = 20  # letters of a line of a metric's name


def command(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="spaces, devices, evaluators, samplers, checkpoints, metrics or experiments; default: all.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="All about one space, or about your own .py file.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what there is to choose from."""
    if kind is not None and kind not in _KINDS:
        raise unknown_name("kind", kind, _KINDS, hint="`nasrlm list` shows all.")
    if name is not None:
        if kind != "spaces":
            raise UsageError(f"{name!r} is one word too many: only `nasrlm list spaces` takes a name.")
        _one_space(name, as_json)
        return
    found = {word: _KINDS[word]() for word in ([kind] if kind else _KINDS)}
    if as_json:
        out_json(found[kind] if kind else found)
        return
    for word, rows in found.items():
        if rows:
            out_table(_shown_spaces(rows) if word == "spaces" else rows, title=word)
        else:
            out(f"{word}\n  none here\n")
    if kind == "spaces":
        out("One space in full: nasrlm list spaces NAME")


def _spaces() -> list[Row]:
    from nasrlm import registry
    from nasrlm.spaces import get_space

    def row(name: str) -> Row:
        space, alias = get_space(name), registry.alias_of("spaces", name)
        facts = {"architectures": space.size(), "parameters": len(space.parameters)}
        return {
            **facts,
            "metrics": list(space.metrics),
            "source": space.source,
            **({"alias of": alias} if alias else {}),
        }

    return _described("spaces", row)


def _shown_spaces(rows: list[Row]) -> list[Row]:
    """Rows for people: sizes short and under each other, metrics by kind."""
    from nasrlm.cli.space_facts import metrics_text, size_text

    sizes = [size_text(row["architectures"]) if "architectures" in row else "" for row in rows]
    wide = max(map(len, sizes))
    shown: list[Row] = []
    for row, size in zip(rows, sizes, strict=True):
        alias, source = row.get("alias of"), str(row.get("source") or row.get("problem")).split(";")[0]
        objectives = " ".join(broken(word, _LONG) for word in metrics_text(row.get("metrics", ())).split(" "))
        says = f"another name of {alias}" if alias else source
        shown.append({"name": row["name"], "size": size.rjust(wide), "objectives known": objectives, "source": says})
    return shown


def _one_space(name: str, as_json: bool) -> None:
    from nasrlm.cli.space_facts import metrics_in_full, size_text, space_facts
    from nasrlm.spaces import get_space

    facts = space_facts(get_space(name))
    if as_json:
        out_json(facts)
        return
    size = size_text(facts["architectures"])
    exact = f"{facts['architectures']:,}"
    out(_filled(f"{facts['name']}: {facts['what it is']}"))
    out(_filled(f"architectures: {size}" + (f" = {exact}" if exact != size else "")))
    out(_filled(f"source: {facts['source']}"))
    out(_filled(f"objectives known: {metrics_in_full(facts['metrics']) or 'none'}"))
    out(f"official string: {facts['encoding']}\nexample:\n{facts['example']}\n")
    conditional = any(row["only if"] for row in facts["parameters"])
    columns = ["parameter", "number", "values", *(["only if"] if conditional else [])]
    out_table(facts["parameters"], title="parameters", columns=columns)
    if facts["options"]:
        shown = [{**row, "default": str(row["default"])} for row in facts["options"]]
        out_table(shown, title="options, in an experiment: space: {name: ..., options: {...}}")


def _filled(text: str) -> str:
    """A text in lines of at most 80 letters, with a blank line behind it."""
    import textwrap

    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def _devices() -> list[Row]:
    from nasrlm.devices import device_class

    return _described("devices", lambda name: {"what it does": _first_sentence(device_class(name))})


def _evaluators() -> list[Row]:
    from nasrlm.devices import option_names
    from nasrlm.evaluators import evaluator_class

    def row(name: str) -> Row:
        kind = evaluator_class(name)
        return {"what it does": _first_sentence(kind), "options": option_names(kind, positional=1)}

    return _described("evaluators", row)


def _samplers() -> list[Row]:
    from nasrlm.search.samplers import SAMPLERS, sampler_class

    return [{"name": name, "class": sampler_class(name).__name__} for name in SAMPLERS]


def _checkpoints() -> list[Row]:
    import json

    from nasrlm import registry

    rows = []
    for name in registry.names("checkpoints"):
        folder = Path(registry.get("checkpoints", name))
        size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        metrics = config.get("metrics") or config.get("model", {}).get("metrics") or []
        rows.append({"name": name, "MB": round(size / 1e6, 2), "metrics": metrics})
    return rows


def _metrics() -> list[Row]:
    """Every metric that something here gives, by name, and who gives it."""
    from nasrlm import registry
    from nasrlm.devices import get_device
    from nasrlm.graph import COST_METRICS
    from nasrlm.spaces import get_space

    givers: dict[str, list[str]] = {metric: ["cost"] for metric in COST_METRICS}
    for row in _checkpoints():
        for metric in row["metrics"]:
            givers.setdefault(metric, []).append(f"rlm {row['name']}")
    for name in registry.names("devices"):
        metric = _or_none(lambda name=name: get_device(name).metric)  # type: ignore[misc]
        if metric is not None:
            givers.setdefault(metric, []).append(f"device {name}")
    for name in registry.names("spaces"):
        for metric in _or_none(lambda name=name: get_space(name).metrics) or ():  # type: ignore[misc]
            givers.setdefault(metric, []).append(f"published for {name}")
    return [{"name": metric, "from": givers[metric]} for metric in sorted(givers)]


def _experiments() -> list[Row]:
    from nasrlm.experiment.document import read_document

    rows = []
    for file in sorted(Path("experiments").rglob("*.yaml")):
        data = _or_none(lambda file=file: read_document(file).data) or {}  # type: ignore[misc]
        rows.append({"file": file.as_posix(), "kind": data.get("kind", "not readable"), "name": data.get("name")})
    return rows


_KINDS: dict[str, Callable[[], list[Row]]] = {
    "spaces": _spaces,
    "devices": _devices,
    "evaluators": _evaluators,
    "samplers": _samplers,
    "checkpoints": _checkpoints,
    "metrics": _metrics,
    "experiments": _experiments,
}


def _described(kind: str, row: Callable[[str], Row]) -> list[Row]:
    """A row a name; one that cannot be loaded says why instead of hiding the others."""
    from nasrlm import registry

    rows: list[Row] = []
    for name in registry.names(kind):
        try:
            rows.append({"name": name, **row(name)})
        except UsageError as error:
            rows.append({"name": name, "problem": str(error)})
    return rows


def _or_none(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except NasrlmError:  # it needs options, or a GPU that is not here
        return None


def _first_sentence(thing: Any) -> str:
    text = (thing.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split()).split(". ")[0].rstrip(".")

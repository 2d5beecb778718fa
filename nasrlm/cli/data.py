"""nasrlm data: import published labels as a table, and describe a table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasrlm.cli.common import WIDTH, Json, broken, cell, out, out_json, out_table, progress_bar, say
from nasrlm.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from nasrlm.datasets.description import Description
    from nasrlm.datasets.importers import Imported

app = typer.Typer(no_args_is_help=True, help="Import published labels as a table, and describe a table.")

_LONG = 17  # letters of a line of a metric's name
_SMALL, _LARGE = 0.001, 1_000_000  # numbers outside are written with an exponent
_SHOWN = 5  # reasons that are shown of rows that could not be read
_PANELS = 12  # histograms in one picture
_PAIRS = 5  # metrics in the plot of pairs, when none are named
_POINTS = 4_000  # points in one panel
_BINS = 40
_DECADES = 1000.0  # from this ratio of largest to smallest on, values are drawn on a logarithmic axis
_NUMBERS = ("blanks", "distinct", "minimum", "median", "maximum")


@app.command("formats")
def formats(as_json: Json = False) -> None:
    """List the published formats, and what to give as PATH."""
    from nasrlm import registry
    from nasrlm.datasets.importers import importer

    found = [(name, importer(name)) for name in registry.names("importers")]
    rows = [{"name": name, "path": one.paths, "source": one.source} for name, one in found]
    if as_json:
        out_json(rows)
        return
    for row in rows:
        out(f"{row['name']}\n  path: {_folded(row['path'])}\n  from: {_folded(row['source'])}")


def _folded(text: str) -> str:
    return textwrap.fill(text, WIDTH - 8, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)


@app.command("import")
def import_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The format; `nasrlm data formats` lists them.")],
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="The published files or folders.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="TABLE.parquet", help="The table to write.")],
    limit: Annotated[
        int | None, typer.Option(metavar="ROWS", min=1, help="Rows at the most.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the table if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Import published files of labels as a table.

    Nothing in the files is run. The table appears when it is complete.
    """
    from nasrlm.datasets.importers import import_table
    from nasrlm.experiment.progress import Step

    with progress_bar() as bar:
        done = import_table(
            name,
            paths,
            output,
            limit=limit,
            overwrite=force,
            progress=lambda at, total, words: bar(Step(name, round(at), max(1, round(total)), words)),
        )
    _say_reasons("left out", done.reasons, done.skipped)
    _say_reasons(f"kept, but no architecture of {done.space}", done.outside_reasons, done.outside)
    if as_json:
        out_json(_summary(done))
        return
    left_out = f", {done.skipped:,} left out" if done.skipped else ""
    out(f"{done.file}: {done.rows:,} rows{left_out}, {len(done.metrics)} metrics, {_of_space(done.space)}")
    say(f"look at it: nasrlm data describe {done.file}")


def _say_reasons(what: str, reasons: Sequence[str], count: int) -> None:
    for reason in reasons[:_SHOWN]:
        say(f"{what}: {reason}")
    if count > _SHOWN:
        say(f"{what}: {count - _SHOWN:,} more rows")


def _summary(done: Imported) -> dict[str, Any]:
    return {
        "file": str(done.file),
        "space": done.space,
        "rows": done.rows,
        "metrics": done.metrics,
        "left_out": done.skipped,
        "reasons": done.reasons,
        "outside_the_space": done.outside,
        "outside_reasons": done.outside_reasons,
    }


def _of_space(space: str) -> str:
    return f"space {space}" if space else "no search space"


@app.command("describe")
def describe(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A .parquet or .csv file of labels.")],
    space: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The space of the column arch; default: the one the table names."),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Draw histograms.png and pairs.png there.", show_default=False),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Draw this metric; may be repeated.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Describe a table: rows, metrics, blanks, ranges, architectures."""
    from nasrlm.datasets.description import describe_file

    if metrics and plots is None:
        raise UsageError("--metric says what to draw, but no --plots FOLDER is given. Add it.")
    found = describe_file(table, space=space)
    drawn = [] if plots is None else _draw(found, plots, metrics or [])
    if as_json:
        out_json({**_facts(found), "plots": [str(file) for file in drawn]})
        return
    named = f"space {found.space}" if found.space else "it names no space"
    out(f"{found.file}: {found.rows:,} rows, {named}")
    if found.importer:
        out(f"imported by {found.importer}")
    for line in _text_lines(found):
        out(line)
    if len(found.metrics):
        out_table(_metric_rows(found.metrics))
    else:
        out("no metric: no column holds numbers")
    for file in drawn:
        say(f"drew {file}")


def _metric_rows(metrics: pd.DataFrame) -> list[dict[str, str]]:
    """The rows for people: names broken, numbers short and under each other, so that 80 columns hold them."""
    rows: list[dict[str, str]] = []
    for metric, row in metrics.to_dict("index").items():
        numbers = {name: _short(row[name]) for name in _NUMBERS}
        rows.append({"metric": broken(str(metric), _LONG), "unit": f"{row['unit']:4}", **numbers})
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in _NUMBERS}
    return [{**row, **{name: row[name].rjust(width) for name, width in widths.items()}} for row in rows]


def _short(number: float) -> str:
    """A number in eight letters or so.

    >>> _short(1634378.0), _short(93.456), _short(387882), _short(0.0000123)
    ('1.634e6', '93.46', '387,882', '1.230e-5')
    """
    if number == 0 or number != number or _SMALL <= abs(number) < _LARGE:
        return cell(number)
    digits, _, exponent = f"{number:.3e}".partition("e")
    return f"{digits}e{int(exponent)}"


def _text_lines(found: Description) -> list[str]:
    lines = []
    for column, row in found.texts.iterrows():
        blanks = f", {cell(int(row['blanks']))} blank" if row["blanks"] else ""
        lines.append(f"{column}: {cell(int(row['distinct']))} distinct texts{blanks}")
    read = found.strings
    if read is not None:
        of = "" if read.looked_at == found.rows else f" looked at, of {found.rows:,}"
        lines.append(
            f"{read.looked_at - read.refused:,} of {read.looked_at:,} strings{of} are architectures of {read.space}, "
            f"{read.distinct:,} distinct"
        )
        lines += [f"  not read: {problem}" for problem in read.problems]
    return lines


def _facts(found: Description) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "file": str(found.file),
        "rows": found.rows,
        "space": found.space,
        "importer": found.importer,
        "metrics": found.metrics.to_dict("index"),
        "texts": found.texts.to_dict("index"),
        "strings": asdict(found.strings) if found.strings else None,
    }


def _draw(found: Description, folder: Path, named: Sequence[str]) -> list[Path]:
    from nasrlm.datasets.description import read_values
    from nasrlm.experiment.files import make_folder, write_atomic

    known = [str(metric) for metric, row in found.metrics.iterrows() if row["values"]]
    chosen = list(named) or [metric for metric in known if "@" not in metric]  # quartiles are drawn when asked for
    if not chosen:
        raise UsageError(f"{found.file} holds no metric with values, so there is nothing to draw.")
    make_folder(folder)
    files = []
    for page, start in enumerate(range(0, len(chosen), _PANELS), start=1):
        values = read_values(found.file, chosen[start : start + _PANELS])
        name = "histograms.png" if page == 1 else f"histograms_{page}.png"
        files.append(write_atomic(folder / name, _histograms(values, found.file.name).savefig))
    pairs = chosen if named else _telling(chosen, found.metrics["distinct"])
    if len(pairs) > 1:
        figure = _pairs(read_values(found.file, pairs), found.file.name)
        files.append(write_atomic(folder / "pairs.png", figure.savefig))
    return files


def _telling(metrics: Sequence[str], distinct: pd.Series) -> list[str]:
    """A few metrics of different kinds, those with more distinct values first, accuracies in front."""
    by_kind: dict[str, list[str]] = {}
    for metric in sorted(metrics, key=lambda metric: -distinct[metric]):
        by_kind.setdefault(metric.partition("/")[0], []).append(metric)
    kinds = sorted(by_kind, key=lambda kind: kind != "accuracy")
    turns = [by_kind[kind][turn] for turn in range(_PAIRS) for kind in kinds if turn < len(by_kind[kind])]
    return sorted(turns[:_PAIRS], key=list(metrics).index)


def _figure(panels: int, size: float, title: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from nasrlm.plots.style import INK

    rows = -(-panels // 3)
    figure = Figure(figsize=(size * min(3, panels), size * 0.8 * rows + 0.4), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11, color=INK)
    return figure


def _histograms(values: pd.DataFrame, title: str) -> Figure:
    figure = _figure(len(values.columns), 3.4, f"{title}: {len(values):,} rows")
    for place, metric in enumerate(values, start=1):
        axes = figure.add_subplot(-(-len(values.columns) // 3), min(3, len(values.columns)), place)
        _histogram(axes, values[metric].dropna())
        axes.set_xlabel(_label(str(metric)), fontsize=8)
        _small(axes, 7)
    return figure


def _pairs(values: pd.DataFrame, title: str) -> Figure:
    """Metrics against each other below the diagonal, histograms on it, Spearman's rho above it."""
    from nasrlm.plots.style import BLUE, INK, rank_correlations

    names = [str(metric) for metric in values]
    count = len(names)
    shown = values.iloc[:: max(1, len(values) // _POINTS)]
    figure = _figure(3, 0.8 * count, f"{title}: Spearman's rho above the diagonal")
    figure.set_size_inches(2.0 * count, 2.0 * count)
    for i, y in enumerate(names):
        for j, x in enumerate(names):
            axes = figure.add_subplot(count, count, i * count + j + 1)
            _small(axes, 6)
            if i == j:
                _histogram(axes, values[x].dropna())
            elif j < i:
                axes.scatter(shown[x], shown[y], s=4, color=BLUE, alpha=0.25, linewidths=0)
                _scale(axes, shown[x], "x")
                _scale(axes, shown[y], "y")
            else:
                both = values[[x, y]].dropna()
                rho, _ = rank_correlations(both[x], both[y]) if len(both) > 1 else (float("nan"), 0)
                axes.text(0.5, 0.5, "-" if rho != rho else f"{rho:.2f}", ha="center", va="center", color=INK)
                axes.set_axis_off()
            if i == count - 1:
                axes.set_xlabel(_label(x), fontsize=7)
            if j == 0:
                axes.set_ylabel(_label(y), fontsize=7)
    return figure


def _histogram(axes: Any, known: pd.Series) -> None:
    import numpy as np

    from nasrlm.plots.style import BLUE

    bins: Any = _BINS
    if len(known) and _spans_decades(known):
        bins = np.geomspace(known.min(), known.max(), _BINS)
        axes.set_xscale("log")
    axes.hist(known, bins=bins, color=BLUE, alpha=0.85)
    axes.spines[["top", "right"]].set_visible(False)


def _small(axes: Any, size: int) -> None:
    axes.tick_params(labelsize=size)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set_fontsize(size)


def _scale(axes: Any, known: pd.Series, axis: str) -> None:
    if _spans_decades(known.dropna()):
        axes.set(**{f"{axis}scale": "log"})


def _spans_decades(known: pd.Series) -> bool:
    return bool(len(known) and known.min() > 0 and known.max() / known.min() > _DECADES)


def _label(metric: str) -> str:
    from nasrlm.datasets.metric_names import name_and_unit

    kind, slash, where = metric.partition("/")
    name, unit = name_and_unit(metric)
    return f"{kind}{slash}\n{where}" + (f" ({unit})" if unit and name == kind else "")

"""What the verbs share: output, tables, progress bars, common options."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from nasrlm.experiment.progress import Progress, Step

WIDTH = 80  # of tables where no terminal says otherwise
_SHORT = 24  # words up to here are not broken, such as the ids of architectures
_BETWEEN = 3  # columns of a terminal between two of a table
_LONG_HEADER = 12  # headers from here on are broken behind the slash of a metric

Experiment = Annotated[str, typer.Argument(metavar="EXPERIMENT.yaml", help="The experiment file.", show_default=False)]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the file, such as study.n_trials=100; may be repeated.",
        show_default=False,
    ),
]
File = Annotated[str | None, typer.Option(metavar="FILE", help="More networks, one a line (.csv: the column arch).")]
Space = Annotated[str | None, typer.Option(metavar="NAME", help="The strings' space; default: the one each fits.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def say(text: str) -> None:
    """A line for people, on standard error."""
    typer.echo(text, err=True)


def out(text: str) -> None:
    """A result, on standard output."""
    typer.echo(text)


def out_json(value: Any) -> None:
    """A result as JSON on standard output; numbers that are not finite become null."""
    from nasrlm.experiment.files import finite

    out(json.dumps(finite(value), indent=2, ensure_ascii=False))


def out_table(rows: Sequence[Mapping[str, Any]], *, title: str = "", columns: Sequence[str] = ()) -> None:
    """Rows as a table on standard output, within 80 columns or the terminal's width.

    Args:
        rows: column -> value; numbers are shortened and stand right.
        title: a line above.
        columns: which, in order; default: those of the first row.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", title_style="", pad_edge=False)
    console = _console(sys.stdout)
    widths = {name: max((len(cell(row.get(name))) for row in rows), default=0) for name in names}
    room = console.width - _BETWEEN * len(names) - 2
    wide = sum(max(widths[name], *map(len, _header(name).split("\n"))) for name in names) > room
    for name in names:
        number = all(isinstance(row.get(name), int | float) for row in rows)
        # Numbers stay whole, short words too where there is room; longer words and headers give way.
        whole = number or (widths[name] <= _SHORT and sum(widths.values()) <= room)
        header = Text(_header(name).replace(" ", "\n") if wide else _header(name))
        kept = widths[name] if whole else None
        table.add_column(header, justify="right" if number else "left", overflow="fold", min_width=kept)
    for row in rows:
        table.add_row(*(Text(cell(row.get(name))) for name in names))
    with console.capture() as drawn:
        console.print(table)
    out("\n".join(line.rstrip() for line in drawn.get().splitlines()).rstrip() + "\n")


def _header(name: str) -> str:
    """A column's name, broken where it should be: behind the slash of a metric, at underscores elsewhere."""
    if "/" not in name:
        return name.replace("_", " ")
    return name.replace("/", "/\n") if len(name) > _LONG_HEADER else name


def out_frame(frame: pd.DataFrame, *, title: str = "") -> None:
    """A DataFrame (without its index) as a table on standard output."""
    rows = frame.astype(object).to_dict("records")
    out_table(rows, title=title, columns=[str(c) for c in frame.columns])  # type: ignore[arg-type]


def cell(value: Any) -> str:
    """A value as a table shows it: numbers with four significant digits, large ones with commas.

    >>> cell(0.123456), cell(1234567.0), cell(93.456), cell(float("nan")), cell(True), cell(None)
    ('0.1235', '1,234,567', '93.46', '-', 'yes', '')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) >= 1000):
        return f"{int(value):,}"
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


@contextlib.contextmanager
def progress_bar() -> Iterator[Progress]:
    """A Progress that draws bars on standard error; silent where that is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    words = TextColumn("{task.fields[detail]}")
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), words,
        console=_console(sys.stderr), disable=not sys.stderr.isatty(),
    )  # fmt: skip
    tasks: dict[str, Any] = {}

    def show(step: Step) -> None:
        if step.what not in tasks:
            tasks[step.what] = bar.add_task(step.what, total=step.total, detail="")
        bar.update(tasks[step.what], completed=step.done, total=step.total, detail=step.detail)

    with bar:
        yield show


def _console(stream: Any) -> Console:
    from rich.console import Console

    console = Console(file=stream, highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(file=stream, highlight=False, width=WIDTH)


@contextlib.contextmanager
def resumable() -> Iterator[None]:
    """Say how to go on when the user stops a run with Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        command = " ".join(shlex.quote(word) for word in ["nasrlm", *sys.argv[1:]])
        say(f"interrupted. What is done is kept; the same command goes on with it:\n  {command}")
        raise typer.Exit(130) from None


def broken(metric: str, longest: int) -> str:
    """A metric's name in lines of so many letters, broken behind slashes and underscores.

    >>> broken("params", 17), broken("latency_ms/titan_rtx_32", 17), broken("imagenet16_120_test_acc", 17)
    ('params', 'latency_ms/\\ntitan_rtx_32', 'imagenet16_120_\\ntest_acc')
    """
    if len(metric) <= longest:
        return metric
    lines = [""]
    for part in re.findall(r"[^/_@]+[/_]?|.", metric):
        if lines[-1] and (lines[-1].endswith("/") or len(lines[-1] + part) > longest):
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)

"""The command line: one file a verb; nothing heavy is imported before a verb runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from nasrlm import __version__
from nasrlm.cli import (
    benchmark,
    check,
    data,
    evaluate,
    export,
    label,
    list_things,
    new,
    plot,
    predict,
    search,
    show,
    train,
)
from nasrlm.cli.common import say
from nasrlm.errors import NasrlmError, UsageError

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

_EPILOG = "Exit codes: 0 done, 1 the run failed, 2 wrong use or configuration, 130 interrupted."

app = typer.Typer(
    name="nasrlm",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nasrlm {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find neural networks that are accurate and fast on your hardware.

    Results go to standard output, logs and progress bars to standard error.
    """


for _name, _verb in (
    ("list", list_things.command),
    ("new", new.command),
    ("check", check.command),
    ("search", search.command),
    ("show", show.command),
    ("plot", plot.command),
    ("predict", predict.command),
    ("export", export.command),
    ("train", train.command),
    ("evaluate", evaluate.command),
    ("label", label.command),
    ("benchmark", benchmark.command),
):
    app.command(_name)(_verb)
app.add_typer(data.app, name="data")

# typer carries its own copy of click since 0.16; the base of its usage errors is found by what it is.
_USAGE_ERRORS: tuple[type[Exception], ...] = tuple(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        arguments: without the program's name; default: those of this process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code: Any = app(given, prog_name="nasrlm", standalone_mode=False)
    except NasrlmError as error:
        say(f"error: {error}")
        return WRONG_USE if isinstance(error, UsageError) else FAILED
    except _USAGE_ERRORS as error:
        return _wrong_use(error)
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone; without this, Python complains again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return code if isinstance(code, int) else DONE


def _wrong_use(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        return WRONG_USE
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "nasrlm"
    message = error.format_message()
    end = "" if message.endswith((".", "?")) else "."
    say(f"error: {message}{end} `{path} --help` shows what is allowed.")
    return WRONG_USE

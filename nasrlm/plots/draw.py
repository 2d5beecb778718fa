"""The public plots: check, gather the data, and hand it to matplotlib or plotly by the file's ending."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from nasrlm.errors import RunFolderError, UsageError
from nasrlm.plots.data import Result, front_plot, history_data, prediction_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = (".png", ".svg", ".pdf")


def plot_pareto(result: Result, path: str | Path | None = None) -> Any:
    """Draw the front: infeasible and dominated candidates faint, the front as steps, knee and confirmed
    points marked.

    Two objectives: the first upwards, the second to the right. More: one panel a pair. One: its value by
    trial.

    Args:
        result: A search's result.
        path: Where to write it, .png, .svg, .pdf or .html (self-contained, with the architecture under the
            mouse).

    Returns:
        The matplotlib figure; for .html plotly's.

    Raises:
        UsageError: Another ending.
        RunFolderError: The file cannot be written.
    """
    plot = front_plot(result)
    if _ending(path) == ".html":
        from nasrlm.plots.html import pareto_html

        return _write_html(pareto_html(plot, result), path)
    from nasrlm.plots.image import pareto_figure

    return _write_image(pareto_figure(plot), path)


def plot_history(result: Result, path: str | Path | None = None) -> Any:
    """Draw the hypervolume by the number of trials. Arguments and errors as :func:`plot_pareto`."""
    data = history_data(result)
    if _ending(path) == ".html":
        from nasrlm.plots.html import history_html

        return _write_html(history_html(data), path)
    from nasrlm.plots.image import history_figure

    return _write_image(history_figure(data), path)


def plot_predictions(true: npt.ArrayLike, predicted: npt.ArrayLike, metric: str, path: str | Path | None = None) -> Any:
    """Draw predicted against true values with the diagonal; rank correlations (rho, tau) in the title.

    Args:
        true: Known values, in the metric's unit.
        predicted: One for each.
        metric: The metric's name, for the axes.
        path: As in :func:`plot_pareto`.
    """
    data = prediction_data(true, predicted)
    if _ending(path) == ".html":
        from nasrlm.plots.html import predictions_html

        return _write_html(predictions_html(data, metric), path)
    from nasrlm.plots.image import predictions_figure

    return _write_image(predictions_figure(data, metric), path)


def _ending(path: str | Path | None) -> str:
    if path is None:
        return ""
    ending = Path(path).suffix.lower()
    if ending not in (*IMAGES, ".html"):
        raise UsageError(f"cannot draw to {str(path)!r}. Allowed endings: {', '.join((*IMAGES, '.html'))}.")
    return ending


def _write_image(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        try:
            figure.savefig(path, dpi=160)
        except OSError as error:
            raise _unwritable(path, error) from error
    return figure


def _write_html(figure: Any, path: str | Path | None) -> Any:
    try:
        figure.write_html(path, include_plotlyjs=True, full_html=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    return figure


def _unwritable(path: str | Path | None, error: OSError) -> RunFolderError:
    return RunFolderError(f"cannot write the plot {path} ({error.strerror}). Give a path in a folder you can write to.")

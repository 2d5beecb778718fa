"""Drawing with matplotlib's objects, without pyplot: no window, no state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from nasrlm.plots.data import FrontPlot
from nasrlm.plots.labels import axis_label
from nasrlm.plots.style import BLUE, GREEN, GREY, INK, ORANGE, kind_name, rank_correlations, step_line

_POINTS: dict[str, dict[str, Any]] = {
    "infeasible": {"marker": "x", "s": 14, "color": GREY, "alpha": 0.35, "linewidths": 0.8, "zorder": 1},
    "dominated": {"marker": "o", "s": 12, "color": GREY, "alpha": 0.35, "linewidths": 0, "zorder": 2},
    "front": {"marker": "o", "s": 30, "color": BLUE, "linewidths": 0, "zorder": 5},
}
_LARGE = 10_000  # from here on ticks read 1.2 M instead of 1200000


def pareto_figure(plot: FrontPlot) -> Figure:
    """Draw a front, one panel a pair of objectives."""
    columns = min(len(plot.panels), 3)
    rows = -(-len(plot.panels) // columns)
    figure = _figure(7.2 if columns == 1 else 4.6 * columns, 4.8 if columns == 1 else 4.0 * rows + 0.5)
    for place, (x, y) in enumerate(plot.panels, start=1):
        _panel(figure.add_subplot(rows, columns, place), plot, x, y)
    first = figure.axes[0]
    figure.suptitle(plot.title, fontsize=11, color=INK)
    handles, names = first.get_legend_handles_labels()
    if names and columns == 1:
        first.legend(loc="best", fontsize=8.5, frameon=True, framealpha=0.9, edgecolor="none")
    elif names:
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8.5, frameon=False)
    return figure


def history_figure(data: pd.DataFrame) -> Figure:
    """Draw :func:`history_data`."""
    figure = _figure(7.2, 4.2)
    axes = figure.add_subplot()
    axes.step(data["trials"], data["hypervolume"], where="post", color=BLUE, linewidth=1.8)
    axes.fill_between(data["trials"], data["hypervolume"], step="post", color=BLUE, alpha=0.08, linewidth=0)
    _dress(axes, "trials", "hypervolume")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.margins(x=0.01)
    axes.set_ylim(bottom=0)
    if len(data):
        axes.set_title(f"Hypervolume {data['hypervolume'].iloc[-1]:,.4g} after {len(data):,} trials", fontsize=11)
    return figure


def predictions_figure(data: pd.DataFrame, metric: str) -> Figure:
    """Draw :func:`prediction_data`."""
    figure = _figure(5.4, 5.2)
    axes = figure.add_subplot()
    low, high = float(data.min().min()), float(data.max().max())
    axes.plot([low, high], [low, high], color=INK, linewidth=1, linestyle="--", label="predicted = true")
    alpha = 0.5 if len(data) < 1000 else 0.25
    axes.scatter(data["true"], data["predicted"], s=12, color=BLUE, alpha=alpha, linewidths=0, zorder=3)
    label = axis_label(metric)
    _dress(axes, f"true {label}", f"predicted {label}")
    axes.set_aspect("equal", adjustable="datalim")
    rho, tau = rank_correlations(data["true"], data["predicted"])
    axes.set_title(f"{metric}: rho {rho:.3f}, tau {tau:.3f} ({len(data):,} architectures)", fontsize=11)
    axes.legend(loc="upper left", fontsize=8.5, frameon=False)
    return figure


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _panel(axes: Axes, plot: FrontPlot, x: str, y: str) -> None:
    data = plot.data
    for kind, style in _POINTS.items():
        rows = data[data["kind"] == kind]
        if len(rows):
            axes.scatter(rows[x], rows[y], label=kind_name(kind, plot.measured), **style)
    front = data[data["kind"] == "front"]
    _error_bars(axes, front, x, y)
    if x != "number":  # the best of one objective is no bargain
        _knee(axes, front[front["knee"].astype(bool)], x, y)
    _confirmed(axes, front, data[data["kind"] == "confirmed"], x, y, plot.measured)
    limits = plot.limits(x, y)
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    if plot.has_steps:
        corner_x, corner_y = step_line(front, x, y, plot.directions, limits)
        axes.plot(corner_x, corner_y, color=BLUE, linewidth=1.3, zorder=4)
        edge = limits[1, 1 if plot.directions[y] == "minimize" else 0]
        axes.fill_between(corner_x, corner_y, edge, color=BLUE, alpha=0.06, linewidth=0, zorder=0)
    _dress(axes, "trial" if x == "number" else axis_label(x), axis_label(y))


def _error_bars(axes: Axes, rows: pd.DataFrame, x: str, y: str) -> None:
    for metric, side in ((x, "xerr"), (y, "yerr")):
        if f"{metric}:low" in rows and rows[f"{metric}:low"].notna().any():
            spans = np.array([rows[metric] - rows[f"{metric}:low"], rows[f"{metric}:high"] - rows[metric]])
            axes.errorbar(
                rows[x], rows[y], **{side: np.nan_to_num(spans)}, fmt="none", ecolor=BLUE, elinewidth=0.8, alpha=0.45
            )


def _knee(axes: Axes, rows: pd.DataFrame, x: str, y: str) -> None:
    if len(rows):
        axes.scatter(
            rows[x],
            rows[y],
            marker="*",
            s=190,
            color=ORANGE,
            edgecolors="white",
            linewidths=0.8,
            zorder=8,
            label="knee",
        )


def _confirmed(axes: Axes, front: pd.DataFrame, rows: pd.DataFrame, x: str, y: str, measured: bool) -> None:
    if rows.empty:
        return
    label = kind_name("confirmed", measured)
    if not measured:  # nothing to place anew: ring the points that were measured in another metric
        axes.scatter(rows[x], rows[y], s=90, facecolors="none", edgecolors=GREEN, linewidths=1.4, zorder=7, label=label)
        return
    before = front.set_index("architecture_id").reindex(rows["architecture_id"])
    for (x0, y0), (x1, y1) in zip(before[[x, y]].to_numpy(), rows[[x, y]].to_numpy(), strict=True):
        axes.plot([x0, x1], [y0, y1], color=GREEN, linewidth=0.9, alpha=0.8, zorder=6)
    axes.scatter(
        rows[x], rows[y], marker="D", s=38, color=GREEN, edgecolors="white", linewidths=0.7, zorder=7, label=label
    )


def _dress(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if max(map(abs, limits)) >= _LARGE:
            axis.set_major_formatter(EngFormatter())

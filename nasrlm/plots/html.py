"""Drawing with plotly: pages that stand alone, with the architecture under the mouse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from nasrlm.datasets.metric_names import CONFIRMED
from nasrlm.plots.data import FrontPlot, Result
from nasrlm.plots.labels import axis_label
from nasrlm.plots.style import BLUE, GREEN, GREY, INK, ORANGE, kind_name, rank_correlations, step_line

_MARKERS: dict[str, dict[str, Any]] = {
    "infeasible": {"symbol": "x-thin", "size": 6, "opacity": 0.45, "line": {"color": GREY, "width": 1}},
    "dominated": {"symbol": "circle", "size": 5, "opacity": 0.4, "color": GREY},
    "front": {"symbol": "circle", "size": 8, "color": BLUE},
    "confirmed": {"symbol": "diamond", "size": 10, "color": GREEN, "line": {"color": "white", "width": 1}},
}
_RING = {"symbol": "circle-open", "size": 14, "color": GREEN, "line": {"width": 2}}


def pareto_html(plot: FrontPlot, result: Result) -> go.Figure:
    """Draw a front, one panel a pair of objectives, side by side."""
    figure = make_subplots(rows=1, cols=len(plot.panels), horizontal_spacing=0.24 / len(plot.panels))
    hover = _hover_texts(plot.data, result)
    for place, (x, y) in enumerate(plot.panels, start=1):
        limits = plot.limits(x, y)
        if plot.has_steps:
            figure.add_trace(_steps(plot, x, y))
        for trace in _traces(plot, x, y, hover):
            figure.add_trace(trace.update(showlegend=place == 1), row=1, col=place)
        title = "trial" if x == "number" else axis_label(x)
        figure.update_xaxes(title_text=title, range=list(limits[0]), row=1, col=place)
        figure.update_yaxes(title_text=axis_label(y), range=list(limits[1]), row=1, col=place)
    return _dress(figure, plot.title)


def history_html(data: pd.DataFrame) -> go.Figure:
    """Draw :func:`history_data`."""
    line = go.Scatter(
        x=data["trials"], y=data["hypervolume"], mode="lines", line={"color": BLUE, "shape": "hv"}, name="hypervolume"
    )
    figure = go.Figure(line)
    figure.update_xaxes(title_text="trials")
    figure.update_yaxes(title_text="hypervolume", rangemode="tozero")
    return _dress(figure, "Hypervolume by trials")


def predictions_html(data: pd.DataFrame, metric: str) -> go.Figure:
    """Draw :func:`prediction_data`."""
    ends = [float(data.min().min()), float(data.max().max())]
    rho, tau = rank_correlations(data["true"], data["predicted"])
    diagonal = go.Scatter(x=ends, y=ends, mode="lines", line={"color": INK, "dash": "dash"}, name="predicted = true")
    marker = {"color": BLUE, "size": 5, "opacity": 0.5}
    points = go.Scatter(x=data["true"], y=data["predicted"], mode="markers", marker=marker, name="architectures")
    figure = go.Figure([diagonal, points])
    figure.update_xaxes(title_text=f"true {axis_label(metric)}")
    figure.update_yaxes(title_text=f"predicted {axis_label(metric)}")
    return _dress(figure, f"{metric}: rho {rho:.3f}, tau {tau:.3f} ({len(data):,} architectures)")


def _traces(plot: FrontPlot, x: str, y: str, hover: pd.Series) -> list[go.Scatter]:
    traces = []
    for kind, usual in _MARKERS.items():
        rows = plot.data[plot.data["kind"] == kind]
        marker = _RING if kind == "confirmed" and not plot.measured else usual
        trace = _scatter(rows, x, y, kind_name(kind, plot.measured), marker, hover)
        if kind == "front":
            trace.error_x, trace.error_y = _error(rows, x), _error(rows, y)
        traces.append(trace)
    knee = plot.data[(plot.data["kind"] == "front") & plot.data["knee"].astype(bool)]
    if x != "number":
        star = {"symbol": "star", "size": 16, "color": ORANGE, "line": {"color": "white", "width": 1}}
        traces.append(_scatter(knee, x, y, "knee", star, hover))
    return [trace for trace in traces if len(trace.x)]


def _scatter(rows: pd.DataFrame, x: str, y: str, name: str, marker: dict[str, Any], hover: pd.Series) -> go.Scatter:
    return go.Scatter(
        x=rows[x],
        y=rows[y],
        mode="markers",
        name=name,
        marker=marker,
        text=hover.loc[rows.index],
        hovertemplate="%{text}<extra></extra>",
    )


def _error(rows: pd.DataFrame, metric: str) -> dict[str, Any]:
    if f"{metric}:low" not in rows or rows[f"{metric}:low"].isna().all():
        return {"visible": False}
    up = np.nan_to_num(rows[f"{metric}:high"] - rows[metric])
    down = np.nan_to_num(rows[metric] - rows[f"{metric}:low"])
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1, "width": 0}


def _steps(plot: FrontPlot, x: str, y: str) -> go.Scatter:
    front = plot.data[plot.data["kind"] == "front"]
    corner_x, corner_y = step_line(front, x, y, plot.directions, plot.limits(x, y))
    line = {"color": BLUE, "width": 1.5}
    return go.Scatter(x=corner_x, y=corner_y, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def _hover_texts(data: pd.DataFrame, result: Result) -> pd.Series:
    """Return what is shown under the mouse: the architecture, then every metric of its trial."""
    trials = result.trials.drop_duplicates("architecture_id").set_index("architecture_id")
    skipped = {"number", "state", "arch", "feasible", "on_front", "batch", "failure"}
    metrics = [str(column) for column in trials.columns if column not in skipped]
    confirmed = pd.DataFrame() if result.confirmed is None else result.confirmed.set_index("architecture_id")
    measured = [str(column) for column in confirmed.columns if str(column).startswith(CONFIRMED)]
    texts = []
    for identity, arch, kind in zip(data["architecture_id"], data["arch"], data["kind"], strict=True):
        lines = [f"<b>{arch}</b>", str(identity), *_values(trials, identity, metrics)]
        if kind == "confirmed":
            lines += _values(confirmed, identity, measured)
        texts.append("<br>".join(lines))
    return pd.Series(texts, index=data.index, dtype=object)


def _values(table: pd.DataFrame, identity: str, columns: list[str]) -> list[str]:
    return [f"{column}: {value:.5g}" for column, value in zip(columns, table.loc[identity, columns], strict=True)]


def _dress(figure: go.Figure, title: str) -> go.Figure:
    figure.update_layout(
        title={"text": title, "font": {"size": 16}},
        template="plotly_white",
        hoverlabel={"font": {"family": "monospace", "size": 11}, "align": "left"},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 70, "r": 30, "t": 90, "b": 60},
    )
    return figure

"""Plots: data first (a DataFrame), then drawing, by matplotlib (.png, .svg, .pdf) or plotly (self-contained
.html)."""

from __future__ import annotations

from nasrlm.plots.data import history_data, pareto_data, prediction_data
from nasrlm.plots.draw import plot_history, plot_pareto, plot_predictions
from nasrlm.plots.labels import axis_label

__all__ = [
    "axis_label",
    "history_data",
    "pareto_data",
    "plot_history",
    "plot_pareto",
    "plot_predictions",
    "prediction_data",
]

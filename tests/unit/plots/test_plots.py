from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

from nasrlm.errors import RunFolderError, UsageError
from nasrlm.plots import (
    axis_label,
    history_data,
    pareto_data,
    plot_history,
    plot_pareto,
    plot_predictions,
    prediction_data,
)
from nasrlm.plots.data import front_plot
from nasrlm.plots.style import step_line
from nasrlm.search import make_result

ACCURACY, LATENCY = "accuracy/cifar10", "latency_ms/pixel3"


def trials():
    return pd.DataFrame(
        {
            "number": range(7),
            "state": ["complete"] * 6 + ["failed"],
            "architecture_id": ["a", "b", "c", "d", "e", "a", "f"],
            "arch": ["|A|", "|B|", "|C|", "|D|", "|E|", "|A|", "|F|"],
            ACCURACY: [90.0, 80.0, 85.0, 95.0, 92.0, 90.0, np.nan],
            LATENCY: [3.0, 1.0, 4.0, 9.0, 6.0, 3.0, np.nan],
            "params": [10.0, 10.0, 10.0, 99.0, 10.0, 10.0, np.nan],
            f"{ACCURACY}@0.1": [88.0, 79.0, 84.0, 94.0, 91.0, 88.0, np.nan],
            f"{ACCURACY}@0.9": [89.5, 82.0, 86.0, 96.0, 93.0, 89.5, np.nan],
        }
    )


@pytest.fixture
def result():
    return make_result(trials(), [f"{ACCURACY}:max", f"{LATENCY}:min"], ["params<=50"])


@pytest.fixture
def confirmed(result):
    rows = result.front.iloc[:2].copy()
    rows[f"confirmed:{LATENCY}"] = [7.0, 3.5]
    return dataclasses.replace(result, confirmed=rows)


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("accuracy/cifar10", "accuracy, cifar10 (%)"),
        ("latency_ms/pixel3", "latency, pixel3 (ms)"),
        ("params", "parameters"),
        ("macs", "MACs"),
        ("activation_bytes", "activation memory (bytes)"),
        ("energy_mj/eyeriss", "energy, eyeriss (mJ)"),
        ("depth", "depth (layers)"),
        ("model_size", "model size"),
        ("latency_ms/1080ti_1", "latency, 1080ti_1 (ms)"),
    ],
)
def test_axis_label(metric, label):
    assert axis_label(metric) == label


def test_pareto_data_has_each_candidate_once_and_the_front_last(result):
    data = pareto_data(result)
    assert data[["architecture_id", "kind"]].to_numpy().tolist() == [
        ["d", "infeasible"],
        ["c", "dominated"],
        ["e", "front"],
        ["a", "front"],
        ["b", "front"],
    ]
    assert data["knee"].sum() == 1
    assert data.loc[data["knee"], "kind"].tolist() == ["front"]


def test_bars_reach_the_outermost_quantiles_and_include_the_value(result):
    row = pareto_data(result).set_index("architecture_id").loc["a"]
    assert row[f"{ACCURACY}:low"] == 88.0
    assert row[f"{ACCURACY}:high"] == 90.0  # the value itself lies above the quantile
    assert np.isnan(row[f"{LATENCY}:low"])


def test_confirmed_points_lie_where_they_were_measured(confirmed):
    rows = pareto_data(confirmed).query("kind == 'confirmed'").set_index("architecture_id")
    assert rows[LATENCY].tolist() == [7.0, 3.5]
    assert rows.loc["e", ACCURACY] == 92.0


def test_a_network_whose_confirmation_failed_is_no_confirmed_point(confirmed):
    rows = confirmed.confirmed.copy()
    rows.loc[rows.index[0], f"confirmed:{LATENCY}"] = np.nan
    failed = dataclasses.replace(confirmed, confirmed=rows)
    assert pareto_data(failed).query("kind == 'confirmed'")[LATENCY].tolist() == [3.5]


def test_confirmation_in_another_metric_rings_the_predicted_points(result):
    rows = result.front.iloc[:1].assign(**{"confirmed:latency_ms/here": 1.0})
    rung = dataclasses.replace(result, confirmed=rows)
    assert not front_plot(rung).measured
    assert pareto_data(rung).query("kind == 'confirmed'")[LATENCY].tolist() == [6.0]


def test_view_ends_at_the_reference_point():
    goals = [f"{ACCURACY}:max", f"{LATENCY}:min"]
    narrow = make_result(trials(), goals, reference_point={ACCURACY: 84.0, LATENCY: 8.0})
    plot = front_plot(narrow)
    assert plot.view[ACCURACY][0] > 80 and plot.view[LATENCY][1] < 9
    assert "2 beyond the reference point not shown" in plot.title
    assert "beyond" not in front_plot(make_result(trials(), goals)).title


@pytest.mark.parametrize("x", ["minimize", "maximize"])
@pytest.mark.parametrize("y", ["minimize", "maximize"])
def test_steps_part_what_the_front_dominates(x, y):
    """Just on the worse side of the line a point is dominated, just on the better side it is not."""
    sign = np.array([1 if x == "minimize" else -1, 1 if y == "minimize" else -1])
    costs = np.array([[1.0, 8.0], [2.0, 5.0], [6.0, 3.0], [7.0, 1.0]])
    front = pd.DataFrame(costs * sign, columns=["x", "y"])
    limits = np.sort(np.array([[0.0, 10.0], [0.0, 10.0]]) * sign[:, None], axis=1)
    xs, ys = step_line(front, "x", "y", {"x": x, "y": y}, limits)
    assert (np.diff(xs) >= 0).all()
    for (x0, y0), (x1, y1) in zip(zip(xs[:-1], ys[:-1], strict=True), zip(xs[1:], ys[1:], strict=True), strict=True):
        assert x0 == x1 or y0 == y1, "corners are joined by upright and level lines"
        if (x0, y0) == (x1, y1):
            continue
        middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2]) * sign
        assert (costs <= middle + 0.01).all(axis=1).any()
        assert not (costs <= middle - 0.01).all(axis=1).any()


def offsets(figure, label):
    found = [item for axes in figure.axes for item in axes.collections if item.get_label() == label]
    assert all(isinstance(item, PathCollection) for item in found)
    return [item.get_offsets().tolist() for item in found]


def test_figure_shows_every_kind_with_units(confirmed):
    figure = plot_pareto(confirmed)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("latency, pixel3 (ms)", "accuracy, cifar10 (%)")
    assert offsets(figure, "infeasible") == [[[9.0, 95.0]]]
    assert offsets(figure, "dominated") == [[[4.0, 85.0]]]
    assert offsets(figure, "front (before confirming)") == [[[6.0, 92.0], [3.0, 90.0], [1.0, 80.0]]]
    assert offsets(figure, "confirmed by measurement") == [[[7.0, 92.0], [3.5, 90.0]]]
    assert len(offsets(figure, "knee")[0]) == 1
    assert len(axes.containers) == 1, "error bars for accuracy, which has quantiles; none for latency"


def test_three_objectives_make_a_panel_a_pair():
    result = make_result(trials(), [f"{ACCURACY}:max", f"{LATENCY}:min", "params:min"])
    figure = plot_pareto(result)
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]
    assert labels == [
        ("latency, pixel3 (ms)", "accuracy, cifar10 (%)"),
        ("parameters", "accuracy, cifar10 (%)"),
        ("parameters", "latency, pixel3 (ms)"),
    ]
    assert not any(line.get_xdata().size > 2 for axes in figure.axes for line in axes.lines)


def test_one_objective_is_drawn_by_trial(tmp_path):
    result = make_result(trials(), [f"{ACCURACY}:max"])
    figure = plot_pareto(result)
    assert figure.axes[0].get_xlabel() == "trial"
    assert offsets(figure, "knee") == []
    plot_pareto(result, tmp_path / "front.html")


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_files_of_every_kind(ending, confirmed, tmp_path):
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html"}
    for name, draw in (("front", plot_pareto), ("history", plot_history)):
        path = tmp_path / f"{name}.{ending}"
        draw(confirmed, path)
        assert path.read_bytes().startswith(starts[ending])
        assert path.stat().st_size > 5_000
    plot_predictions([1.0, 2.0, 3.0], [1.1, 1.9, 3.2], ACCURACY, tmp_path / f"p.{ending}")


def test_pages_stand_alone_and_name_the_architecture(confirmed, tmp_path):
    page = tmp_path / "front.html"
    figure = plot_pareto(confirmed, page)
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<script[^>]*\ssrc=", text), "nothing is fetched"
    traces = {trace["name"]: trace for trace in json.loads(figure.to_json())["data"] if "name" in trace}
    hover = traces["confirmed by measurement"]["text"][0]
    for part in ("|E|", "accuracy/cifar10: 92", "params: 10", "confirmed:latency_ms/pixel3: 7"):
        assert part in hover
    assert set(traces) >= {"infeasible", "dominated", "front (before confirming)", "knee"}


def test_an_empty_front_can_be_drawn(tmp_path):
    empty = make_result(trials(), [f"{ACCURACY}:max", f"{LATENCY}:min"], ["params<=1"])
    for ending in ("png", "html"):
        plot_pareto(empty, tmp_path / f"front.{ending}")
        plot_history(empty, tmp_path / f"history.{ending}")
    nothing = make_result(trials().iloc[6:], [f"{ACCURACY}:max", f"{LATENCY}:min"])
    plot_pareto(nothing, tmp_path / "nothing.png")


def test_history(result):
    data = history_data(result)
    assert data["trials"].tolist() == list(range(1, 8))
    figure = plot_history(result)
    assert f"{result.hypervolume:,.4g}" in figure.axes[0].get_title()


def test_predictions_leave_out_pairs_with_blanks():
    assert prediction_data([1.0, np.nan, 3.0], [2.0, 2.0, 4.0]).shape == (2, 2)
    figure = plot_predictions([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 3.0, 4.0], LATENCY)
    assert figure.axes[0].get_title() == "latency_ms/pixel3: rho 0.800, tau 0.667 (4 architectures)"
    assert figure.axes[0].get_xlabel() == "true latency, pixel3 (ms)"


def test_constant_predictions_have_no_correlation():
    assert "rho nan" in plot_predictions([1.0, 2.0], [1.0, 1.0], "params").axes[0].get_title()


@pytest.mark.parametrize(
    ("true", "predicted", "words"), [([1.0, 2.0], [1.0], "as many of each"), ([1.0, np.nan], [1.0, 2.0], "At least 2")]
)
def test_predictions_must_pair(true, predicted, words):
    with pytest.raises(UsageError, match=words):
        plot_predictions(true, predicted, ACCURACY)


def test_other_endings_and_places_are_refused(result, tmp_path):
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf, \.html"):
        plot_pareto(result, tmp_path / "front.jpg")
    for ending in ("png", "html"):
        with pytest.raises(RunFolderError, match="cannot write the plot"):
            plot_pareto(result, tmp_path / "no" / f"front.{ending}")


def test_drawing_needs_neither_optuna_nor_pyplot():
    import subprocess
    import sys

    code = (
        "import sys, nasrlm.plots.image, nasrlm.plots.html; print({'optuna', 'matplotlib.pyplot'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

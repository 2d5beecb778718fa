"""The evaluators that need no model, and how several share the work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.errors import ConfigError, DeviceError, MetricError, RunError, TableError, UnknownNameError
from nasrlm.evaluators import Evaluator, assign_metrics, evaluate_all, get_evaluator, value_frame
from nasrlm.graph import COST_METRICS, costs
from nasrlm.spaces import Architecture, get_space

SPACE = get_space("tiny")
FEW = list(dict.fromkeys(SPACE.sample(6, seed=0)))
QUICK = {"repeats": 5, "warm_up": 0, "tries": 1}


class Fixed:
    """Gives one value for everything it knows, and counts how often it was asked."""

    def __init__(self, name: str, metrics: Sequence[str], value: float, *, predicts: bool = False) -> None:
        self.name, self.metrics, self.value, self.predicts, self.calls = name, tuple(metrics), value, predicts, 0

    def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
        self.calls += 1
        values = [self.value] * len(architectures)
        return value_frame(architectures, {m: values for m in metrics} | {f"{m}@0.1": values for m in metrics})


def table_frame() -> pd.DataFrame:
    return pd.DataFrame({"arch": [a.string for a in FEW[:3]], "acc": [90.0, np.nan, 92.0]})


def test_cost_counts_what_the_graph_counts() -> None:
    evaluator = get_evaluator("cost", SPACE)
    assert isinstance(evaluator, Evaluator) and evaluator.metrics == COST_METRICS
    values = evaluator.evaluate(FEW, ["macs", "params"])
    assert list(values.columns) == ["macs", "params"] and values.index.name == "architecture_id"
    assert values["params"].tolist() == [costs(a).params for a in FEW]
    assert values.index.tolist() == [a.id for a in FEW]
    assert len(evaluator.evaluate([], ["macs"])) == 0
    with pytest.raises(MetricError, match="Nearest: macs"):
        evaluator.evaluate(FEW, ["mac"])


def test_table_looks_up_in_the_order_asked() -> None:
    evaluator = get_evaluator("table", SPACE, path=table_frame(), metrics={"acc": "accuracy/toy"})
    assert evaluator.metrics == ("accuracy/toy",)
    asked = [FEW[2], FEW[3], FEW[0], FEW[1], FEW[2]]
    values = evaluator.evaluate(asked, ["accuracy/toy"])
    assert values.index.tolist() == [a.id for a in asked]
    np.testing.assert_array_equal(values["accuracy/toy"], [92.0, np.nan, 90.0, np.nan, 92.0])


def test_table_may_insist_on_rows() -> None:
    options = {"path": table_frame(), "metrics": {"acc": "accuracy/toy"}}
    evaluator = get_evaluator("table", SPACE, missing="error", **options)
    assert len(evaluator.evaluate(FEW[:3], ["accuracy/toy"])) == 3
    with pytest.raises(RunError, match="1 of 2 architectures have no row"):
        evaluator.evaluate([FEW[0], FEW[4]], ["accuracy/toy"])
    with pytest.raises(ConfigError, match="Nearest: error"):
        get_evaluator("table", SPACE, missing="eror", **options)
    with pytest.raises(TableError, match="evaluator table"):
        get_evaluator("table", SPACE, path=Path("none.csv"), metrics={"acc": "a"})


def test_device_measures_once_and_gives_quartiles() -> None:
    evaluator = get_evaluator("device", SPACE, device="onnxruntime_cpu", **QUICK)
    (metric,) = evaluator.metrics
    values = evaluator.evaluate([FEW[0], FEW[1], FEW[0]], [metric])
    assert list(values.columns) == [metric, f"{metric}@0.25", f"{metric}@0.75"]
    assert (values[f"{metric}@0.25"] <= values[metric]).all() and (values[metric] > 0).all()
    assert values.iloc[0].tolist() == values.iloc[2].tolist()
    # Measured before: exactly the same value, which no second timing would give.
    assert evaluator.evaluate([FEW[1]], [metric]).iloc[0].tolist() == values.iloc[1].tolist()
    assert evaluator.evaluate([FEW[1]], []).shape == (1, 0)
    with pytest.raises(MetricError, match="latency_ms/onnxruntime_cpu"):
        evaluator.evaluate(FEW, ["latency_ms/pixel3"])


DEVICE_FILE = """
from nasrlm.devices import summarise
from nasrlm.errors import DeviceError
class DEVICE:
    name, metric = "fussy", "latency_ms/fussy"
    def __init__(self, limit: int): self.limit = limit
    def measure(self, model):
        if len(model) > self.limit:
            raise DeviceError("too large")
        return summarise([1.0], 1, 0.1)
"""


def test_device_that_refuses_some_networks_or_all(tmp_path: Path) -> None:
    from nasrlm.graph import to_onnx

    path = tmp_path / "fussy.py"
    path.write_text(DEVICE_FILE)
    sizes = [len(to_onnx(a, weights="random").SerializeToString()) for a in FEW]
    some = get_evaluator("device", SPACE, device=str(path), limit=sorted(sizes)[0])
    measured = some.evaluate(FEW, some.metrics)["latency_ms/fussy"].notna().tolist()
    assert measured == [size <= min(sizes) for size in sizes]
    with pytest.raises(DeviceError, match="too large"):
        get_evaluator("device", SPACE, device=str(path), limit=1).evaluate(FEW, ["latency_ms/fussy"])


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("rml", {}, UnknownNameError, "Nearest: rlm"),
        ("cost", {"batch": 2}, ConfigError, "takes no options"),
        ("table", {"pat": "x"}, ConfigError, "Nearest: path"),
        ("table", {"path": "x.csv"}, ConfigError, "needs the option 'metrics'"),
        ("rlm", {}, ConfigError, "needs the option 'checkpoint'"),
        ("rlm", {"checkpoint": "x", "quantiles": (0.1, 1.0)}, ConfigError, "quantiles has 1.0"),
        ("device", {"device": "onnxruntime_cp"}, UnknownNameError, "Nearest: onnxruntime_cpu"),
        ("device", {"device": "onnxruntime_cpu", "thread": 1}, ConfigError, "Nearest: threads"),
    ],
)
def test_wrong_names_and_options(name: str, options: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        get_evaluator(name, SPACE, **options)


def test_a_user_file_gives_an_evaluator(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from nasrlm.evaluators import value_frame\n"
        "class EVALUATOR:\n"
        "    name, metrics = 'mine', ('score',)\n"
        "    def __init__(self, space, value=1.0): self.value = value\n"
        "    def evaluate(self, architectures, metrics):\n"
        "        return value_frame(architectures, {m: [self.value] * len(architectures) for m in metrics})\n"
    )
    evaluator = get_evaluator(str(path), SPACE, value=2.0)
    assert evaluator.evaluate(FEW, ["score"])["score"].tolist() == [2.0] * len(FEW)


def test_exact_values_go_before_predictions_and_first_before_later() -> None:
    guess = Fixed("guess", ["params", "accuracy/toy"], 1.0, predicts=True)
    exact, later = Fixed("exact", ["params"], 2.0), Fixed("later", ["params"], 3.0)
    assigned = assign_metrics([guess, exact, later], ["accuracy/toy", "params", "params"])
    assert assigned == {"accuracy/toy": guess, "params": exact}
    with pytest.raises(MetricError, match=r"guess, exact.*Nearest: params") as caught:
        assign_metrics([guess, exact], ["param"])
    assert "accuracy/toy" in str(caught.value)
    with pytest.raises(MetricError, match="none"):
        assign_metrics([], ["params"])


def test_evaluate_all_asks_each_once_and_joins() -> None:
    guess = Fixed("guess", ["a", "b", "params"], 1.0, predicts=True)
    exact, unused = Fixed("exact", ["params"], 2.0), Fixed("unused", ["z"], 3.0)
    values = evaluate_all([guess, exact, unused], FEW[:2], ["b", "params", "a"])
    assert list(values.columns) == ["b", "params", "a", "b@0.1", "a@0.1", "params@0.1"]
    assert values["params"].tolist() == [2.0, 2.0]
    assert (guess.calls, exact.calls, unused.calls) == (1, 1, 0)


def test_evaluate_all_catches_a_broken_evaluator() -> None:
    class Short(Fixed):
        def evaluate(self, architectures: Sequence[Architecture], metrics: Sequence[str]) -> pd.DataFrame:
            return super().evaluate(architectures[1:], metrics)

    with pytest.raises(RunError, match="one row an architecture"):
        evaluate_all([Short("short", ["a"], 1.0)], FEW, ["a"])

"""Tables that come with nasrlm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from nasrlm.datasets import load_table
from nasrlm.datasets.read import shipped_tables
from nasrlm.errors import TableError
from nasrlm.graph import costs

COUNTED = ["params", "macs", "activation_bytes", "depth"]
MEASURED = ["accuracy/digits", "accuracy/digits_seed0", "accuracy/digits_seed1"]
TIMED = ["latency_ms/onnxruntime_cpu", "latency_ms/onnxruntime_int8", "latency_ms/openvino_cpu"]


def test_snas_digits_is_what_its_data_card_says() -> None:
    table = load_table("snas_digits", space="snas", metrics=[*MEASURED, *TIMED, *COUNTED])
    assert len(table.architectures) == 1599
    assert not table.values.isna().any(axis=None)
    accuracy = table.values["accuracy/digits"]
    assert accuracy.quantile(0.9) - accuracy.quantile(0.1) > 40  # accuracy spreads widely
    np.testing.assert_allclose(accuracy, table.values[MEASURED[1:]].mean(axis=1), rtol=1e-6)
    tau = kendalltau(table.values[MEASURED[1]], table.values[MEASURED[2]])[0]
    card = shipped_tables()["snas_digits"].with_suffix(".md").read_text(encoding="utf-8")
    assert f"{tau:.4f}" in card and "1,599 architectures" in card and "Processor: " in card


def test_its_costs_are_those_of_the_networks_of_today() -> None:
    table = load_table("snas_digits", space="snas", metrics=COUNTED)
    for at in range(0, len(table.architectures), 40):
        assert costs(table.architectures[at]).metrics() == dict(table.values.iloc[at])


def test_a_file_of_that_name_goes_before(tmp_path: Path) -> None:
    (tmp_path / "snas_digits").mkdir()
    with pytest.raises(TableError, match="or be that of a table that comes with nasrlm: snas_digits"):
        load_table(tmp_path / "snas_digits", space="snas", metrics=["params"])

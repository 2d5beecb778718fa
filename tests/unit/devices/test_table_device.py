"""The table device: rows found by the network itself, and tables that cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest

from nasrlm.devices import get_device
from nasrlm.errors import DeviceError, TableError, UsageError
from nasrlm.graph import to_onnx, to_text
from nasrlm.spaces import Architecture, get_space

SPACE = get_space("nasbench201")


def serialized(architecture: Architecture) -> bytes:
    return to_onnx(architecture, weights="random").SerializeToString()


def table(folder: Path, **columns: list[object]) -> str:
    path = folder / "t.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return str(path)


def test_finds_the_row_of_a_network(tmp_path: Path) -> None:
    rows = list(dict.fromkeys(SPACE.sample(6, seed=0)))
    values = [1.0 + i for i in range(len(rows))]
    path = table(tmp_path, arch=[a.string for a in rows], pixel_ms=values)
    device = get_device("table", path=path, column="pixel_ms", space="nasbench201")
    assert device.metric == "latency_ms/pixel_ms"
    assert [device.measure(serialized(a)).median_ms for a in rows] == values
    renamed = onnx.load_model_from_string(serialized(rows[2]))
    renamed.graph.name = "another"
    for i, node in enumerate(renamed.graph.node):
        node.name = f"node{i}"
    assert device.measure(renamed.SerializeToString()).median_ms == values[2]
    other = next(a for a in SPACE.sample(50, seed=1) if a not in rows)
    with pytest.raises(DeviceError, match="has no row for this network"):
        device.measure(serialized(other))
    with pytest.raises(DeviceError, match="no ONNX model"):
        device.measure(b"garbage")


def test_architectures_of_one_network_share_their_rows(tmp_path: Path) -> None:
    one, other = same_network()
    path = table(tmp_path, arch=[one.string, other.string], ms=[2.0, 4.0])
    device = get_device("table", path=path, column="ms", space="nasbench201", label="gold")
    measured = device.measure(serialized(one))
    assert device.metric == "latency_ms/gold"
    assert (measured.minimum_ms, measured.median_ms, measured.repeats, measured.stable) == (2.0, 3.0, 2, False)
    assert device.measure(serialized(other)) == measured


def same_network() -> tuple[Architecture, Architecture]:
    """Two architectures of one network: the operations into a node may change places where their inputs are alike."""
    seen: dict[str, Architecture] = {}
    for architecture in SPACE.sample(600, seed=2):
        first = seen.setdefault(to_text(architecture, dead_work=True), architecture)
        if first != architecture:
            return first, architecture
    raise LookupError("no two of the sample are one network")


def test_blanks_are_skipped_and_parquet_is_read(tmp_path: Path) -> None:
    rows = list(dict.fromkeys(SPACE.sample(3, seed=0)))
    path = tmp_path / "t.parquet"
    pd.DataFrame({"net": [a.string for a in rows], "ms": [1.0, np.nan, 3.0]}).to_parquet(path)
    device = get_device("table", path=str(path), column="ms", space="nasbench201", arch_column="net")
    assert device.measure(serialized(rows[2])).median_ms == 3.0
    with pytest.raises(DeviceError, match="no row"):
        device.measure(serialized(rows[1]))


def test_tables_that_cannot_be_used(tmp_path: Path) -> None:
    string = SPACE.sample(1, seed=0)[0].string
    for columns, words in (
        ({"arch": [string], "mss": [1.0]}, "no column 'ms'. Nearest: mss"),
        ({"architecture": [string], "ms": [1.0]}, "no column 'arch'. Nearest: architecture"),
        ({"arch": [string], "ms": ["fast"]}, "row 0 holds 'fast'"),
        ({"arch": [string, string], "ms": [1.0, -1.0]}, "row 1 holds"),
        ({"arch": [string], "ms": [np.nan]}, "it is empty"),
    ):
        with pytest.raises(TableError, match=words):
            get_device("table", path=table(tmp_path, **columns), column="ms", space="nasbench201")
    with pytest.raises(TableError, match="cannot be read"):
        get_device("table", path=str(tmp_path / "none.csv"), column="ms", space="nasbench201")
    wrong = get_device("table", path=table(tmp_path, arch=["x"], ms=[1.0]), column="ms", space="nasbench201")
    with pytest.raises(UsageError, match=r"t\.csv: "):
        wrong.measure(serialized(SPACE.sample(1, seed=0)[0]))

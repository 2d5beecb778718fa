"""The roofline against counts by hand."""

from __future__ import annotations

import pytest

from nasrlm.devices import Device, get_device
from nasrlm.errors import ConfigError, DeviceError
from nasrlm.graph import GraphBuilder, costs, to_onnx
from nasrlm.spaces import get_space


def serialized(b: GraphBuilder) -> bytes:
    return to_onnx(b.build(), weights="random").SerializeToString()


def convolutional() -> bytes:
    b = GraphBuilder()
    x = b.relu(b.batch_norm(b.conv(b.input((3, 8, 8)), 4, 3)))
    b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
    return serialized(b)


CONV_MACS = 4 * 8 * 8 * 3 * 9
CONV_VALUES = 3 * 64 + 4 * 64 + 4 * 3 * 9
POOL_VALUES = 4 * 64 + 4
LINEAR_VALUES = 4 + 10 + (4 * 10 + 10)


def test_by_hand_with_fusion() -> None:
    device = get_device("roofline", peak_gmacs=1.0, bandwidth_gbs=2.0, overhead_us=0.5)
    assert isinstance(device, Device) and device.metric == "latency_ms/roofline"
    rows = device.breakdown(convolutional()).set_index("kind")  # type: ignore[attr-defined]
    assert list(rows.index) == ["conv", "bn", "relu", "gap", "flatten", "linear"]
    assert rows["bound"].tolist() == ["compute", "fused", "fused", "memory", "free", "memory"]
    assert rows["macs"].tolist() == [CONV_MACS, 0, 0, 0, 0, 40]
    assert rows["bytes"].tolist() == [4 * CONV_VALUES, 0, 0, 4 * POOL_VALUES, 0, 4 * LINEAR_VALUES]
    assert rows.loc["conv", "ms"] == pytest.approx(CONV_MACS / 1e9 * 1e3 + 0.5e-3)
    assert rows.loc["gap", "ms"] == pytest.approx(4 * POOL_VALUES / 2e9 * 1e3 + 0.5e-3)
    assert rows.loc["flatten", "ms"] == 0
    assert rows.loc["linear", "shape"] == "1x10"
    measured = device.measure(convolutional())
    assert measured.median_ms == measured.minimum_ms == pytest.approx(rows["ms"].sum())
    assert (measured.repeats, measured.stable) == (1, True)


def test_by_hand_without_fusion() -> None:
    device = get_device("roofline", peak_gmacs=1.0, bandwidth_gbs=2.0, fused=False, bytes_per_value=2)
    rows = device.breakdown(convolutional()).set_index("kind")  # type: ignore[attr-defined]
    assert rows.loc["bn", "bytes"] == 2 * (2 * 4 * 64 + 2 * 4)  # scale and shift a channel
    assert rows.loc["relu", "bytes"] == 2 * 2 * 4 * 64
    assert rows.loc["relu", "ms"] == pytest.approx(2 * 2 * 4 * 64 / 2e9 * 1e3)


def test_only_what_is_used_once_is_fused() -> None:
    b = GraphBuilder()
    x = b.conv(b.input((3, 8, 8)), 4, 3)
    b.output(b.add(b.relu(x), x))
    rows = get_device("roofline", peak_gmacs=1, bandwidth_gbs=1).breakdown(serialized(b))  # type: ignore[attr-defined]
    assert dict(zip(rows["kind"], rows["bound"], strict=True)) == {"conv": "compute", "relu": "memory", "add": "memory"}


def test_a_look_up_reads_only_what_it_gives() -> None:
    b = GraphBuilder()
    b.output(b.embedding(b.input((5,), dtype="int64"), 1000, 8))
    rows = get_device("roofline", peak_gmacs=1, bandwidth_gbs=1).breakdown(serialized(b))  # type: ignore[attr-defined]
    assert rows["bytes"].tolist() == [4 * 2 * 5 * 8]


def test_macs_are_those_of_costs_and_faster_machines_are_faster() -> None:
    for architecture in get_space("nasbench201").sample(3, seed=0):
        model = to_onnx(architecture, weights="random").SerializeToString()
        slow = get_device("roofline", peak_gmacs=10, bandwidth_gbs=10)
        rows = slow.breakdown(model)  # type: ignore[attr-defined]
        assert rows["macs"].sum() == costs(architecture).macs
        assert set(rows["bound"]) <= {"compute", "memory", "fused", "free"}
        fast = get_device("roofline", peak_gmacs=20, bandwidth_gbs=20)
        assert fast.measure(model).median_ms == pytest.approx(slow.measure(model).median_ms / 2)


def test_a_network_of_nothing() -> None:
    b = GraphBuilder()
    b.output(b.flatten(b.input((3, 8, 8))))
    with pytest.raises(DeviceError, match="nothing in this network"):
        get_device("roofline", peak_gmacs=1, bandwidth_gbs=1).measure(serialized(b))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs the option"),
        ({"peak_gmacs": 0}, "peak_gmacs is 0"),
        ({"bandwidth_gbs": -1}, "bandwidth_gbs is -1"),
        ({"overhead_us": -1}, "overhead_us is -1"),
        ({"bytes_per_value": 0.5}, "bytes_per_value is 0.5"),
        ({"fused": "yes"}, "fused is 'yes'"),
        ({"label": "a b"}, "label is 'a b'"),
        ({"label": "a@0.5"}, "label is 'a@0.5'"),
    ],
)
def test_options(options: dict[str, object], words: str) -> None:
    given = {"peak_gmacs": 1.0, "bandwidth_gbs": 1.0} | options if options else {}
    with pytest.raises(ConfigError, match=words):
        get_device("roofline", **given)

"""The onnxruntime device on real networks: what it measures, what it refuses. No time itself is asserted."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from nasrlm.devices import Device, get_device, summarise
from nasrlm.errors import ConfigError, DeviceError, UnknownNameError
from nasrlm.graph import to_onnx
from nasrlm.spaces import get_space

QUICK = {"repeats": 6, "warm_up": 0, "tries": 1}


def network(**options: object) -> bytes:
    return to_onnx(get_space("tiny").sample(1, seed=0)[0], **({"weights": "random"} | options)).SerializeToString()


def model_with_input(kind: int, shape: list[int | str], op: str = "Identity") -> bytes:
    made = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def test_measures_a_network() -> None:
    device = get_device("onnxruntime_cpu", **QUICK)
    assert isinstance(device, Device)
    m = device.measure(network())
    assert 0 < m.minimum_ms <= m.lower_quartile_ms <= m.median_ms <= m.upper_quartile_ms
    assert m.repeats >= 5 and m.threads == 1
    assert m.thread_ms > 0
    assert device.metric == "latency_ms/onnxruntime_cpu"


def test_other_settings_are_another_metric() -> None:
    device = get_device("onnxruntime_cpu", threads=2, batch_size=4, **QUICK)
    assert device.metric == "latency_ms/onnxruntime_cpu_b4_t2"
    assert device.measure(network()).threads == 2


def test_same_seed_same_input_and_batches_run() -> None:
    one, same, other = (get_device("onnxruntime_cpu", seed=s).run(network())["output"] for s in (1, 1, 2))
    assert one.shape == (1, 10) and np.isfinite(one).all()
    assert (one == same).all() and (one != other).any()
    assert get_device("onnxruntime_cpu", batch_size=3).run(network())["output"].shape == (3, 10)


def test_the_processor_keeps_its_way_with_tiny_numbers() -> None:
    get_device("onnxruntime_cpu", **QUICK).measure(network())
    assert sys.float_info.min / 2 > 0  # a session that flushes denormals would do so for the whole thread


def test_seconds_limit_the_repeats_but_quartiles_have_five() -> None:
    assert get_device("onnxruntime_cpu", repeats=1000, seconds=1e-9, tries=1, threads=2).measure(network()).repeats == 5


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(TensorProto.INT64, ["n", 4]), (TensorProto.BOOL, [1, 2]), (TensorProto.FLOAT16, [1, 2]), (TensorProto.FLOAT, [])],
)
def test_inputs_of_other_types(kind: int, shape: list[int | str]) -> None:
    output = get_device("onnxruntime_cpu").run(model_with_input(kind, shape))["y"]
    assert output.shape == tuple(1 if size == "n" else size for size in shape)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (b"", "cannot load"),
        (b"garbage", "cannot load"),
        (model_with_input(TensorProto.FLOAT, [1, 3], op="NoSuchOperator"), "NoSuchOperator"),
        (model_with_input(TensorProto.FLOAT, [8, 3]), "batch_size: 8"),
        (model_with_input(TensorProto.FLOAT, ["n", "width"]), "width"),
        (model_with_input(TensorProto.STRING, [1]), "tensor(string)"),
        (network(weights=None), "weights"),
    ],
)
def test_refuses_in_plain_words(model: bytes, words: str) -> None:
    with pytest.raises(DeviceError) as caught:
        get_device("onnxruntime_cpu").measure(model)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_batches_of_networks_that_cannot_be_widened() -> None:
    device = get_device("onnxruntime_cpu", batch_size=2)
    for model in (b"garbage", model_with_input(TensorProto.FLOAT, [8, 3])):
        with pytest.raises(DeviceError):
            device.measure(model)
    fixed = onnx.load_model_from_string(network())
    fixed.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    fixed.graph.node.append(helper.make_node("Squeeze", ["output", "axes"], ["fixed"]))
    fixed.graph.output[0].name = "fixed"
    with pytest.raises(DeviceError, match="or with a free batch dimension"):
        device.measure(fixed.SerializeToString())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thread": 2}, "Nearest: threads"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": "two"}, "threads is 'two'"),
        ({"repeats": True}, "repeats is True"),
        ({"warm_up": -1}, "warm_up is -1"),
        ({"seconds": 0}, "seconds is 0"),
        ({"max_spread": None}, "max_spread is None"),
        ({"seconds": float("inf")}, "seconds is inf"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_are_checked(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        get_device("onnxruntime_cpu", **options)


def test_unknown_device_and_a_device_of_ones_own(tmp_path: object) -> None:
    with pytest.raises(UnknownNameError, match="Nearest: onnxruntime_cpu"):
        get_device("onnxruntme_cpu")
    path = tmp_path / "mine.py"  # type: ignore[operator]
    path.write_text(
        "from nasrlm.devices import summarise\n"
        "class DEVICE:\n"
        "    name, metric = 'mine', 'latency_ms/mine'\n"
        "    def __init__(self, base): self.base = base\n"
        "    def measure(self, model): return summarise([self.base], 1, 0.1)\n"
    )
    assert get_device(str(path), base=3.0).measure(b"").median_ms == 3.0
    with pytest.raises(ConfigError, match="needs the option 'base'"):
        get_device(str(path))


def test_summarise() -> None:
    m = summarise([1.0, 2.0, 3.0, 4.0, 5.0], threads=2, max_spread=0.5)
    assert (m.minimum_ms, m.lower_quartile_ms, m.median_ms, m.upper_quartile_ms) == (1.0, 2.0, 3.0, 4.0)
    assert (m.repeats, m.threads, m.stable) == (5, 2, False)
    assert m.spread == pytest.approx(2 / 3)
    assert summarise([3.0], threads=1, max_spread=0.1).stable

"""onnxruntime_int8 and openvino_cpu on real networks: the same outputs as onnxruntime, and what they refuse."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from nasrlm.devices import get_device
from nasrlm.errors import ConfigError, DeviceError
from nasrlm.graph import GraphBuilder, to_onnx
from nasrlm.spaces import get_space

QUICK = {"repeats": 5, "warm_up": 0, "tries": 1}


def network(space: str = "tiny", seed: int = 0) -> bytes:
    return to_onnx(get_space(space).sample(1, seed=seed)[0], weights="random").SerializeToString()


def device(name: str, **options: Any) -> Any:
    if name == "openvino_cpu":
        pytest.importorskip("openvino")
    return get_device(name, **(QUICK | options))


@pytest.mark.parametrize("space", ["tiny", "nasbench201"])
@pytest.mark.parametrize(("name", "tolerance"), [("openvino_cpu", 1e-3), ("onnxruntime_int8", 0.15)])
def test_outputs_are_those_of_onnxruntime(name: str, tolerance: float, space: str) -> None:
    model = network(space, seed=1)
    expected = get_device("onnxruntime_cpu").run(model)["output"]  # type: ignore[attr-defined]
    output = device(name).run(model)["output"]
    difference = np.abs(output - expected).max() / np.abs(expected).max()
    assert difference < tolerance
    assert name != "onnxruntime_int8" or difference > 0  # int8 rounds: equal outputs would mean it stayed float


@pytest.mark.parametrize("name", ["openvino_cpu", "onnxruntime_int8"])
def test_batches_and_threads(name: str) -> None:
    wide = device(name, batch_size=3, threads=2)
    assert wide.metric == f"latency_ms/{name}_b3_t2"
    assert wide.run(network())["output"].shape == (3, 10)
    measured = wide.measure(network())
    assert measured.threads == 2 and measured.median_ms > 0


@pytest.mark.parametrize("name", ["openvino_cpu", "onnxruntime_int8"])
def test_a_free_batch_dimension(name: str) -> None:
    made = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    assert device(name).run(model)["y"].shape == (1, 4)
    assert device(name, batch_size=2).run(model)["y"].shape == (2, 4)


@pytest.mark.parametrize("name", ["openvino_cpu", "onnxruntime_int8"])
@pytest.mark.parametrize("model", [b"", b"garbage", network()[:500]])
def test_refuses_what_is_no_network(name: str, model: bytes) -> None:
    with pytest.raises(DeviceError, match=f"device {name}") as caught:
        device(name).measure(model)
    assert "\n" not in str(caught.value)


def test_openvino_says_what_it_cannot_run() -> None:
    made = helper.make_graph(
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    with pytest.raises(DeviceError, match="OpenVINO cannot load"):
        device("openvino_cpu").measure(model)


def test_quantised_networks_compute_in_int8() -> None:
    import onnx

    from nasrlm.devices.calibration import CalibrationData
    from nasrlm.devices.quantise import quantised
    from nasrlm.devices.settings import Settings

    small = onnx.load_model_from_string(
        quantised(network(), Settings("onnxruntime_int8"), CalibrationData(None, 2, "device onnxruntime_int8"))
    )
    kinds = [node.op_type for node in small.graph.node]
    assert kinds.count("QuantizeLinear") >= 3 and "BatchNormalization" not in kinds
    stored = {tensor.data_type for tensor in small.graph.initializer if len(tensor.dims) == 4}
    assert stored == {TensorProto.INT8}


def test_the_quantiser_leaves_the_root_logger_alone() -> None:
    root = logging.getLogger()
    before = (list(root.handlers), list(root.filters), root.level)
    device("onnxruntime_int8").run(network())
    assert (root.handlers, root.filters, root.level) == before


def two_inputs() -> bytes:
    b = GraphBuilder()
    b.output(b.add(b.linear(b.input((6,)), 4), b.linear(b.input((3,)), 4)))
    return to_onnx(b.build(), weights="random").SerializeToString()


def test_calibration_from_files(tmp_path: Path) -> None:
    import onnx

    images = np.random.default_rng(0).standard_normal((5, *input_shape(network())))
    np.save(tmp_path / "images.npy", images)  # float64: it is cast to what the network takes
    own = device("onnxruntime_int8", calibration=str(tmp_path / "images.npy"))
    assert np.isfinite(own.run(network())["output"]).all()
    tiny_range = tmp_path / "narrow.npy"
    np.save(tiny_range, images * 1e-3)
    narrow = device("onnxruntime_int8", calibration=str(tiny_range))
    assert np.abs(narrow.run(network())["output"]).max() < np.abs(own.run(network())["output"]).max()

    names = [value.name for value in onnx.load_model_from_string(two_inputs()).graph.input]
    arrays = {name: np.ones((2, size)) for name, size in zip(names, (6, 3), strict=True)}
    np.savez(tmp_path / "two.npz", **arrays)
    assert device("onnxruntime_int8", calibration=str(tmp_path / "two.npz")).measure(two_inputs()).median_ms > 0
    np.savez(tmp_path / "one.npz", **{names[0]: np.ones((2, 6))})
    with pytest.raises(DeviceError, match=f"no array for the network's input '{names[1]}'"):
        device("onnxruntime_int8", calibration=str(tmp_path / "one.npz")).measure(two_inputs())
    with pytest.raises(DeviceError, match="has the shape"):
        device("onnxruntime_int8", calibration=str(tmp_path / "one.npz")).measure(network())


def input_shape(model: bytes) -> tuple[int, ...]:
    import onnx

    dims = onnx.load_model_from_string(model).graph.input[0].type.tensor_type.shape.dim
    return tuple(d.dim_value for d in dims)[1:]


@pytest.mark.parametrize("content", [None, b"no array", b""])
def test_calibration_files_that_cannot_be_used(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "data.npy"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match="calibration .* cannot be read"):
        device("onnxruntime_int8", calibration=str(file))


def test_calibration_without_examples(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.float32(1))
    with pytest.raises(ConfigError, match="holds no examples"):
        device("onnxruntime_int8", calibration=str(tmp_path / "one.npy"))
    with pytest.raises(ConfigError, match="calibration_samples is 0"):
        device("onnxruntime_int8", calibration_samples=0)


def test_openvino_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(DeviceError, match=r"pip install 'nasrlm\[openvino\]'"):
        get_device("openvino_cpu")

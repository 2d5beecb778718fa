"""The devices of NVIDIA GPUs: clear words without one, real timing with one, and what runs on any machine."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from nasrlm.devices import get_device
from nasrlm.devices.nvidia import count_gpus
from nasrlm.devices.onnxruntime_session import OnnxRuntimeSession
from nasrlm.devices.settings import Settings
from nasrlm.devices.triton_gpu import torch_network
from nasrlm.errors import ConfigError, DeviceError
from nasrlm.graph import to_onnx
from nasrlm.spaces import get_space

NAMES = ("onnxruntime_cuda", "triton_gpu")


def network() -> bytes:
    return to_onnx(get_space("tiny").sample(1, seed=0)[0], weights="random").SerializeToString()


@pytest.mark.skipif(count_gpus() > 0, reason="there is a GPU")
@pytest.mark.parametrize("name", NAMES)
def test_without_a_gpu_the_device_says_so(name: str) -> None:
    with pytest.raises(DeviceError, match=f"device {name} needs an NVIDIA GPU .* Use onnxruntime_cpu"):
        get_device(name)


@pytest.mark.gpu
@pytest.mark.skipif(count_gpus() == 0, reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("name", NAMES)
def test_with_a_gpu_it_measures(name: str) -> None:
    measured = get_device(name).measure(network())
    assert 0 < measured.minimum_ms <= measured.median_ms and np.isnan(measured.thread_ms)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "float23"}, "Nearest: float32"),
        ({"mode": "fast"}, "Allowed: default"),
        ({"repeat_ms": 0}, "repeat_ms is 0"),
        ({"warm_up_ms": None}, "warm_up_ms is None"),
        ({"batch_size": 0}, "batch_size is 0"),
    ],
)
def test_options_are_checked_before_the_gpu_is_looked_for(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        get_device("triton_gpu", **options)


def test_bound_runs_give_what_runs_give() -> None:
    session = OnnxRuntimeSession(network(), Settings("any"))
    expected = session.check()["output"]
    run = session.bound("cpu")
    run()
    binding = next(cell.cell_contents for cell in run.__closure__ or () if hasattr(cell.cell_contents, "get_outputs"))
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), expected, rtol=1e-5)


def test_the_torch_network_takes_its_input() -> None:
    import torch

    module, inputs = torch_network(network(), Settings("triton_gpu", batch_size=3), "bfloat16", "cpu")
    with torch.inference_mode():
        output = module(*inputs)
    assert output.shape == (3, 10) and output.dtype == torch.bfloat16 and torch.isfinite(output.float()).all()


def test_the_torch_network_refuses_in_plain_words() -> None:
    made = onnx.helper.make_graph(
        [onnx.helper.make_node("NoSuchOperator", ["x"], ["y"], domain="mine")],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 4])],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("mine", 1)]
    model = onnx.helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString()
    for broken in (model, b"garbage", b""):
        with pytest.raises(DeviceError, match="device triton_gpu"):
            torch_network(broken, Settings("triton_gpu"), "float32", "cpu")

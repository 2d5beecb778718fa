"""Networks made for one example, run on several: each example gives what it gives alone."""

from __future__ import annotations

import io
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from nasrlm.devices import get_device
from nasrlm.devices.batching import with_batch_size
from nasrlm.graph import GraphBuilder, to_onnx
from nasrlm.spaces import get_space

BATCH = 3
SIZE = (3, 32, 32)


def outputs(model: bytes, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def check(model: bytes) -> None:
    graph = onnx.load_model_from_string(model).graph
    dims = [dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).standard_normal((BATCH, *dims[1:])).astype(np.float32)
    together = outputs(with_batch_size(model, BATCH), x)
    alone = np.concatenate([outputs(model, x[i : i + 1]) for i in range(BATCH)])
    assert np.abs(alone[1] - alone[0]).max() > 1e-3 * np.abs(alone).max()  # the input matters
    np.testing.assert_allclose(together, alone, atol=1e-4 * np.abs(alone).max())


@pytest.mark.parametrize(
    ("space", "options"),
    [
        ("fbnet", {}),
        ("snas", {}),
        ("conv1d_audio", {}),
        ("vit", {"image_size": 32, "patch": 8, "widths": (64,), "depths": (2,), "heads": (2,)}),
    ],
)
def test_search_spaces(space: str, options: dict[str, object]) -> None:
    for x in get_space(space, **options).sample(4, seed=2):
        check(to_onnx(x, weights="random").SerializeToString())


@pytest.mark.parametrize("name", ["onnxruntime_int8", "openvino_cpu"])
@pytest.mark.parametrize("space", ["fbnet", "vit"])
def test_other_devices(name: str, space: str) -> None:
    if name == "openvino_cpu":
        pytest.importorskip("openvino")
    options = {"image_size": 32, "patch": 8, "widths": (64,), "depths": (2,), "heads": (2,)} if space == "vit" else {}
    model = to_onnx(get_space(space, **options).sample(1, seed=2)[0], weights="random").SerializeToString()
    device = get_device(name, batch_size=BATCH)
    assert device.run(model)["output"].shape[0] == BATCH  # type: ignore[attr-defined]


class Patches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).flatten(2).transpose(1, 2)


class Transformer(nn.Module):
    """torch's own: positions first inside, and a class token that is expanded."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.patches, self.token = Patches(), nn.Parameter(torch.randn(1, 1, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.batch_first = batch_first

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.layers(x)[:, 0] if self.batch_first else self.layers(x.transpose(0, 1))[0]


class Attention(nn.Module):
    """As timm writes it: queries, keys and values from one layer, the batch behind their number."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.three = Patches(), nn.Linear(32, 96)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        b, n, c = x.shape
        q, k, v = self.three(x).reshape(b, n, 3, 4, c // 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = (q @ k.transpose(-2, -1)).softmax(-1) @ v
        return y.transpose(1, 2).reshape(b, n, c).mean(1)


class Merged(nn.Module):
    """The batch merged with positions before a layer, and taken apart behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.layer = Patches(), nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        b, n, c = x.shape
        return self.layer(x.reshape(b * n, c)).relu().reshape(b, n * 16)


class Mixed(nn.Module):
    """A group norm, a resize to a fixed size, pixels shuffled, and a recurrent layer with states of zero."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.recurrent = (
            nn.Conv2d(3, 8, 3),
            nn.GroupNorm(2, 8),
            nn.LSTM(128, 16, batch_first=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.interpolate(self.norm(self.conv(x)), size=(16, 16))
        x = nn.functional.pixel_shuffle(nn.functional.pixel_unshuffle(x, 2), 2)
        return self.recurrent(x.permute(0, 2, 1, 3).reshape(x.shape[0], 16, 128))[0][:, -1]


def exported(module: nn.Module, dynamo: bool) -> bytes:
    x = torch.randn(1, *SIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            return bytes(
                torch.onnx.export(module.eval(), (x,), dynamo=True, verbose=False).model_proto.SerializeToString()
            )
        file = io.BytesIO()
        torch.onnx.export(module.eval(), (x,), file, dynamo=False)
    return file.getvalue()


@pytest.mark.parametrize("dynamo", [False, True], ids=["torchscript", "dynamo"])
@pytest.mark.parametrize(
    "module", [Transformer(True), Transformer(False), Attention(), Merged(), Mixed()], ids=lambda m: type(m).__name__
)
def test_exports_of_torch(module: nn.Module, dynamo: bool) -> None:
    check(exported(module, dynamo))


def test_a_shape_that_leaves_a_dimension_free() -> None:
    b = GraphBuilder()
    b.output(b.reshape(b.conv(b.input(SIZE), 4, 3), (1, 4, 1024)))
    model = to_onnx(b.build(), weights="random")
    for shape in ([1, 4, -1], [0, 4, -1], [-1, 4, 1024], [1, 2, 2048]):
        for tensor in model.graph.initializer:
            if tensor.name.endswith(".shape"):
                tensor.CopyFrom(numpy_helper.from_array(np.array(shape), tensor.name))
        del model.graph.output[0].type.tensor_type.shape.dim[:]
        check(model.SerializeToString())


def test_what_cannot_be_followed_stays() -> None:
    nodes = [
        helper.make_node("Foreign", ["x"], ["y"], domain="elsewhere"),
        helper.make_node("Reshape", ["y", "shape"], ["z"]),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([1, 4]), "shape")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("elsewhere", 1)]
    wide = onnx.load_model_from_string(
        with_batch_size(helper.make_model(made, opset_imports=opsets).SerializeToString(), 2)
    )
    assert list(wide.graph.node[1].input) == ["y", "shape"]

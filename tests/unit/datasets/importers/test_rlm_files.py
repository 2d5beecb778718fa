"""The RLM paper's parquet files: ONNX in words becomes our text, ids are kept, unreadable rows are named."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import onnx
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from nasrlm import get_space, registry, to_onnx, to_text
from nasrlm.datasets.importers import import_table
from nasrlm.datasets.importers.onnx_words import canonical_text
from nasrlm.errors import ExportError, TableError

IMAGE = torch.zeros(1, 3, 16, 16)


class Classifier(nn.Module):
    """Convolution, ReLU6, hard sigmoid gate, pooling, and a reshape instead of a flattening."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.gate = nn.Conv2d(8, 8, 1)
        self.linear = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.relu6(self.norm(self.conv(x)))
        x = x * (nn.functional.relu6(self.gate(x) + 3.0) / 6.0)
        x = nn.functional.adaptive_avg_pool2d(x, 1)
        return self.linear(x.view(x.size(0), -1))


class Shuffled(nn.Module):
    """Grouped convolution and channel shuffle, a factorized reduction, and an operation that gives zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.grouped = nn.Conv2d(3, 6, 3, padding=1, groups=3)
        self.norm = nn.BatchNorm2d(6)
        self.conv = nn.Conv2d(6, 8, 3, padding=1)
        self.halves = nn.ModuleList(nn.Conv2d(8, 4, 1, stride=2) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.grouped(x)))
        n, c, h, w = x.shape
        x = self.conv(x.view(n, 3, c // 3, h, w).permute(0, 2, 1, 3, 4).reshape(n, c, h, w))
        zeros = x[:, :, ::2, ::2] * 0.0
        return torch.cat([self.halves[0](x), self.halves[1](x[:, :, 1:, 1:])], 1) + zeros


def words(model: onnx.ModelProto) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return onnx.helper.printable_graph(model.graph)


def exported(module: nn.Module, weights: bool) -> onnx.ModelProto:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), (IMAGE,), file, dynamo=False, export_params=weights)
    return onnx.load_from_string(file.getvalue())


@pytest.mark.parametrize("weights", [True, False], ids=["initializers", "weights as inputs"])
@pytest.mark.parametrize("module", [Classifier, Shuffled])
def test_words_of_torch_exports_give_the_text_of_the_module(module: type[nn.Module], weights: bool) -> None:
    text = canonical_text(words(exported(module(), weights)))
    assert text == to_text((module(), IMAGE))
    assert module is not Classifier or "relu6" in text


@pytest.mark.parametrize("name", ["nasbench101", "nasbench201", "nds_darts", "fbnet", "ofa_mobilenetv3", "twopath"])
def test_words_of_networks_give_the_text_of_the_networks(name: str) -> None:
    if name not in registry.names("spaces"):
        pytest.skip(f"the space {name} is not here")
    for a in get_space(name).sample(3, seed=0):
        model = to_onnx(a.graph())
        assert canonical_text(words(model)) == to_text(a)
        assert canonical_text(onnx.printer.to_text(model)) == to_text(a)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "neither words of printable_graph nor of onnx.printer"),
        ("def f(x): return x", "neither words"),
        ("graph g (\n  %x[FLOAT, 1x3x8x8]\n) {\n  %y = Relu(%x)\n", "end before its return"),
        ("graph g (\n  %x[FLOAT, 1x3x8x8]\n) {\n  what\n  return %y\n}", "'what' is no operator"),
        ("graph g (\n  %x[FLAT, 1x3x8x8]\n) {\n  %y = Relu(%x)\n  return %y\n}", "declares no tensor"),
        ("graph g (\n  %x[FLOAT, 1x3x8x8]\n) {\n  %y = Relu[a = 1](%x)\n  return %y\n}", "has no attribute 'a'"),
        ("graph g (\n  %x[FLOAT, 1x3x8x8]\n) {\n  %y = Elu[alpha = (](%x)\n  return %y\n}", "is no value"),
        (
            "graph g (\n  %x[FLOAT, 1x3x8x8]\n  %w[FLOAT, ax3]\n) {\n  %y = Relu(%x)\n  return %y\n}",
            "no fixed dimensions",
        ),
        ("graph g (\n  %x[FLOAT, 1x3x8x8]\n) {\n  %y = Reshape()\n  return %y\n}", "those of no graph"),
        ("graph g (\n  %x[FLOAT, 1x3x8x8]\n) {\n  %y = Relu(%z)\n  return %y\n}", "z"),
    ],
)
def test_words_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        canonical_text(text)


def rows() -> list[dict[str, Any]]:
    module = words(exported(Classifier(), True))
    a = get_space("nasbench201").sample(1, seed=1)[0]
    common = {"uid": None, "target_metric": "val_accuracy", "flops": 1e6, "params": None, "metainformation": ""}
    return [
        {
            **common,
            **{"identifier": "NB201_0", "space": "NB201", "arch_str": a.string, "val_accuracy": 91.5},
            "input": words(to_onnx(a.graph())),
            "metadata": "{'zcp_naswot': 1.5, 'lat_pixel3': 7, 'other': 'x'}",
        },
        {
            **common,
            **{"identifier": "OfaMB_0", "space": "OfaMB", "arch_str": "x", "val_accuracy": 75.0},
            "input": "graph g (\n  %x[FLOAT, 1x3]\n) {\n  %y = Strange(%x)",
            "metadata": "no dictionary",
        },
        {
            **common,
            **{"identifier": "SNAS_7", "space": "SNAS", "arch_str": "y", "val_accuracy": None, "uid": "u7"},
            "input": module,
            "metadata": "{}",
        },
    ]


def parquet(file: Path, values: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(values), file)
    return file


def test_networks_become_texts_and_unreadable_rows_are_named(tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", rows())
    done = import_table("graph_arch_regression", [file], tmp_path / "t.parquet")
    table = pd.read_parquet(done.file)
    assert done.space == ""
    assert done.skipped == 1
    assert done.reasons == ("row 2 (OfaMB_0): the words of a graph end before its return, or have no input",)
    assert list(table["id"]) == ["NB201_0", "SNAS_7"]
    assert list(table["text"]) == [
        to_text(get_space("nasbench201").sample(1, seed=1)[0]),
        to_text((Classifier(), IMAGE)),
    ]
    assert table["accuracy/valid"].tolist()[0] == 91.5
    assert table["accuracy/valid"].isna().tolist() == [False, True]
    assert table["proxy/naswot"].tolist()[0] == 1.5
    assert table["latency/pixel3"].tolist()[0] == 7.0
    assert table["uid"].isna().tolist() == [True, False]


def test_programs_stay_as_they_are(imported, tmp_path: Path) -> None:
    programs = [
        {"identifier": "KBSS_1", "space": "KBSS", "input": "x = 1", "metric_type": "latency_ms", "target": 0.5},
        {"identifier": "APPS_2", "space": "APPS", "input": "y = 2", "metric_type": "memory_bytes", "target": 100.0},
    ]
    file = parquet(tmp_path / "c.parquet", [{**program, "metadata": ""} for program in programs])
    table = imported("code_regression", file)
    assert list(table["text"]) == ["x = 1", "y = 2"]
    assert table["latency_ms"].tolist()[0] == 0.5
    assert table["memory_bytes"].tolist()[1] == 100.0
    assert table["latency_ms"].isna().tolist() == [False, True]


def test_mistakes_are_told(tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", [{"identifier": "x", "space": "x", "input": "", "metric_type": "speed"}])
    for name, message in (
        ("graph_arch_regression", "unknown column 'uid' in .*a.parquet"),
        ("code_regression", "none of the columns target"),
    ):
        with pytest.raises(TableError, match=message):
            import_table(name, [file], tmp_path / "t.parquet")
    parquet(file, [{"identifier": "x", "space": "x", "input": "", "metric_type": "speed", "target": 1.0}])
    with pytest.raises(TableError, match="a.parquet, row 1: unknown metric 'speed'"):
        import_table("code_regression", [file], tmp_path / "t.parquet")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(TableError, match="a.parquet: .*Is the file complete"):
        import_table("code_regression", [file], tmp_path / "t.parquet")

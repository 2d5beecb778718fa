"""torch modules in, by either exporter."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest
import torch
from torch import nn

from nasrlm.errors import ExportError
from nasrlm.graph import to_text
from nasrlm.graph.exporters import EXPORTERS, export_module, from_torch
from tests.corpus import CORPUS, export, network


@pytest.mark.parametrize("name", CORPUS)
def test_the_exporter_that_is_taken_gives_the_text_of_the_others(name: str) -> None:
    assert to_text(network(name)) == to_text(export(name, "dynamo", 21))


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", ["residual", "torch_attention", "detector", "two_inputs"])
def test_an_exporter_can_be_chosen(name: str, exporter: str) -> None:
    assert to_text(from_torch(*network(name), exporter)) == to_text(export(name, "dynamo", 21))  # type: ignore[arg-type]


class Weighted(nn.Module):
    """TorchScript has no way to export `isin`; dynamo takes it apart."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.isin(x, torch.tensor([1.0, 2.0])).float()


class Hopeless(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svd(x)[0]


def test_what_one_exporter_cannot_export_goes_to_the_other() -> None:
    with pytest.raises(ExportError, match="torchscript"):
        export_module(Weighted(), torch.zeros(1, 4), "torchscript")
    assert to_text((Weighted(), torch.zeros(1, 4))) == to_text(export_module(Weighted(), torch.zeros(1, 4), "dynamo"))


def test_what_none_can_export_is_refused_with_the_reasons_of_both(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ExportError) as caught:
        from_torch(Hopeless(), torch.zeros(1, 4, 4))
    message = str(caught.value)
    assert message.startswith("torch cannot export Hopeless. What its exporters say:\n  torchscript: ")
    assert "linalg_svd" in message.split("\n")[1] and "linalg_svd" in message.split("\n")[2]
    assert len(message) < 1000 and "\x1b" not in message
    assert capfd.readouterr().out == ""  # results go there


def test_an_export_leaves_everything_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.ReLU())
    module.train()
    fast = torch.backends.mha.get_fastpath_enabled()
    for exporter in EXPORTERS:
        with redirect_stdout(io.StringIO()) as printed:
            export_module(module, torch.zeros(1, 4), exporter)
        assert module.training and all(part.training for part in module)
        assert torch.backends.mha.get_fastpath_enabled() is fast
        assert printed.getvalue() == ""


def test_an_exporter_that_is_not_there() -> None:
    with pytest.raises(ExportError, match="unknown exporter 'dynamic'.*Nearest: dynamo"):
        export_module(nn.ReLU(), torch.zeros(1, 4), "dynamic")  # type: ignore[arg-type]

"""Networks by PyTorch code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from nasrlm import registry
from nasrlm.errors import ExportError, SpaceError
from nasrlm.graph import Graph, GraphBuilder, to_text
from nasrlm.spaces import Choice, SearchSpace, get_space
from nasrlm.testing import check_space
from nasrlm.testing.common import ConformanceError

ROOT = Path(__file__).parents[3]


def test_nasbench201_in_torch_has_the_texts_of_nasbench201_in_graph_builder() -> None:
    code = registry.load_code(ROOT / "experiments/benchmarks/nasbench201_torch.py", "network")
    official = get_space("nasbench201")

    class InTorch(SearchSpace):
        name = "nasbench201_in_torch"
        source = "tests"
        parameters = official.parameters
        example_shape = (3, 32, 32)

        def build_module(self, params: Any) -> torch.nn.Module:
            return code.MODULE.build(params)

    space = InTorch()
    for a in official.sample(20, 7):
        assert to_text(space.architecture(a.params)) == to_text(a)


class Both(SearchSpace):
    """Described twice; `broken` says the second one wrong."""

    name = "both"
    source = "tests"
    parameters = (Choice("width", (4, 8)), Choice("kernel", (1, 3)))
    example_shape = (3, 8, 8)
    broken = False

    def build(self, params: Any) -> Graph:
        b = GraphBuilder()
        x = b.relu(b.conv(b.input((3, 8, 8)), params["width"], params["kernel"], bias=True))
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), 2))
        return b.build()

    def build_module(self, params: Any) -> torch.nn.Module:
        k = params["kernel"]
        layers = [torch.nn.Conv2d(3, params["width"], k, padding=k // 2), torch.nn.ReLU()]
        layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(params["width"], 2 + self.broken)]
        return torch.nn.Sequential(*layers)


def test_a_space_described_twice_is_held_to_it() -> None:
    check_space(Both(), samples=3, networks=2)

    class Broken(Both):
        broken = True

    with pytest.raises(ConformanceError, match="describe two networks"):
        check_space(Broken(), samples=3, networks=1)


class Alone(SearchSpace):
    name = "alone"
    source = "tests"
    parameters = (Choice("width", (4, 8)),)

    def build_module(self, params: Any) -> Any:
        module = torch.nn.Linear(params["width"], 2)
        return (module, torch.zeros(1, params["width"])) if params["width"] == 4 else module


def test_a_pair_and_a_missing_example() -> None:
    small, large = Alone().enumerate()
    assert to_text(small) == "nasrlm1\nin 1x4\nlinear /2"
    assert small.graph() is small.graph()
    with pytest.raises(ExportError, match="example_shape"):
        large.graph()


def test_a_space_without_networks_is_refused_where_it_is_written() -> None:
    with pytest.raises(SpaceError, match="Nothing describes no network"):

        class Nothing(SearchSpace):
            name = "nothing"
            source = "tests"
            parameters = (Choice("width", (4, 8)),)

"""My search space MY_NAME. Check it: nasrlm check FILE; use it in an experiment: space: {path: FILE}"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nasrlm import Choice, GraphBuilder, Integer, SearchSpace, When
from nasrlm.graph import Graph


class MySpace(SearchSpace):
    """A stack of convolutions on a 3x32x32 image."""

    name = "MY_NAME"
    source = "own work"  # the paper or repository that defines the space

    # The choices, in order. A conditional one comes after its parent and exists only when the parent has those values.
    parameters = (
        Integer("depth", 2, 6),
        Choice("width", (16, 32, 64)),
        Choice("kernel", (1, 3, 5)),
        Choice("pool", ("none", "max")),
        Choice("pool_kernel", (2, 3), when=When("pool", ("max",))),
    )

    def build(self, params: Mapping[str, Any]) -> Graph:
        """Describe the network: no weights, only what is connected to what."""
        b = GraphBuilder()
        x = b.relu(b.batch_norm(b.conv(b.input((3, 32, 32)), params["width"], 3)))
        if params["pool"] == "max":
            x = b.max_pool(x, params["pool_kernel"], stride=2)
        for _ in range(params["depth"] - 1):
            x = b.relu(b.batch_norm(b.conv(x, params["width"], params["kernel"])))
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
        return b.build()


SPACE = MySpace

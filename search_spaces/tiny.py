"""A small space for documentation and tests: every kind of parameter, networks that build in a moment."""

from __future__ import annotations

from nasrlm.graph import Graph, GraphBuilder
from nasrlm.spaces import Choice, Integer, Params, SearchSpace, When

CLASSES = 10


class Tiny(SearchSpace):
    """One to three convolutions, each followed by BatchNorm and ReLU, on a 3x16x16 image.

    ``pool`` halves the image after the first convolution. With ``residual`` every convolution but the first
    has a skip connection, and only then ``skip_kernel`` says whether a 1x1 convolution lies on it or nothing
    (0).

    >>> from nasrlm import get_space
    >>> get_space("tiny").size()
    144
    """

    name = "tiny"
    parameters = (
        Integer("depth", 1, 3),
        Choice("width", (4, 8, 12, 16)),
        Choice("kernel", (1, 3)),
        Choice("pool", ("avg", "max")),
        Choice("residual", (False, True)),
        Choice("skip_kernel", (0, 1), when=When("residual", (True,))),
    )
    source = "made up for nasrlm's documentation and tests"

    def build(self, params: Params) -> Graph:
        """Describe the network."""
        width, kernel = int(params["width"]), int(params["kernel"])
        b = GraphBuilder()
        x = b.relu(b.batch_norm(b.conv(b.input((3, 16, 16)), width, kernel)))
        pool = b.avg_pool if params["pool"] == "avg" else b.max_pool
        x = pool(x, 2, stride=2, padding=0)
        for _ in range(int(params["depth"]) - 1):
            y = b.relu(b.batch_norm(b.conv(x, width, kernel)))
            if params["residual"]:
                y = b.add(y, b.conv(x, width, 1) if params["skip_kernel"] else x)
            x = y
        b.output(b.linear(b.flatten(b.global_avg_pool(x)), CLASSES))
        return b.build()


SPACE = Tiny

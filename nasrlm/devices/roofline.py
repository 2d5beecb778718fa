"""A processor on paper: the time of each operator from the peak rate and the memory bandwidth.

Source: Williams, Waterman and Patterson, Roofline: an insightful visual performance model for multicore
architectures, Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from nasrlm.devices.measurement import Measurement, summarise
from nasrlm.devices.networks import graph_of
from nasrlm.devices.options import check_label, check_positive, check_whole
from nasrlm.errors import ConfigError, DeviceError
from nasrlm.graph import Graph
from nasrlm.graph.dims import shape_word, size
from nasrlm.graph.ops import Op

_FREE = frozenset({"in", "const", "literal", "blank", "identity", "dropout", "after", "item", "flatten", "reshape"})
"""Nothing is computed or moved: constants, and other names for the same values."""
_FOLDED = {"bn": ("conv", "deconv", "linear")}
"""Operators that runtimes fold into the weights of those before them."""
_ACTIVATIONS = frozenset(
    {
        *("relu", "relu6", "sigmoid", "tanh", "silu", "hardsigmoid", "hardswish", "mish", "softplus", "softsign"),
        *("selu", "gelu", "elu", "leakyrelu", "clip", "prelu"),
    }
)
_PICKS = frozenset({"gather", "embedding", "slice"})
"""Of what they take, these read only what they give."""


class Roofline:
    """Computes latency from peak rate and bandwidth (the roofline model), operator by operator.

    An operator takes the longer of MACs / peak rate and bytes moved / bandwidth, plus an overhead. It reads its
    operands and weights and writes its value once; nothing stays in a cache from one operator to the next. So it
    is a lower bound for a runtime without fusion across operators, and the same for everybody.

    Args:
        peak_gmacs: 10^9 multiply-accumulates a second at best (half the GFLOPS that vendors give).
        bandwidth_gbs: 10^9 bytes a second between memory and processor.
        overhead_us: microseconds that starting an operator takes.
        bytes_per_value: 4 for float32, 2 for float16, 1 for int8.
        fused: whether BatchNorm is folded into the convolution before it and activations are computed on the way,
            as runtimes do; they take no time then.
        label: what stands behind "latency_ms/" in the metric.

    Raises:
        ConfigError: an option outside its range.

    Example:
        >>> from nasrlm.graph import GraphBuilder, to_onnx
        >>> b = GraphBuilder()
        >>> b.output(b.linear(b.input((1000,)), 1000, bias=False))
        >>> model = to_onnx(b.build(), weights="random").SerializeToString()
        >>> device = Roofline(peak_gmacs=100, bandwidth_gbs=10)
        >>> device.breakdown(model)[["kind", "macs", "bytes", "ms", "bound"]].to_dict("records")
        [{'kind': 'linear', 'macs': 1000000, 'bytes': 4008000, 'ms': 0.4008, 'bound': 'memory'}]
    """

    name = "roofline"

    def __init__(
        self,
        peak_gmacs: float,
        bandwidth_gbs: float,
        overhead_us: float = 0.0,
        bytes_per_value: int = 4,
        fused: bool = True,
        label: str = "roofline",
    ) -> None:
        where = f"device {self.name}"
        check_positive(where, "peak_gmacs", peak_gmacs)
        check_positive(where, "bandwidth_gbs", bandwidth_gbs)
        if overhead_us != 0 or isinstance(overhead_us, bool):
            check_positive(where, "overhead_us", overhead_us)
        check_whole(where, "bytes_per_value", bytes_per_value)
        if not isinstance(fused, bool):
            raise ConfigError(f"{where}: fused is {fused!r}. Allowed: true, false.")
        self.peak_gmacs, self.bandwidth_gbs, self.overhead_us = peak_gmacs, bandwidth_gbs, overhead_us
        self.bytes_per_value, self.fused = bytes_per_value, fused
        self.metric = f"latency_ms/{check_label(where, label)}"

    def measure(self, model: bytes) -> Measurement:
        """The computed time of a serialized ONNX model; all quartiles are the same.

        Raises:
            DeviceError: bytes that are no network, or one in which nothing takes time.
        """
        milliseconds = float(self.breakdown(model)["ms"].sum())
        if milliseconds == 0:
            raise DeviceError(f"device {self.name}: nothing in this network computes or moves values.")
        return summarise([milliseconds], threads=1, max_spread=1.0)

    def breakdown(self, model: bytes) -> pd.DataFrame:
        """Where the time goes: one row an operator, in the network's order.

        Args:
            model: serialized ONNX.

        Returns:
            DataFrame with the columns operator (its words in the canonical text), kind, shape, macs, bytes, ms and
            bound: "compute" or "memory", whichever takes longer; "fused" and "free" operators take no time.

        Raises:
            DeviceError: bytes that are no network.
        """
        graph = graph_of(model, f"device {self.name}")
        uses = Counter(x for _, _, operands in graph.nodes() for x in operands)
        uses.update(graph.outputs)
        rows = [
            self._row(graph, i, op, operands, uses)
            for i, op, operands in graph.nodes()
            if not op.inline and op.name != "in"
        ]
        return pd.DataFrame(rows, columns=["operator", "kind", "shape", "macs", "bytes", "ms", "bound"])

    def _row(self, graph: Graph, i: int, op: Op, operands: tuple[int, ...], uses: Counter[int]) -> dict[str, Any]:
        macs, moved = _macs(graph, i, op, operands), self.bytes_per_value * _values(graph, i, op, operands)
        compute_ms, memory_ms = macs / self.peak_gmacs / 1e6, moved / self.bandwidth_gbs / 1e6
        if op.name in _FREE:
            bound = "free"
        elif self.fused and _is_fused(graph, op, operands, uses):
            bound = "fused"
        else:
            bound = "compute" if compute_ms >= memory_ms else "memory"
        takes = bound in ("compute", "memory")
        shape = graph.shapes[i]
        return {
            "operator": op.text,
            "kind": op.text.split()[0] if op.name == "onnx" else op.name,
            "shape": " ".join(map(shape_word, _several(shape))),
            "macs": macs,
            "bytes": moved if takes else 0,
            "ms": max(compute_ms, memory_ms) + self.overhead_us / 1e3 if takes else 0.0,
            "bound": bound,
        }


def _macs(graph: Graph, i: int, op: Op, operands: tuple[int, ...]) -> int:
    count = op.spec.macs
    return int(count(op, graph.shapes[i], *(graph.shapes[x] for x in operands))) if count else 0


def _values(graph: Graph, i: int, op: Op, operands: tuple[int, ...]) -> int:
    """Values that an operator reads and writes, its weights included."""
    written = _held(graph.shapes[i])
    if op.name in _PICKS:
        return 2 * written
    shapes = [graph.shapes[x] for x in operands]
    weights = op.spec.parameters(op, *shapes) if op.spec.parameters else 0
    return sum(map(_held, shapes)) + written + weights


def _is_fused(graph: Graph, op: Op, operands: tuple[int, ...], uses: Counter[int]) -> bool:
    if not operands or uses[operands[0]] != 1:
        return False
    before = graph.ops[operands[0]].name
    if op.name in _ACTIVATIONS:
        return before not in _FREE
    return before in _FOLDED.get(op.name, ())


def _several(shape: Any) -> tuple[Any, ...]:
    """The shapes of a node's values; most nodes have one."""
    return shape if shape and isinstance(shape[0], tuple) else (shape,)


def _held(shape: Any) -> int:
    return int(sum(map(size, _several(shape))))


DEVICE = Roofline

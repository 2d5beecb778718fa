"""Operators with weights as torch modules; parameters have the names and layouts of `to_onnx`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nasrlm.errors import ExportError
from nasrlm.graph.ops import Op, Shape, absolute_width, group_count
from nasrlm.graph.torch_functions import evened, padded


class Conv(nn.Module):
    """Convolution, or transposed convolution, with any padding."""

    def __init__(self, op: Op, x: Shape) -> None:
        super().__init__()
        rank, channels = len(op["kernel"]), x[1]
        out, self.op, self.groups = absolute_width(channels, op["width"]), op, group_count(op, channels)
        turned = op.name == "deconv"
        made: nn.Module = getattr(nn, f"Conv{'Transpose' if turned else ''}{rank}d")(
            channels, out, op["kernel"], groups=self.groups, bias=op["bias"]
        )
        self.weight, self.bias = made.weight, made.bias
        self.run = getattr(F, f"conv{'_transpose' if turned else ''}{rank}d")

    def forward(self, x: Tensor) -> Tensor:
        """The convolution."""
        op, pads = self.op, self.op["padding"]
        half = len(pads) // 2
        if op.name == "conv":
            x, even = evened(x, pads, 0.0)
            return self.run(x, self.weight, self.bias, op["stride"], even, op["dilation"], self.groups)
        more = (op["output_padding"], self.groups, op["dilation"])
        even = tuple(map(min, pads[:half], pads[half:]))  # torch cuts both sides alike, the rest is cut here
        x = self.run(x, self.weight, self.bias, op["stride"], even, *more)
        return padded(x, tuple(e - p for e, p in zip(even * 2, pads, strict=True)), 0.0)


class Norm(nn.Module):
    """Layer, root-mean-square, group or instance normalisation."""

    def __init__(self, op: Op, x: Shape) -> None:
        super().__init__()
        self.op = op
        channels = op.name in ("groupnorm", "instancenorm")
        shape = (x[1],) if channels else tuple(x[-op["axes"] :])
        scale = op["affine"] if channels else op["scale"]
        shift = op["affine"] if channels else op.name == "layernorm" and op["shift"]
        self.weight = nn.Parameter(torch.ones(shape)) if scale else None
        self.bias = nn.Parameter(torch.zeros(shape)) if shift else None

    def forward(self, x: Tensor) -> Tensor:
        """The normalisation."""
        op, epsilon = self.op, self.op["epsilon"]
        if op.name == "groupnorm":
            # torch.group_norm: F's refuses single entries, whose result is the shift
            return torch.group_norm(x, op["groups"], self.weight, self.bias, epsilon)
        if op.name == "instancenorm":
            return torch.instance_norm(x, self.weight, self.bias, None, None, True, 0.0, epsilon, False)
        shape = list(x.shape[-op["axes"] :])
        if op.name == "rmsnorm":
            return F.rms_norm(x, shape, self.weight, epsilon)
        normed = F.layer_norm(x, shape, None, None, epsilon)
        normed = normed if self.weight is None else normed * self.weight
        return normed if self.bias is None else normed + self.bias


_GATES = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2), "rnn": (0,)}
"""Where torch's gates stand in ONNX's order: input, output, forget, cell; update, reset, hidden."""


class Recurrent(nn.Module):
    """LSTM, GRU or simple recurrence, with ONNX's layout of weights and of the sequence."""

    def __init__(self, op: Op, x: Shape) -> None:
        super().__init__()
        self.op, self.gates = op, _GATES[op.name]
        n, rows = 2 if op["direction"] == "both" else 1, len(self.gates) * op["hidden"]
        bound = op["hidden"] ** -0.5

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

        self.weight, self.recurrence = drawn(n, rows, x[2]), drawn(n, rows, op["hidden"])
        self.bias = drawn(n, 2 * rows) if op["offset"] else None

    def _turned(self, w: Tensor) -> Tensor:
        parts = w.chunk(len(self.gates))
        return torch.cat([parts[g] for g in self.gates])

    def forward(self, x: Tensor, *starts: Tensor) -> tuple[Tensor, ...]:
        """The sequence (length, directions, batch, hidden) and the last states (directions, batch, hidden)."""
        op, n = self.op, self.weight.shape[0]
        x = x.flip(0) if op["direction"] == "backward" else x
        zeros = x.new_zeros(n, x.shape[1], op["hidden"])
        states = (*starts, zeros, zeros)[: 2 if op.name == "lstm" else 1]
        if op.name == "gru" and not op["reset_after"]:
            y, *last = self._resets_first(x, states[0])
        else:
            y, *last = self._by_torch(x, states, n)
        y = y.flip(0) if op["direction"] == "backward" else y
        return y.reshape(*y.shape[:2], n, -1).transpose(1, 2), *last

    def _by_torch(self, x: Tensor, states: tuple[Tensor, ...], n: int) -> tuple[Tensor, ...]:
        flat = []
        for d in range(n):
            flat += [self._turned(self.weight[d]), self._turned(self.recurrence[d])]
            if self.bias is not None:
                flat += [self._turned(b) for b in self.bias[d].chunk(2)]
        runs: dict[str, Callable[..., tuple[Tensor, ...]]] = {
            "lstm": torch.lstm,
            "gru": torch.gru,
            "rnn": torch.rnn_tanh,
        }
        given = states if self.op.name == "lstm" else states[0]
        return tuple(runs[self.op.name](x, given, flat, self.bias is not None, 1, 0.0, self.training, n == 2, False))

    def _resets_first(self, x: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        """A GRU that resets the state before its matrix, which torch has not."""
        sequences, last = [], []
        for d in range(self.weight.shape[0]):
            w, r = self.weight[d], self.recurrence[d].chunk(3)
            zeros = x.new_zeros(w.shape[0])
            wb, rb = (zeros, zeros) if self.bias is None else self.bias[d].chunk(2)
            uz, ur, uh = rb.chunk(3)
            state, found = start[d], []
            for step in F.linear(x.flip(0) if d else x, w, wb):
                z, reset, h = step.chunk(3, -1)
                z = torch.sigmoid(z + F.linear(state, r[0], uz))
                reset = torch.sigmoid(reset + F.linear(state, r[1], ur))
                h = torch.tanh(h + F.linear(reset * state, r[2], uh))
                state = (1 - z) * h + z * state
                found.append(state)
            sequence = torch.stack(found)
            sequences.append(sequence.flip(0) if d else sequence)
            last.append(state)
        return torch.cat(sequences, -1), torch.stack(last)


class PReLU(nn.Module):
    """Leaky ReLU with a learned slope, one a channel or one for all."""

    def __init__(self, op: Op, x: Shape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((1 if op["shared"] else x[1],), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        """The activation."""
        return F.prelu(x, self.weight)


class Weight(nn.Module):
    """A learned tensor."""

    def __init__(self, op: Op) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(op["shape"]) * 0.02)

    def forward(self) -> Tensor:
        """The tensor."""
        return self.weight


class Embedding(nn.Embedding):
    """Rows of a table; ids below zero count from its end, as in ONNX's Gather."""

    def forward(self, x: Tensor) -> Tensor:
        """The rows."""
        return super().forward(torch.where(x < 0, x + self.num_embeddings, x))


class Linear(nn.Linear):
    """A linear layer whose product is ONNX's MatMul transposed."""

    def __init__(self, op: Op, x: Shape) -> None:
        super().__init__(x[-1], absolute_width(x[-1], op["width"]), bias=op["bias"])


def _batch_norm(op: Op, x: Shape) -> nn.Module:
    made = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}.get(len(x))
    if made is None:
        raise ExportError(f"torch has no batch normalisation of {len(x)} dimensions")
    return made(x[1])


LAYERS: dict[str, Callable[..., nn.Module]] = {
    "conv": Conv,
    "deconv": Conv,
    "linear": Linear,
    "bn": _batch_norm,
    "groupnorm": Norm,
    "instancenorm": Norm,
    "layernorm": Norm,
    "rmsnorm": Norm,
    "prelu": PReLU,
    "embedding": lambda op, _: Embedding(op["rows"], op["width"]),
    "weight": Weight,
    "lstm": Recurrent,
    "gru": Recurrent,
    "rnn": Recurrent,
}
"""Modules of the operators with weights, from the operator and its first operand's shape."""

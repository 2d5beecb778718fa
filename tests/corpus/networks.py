"""Every network of the corpus with its example inputs."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

from tests.corpus.convolutional import IMAGE, Pooled
from tests.corpus.sequential import SEQUENCE

CORPUS = (*IMAGE, "pooled", *SEQUENCE)
"""Names of the networks."""


@cache
def network(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The module in evaluation mode and example inputs. All weights are random and different, since exporters merge
    equal tensors and drop biases of zero."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Pooled() if name == "pooled" else {**IMAGE, **SEQUENCE}[name]()
        for key, tensor in module.state_dict().items():
            if tensor.is_floating_point() and "inv_freq" not in key:
                low = 0.5 if key.endswith("running_var") else -0.2
                tensor.copy_(torch.empty_like(tensor).uniform_(low, low + 1) * (1 if low > 0 else 0.5))
        return module.eval(), inputs(name)


def inputs(name: str) -> tuple[Tensor, ...]:
    """Example inputs of a network."""
    ids = torch.randint(0, 50, (1, 12))
    if name in ("bert", "gpt_eager", "gpt_sdpa", "llama", "lstm", "gru"):
        return (ids,)
    if name == "bert_masked":
        return ids, torch.ones(1, 12, dtype=torch.int64)
    if name == "audio":
        return (torch.randn(1, 8, 64),)
    if name == "two_inputs":
        return torch.randn(1, 3, 16, 16), torch.randn(1, 6)
    return (torch.randn(1, 3, *((28, 30) if name == "pooled" else (32, 32))),)

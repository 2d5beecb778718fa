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
            if key.endswith("running_var"):
                tensor.uniform_(0.5, 1.5)
            elif tensor.is_floating_point() and "inv_freq" not in key:
                tensor.uniform_(-1, 1).mul_((3 / tensor[0].numel()) ** 0.5 if tensor.dim() > 1 else 0.5)
        return module.eval(), inputs(name)


def inputs(name: str) -> tuple[Tensor, ...]:
    """Example inputs of a network, the same in each call."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    ids = torch.randint(0, 50, (1, 12), generator=generator)
    if name in ("bert", "gpt_eager", "gpt_sdpa", "llama", "lstm", "gru"):
        return (ids,)
    if name == "bert_masked":
        mask = torch.ones(1, 12, dtype=torch.int64)
        mask[:, 9:] = 0
        return ids, mask
    if name == "audio":
        return (normal(1, 8, 64),)
    if name == "two_inputs":
        return normal(1, 3, 16, 16), normal(1, 6)
    return (normal(1, 3, *((28, 30) if name == "pooled" else (32, 32))),)

"""One step of training, for spaces whose networks should train."""

from __future__ import annotations

import torch

from nasrlm import Architecture
from nasrlm.graph import to_torch


def train_one_step(a: Architecture, batch: int = 4) -> None:
    """Check that every parameter of a network gets a finite gradient and that a step of SGD moves the outputs."""
    torch.manual_seed(0)
    graph = a.graph()
    module = to_torch(graph).train()
    x = torch.randn(batch, *graph.shapes[graph.inputs[0]][1:])
    before = module(x)
    torch.nn.functional.cross_entropy(before, torch.arange(batch) % before.shape[1]).backward()
    gradients = {name: p.grad for name, p in module.named_parameters()}
    assert all(g is not None and torch.isfinite(g).all() for g in gradients.values()), a.string
    torch.optim.SGD(module.parameters(), lr=0.01).step()
    after = module(x)
    assert after.shape[0] == batch
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)

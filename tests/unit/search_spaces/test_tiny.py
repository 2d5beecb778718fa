"""The tiny space: every architecture builds."""

from __future__ import annotations

from nasrlm import costs, get_space, to_text


def test_every_architecture_builds_and_has_costs() -> None:
    space = get_space("tiny")
    texts = set()
    for a in space.enumerate():
        assert costs(a).params > 0
        texts.add(to_text(a))
    assert space.size() == 144
    assert len(texts) > 60  # with depth 1, or none to skip, different parameters are one network


def test_costs_by_hand() -> None:
    a = get_space("tiny").architecture(
        {"depth": 2, "width": 4, "kernel": 3, "pool": "avg", "residual": True, "skip_kernel": 1}
    )
    found = costs(a)
    convolutions = 3 * 4 * 9 + 4 * 4 * 9 + 4 * 4
    assert found.params == convolutions + 2 * 2 * 4 + (4 + 1) * 10
    assert found.macs == 256 * 3 * 4 * 9 + 64 * (4 * 4 * 9 + 4 * 4) + 4 * 10

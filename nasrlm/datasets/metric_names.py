"""What the name of a metric says: its unit, and whether it was measured after a search."""

from __future__ import annotations

CONFIRMED = "confirmed:"
"""Stands before the name of a metric whose value was measured after the search."""

_ENDINGS = {
    "per_s": "1/s",
    "ms": "ms",
    "us": "µs",
    "s": "s",
    "mj": "mJ",
    "j": "J",
    "w": "W",
    "bytes": "bytes",
    "mb": "MB",
    "percent": "%",
}
_USUAL = {"accuracy": "%", "error": "%"}


def name_and_unit(metric: str) -> tuple[str, str]:
    """The metric's name before its "/" without the unit that it ends in, and the unit; "" where it has none.

    >>> name_and_unit("latency_ms/pixel3"), name_and_unit("throughput_per_s/a100"), name_and_unit("accuracy/cifar10")
    (('latency', 'ms'), ('throughput', '1/s'), ('accuracy', '%'))
    >>> name_and_unit("params")
    ('params', '')
    """
    kind = metric.partition("/")[0]
    for ending, unit in _ENDINGS.items():
        if kind.endswith(f"_{ending}"):
            return kind.removesuffix(f"_{ending}"), unit
    return kind, _USUAL.get(kind, "")

"""What stands on an axis: the metric's name in words, where it holds, and its unit."""

from __future__ import annotations

# Name of a metric before its "/": what to write, and the unit when the name does not end in one.
_WORDS = {
    "accuracy": ("accuracy", "%"),
    "error": ("error", "%"),
    "params": ("parameters", ""),
    "macs": ("MACs", ""),
    "flops": ("FLOPs", ""),
    "activation": ("activation memory", ""),
    "depth": ("depth", "layers"),
}
_UNITS = {"ms": "ms", "us": "µs", "s": "s", "bytes": "bytes", "mb": "MB", "mj": "mJ", "w": "W", "percent": "%"}


def axis_label(metric: str) -> str:
    """Return a metric in words with its unit.

    >>> axis_label("latency_ms/pixel3"), axis_label("accuracy/cifar10"), axis_label("params")
    ('latency, pixel3 (ms)', 'accuracy, cifar10 (%)', 'parameters')
    """
    kind, _, where = metric.partition("/")
    name, underscore, ending = kind.rpartition("_")
    unit = _UNITS.get(ending, "") if underscore else ""
    word, usual = _WORDS.get(name if unit else kind, ((name if unit else kind).replace("_", " "), ""))
    unit = unit or usual
    return word + (f", {where}" if where else "") + (f" ({unit})" if unit else "")

"""What stands on an axis: the metric's name in words, where it holds, and its unit."""

from __future__ import annotations

from nasrlm.datasets.metric_names import name_and_unit

_WORDS = {
    "params": "parameters",
    "macs": "MACs",
    "flops": "FLOPs",
    "activation": "activation memory",
}
_COUNTED_IN = {"depth": "layers"}


def axis_label(metric: str) -> str:
    """Return a metric in words with its unit.

    >>> axis_label("latency_ms/pixel3"), axis_label("accuracy/cifar10"), axis_label("params")
    ('latency, pixel3 (ms)', 'accuracy, cifar10 (%)', 'parameters')
    >>> axis_label("throughput_per_s/a100"), axis_label("depth")
    ('throughput, a100 (1/s)', 'depth (layers)')
    """
    name, unit = name_and_unit(metric)
    where = metric.partition("/")[2]
    word = _WORDS.get(name, name.replace("_", " "))
    unit = unit or _COUNTED_IN.get(name, "")
    return word + (f", {where}" if where else "") + (f" ({unit})" if unit else "")

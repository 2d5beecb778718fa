"""One architecture's results as NAS-Bench-201 and NATS-Bench store them, and the row they give.

Seeds are averaged. Published FLOPs are the MACs of convolutions and the linear layer and the latter's biases;
the biases are taken off, so that ``macs`` is what `costs` counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nasrlm.datasets.importers.protocol import Row

_CLASSES = 10
_SETS = (
    # metric, data set that was trained on, evaluation, stored with it
    ("accuracy/cifar10", "cifar10", "ori-test"),
    ("accuracy/cifar10_valid", "cifar10-valid", "x-valid"),
    ("accuracy/cifar100", "cifar100", "x-test"),
    ("accuracy/cifar100_valid", "cifar100", "x-valid"),
    ("accuracy/imagenet16_120", "ImageNet16-120", "x-test"),
    ("accuracy/imagenet16_120_valid", "ImageNet16-120", "x-valid"),
)

Results = Mapping[str, Any]
"""What is stored of an architecture and a budget: arch_index, arch_str, all_results, dataset_seed."""


def metrics(budgets: Sequence[str]) -> tuple[str, ...]:
    """The columns: those of the largest budget, with plain names, come first.

    Args:
        budgets: epochs, as they are keyed: ("200", "12").

    >>> metrics(("90", "01"))[6]
    'accuracy/cifar10_1_epochs'
    """
    names = [_name(metric, budget, budgets[0]) for budget in budgets for metric, _, _ in _SETS]
    return (*names, "params", "macs")


def row(arch: str, by_budget: Mapping[str, Results], largest: str) -> Row:
    """The row of one architecture.

    Args:
        arch: its string.
        by_budget: results by budget.
        largest: the budget whose metrics have plain names.

    Raises:
        KeyError, ValueError: another structure than the published one.
    """
    found: Row = {"arch": arch}
    for budget, results in by_budget.items():
        for metric, data, evaluation in _SETS:
            values = [_last(run["eval_acc1es"], evaluation) for run in _runs(results, data)]
            if values:
                found[_name(metric, budget, largest)] = sum(values) / len(values)
    counted = [run for results in by_budget.values() for run in _runs(results, "cifar10")]
    if counted:
        found["params"] = round(float(counted[0]["params"]) * 1e6)
        found["macs"] = round(float(counted[0]["flop"]) * 1e6) - _CLASSES
    return found


def _name(metric: str, budget: str, largest: str) -> str:
    return metric if budget == largest else f"{metric}_{int(budget)}_epochs"


def _runs(results: Results, data: str) -> list[Mapping[str, Any]]:
    """The runs on a data set, one a seed."""
    runs = results["all_results"]
    return [runs[data, seed] for seed in results["dataset_seed"].get(data, ()) if (data, seed) in runs]


def _last(values: Mapping[str, float], evaluation: str) -> float:
    """The value after the last epoch: the keys are evaluation@epoch."""
    epochs = [key for key in values if key.startswith(evaluation + "@")]
    if not epochs:
        raise ValueError(f"no value of {evaluation} in {', '.join(list(values)[:4])}")
    return float(values[max(epochs, key=lambda key: int(key.partition("@")[2]))])

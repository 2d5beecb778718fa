"""What `nasrlm benchmark` measures: each ratio comes from one run, both sides on the same networks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from nasrlm import registry
from nasrlm.errors import UsageError
from nasrlm.graph import Graph, GraphBuilder, texts, to_text
from nasrlm.rlm import RegressionLM
from nasrlm.spaces import Architecture, SearchSpace, get_space
from nasrlm.tokens import TextTokenizer

SAMPLES = 64  # draws of the published way to a median
_FEW = 4  # networks that the slow side of a ratio is timed on
_SMALL, _LARGE = 2000, 20_000  # nodes
_TEXTS = 200  # networks in one timing of the text


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        measure: which measure it belongs to.
        what: in words.
        value: the figure.
        unit: its unit; "times" for ratios.
        details: what it was computed from.
    """

    measure: str
    what: str
    value: float
    unit: str
    details: str = ""


@dataclass(frozen=True)
class Setting:
    """What measures work with."""

    space: SearchSpace
    model: RegressionLM
    metrics: tuple[str, ...]
    architectures: int
    repeats: int
    seed: int
    module: Any = None


def measure_median(setting: Setting) -> list[Row]:
    """The exact median in one pass against the median of 64 samples decoded without a cache, on the same weights."""
    metric = setting.metrics[0]
    many = _distinct(setting.space, setting.architectures, setting.seed)
    few = many[:_FEW]
    sampled = seconds(lambda: setting.model.sampled_median_uncached(few, metric, n=SAMPLES), 1) / len(few)
    rows = []
    for inputs, words in ((few[:1], "one network"), (many, f"{len(many)} networks")):
        exact = seconds(lambda x=inputs: setting.model.predict(x, [metric]), setting.repeats) / len(inputs)  # type: ignore[misc]
        details = f"{exact * 1e3:.3g} ms against {sampled * 1e3:.4g} ms a network"
        what = f"exact median faster than {SAMPLES} uncached samples, {words}"
        rows.append(Row("median", what, sampled / exact, "times", details))
    return rows


def measure_throughput(setting: Setting) -> list[Row]:
    """From parameters to a DataFrame of metrics, on networks not seen before in this run."""
    count = setting.architectures
    setting.model.predict(setting.space.sample(_FEW, setting.seed), list(setting.metrics))  # warm up
    times = []
    for repeat in range(setting.repeats):
        params = [a.params for a in setting.space.sample(count, setting.seed + 1 + repeat)]
        times.append(seconds(lambda p=params: _predict(setting, p), 1))  # type: ignore[misc]
    rate = count / median(times)
    details = f"{len(setting.metrics)} metrics, {count} networks, {median(times):.3g} s"
    return [Row("throughput", "parameters to predictions", rate, "networks a second", details)]


def _predict(setting: Setting, params: Sequence[Any]) -> Any:
    return setting.model.predict([setting.space.architecture(p) for p in params], list(setting.metrics))


def measure_export(setting: Setting) -> list[Row]:
    """Architecture to canonical text against torch's two exporters on the same networks."""
    module = setting.module
    if module is None:
        raise UsageError("the measure export needs torch_module: a .py file with the same networks in torch.")
    few = setting.space.sample(_FEW, setting.seed)
    ours = _text_seconds(setting)
    networks = [module.build(architecture.params) for architecture in few]
    rows = []
    for name, dynamo in (("TorchScript", False), ("dynamo", True)):
        reason = module.cannot_export(dynamo)
        if reason:
            rows.append(Row("export", f"text faster than torch's {name} export", float("nan"), "times", reason))
            continue
        module.export(networks[0], dynamo)  # warm up
        theirs = seconds(lambda d=dynamo: [module.export(n, d) for n in networks[1:]], 1) / (_FEW - 1)  # type: ignore[misc]
        details = f"{ours * 1e3:.3g} ms against {theirs * 1e3:.4g} ms a network"
        rows.append(Row("export", f"text faster than torch's {name} export", theirs / ours, "times", details))
    return rows


def _text_seconds(setting: Setting) -> float:
    """Seconds from parameters to text; every repeat has networks of its own, so that nothing is remembered."""
    times = []
    for repeat in range(setting.repeats + 1):
        params = [a.params for a in setting.space.sample(_TEXTS, setting.seed + 1 + repeat)]
        times.append(seconds(lambda p=params: [to_text(setting.space.architecture(x)) for x in p], 1))  # type: ignore[misc]
    return median(times[1:]) / _TEXTS


def measure_linear(setting: Setting) -> list[Row]:
    """How the time of canonical text grows with the nodes, for random blocks and for repeated ones."""
    rows = []
    for words, motif in (("random blocks", None), ("repeated blocks", 10)):
        small, large = (random_network(nodes, setting.seed, motif) for nodes in (_SMALL, _LARGE))
        times = [seconds(lambda g=g: to_text(g), 2 + setting.repeats) for g in (small, large)]  # type: ignore[misc]
        details = f"{len(small)} nodes {times[0] * 1e3:.3g} ms, {len(large)} nodes {times[1] * 1e3:.4g} ms"
        what = f"text time at {len(large) / len(small):.3g} times the nodes, {words}"
        rows.append(Row("linear", what, times[1] / times[0], "times", details))
    return rows


def measure_tokens(setting: Setting) -> list[Row]:
    """Tokens a network for every registered space, each with a tokenizer of its own."""
    rows = []
    for name in registry.names("spaces"):
        space = get_space(name)
        networks = _distinct(space, setting.architectures, setting.seed)
        for dead_work, words in ((False, ""), (True, ", with dead work")):
            found = texts(networks, dead_work=dead_work)
            lengths = [len(ids) for ids in TextTokenizer.train(found).encode(found)]
            details = f"{min(lengths)} to {max(lengths)}, {len(found)} networks"
            rows.append(Row("tokens", f"tokens a network, {name}{words}", float(median(lengths)), "tokens", details))
    return rows


MEASURES: dict[str, Callable[[Setting], list[Row]]] = {
    "median": measure_median,
    "throughput": measure_throughput,
    "export": measure_export,
    "linear": measure_linear,
    "tokens": measure_tokens,
}


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """The median time of `repeats` calls; with more than one, a first call is not timed."""
    if repeats > 1:
        work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def random_network(nodes: int, seed: int, motif: int | None = None) -> Graph:
    """A network of about so many nodes in blocks of four.

    Args:
        nodes: how many.
        seed: of the blocks' kernels and activations.
        motif: so many random blocks are repeated to the end; None = every block is drawn.

    >>> 280 <= len(random_network(300, seed=0)) <= 320
    True
    """
    count = (nodes - 6) // 4
    rng = np.random.default_rng(seed)
    kernels, relus = rng.choice([1, 3, 5], motif or count).tolist(), (rng.random(motif or count) < 0.5).tolist()
    b = GraphBuilder()
    x = b.conv(b.input((3, 16, 16)), 16, 3)
    for i in range(count):
        y = b.batch_norm(b.conv(x, 16, kernels[i % len(kernels)]))
        x = b.add(x, b.relu(y) if relus[i % len(relus)] else b.relu6(y))
    b.output(b.linear(b.flatten(b.global_avg_pool(x)), 10))
    return b.build()


def _distinct(space: SearchSpace, count: int, seed: int) -> list[Architecture]:
    if space.size() <= count:
        return list(space.enumerate())
    return list(dict.fromkeys(space.sample(2 * count, seed)))[:count]

"""Sampling of a space: repeatable, and uniform over the values of every parameter."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy import stats

from nasrlm.spaces import SearchSpace
from nasrlm.testing.common import require, step

DRAWS = 2_000
IMPROBABLE = 1e-9  # a fair sampler fails once in a thousand million checks


def check_sampling(space: SearchSpace, seed: int = 0, draws: int = DRAWS) -> None:
    """Checks that seeds repeat, generators move on, and each active parameter's values come equally often.

    Uniformity is judged by Pearson's chi-square test among the draws in which the parameter is active. It is not asked
    of a space that overrides `repair`: what is repaired or rejected is not uniform over each parameter.

    Raises:
        ConformanceError: what does not hold.
    """
    with step(f"{space.name}: sampling"):
        first, same = space.sample(10, seed), space.sample(10, seed)
        require(first == same, "sample gives other architectures for the same seed.")
        rng = np.random.default_rng(seed)
        one, two = space.sample(10, rng), space.sample(10, rng)
        require(one != two or space.size() < 10, "sample does not move a generator on: it gives the same again.")
        if overrides_repair(space):
            return
        drawn = [a.params for a in space.sample(draws, seed)]
        for parameter in space.parameters:
            options = list(parameter.options)
            counts = Counter(params[parameter.name] for params in drawn if parameter.name in params)
            times = [counts.get(option, 0) for option in options]
            # Chi-square needs a handful of draws a value to mean anything.
            if len(options) > 1 and sum(times) >= 5 * len(options):
                p = float(stats.chisquare(times).pvalue)
                shown = ", ".join(f"{o}: {n}" for o, n in zip(options, times, strict=True))
                require(p > IMPROBABLE, f"the values of {parameter.name!r} are not drawn equally often: {shown}.")


def overrides_repair(space: SearchSpace) -> bool:
    """Says whether some parameters of the space together describe no valid network, so that it repairs them."""
    return type(space).repair is not SearchSpace.repair

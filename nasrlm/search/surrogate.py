"""What is known of a metric after few trials: a Gaussian process on what is free to know of a network.

Few trials do not say which features matter, how fast the metric changes or how noisy it is. So it is not decided: a
grid of processes - feature sets, lengths, shares of a linear part, noises - is weighed by marginal likelihood, and
predictions are the average of the best. There is nothing to optimise, and nothing to set.

Source: Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", chapters 2 and 5; Hoeting et al. 1999,
"Bayesian model averaging: a tutorial".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, solve_triangular

Array: TypeAlias = "npt.NDArray[np.float64]"
Features: TypeAlias = "Mapping[str, Array]"
"""Feature sets by name: each (networks, its features), scaled to a mean square of about one."""

LENGTHS = (0.7, 1.4, 2.8, 4.5)
LINEAR = (0.0, 0.5)
NOISES = (1e-3, 1e-2, 5e-2, 0.2)
_KEPT, _LEAST_WEIGHT = 6, 0.02
_LINE, _ROUNDING = 5, 1e-12
"""So many different values on a line are no accident."""
_SHIFTS = (0.03, 0.1, 0.3, 1.0, 3.0, 30.0)


@dataclass(frozen=True)
class Warp:
    """Values to a scale on which they look normal, and back: z = log(y - base + shift).

    >>> warp = Warp.fit(np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    >>> warp.back(warp(np.array([3.0]))).round(6).tolist()
    [3.0]
    """

    base: float
    shift: float

    @classmethod
    def fit(cls, values: Array) -> Warp:
        """The shift of the largest likelihood (Box and Cox 1964), out of a few."""
        base = float(values.min())
        scale = float(np.median(values)) - base or float(np.ptp(values)) or 1.0

        def likelihood(shift: float) -> float:
            z = np.log(values - base + shift)
            return float(-0.5 * len(z) * np.log(z.var() + 1e-12) - z.sum())

        return cls(base, max((s * scale for s in _SHIFTS), key=likelihood))

    def __call__(self, values: Array) -> Array:
        z: Array = np.log(np.maximum(values - self.base, -0.9 * self.shift) + self.shift)
        return z

    def back(self, z: Array) -> Array:
        """From the scale to values."""
        y: Array = np.exp(np.minimum(z, 300.0)) - self.shift + self.base
        return y


@dataclass(frozen=True)
class _Process:
    """One Gaussian process of the grid, and its share in the average."""

    weight: float
    features: str
    length: float
    linear: float
    scale: float
    root: Array
    solved: Array

    def predict(self, seen: Array, new: Array) -> tuple[Array, Array]:
        """Means and variances of new networks."""
        kernel = _kernel(new, seen, self.length, self.linear)
        spread = solve_triangular(self.root, kernel.T, lower=True)
        prior = 1.0 + self.linear * (new**2).mean(1)
        return kernel @ self.solved, self.scale * np.maximum(prior - (spread**2).sum(0), 1e-8)


class Surrogate:
    """Predicts one metric with its uncertainty.

    Args:
        features: of the networks whose values are known.
        values: (networks,), finite.

    Example:
        >>> x = np.linspace(-1, 1, 12)[:, None]
        >>> model = Surrogate({"x": x}, np.exp(x[:, 0]))
        >>> mean, deviation = model.predict({"x": np.array([[0.05]])})
        >>> bool(abs(model.warp.back(mean)[0] - np.exp(0.05)) < 0.05)
        True
    """

    def __init__(self, features: Features, values: Array) -> None:
        self.warp = Warp.fit(values)
        z = self.warp(values)
        self._mean, self._scale = float(z.mean()), float(z.std()) or 1.0
        self._seen = features
        self._processes = _weighed(features, (z - self._mean) / self._scale)

    @property
    def shares(self) -> dict[str, float]:
        """How much each feature set has to say."""
        return {name: sum(p.weight for p in self._processes if p.features == name) for name in self._seen}

    def predict(self, features: Features) -> tuple[Array, Array]:
        """Means and standard deviations on the scale of `warp`."""
        parts = [p.predict(self._seen[p.features], features[p.features]) for p in self._processes]
        weights = np.array([p.weight for p in self._processes])[:, None]
        means, variances = np.array([m for m, _ in parts]), np.array([v for _, v in parts])
        mean = (weights * means).sum(0)
        variance = (weights * (variances + means**2)).sum(0) - mean**2
        return self._mean + self._scale * mean, self._scale * np.sqrt(np.maximum(variance, 1e-12))


@dataclass(frozen=True)
class Exact:
    """A metric that is a known cost of the network, or how far one is beyond a limit: computed instead of learnt.

    Attributes:
        cost: which cost.
        slope, offset: value = slope * cost + offset.
    """

    cost: str
    slope: float
    offset: float

    @classmethod
    def found(cls, costs: Mapping[str, Array], values: Array) -> Exact | None:
        """The cost on which all values lie on one line; None where there is none.

        >>> Exact.found({"macs": np.arange(9.0)}, 5.0 - np.arange(9.0))
        Exact(cost='macs', slope=-1.0, offset=5.0)
        """
        for name, column in costs.items():
            if len(np.unique(column)) < _LINE:
                continue
            low, high = int(column.argmin()), int(column.argmax())
            slope = float((values[high] - values[low]) / (column[high] - column[low]))
            offset = float(values[low] - slope * column[low])
            size = abs(slope) * float(np.abs(column).max()) + abs(offset)
            if slope and float(np.abs(slope * column + offset - values).max()) <= _ROUNDING * size:
                return cls(name, slope, offset)
        return None

    def __call__(self, costs: Mapping[str, Array]) -> Array:
        """Values from costs."""
        return self.slope * costs[self.cost] + self.offset


def _weighed(features: Features, z: Array) -> list[_Process]:
    found = []
    for name, x in features.items():
        for length in LENGTHS:
            for linear in LINEAR:
                values, vectors = np.linalg.eigh(_kernel(x, x, length, linear))
                squares = (vectors.T @ z) ** 2
                for noise in NOISES:
                    spectrum = np.maximum(values, 0.0) + noise
                    scale = 0.8 * float((squares / spectrum).mean()) + 0.2  # between the best fit and one
                    likelihood = -0.5 * float((squares / (spectrum * scale)).sum() + np.log(spectrum * scale).sum())
                    found.append((likelihood, name, length, linear, noise, scale))
    found.sort(key=lambda item: -item[0])
    shares = np.exp(np.array([item[0] - found[0][0] for item in found[:_KEPT]]))
    shares /= shares.sum()
    kept = [(share, item) for share, item in zip(shares.tolist(), found, strict=False) if share > _LEAST_WEIGHT]
    total = sum(share for share, _ in kept)
    return [_process(features, z, share / total, *item[1:]) for share, item in kept]


def _process(
    features: Features, z: Array, weight: float, name: str, length: float, linear: float, noise: float, scale: float
) -> _Process:
    kernel = _kernel(features[name], features[name], length, linear)
    root = cholesky(kernel + noise * np.eye(len(z)), lower=True)
    return _Process(weight, name, length, linear, scale, root, cho_solve((root, True), z))


def _kernel(a: Array, b: Array, length: float, linear: float) -> Array:
    """Matern 5/2 and a linear part."""
    products = a @ b.T / a.shape[1]
    squares = (a**2).mean(1)[:, None] + (b**2).mean(1)[None] - 2 * products
    r = np.sqrt(5 * np.maximum(squares, 0.0)) / length
    kernel: Array = (1 + r + r * r / 3) * np.exp(-r) + linear * products
    return kernel


def balanced(groups: Sequence[Array]) -> Array:
    """Feature groups side by side, each of them scaled to rows of norm about one; the mean square of all is about one.

    >>> balanced([np.array([[1.0]]), np.array([[0.6, 0.8]])]).round(3).tolist()
    [[1.225, 0.735, 0.98]]
    """
    joined = np.concatenate(groups, axis=1)
    return joined * (joined.shape[1] / len(groups)) ** 0.5 if joined.shape[1] else np.zeros((len(joined), 1))

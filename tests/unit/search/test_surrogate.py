"""Gaussian processes averaged over what they might be like."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from nasrlm.search.surrogate import Surrogate, Warp, balanced


@pytest.mark.parametrize("values", [[1.0, 2.0, 90.0], [-5.0, 0.0, 3.0], [0.0, 0.0, 1e-3], [7.0, 7.0, 7.0]])
def test_warp_is_monotone_and_comes_back(values: list[float]) -> None:
    array = np.array(values)
    warp = Warp.fit(array)
    z = warp(array)
    assert np.isfinite(z).all()
    assert (np.diff(z[np.argsort(array, kind="stable")]) >= 0).all()
    assert warp.back(z) == pytest.approx(array, abs=1e-9)


def test_a_long_tail_is_pulled_in() -> None:
    values = np.exp(np.random.default_rng(0).normal(size=300))
    z = Warp.fit(values)(values)
    assert abs(float(((z - z.mean()) ** 3).mean() / z.std() ** 3)) < 0.5


def test_it_finds_the_feature_set_that_serves() -> None:
    rng = np.random.default_rng(1)
    good, useless = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
    values = np.exp(np.sin(2 * good[:, 0]) + good[:, 1])
    seen = {"good": good[:80], "useless": useless[:80]}
    model = Surrogate(seen, values[:80])
    assert model.shares["good"] > 0.99
    mean, deviation = model.predict({"good": good[80:], "useless": useless[80:]})
    assert spearmanr(mean, values[80:])[0] > 0.9
    error = np.abs(mean - model.warp(values[80:])) / deviation
    assert 0.3 < np.median(error) < 1.2  # it knows how wrong it is: .67 is exact


def test_uncertainty_grows_away_from_what_was_seen() -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    model = Surrogate({"x": x}, np.exp(x[:, 0]))
    _, deviation = model.predict({"x": np.array([[0.0], [4.0]])})
    assert deviation[1] > 5 * deviation[0]


def test_two_values_are_enough_to_fit() -> None:
    mean, deviation = Surrogate({"x": np.array([[0.0], [1.0]])}, np.array([1.0, 2.0])).predict({"x": np.array([[0.5]])})
    assert np.isfinite(mean).all() and (deviation > 0).all()


def test_no_features_at_all() -> None:
    empty = balanced([np.zeros((4, 0))])
    mean, _ = Surrogate({"none": empty}, np.array([1.0, 2.0, 3.0, 4.0])).predict({"none": empty})
    assert np.ptp(mean) == pytest.approx(0.0)

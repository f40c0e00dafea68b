"""lgamma and the Bessel functions, which have loops of their own, beside SciPy's: every branch, its ends and the limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

LIMITS = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 1.0, 2.0, 5e-324, 1e-310, -1e-310, 1e-40, 1e300, -1e17]
PIECES = [(1e-6, 0.5), (0.5, 1.5), (0.999, 1.001), (1.999, 2.001), (2.5, 8.5), (8.4, 8.6), (8.5, 1e3), (1e3, 1e30), (-9.7, 0.0), (-1e-7, 1e-7)]


def evaluated(torch, function, x: np.ndarray) -> np.ndarray:
    return function(torch.from_numpy(x)).numpy()


@pytest.mark.parametrize("piece", PIECES)
def test_lgamma(torch, piece):
    x = np.random.default_rng(1).uniform(*piece, size=1003)
    # Beside its zeros left of zero it is as exact as the terms it is a difference of.
    scale = np.maximum(np.abs(scipy.special.gammaln(x)), 1.0 if piece[0] < -1 else 0.0)
    assert (np.abs(evaluated(torch, torch.lgamma, x) - scipy.special.gammaln(x)) <= 2e-14 * scale).all()
    single = x.astype("float32")
    expected = scipy.special.gammaln(single.astype("float64"))
    np.testing.assert_allclose(evaluated(torch, torch.lgamma, single), expected, rtol=3e-7, atol=3e-7 if piece[0] < -1 else 0)


@pytest.mark.parametrize(("name", "reference"), [("j0", scipy.special.j0), ("j1", scipy.special.j1), ("y0", scipy.special.y0), ("y1", scipy.special.y1)])
@pytest.mark.parametrize("piece", [(1e-5, 1e-3), (1e-3, 5.0), (4.99, 5.01), (5.0, 50.0), (50.0, 1e5)])
def test_bessel_functions(torch, name, reference, piece):
    x = np.random.default_rng(2).uniform(*piece, size=1003)
    x = np.concatenate([x, -x]) if name[0] == "j" else x
    function = getattr(torch.special, f"bessel_{name}")
    # An argument's own rounding moves a wave by its size times the last place.
    np.testing.assert_allclose(evaluated(torch, function, x), reference(x), rtol=2e-14, atol=4e-16 * max(1, piece[1]) ** 0.5)
    single = x.astype("float32")
    np.testing.assert_allclose(evaluated(torch, function, single), reference(single.astype("float64")), rtol=2e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["lgamma", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_limits(torch, name):
    x = np.array(LIMITS)
    reference = scipy.special.gammaln if name == "lgamma" else getattr(scipy.special, name.removeprefix("bessel_"))
    got = evaluated(torch, torch.lgamma if name == "lgamma" else getattr(torch.special, name), x)
    with np.errstate(all="ignore"):
        expected = reference(x)
    inside = np.abs(x) < 1e15  # further out SciPy's own phase is lost
    if name.startswith("bessel_y"):
        expected[x == -np.inf] = np.nan  # undefined left of zero
    np.testing.assert_allclose(got[inside], expected[inside], rtol=1e-13, atol=1e-300)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(np.where(inside | np.isinf(x), expected, got)))
    assert got[2] == (np.inf if name == "lgamma" else 0)

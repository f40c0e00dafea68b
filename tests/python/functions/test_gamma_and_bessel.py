"""lgamma, the Bessel functions and the orthogonal polynomials, which have vectorised loops, compared with libm's, SciPy's and
NumPy's: every branch, its boundaries and the limits."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest
import scipy.special

LIMITS = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 1.0, 2.0, 5e-324, 1e-310, -1e-310, 1e-40, 1e300, -1e17]
PIECES = [(1e-6, 0.5), (0.5, 1.5), (0.999, 1.001), (1.999, 2.001), (2.5, 8.5), (8.4, 8.6), (8.5, 1e3), (1e3, 1e30)]
PIECES += [(-9.7, 0.0), (-1e-7, 1e-7)]


_LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
_LIBM.lgamma.restype, _LIBM.lgamma.argtypes = ctypes.c_double, [ctypes.c_double]


def lgamma(x: np.ndarray) -> np.ndarray:
    """libm's lgamma, which is accurate near the zeros at 1 and 2, unlike SciPy's."""
    return np.array([_LIBM.lgamma(v) for v in x])


def evaluated(torch, function, x: np.ndarray) -> np.ndarray:
    return function(torch.from_numpy(x)).numpy()


@pytest.mark.parametrize("piece", PIECES)
def test_lgamma(torch, piece):
    x = np.random.default_rng(1).uniform(*piece, size=1003)
    expected = lgamma(x)
    # Left of -1 the result is a difference of terms near 1, so near its zeros the error is relative to these terms.
    scale = np.maximum(np.abs(expected), 1.0 if piece[0] < -1 else 0.0)
    assert (np.abs(evaluated(torch, torch.lgamma, x) - expected) <= 2e-14 * scale).all()
    single = x.astype("float32")
    expected = lgamma(single.astype("float64"))
    np.testing.assert_allclose(evaluated(torch, torch.lgamma, single), expected, rtol=3e-7, atol=3e-7 if piece[0] < -1 else 0)


@pytest.mark.parametrize(("name", "reference"), [(name, getattr(scipy.special, name)) for name in ("j0", "j1", "y0", "y1")])
@pytest.mark.parametrize("piece", [(1e-5, 1e-3), (1e-3, 5.0), (4.99, 5.01), (5.0, 50.0), (50.0, 1e5)])
def test_bessel_functions(torch, name, reference, piece):
    x = np.random.default_rng(2).uniform(*piece, size=1003)
    x = np.concatenate([x, -x]) if name[0] == "j" else x
    function = getattr(torch.special, f"bessel_{name}")
    # Rounding x shifts the wave by up to x times the machine epsilon; the wave's amplitude is about 1 / sqrt(x).
    np.testing.assert_allclose(evaluated(torch, function, x), reference(x), rtol=2e-14, atol=4e-16 * max(1, piece[1]) ** 0.5)
    single = x.astype("float32")
    np.testing.assert_allclose(evaluated(torch, function, single), reference(single.astype("float64")), rtol=2e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["lgamma", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_limits(torch, name):
    x = np.array(LIMITS)
    function = torch.lgamma if name == "lgamma" else getattr(torch.special, name)
    reference = lgamma if name == "lgamma" else getattr(scipy.special, name.removeprefix("bessel_"))
    expected = reference(x)
    if name != "lgamma":
        expected[x == np.inf] = 0
        expected[x == -np.inf] = 0 if name[-2] == "j" else np.nan  # the second kind is undefined for negative arguments
    near = ~np.isfinite(x) | (np.abs(x) < 1e15)  # SciPy's phase is inaccurate for larger arguments
    np.testing.assert_allclose(evaluated(torch, function, x)[near], expected[near], rtol=1e-13, atol=1e-300)


RECURRENCES = {  # p(k + 1) of k, x, p(k) and p(k - 1); p(-1) = 0
    "hermite_polynomial_h": lambda k, x, p, before: 2 * x * p - 2 * k * before,
    "hermite_polynomial_he": lambda k, x, p, before: x * p - k * before,
    "laguerre_polynomial_l": lambda k, x, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1),
    "legendre_polynomial_p": lambda k, x, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1),
    "chebyshev_polynomial_t": lambda k, x, p, before: 2 * x * p - before if k else x,
    "chebyshev_polynomial_u": lambda k, x, p, before: 2 * x * p - before if k else 2 * x,
    "chebyshev_polynomial_v": lambda k, x, p, before: 2 * x * p - before if k else 2 * x - 1,
    "chebyshev_polynomial_w": lambda k, x, p, before: 2 * x * p - before if k else 2 * x + 1,
}


@pytest.mark.parametrize("name", RECURRENCES)
def test_polynomials_of_mixed_degrees(torch, name):
    """A vector of elements takes as many steps as its highest degree: the others must keep their values."""
    rng = np.random.default_rng(3)
    degree = np.concatenate([rng.integers(0, 20, size=500).astype(float), [-1, -0.5, -np.inf, np.nan, np.inf, 2e6, 3.7] * 5])
    x = rng.uniform(-1.2, 1.2, size=degree.size)
    x[::37], x[5::41], x[7::43] = 1, np.nan, np.inf
    expected = np.full(x.shape, np.nan)
    with np.errstate(all="ignore"):
        for i, n in enumerate(degree):
            if n <= -1:
                expected[i] = 0
            elif n < 1e6:
                before, expected[i] = 0.0, 1.0
                for k in range(int(n)):
                    before, expected[i] = expected[i], RECURRENCES[name](k, x[i], expected[i], before)
    result = getattr(torch.special, name)(torch.from_numpy(x), torch.from_numpy(degree)).numpy()
    # From degree 7 the engine uses trigonometric forms between -1 and 1.
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-12)
    single = getattr(torch.special, name)(torch.from_numpy(x.astype("float32")), torch.from_numpy(degree.astype("float32")))
    assert (np.isnan(single.numpy()) == np.isnan(result)).all()
    if name.startswith("chebyshev"):
        shifted = getattr(torch.special, f"shifted_{name}")
        half = (x.astype("float32") + 1) / 2
        again = getattr(torch.special, name)(torch.from_numpy(2 * half - 1), torch.from_numpy(degree.astype("float32")))
        np.testing.assert_array_equal(shifted(torch.from_numpy(half), torch.from_numpy(degree.astype("float32"))), again)

"""Exponentials of float32 over their whole range: from denormal numbers to infinity."""

import numpy as np
import pytest

import teletensor as torch
import teletensor.nn.functional as F


def _arguments(n):
    edges = [0.0, -0.0, 1.0, -1.0, 88.0, 88.5, 88.722, 88.7229, 89.0, 1e4, -87.0, -87.5, -88.0, -100.0, -103.9, -104.1, -1e4, 3e38,
             -3e38, 1e-40, -1e-40, np.inf, -np.inf]  # fmt: skip
    return np.concatenate([edges, np.linspace(-106, 90, n - len(edges))]).astype(np.float32)


def _units(got, want):
    """The error of float32 numbers in units of the last place of the float64 ones, which may be denormal in float32."""
    unit = np.maximum(np.abs(want) * 2.0**-24, 2.0**-150)
    return np.abs(got.astype(np.float64) - want) / unit


@pytest.mark.parametrize("n", [50, 4096, 100_003])
def test_exp(n):
    x = _arguments(n)
    with np.errstate(over="ignore"):
        want = np.exp(x.astype(np.float64))
    got = torch.exp(torch.from_numpy(x)).numpy()
    infinite = want > np.finfo(np.float32).max
    assert np.isinf(got[infinite]).all() and np.isfinite(got[~infinite]).all()
    assert _units(got[~infinite], want[~infinite]).max() <= 4
    assert got[x == 0].tolist() == [1, 1]
    assert np.isnan(torch.exp(torch.tensor([np.nan] * 20)).numpy()).all()


@pytest.mark.parametrize("columns", [1, 7, 16, 33, 250])
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_of_masked_and_spread_scores(columns, dim):
    torch.manual_seed(0)
    x = torch.randn(40, columns) * 40
    x[:, columns // 2 + 1 :] = -torch.inf
    x[3, 0] = -1e30
    if dim == 0:
        x = x.t().contiguous()
    wide = x.double().numpy()
    most = wide.max(dim, keepdims=True)
    weights = np.exp(wide - most)
    total = weights.sum(dim, keepdims=True)
    got = F.softmax(x, dim).numpy()
    # The difference to the largest score, of up to 104 for weights that are not 0, has been rounded.
    np.testing.assert_allclose(got, weights / total, rtol=1e-5, atol=1e-44)
    log_total = np.log(total) + most
    np.testing.assert_allclose(F.log_softmax(x, dim).numpy(), wide - log_total, rtol=2e-6, atol=2e-5)
    np.testing.assert_allclose(torch.logsumexp(x, dim).numpy(), log_total.squeeze(dim), rtol=2e-6, atol=2e-5)


def test_activations_of_large_arguments():
    x = torch.linspace(-200, 200, 5001)
    wide = x.double()
    for f in (torch.sigmoid, F.silu, F.gelu):
        torch.testing.assert_close(f(x).double(), f(wide), rtol=1e-5, atol=1e-6)
        assert f(x).isfinite().all()

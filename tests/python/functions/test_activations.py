"""GELU, SiLU and sigmoid, whose loops contain their exponentials, beside the formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import teletensor as torch
from teletensor.nn import functional as F

SCALE = math.sqrt(8 / math.pi)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return scipy.special.expit(x)


def argument(x: np.ndarray) -> np.ndarray:
    return SCALE * (x + 0.044715 * x**3)


def bell(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def logistic_slope(x: np.ndarray) -> np.ndarray:
    return sigmoid(x) * sigmoid(-x)


# The function, its formula and its derivative.
CASES = {
    "gelu": (F.gelu, lambda x: x * scipy.special.ndtr(x), lambda x: scipy.special.ndtr(x) + x * bell(x)),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: x * sigmoid(argument(x)),
        lambda x: sigmoid(argument(x)) + x * logistic_slope(argument(x)) * SCALE * (1 + 3 * 0.044715 * x**2),
    ),
    "silu": (F.silu, lambda x: x * sigmoid(x), lambda x: sigmoid(x) + x * logistic_slope(x)),
    "sigmoid": (torch.sigmoid, sigmoid, logistic_slope),
}


def values() -> np.ndarray:
    """Values of all magnitudes, most of them near 0."""
    sizes = np.exp2(np.linspace(-30, 4, 20_001))
    return np.concatenate([np.linspace(-15, 15, 200_003), sizes, -sizes, [0.0]]).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype, error, error_of_derivative", [(torch.float32, 1.5e-7, 2.5e-7), (torch.float64, 2e-15, 1e-14)])
def test_errors_of_values_and_derivatives(name, dtype, error, error_of_derivative):
    f, formula, derivative = CASES[name]
    x = torch.from_numpy(values()).to(dtype).requires_grad_()
    y = f(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    at = x.detach().numpy().astype(np.float64)
    assert (np.abs(y.detach().numpy() - formula(at)) / np.maximum(1, np.abs(at))).max() < error
    assert np.abs(grad.numpy() - derivative(at)).max() < error_of_derivative


@pytest.mark.parametrize("name", CASES)
def test_tails_are_relatively_accurate(name):
    """Where 1 + erf(x) and 1 + tanh(x) would be 0, and results are subnormal at the end."""
    f, formula, _ = CASES[name]
    x = np.linspace(-13.0 if name == "gelu" else -8.0 if name == "gelu_tanh" else -87.0, -3, 30_001).astype(np.float32)
    want = formula(x.astype(np.float64))
    got = f(torch.from_numpy(x)).numpy().astype(np.float64)
    is_normal = np.abs(want) > 2.0**-125
    assert is_normal.sum() > 20_000
    assert (np.abs(got / want - 1)[is_normal]).max() < 2e-5
    assert np.abs(got - want)[~is_normal].max(initial=0) < 1e-42


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gelu_of_all_16_bit_numbers(dtype):
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    x = torch.from_numpy(bits).view(dtype)
    at = x.double().numpy()
    x, at = x[torch.from_numpy(np.isfinite(at))], at[np.isfinite(at)]
    want = at * scipy.special.ndtr(at)
    smallest = 2.0**-24 if dtype == torch.float16 else 2.0**-133
    unit = np.maximum(np.exp2(np.floor(np.log2(np.abs(want) + 1e-300)) - (10 if dtype == torch.float16 else 7)), smallest)
    assert (np.abs(F.gelu(x).double().numpy() - want) / unit).max() < 0.51


def test_limits():
    x = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e30, -1e30, -50.0, 50.0])
    for name, (f, _, _) in CASES.items():
        y = f(x).tolist()
        assert math.isnan(y[2])
        if name == "sigmoid":
            assert [y[0], y[1], *y[3:7]] == [1, 0, 0.5, 0.5, 1, 0]
        else:
            assert y[0] == math.inf and math.isnan(y[1])
            assert y[3:5] == [0, 0] and math.copysign(1, y[4]) == -1
            assert y[5] == x[5].item() and y[6] == 0 and abs(y[7]) < 1e-19 and y[8] == 50
    x.requires_grad_()
    for f in (F.gelu, torch.sigmoid):
        (grad,) = torch.autograd.grad(f(x).sum(), x)
        assert math.isnan(grad[2].item()) and grad[5].item() == (f is F.gelu) and grad[6].item() == 0
    large = torch.tensor([41.0, 42.0, 43.0, 1e6, 1e9, 1e12], requires_grad=True)
    for sign in (1.0, -1.0):
        for f in (F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh")):
            (grad,) = torch.autograd.grad(f(sign * large).sum(), large)
            np.testing.assert_allclose(grad.numpy(), [1.0 if sign == 1 else 0.0] * 6, rtol=2e-7, atol=1e-15)


@pytest.mark.parametrize("size", [1, 7, 15, 16, 17, 513, 5000])
def test_results_do_not_depend_on_the_position(size):
    x = torch.randn(size)
    for f, _, _ in CASES.values():
        picked = torch.arange(0, size, max(1, size // 20))
        assert f(x)[picked].tolist() == f(x[picked]).tolist()

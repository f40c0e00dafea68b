"""Values of distributions at the edges of their parameters and values, as in PyTorch."""

from __future__ import annotations

import math

import pytest

ROWS = [
    (lambda d, t: d.Bernoulli(t([0.2, 0.5, 0.8])).mode, [0.0, math.nan, 1.0]),
    (lambda d, t: d.Gumbel(t([0.0]), t([-1.0]), validate_args=False).stddev, [-math.pi / math.sqrt(6)]),
    (lambda d, t: d.Laplace(t([0.0]), t([-1.0]), validate_args=False).stddev, [-math.sqrt(2)]),
    (lambda d, t: d.Uniform(t([3.0]), t([1.0]), validate_args=False).log_prob(t([2.0])), [math.nan]),
    (lambda d, t: d.Uniform(t([0.0]), t([2.0]), validate_args=False).log_prob(t([3.0])), [-math.inf]),
    (lambda d, t: d.Gamma(t([0.0, 0.0]), t([1.0, 2.0]), validate_args=False).sample(), [2.0**-126] * 2),
    (lambda d, t: d.Gamma(t([0.0]), t([1.0]), validate_args=False).log_prob(t([1.0])), [-math.inf]),
    (lambda d, t: d.Dirichlet(t([0.0, 1.0]), validate_args=False).sample(), [0.0, 1.0]),
    (lambda d, t: d.Beta(t([0.0]), t([1.0]), validate_args=False).sample(), [0.0]),
    # log(3! / (1! 1! 1!)) + 3 log(1 / 3): a value of one element is repeated
    (lambda d, t: d.Multinomial(3, t([1.0, 1.0, 1.0]), validate_args=False).log_prob(t([1.0])), math.log(6 / 27)),
]


@pytest.mark.parametrize(("value", "expected"), ROWS)
def test_edge_values(torch, value, expected):
    assert value(torch.distributions, torch.tensor).tolist() == pytest.approx(expected, nan_ok=True)


def test_the_density_of_a_uniform_distribution_has_a_gradient_outside_of_it(torch):
    high = torch.tensor(2.0, requires_grad=True)
    torch.distributions.Uniform(torch.tensor(0.0), high, validate_args=False).log_prob(torch.tensor(3.0)).backward()
    assert high.grad.item() == -0.5

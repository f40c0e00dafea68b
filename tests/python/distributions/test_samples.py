"""Samples: shapes, moments, supports, and the gradients of rsample."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

from . import cases

pytestmark = pytest.mark.usefixtures("device")

COUNT = 4000
# The mean or the variance of these is infinite, NaN, circular or not implemented.
NO_MOMENTS = {
    "Categorical", "Cauchy", "FisherSnedecor", "GeneralizedPareto", "HalfCauchy", "InverseGamma", "LKJCholesky",
    "LogisticNormal", "Pareto", "StudentT", "VonMises",
}  # fmt: skip
# SciPy's distributions of the first element of the cases' parameters, for those without moments and the new ones.
DISTRIBUTIONS = [
    ("FisherSnedecor", (3.0, 5.0), scipy.stats.f(3.0, 5.0)),
    ("GeneralizedPareto", (1.0, 2.0, 0.3), scipy.stats.genpareto(0.3, 1.0, 2.0)),
    ("GeneralizedPareto", (1.0, 2.0, 0.0), scipy.stats.expon(1.0, 2.0)),
    ("HalfCauchy", (1.5,), scipy.stats.halfcauchy(scale=1.5)),
    ("InverseGamma", (2.5, 1.5), scipy.stats.invgamma(2.5, scale=1.5)),
    ("VonMises", (0.0, 3.0), scipy.stats.vonmises(3.0)),
    ("VonMises", (0.0, 1e-7), scipy.stats.uniform(-np.pi, 2 * np.pi)),
    ("VonMises", (0.5, 200.0), scipy.stats.vonmises(200.0, 0.5)),
    ("StudentT", (1.5, 0.5, 2.0), scipy.stats.t(1.5, 0.5, 2.0)),
]
# The relaxations have no moments either.
ROWS = [row for row in cases.DISTRIBUTIONS if row[0] not in NO_MOMENTS and not row[0].startswith("Relaxed")]


def make(torch, row):
    return getattr(torch.distributions, row[0])(**cases.as_tensors(torch, row[1]), **row[2])


@pytest.mark.parametrize("row", cases.DISTRIBUTIONS, ids=lambda row: f"{row[0]}-{'-'.join(row[1])}")
def test_shapes_and_support(torch, row):
    torch.manual_seed(1)
    d = make(torch, row)
    for shape in [(), (3,), (2, 4)]:
        drawn = d.sample(shape)
        assert tuple(drawn.shape) == (*shape, *d.batch_shape, *d.event_shape)
        assert not drawn.requires_grad
        if row[0] != "Wishart":  # samples of few degrees of freedom can round to indefinite matrices
            assert d.support.check(drawn).all().item()
    larger = d.expand((5, *d.batch_shape))
    assert tuple(larger.sample((2,)).shape) == (2, 5, *d.batch_shape, *d.event_shape)
    assert type(larger) is type(d)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{'-'.join(row[1])}")
def test_moments(torch, row):
    torch.manual_seed(2)
    d = make(torch, row)
    drawn = d.sample((COUNT,)).double().cpu().numpy()
    mean, variance = d.mean.cpu().numpy(), d.variance.cpu().numpy()
    deviation = np.sqrt(np.mean((drawn - drawn.mean(0)) ** 4, 0) / COUNT)
    np.testing.assert_array_less(np.abs(drawn.mean(0) - mean), 5 * np.sqrt(drawn.var(0) / COUNT) + 1e-9)
    np.testing.assert_array_less(np.abs(drawn.var(0) - variance), 6 * deviation + 1e-9)


@pytest.mark.parametrize(("name", "parameters", "reference"), DISTRIBUTIONS, ids=lambda value: str(value)[:20])
def test_distribution_of_samples(torch, name, parameters, reference):
    torch.manual_seed(3)
    drawn = getattr(torch.distributions, name)(*map(torch.tensor, parameters)).sample((COUNT,))
    assert scipy.stats.kstest(drawn.double().cpu().numpy(), reference.cdf).pvalue > 1e-4


def test_correlations_of_lkj_samples(torch):
    """Each correlation r of an LKJ(eta) matrix of n rows has (r + 1) / 2 ~ Beta(a, a) with a = eta - 1 + n / 2."""
    torch.manual_seed(4)
    factors = torch.distributions.LKJCholesky(4, torch.tensor(1.5)).sample((COUNT,)).double()
    matrices = (factors @ factors.mT).cpu().numpy()
    for i, j in [(1, 0), (2, 0), (3, 2)]:
        assert scipy.stats.kstest((matrices[:, i, j] + 1) / 2, scipy.stats.beta(2.5, 2.5).cdf).pvalue > 1e-4


def test_mixture(torch):
    torch.manual_seed(5)
    D = torch.distributions
    weights, means = torch.tensor([0.2, 0.8]), torch.tensor([[-2.0, 1.0], [0.0, 5.0], [1.0, 2.0]])
    d = D.MixtureSameFamily(D.Categorical(weights), D.Normal(means, torch.tensor(0.5)), validate_args=True)
    assert d.batch_shape == (3,) and d.event_shape == () and not d.has_rsample
    drawn = d.sample((COUNT,)).double().cpu().numpy()
    expected = means.cpu().numpy() @ [0.2, 0.8]
    spread = 0.25 + (means.cpu().numpy() - expected[:, None]) ** 2 @ [0.2, 0.8]
    np.testing.assert_allclose(d.mean.cpu().numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(d.variance.cpu().numpy(), spread, rtol=1e-5)
    assert np.all(np.abs(drawn.mean(0) - expected) < 5 * np.sqrt(spread / COUNT))
    x = torch.tensor([0.3, 1.0, -1.0])
    parts = scipy.stats.norm(means.cpu().numpy(), 0.5)
    np.testing.assert_allclose(d.log_prob(x).exp().cpu().numpy(), parts.pdf(x.cpu().numpy()[:, None]) @ [0.2, 0.8], rtol=1e-4)
    np.testing.assert_allclose(d.cdf(x).cpu().numpy(), parts.cdf(x.cpu().numpy()[:, None]) @ [0.2, 0.8], rtol=1e-4, atol=1e-7)
    vectors = D.MixtureSameFamily(D.Categorical(weights), D.Independent(D.Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1))
    assert vectors.sample((7,)).shape == (7, 3) and vectors.log_prob(torch.zeros(4, 3)).shape == (4,)
    assert vectors.expand((6,)).sample((7,)).shape == (7, 6, 3) and vectors.mean.shape == (3,)


# distribution, the parameter whose gradient is compared, SciPy's quantile function of the parameter and a probability
QUANTILES = [
    ("Gamma", 0.05, lambda a, p: scipy.stats.gamma(a).ppf(p)), ("Gamma", 0.9, lambda a, p: scipy.stats.gamma(a).ppf(p)),
    ("Gamma", 4.0, lambda a, p: scipy.stats.gamma(a).ppf(p)), ("Gamma", 300.0, lambda a, p: scipy.stats.gamma(a).ppf(p)),
    ("Gamma", 1e5, lambda a, p: scipy.stats.gamma(a).ppf(p)), ("Chi2", 3.0, lambda a, p: scipy.stats.chi2(a).ppf(p)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "quantile"), QUANTILES, ids=[f"{q[0]}-{q[1]}" for q in QUANTILES])
def test_gradient_of_gamma_samples(torch, name, value, quantile):
    """A sample's gradient is that of the quantile function at the sample's probability."""
    torch.manual_seed(6)
    parameter = torch.full((200,), value, dtype=torch.float64, requires_grad=True)
    make = getattr(torch.distributions, name)
    d = make(parameter, torch.ones_like(parameter)) if name == "Gamma" else make(parameter)
    drawn = d.rsample()
    drawn.sum().backward()
    divisor = 2 if name == "Chi2" else 1
    probability = scipy.special.gammainc(value / divisor, drawn.detach().cpu().numpy() / divisor)
    # SciPy's quantiles of other probabilities are not exact enough to be differentiated.
    middle = (probability > 0.02) & (probability < 0.98)
    step = 1e-4 * min(value, value**0.5)
    slope = (quantile(value + step, probability) - quantile(value - step, probability)) / (2 * step)
    np.testing.assert_allclose(parameter.grad.cpu().numpy()[middle], slope[middle], rtol=1e-4)
    assert np.all(np.isfinite(parameter.grad.cpu().numpy()))


MEAN_GRADIENTS = [
    ("Beta", {"concentration1": 2.5, "concentration0": 1.5}), ("FisherSnedecor", {"df1": 8.0, "df2": 12.0}),
    ("InverseGamma", {"concentration": 6.0, "rate": 1.5}), ("Gamma", {"concentration": 2.5, "rate": 1.5}),
    ("Kumaraswamy", {"concentration1": 2.5, "concentration0": 1.5}), ("ContinuousBernoulli", {"probs": 0.3}),
    ("GeneralizedPareto", {"loc": 0.5, "scale": 1.5, "concentration": 0.1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), MEAN_GRADIENTS, ids=[row[0] for row in MEAN_GRADIENTS])
def test_gradients_of_samples_estimate_the_gradient_of_the_mean(torch, name, parameters):
    torch.manual_seed(7)
    leaves = cases.as_tensors(torch, parameters, requires_grad=True)
    exact = torch.autograd.grad(getattr(torch.distributions, name)(**leaves).mean, list(leaves.values()), allow_unused=True)
    each = {k: torch.full((COUNT,), v, dtype=torch.float64, requires_grad=True) for k, v in parameters.items()}
    d = getattr(torch.distributions, name)(**each)
    assert d.has_rsample
    d.rsample().sum().backward()
    for leaf, expected in zip(each.values(), exact):
        estimate = leaf.grad.cpu().numpy()
        slope = 0.0 if expected is None else expected.item()
        assert abs(estimate.mean() - slope) < 5 * estimate.std() / COUNT**0.5 + 1e-9


def test_gradients_of_matrix_samples(torch):
    torch.manual_seed(8)
    D = torch.distributions
    df = torch.full((COUNT,), 7.0, dtype=torch.float64, requires_grad=True)
    covariance = torch.tensor(cases.COVARIANCE, dtype=torch.float64)
    D.Wishart(df, covariance).rsample().diagonal(0, -2, -1).sum().backward()
    estimate = df.grad.cpu().numpy()
    assert abs(estimate.mean() - np.trace(cases.COVARIANCE)) < 5 * estimate.std() / COUNT**0.5
    factor = torch.tensor([[1.0], [0.5]], requires_grad=True)
    D.LowRankMultivariateNormal(torch.zeros(2), factor, torch.ones(2)).rsample((9,)).sum().backward()
    assert factor.grad.ne(0).all().item()


def test_gamma_samples_are_differentiated_once(torch):
    concentration = torch.tensor(2.0, requires_grad=True)
    drawn = torch.distributions.Gamma(concentration, 1.0).rsample((5,))
    (slope,) = torch.autograd.grad((drawn**2).sum(), concentration, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|differentiable"):
        slope.backward()
        concentration.grad.item()


def test_gamma_draws_from_a_generator(torch):
    d = torch.distributions.Gamma(torch.tensor([2.0, 0.5]), 1.5)
    draws = []
    for _ in range(2):
        generator = torch.Generator().manual_seed(9)
        torch.manual_seed(len(draws))
        draws += [d.sample((3,), generator=generator).tolist(), d.rsample((3,), generator).tolist()]
    assert draws[:2] == draws[2:] and draws[0] != draws[1]

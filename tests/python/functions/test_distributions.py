"""Distributions, compared with SciPy's."""

import numpy as np
import pytest
import scipy.stats as stats

# name, parameters, SciPy's distribution, points
CONTINUOUS = [
    ("Normal", (0.5, 2.0), stats.norm(0.5, 2.0), [-1.0, 0.3, 4.0]),
    ("LogNormal", (0.2, 0.7), stats.lognorm(0.7, scale=np.exp(0.2)), [0.1, 1.0, 3.0]),
    ("HalfNormal", (1.5,), stats.halfnorm(scale=1.5), [0.1, 1.0, 3.0]),
    ("Uniform", (-1.0, 3.0), stats.uniform(-1, 4), [-0.5, 0.0, 2.9]),
    ("Exponential", (1.7,), stats.expon(scale=1 / 1.7), [0.1, 1.0, 3.0]),
    ("Laplace", (0.5, 1.5), stats.laplace(0.5, 1.5), [-1.0, 0.6, 2.0]),
    ("Cauchy", (0.5, 1.5), stats.cauchy(0.5, 1.5), [-1.0, 0.6, 2.0]),
    ("Gumbel", (0.5, 1.5), stats.gumbel_r(0.5, 1.5), [-1.0, 0.6, 2.0]),
    ("Pareto", (1.5, 2.5), stats.pareto(2.5, scale=1.5), [1.6, 2.0, 5.0]),
    ("Weibull", (1.5, 2.5), stats.weibull_min(2.5, scale=1.5), [0.3, 1.0, 2.0]),
    ("Gamma", (2.5, 1.5), stats.gamma(2.5, scale=1 / 1.5), [0.3, 1.0, 2.0]),
    ("Chi2", (3.0,), stats.chi2(3.0), [0.3, 1.0, 2.0]),
    ("Beta", (2.5, 1.5), stats.beta(2.5, 1.5), [0.1, 0.5, 0.9]),
    ("StudentT", (5.0, 0.5, 1.5), stats.t(5.0, 0.5, 1.5), [-1.0, 0.6, 2.0]),
]
DISCRETE = [
    ("Bernoulli", {"probs": 0.3}, stats.bernoulli(0.3), [0.0, 1.0]),
    ("Geometric", {"probs": 0.3}, stats.geom(0.3, -1), [0.0, 1.0, 5.0]),
    ("Binomial", {"total_count": 7, "probs": 0.3}, stats.binom(7, 0.3), [0.0, 2.0, 7.0]),
    ("NegativeBinomial", {"total_count": 4.0, "probs": 0.3}, stats.nbinom(4, 0.7), [0.0, 2.0, 7.0]),
    ("Poisson", {"rate": 3.5}, stats.poisson(3.5), [0.0, 2.0, 7.0]),
]


@pytest.mark.parametrize(("name", "args", "reference", "places"), CONTINUOUS, ids=[row[0] for row in CONTINUOUS])
def test_continuous(torch, name, args, reference, places):
    make = getattr(torch.distributions, name)
    d = make(*(torch.tensor(a, dtype=torch.float64) for a in args))
    x = torch.tensor(places, dtype=torch.float64)
    np.testing.assert_allclose(d.log_prob(x).numpy(), reference.logpdf(places), rtol=1e-6)
    np.testing.assert_allclose(d.entropy().item(), reference.entropy(), rtol=1e-5)
    if type(d).cdf is not torch.distributions.Distribution.cdf:
        np.testing.assert_allclose(d.cdf(x).numpy(), reference.cdf(places), rtol=1e-6)
    if name != "Cauchy":
        np.testing.assert_allclose([d.mean.item(), d.variance.item()], [reference.mean(), reference.var()], rtol=1e-5)
    drawn = make(*args).sample((4000,))
    assert drawn.shape == (4000,)
    assert stats.kstest(drawn.double().numpy(), reference.cdf).pvalue > 1e-4


@pytest.mark.parametrize(("name", "args", "reference", "places"), DISCRETE, ids=[row[0] for row in DISCRETE])
def test_discrete(torch, name, args, reference, places):
    d = getattr(torch.distributions, name)(**{k: torch.tensor(v, dtype=torch.float64) for k, v in args.items()})
    x = torch.tensor(places, dtype=torch.float64)
    np.testing.assert_allclose(d.log_prob(x).numpy(), reference.logpmf(places), rtol=1e-6)
    np.testing.assert_allclose([d.mean.item(), d.variance.item()], [reference.mean(), reference.var()], rtol=1e-6)
    drawn = d.sample((6000,)).numpy()
    assert np.all(drawn == np.round(drawn)) and drawn.min() >= 0
    np.testing.assert_allclose(drawn.mean(), reference.mean(), atol=5 * np.sqrt(reference.var() / 6000))
    np.testing.assert_allclose(drawn.var(), reference.var(), rtol=0.15)


@pytest.mark.parametrize("rate", [0.0, 0.5, 9.9, 10.1, 400.0])
def test_poisson_rates(torch, rate):
    drawn = torch.poisson(torch.full((8000,), rate)).numpy()
    np.testing.assert_allclose(drawn.mean(), rate, atol=5 * np.sqrt(rate / 8000) + 1e-9)
    np.testing.assert_allclose(drawn.var(), rate, rtol=0.1, atol=1e-9)


def test_categorical(torch):
    probs = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    d = torch.distributions.Categorical(probs=2 * probs)
    assert d.batch_shape == (2,) and d.event_shape == ()
    np.testing.assert_allclose(d.log_prob(torch.tensor([2, 0])).exp().numpy(), [0.5, 0.6], rtol=1e-5)
    drawn = d.sample((3000,)).numpy()
    counts = np.stack([(drawn == c).mean(0) for c in range(3)], 1)
    np.testing.assert_allclose(counts, probs.numpy(), atol=0.04)
    np.testing.assert_allclose(d.entropy().numpy(), [stats.entropy([0.2, 0.3, 0.5]), stats.entropy([0.6, 0.4])], rtol=1e-4)
    one = torch.distributions.OneHotCategorical(probs=probs).sample((5,))
    assert one.shape == (5, 2, 3) and one.sum(-1).eq(1).all().item()
    logits = torch.zeros(3, requires_grad=True)
    torch.distributions.Categorical(logits=logits).log_prob(torch.tensor(1)).backward()
    np.testing.assert_allclose(logits.grad.numpy(), [-1 / 3, 2 / 3, -1 / 3], rtol=1e-5)


def test_samples_carry_gradients(torch):
    mean, scale = torch.tensor(0.5, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    drawn = torch.distributions.Normal(mean, scale).rsample((100,))
    drawn.sum().backward()
    assert mean.grad.item() == 100
    np.testing.assert_allclose(scale.grad.item(), ((drawn - mean) / scale).sum().item(), rtol=1e-3)
    assert not torch.distributions.Normal(mean, scale).sample().requires_grad


def test_independent_and_transformed(torch):
    D = torch.distributions
    base = D.Normal(torch.zeros(4, 3), torch.ones(4, 3))
    whole = D.Independent(base, 1)
    x = torch.randn(4, 3)
    assert whole.batch_shape == (4,) and whole.event_shape == (3,)
    np.testing.assert_allclose(whole.log_prob(x).numpy(), stats.norm.logpdf(x.numpy()).sum(1), rtol=1e-4)
    squashed = D.TransformedDistribution(D.Normal(0.5, 2.0), [D.SigmoidTransform(), D.AffineTransform(1.0, 3.0)])
    y = torch.tensor([1.5, 2.5, 3.9])
    inner = (y.numpy() - 1) / 3
    density = stats.norm(0.5, 2).pdf(np.log(inner / (1 - inner))) / (3 * inner * (1 - inner))
    np.testing.assert_allclose(squashed.log_prob(y).exp().numpy(), density, rtol=1e-4)
    drawn = squashed.sample((200,))
    assert drawn.min().item() >= 1 and drawn.max().item() <= 4


def test_multivariate_normal(torch):
    covariance = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]])
    mean, reference = np.array([1.0, -1.0, 0.5]), stats.multivariate_normal
    D, x = torch.distributions.MultivariateNormal, np.array([[0.3, 0.1, 1.0], [2.0, 0.0, 0.0]])
    given = {"covariance_matrix": covariance, "precision_matrix": np.linalg.inv(covariance), "scale_tril": np.linalg.cholesky(covariance)}
    for name, matrix in given.items():
        d = D(torch.tensor(mean), **{name: torch.tensor(matrix)})
        np.testing.assert_allclose(d.log_prob(torch.tensor(x)).numpy(), reference.logpdf(x, mean, covariance), rtol=1e-8)
        np.testing.assert_allclose(d.entropy().item(), reference(mean, covariance).entropy(), rtol=1e-8)
    np.testing.assert_allclose(np.cov(d.sample((8000,)).numpy().T), covariance, atol=0.15)


def test_dirichlet(torch):
    a = np.array([2.0, 0.5, 3.0])
    d = torch.distributions.Dirichlet(torch.tensor(a))
    x = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(d.log_prob(torch.tensor(x)).item(), stats.dirichlet(a).logpdf(x), rtol=1e-8)
    np.testing.assert_allclose(d.entropy().item(), stats.dirichlet(a).entropy(), rtol=1e-8)
    np.testing.assert_allclose(d.sample((4000,)).mean(0).numpy(), a / a.sum(), atol=0.03)


PAIRS = [
    ("Normal", (0.5, 2.0), (0.0, 1.0)), ("Laplace", (0.5, 2.0), (0.0, 1.0)), ("Exponential", (0.5,), (2.0,)),
    ("Gamma", (2.5, 2.0), (1.5, 1.0)), ("Beta", (2.5, 2.0), (1.5, 1.0)), ("Uniform", (0.2, 0.7), (0.0, 1.0)),
    ("Bernoulli", (0.3,), (0.6,)), ("Poisson", (3.0,), (2.0,)), ("Geometric", (0.3,), (0.5,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "p", "q"), PAIRS, ids=[row[0] for row in PAIRS])
def test_divergence_is_the_mean_log_ratio(torch, name, p, q):
    make = getattr(torch.distributions, name)
    p, q = (make(*(torch.tensor(a, dtype=torch.float64) for a in args)) for args in (p, q))
    drawn = p.sample((40000,))
    terms = (p.log_prob(drawn) - q.log_prob(drawn)).numpy()
    divergence = torch.distributions.kl_divergence(p, q).item()
    np.testing.assert_allclose(terms.mean(), divergence, atol=5 * terms.std() / 200)
    assert torch.distributions.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-9)


def test_unknown_pairs_and_arguments(torch):
    D = torch.distributions
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))
    with pytest.raises(ValueError, match="to satisfy the constraint"):
        D.Normal(0.0, -1.0, validate_args=True)
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Bernoulli()


def test_positive_definite_checks_the_whole_matrix(torch):
    matrices = torch.tensor([[[1.0, 2.0], [2.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.5], [0.0, 1.0]]])
    assert torch.distributions.constraints.positive_definite.check(matrices).tolist() == [False, True, False]

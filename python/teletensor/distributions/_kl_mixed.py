"""Divergences between distributions of different types."""

from __future__ import annotations

import math

from .. import _C
from ._kl_registry import register_kl
from .continuous import Exponential, Gumbel, Laplace, Pareto
from .continuous_bernoulli import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Poisson
from .gamma import Beta, Gamma
from .normal import Normal
from .uniform import Uniform
from .utils import euler_constant

# For each type, the types whose support does not contain its own: the divergence is infinite.
_INFINITE = {
    Beta: ("concentration1", [Pareto]),
    ContinuousBernoulli: ("probs", [Pareto]),
    Exponential: ("rate", [Beta, ContinuousBernoulli, Pareto, Uniform]),
    Gamma: ("concentration", [Beta, ContinuousBernoulli, Pareto, Uniform]),
    Gumbel: ("loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    Laplace: ("loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    Normal: ("loc", [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform]),
    Pareto: ("scale", [Beta, ContinuousBernoulli, Uniform]),
    Poisson: ("rate", [Bernoulli, Binomial]),
}


def _register_infinite(type_p: type, name: str, types_q: list) -> None:
    for type_q in types_q:
        register_kl(type_p, type_q)(lambda p, q: _C.torch.full_like(getattr(p, name), math.inf))


for _type, (_name, _others) in _INFINITE.items():
    _register_infinite(_type, _name, _others)


def _infinite_where(condition, result):
    return _C.torch.where(condition, math.inf, result)


def _cross_normal(q, mean, variance):
    """The cross entropy with a normal distribution q, given the mean and variance of p."""
    squares = variance + (mean - q.loc) ** 2
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + squares / (2 * q.scale**2)


def _cross_gamma(q, mean, mean_log):
    """The cross entropy with a gamma distribution q, given p's means of x and log(x)."""
    return q.concentration.lgamma() - q.concentration * q.rate.log() - (q.concentration - 1) * mean_log + q.rate * mean


def _cross_exponential(q, mean):
    return q.rate * mean - q.rate.log()


def _cross_continuous_bernoulli(q, mean):
    return -mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


def _cross_gumbel(q, mean, mean_exp):
    """The cross entropy with a Gumbel distribution q, given p's means of x and exp(-x / q.scale)."""
    return q.scale.log() + (mean - q.loc) / q.scale + (q.loc / q.scale).exp() * mean_exp


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - p.probs * q.rate.log() + q.rate


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _any_continuous_bernoulli(p, q):
    result = _cross_continuous_bernoulli(q, p.mean) - p.entropy()
    # PyTorch's condition: infinite also for an interval that ends at 0 or 1.
    return _infinite_where((p.high >= 1) | (p.low <= 0), result) if isinstance(p, Uniform) else result


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _any_exponential(p, q):
    return _cross_exponential(q, p.mean) - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return _cross_gamma(q, p.mean, mean_log) - p.entropy()


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _any_normal(p, q):
    return _cross_normal(q, p.mean, p.variance) - p.entropy()


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    alpha = _C.torch.where(p.alpha > 2, p.alpha, 3.0)  # the variance is infinite otherwise
    finite = Pareto(p.scale, alpha, validate_args=False)
    return _infinite_where(p.alpha <= 2, _any_normal(finite, q))


@register_kl(Beta, Uniform)
def _beta_uniform(p, q):
    return _infinite_where((q.low > 0) | (q.high < 1), (q.high - q.low).log() - p.entropy())


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p, q):
    # PyTorch's condition: infinite also for the unit interval.
    return _infinite_where((q.low >= 0) | (q.high <= 1), (q.high - q.low).log() - p.entropy())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    return _cross_gamma(q, 1 / p.rate, -euler_constant - p.rate.log()) - p.entropy()


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    product = p.rate * q.scale
    return _cross_gumbel(q, 1 / p.rate, product / (product + 1)) - p.entropy()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    return _cross_gumbel(q, p.mean, (1 + 1 / (p.rate * q.scale)) ** -p.concentration) - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    mean_exp = (0.5 * (p.scale / q.scale) ** 2 - p.loc / q.scale).exp()
    return _cross_gumbel(q, p.loc, mean_exp) - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    gap = p.loc - q.loc
    density = (-0.5 * (gap / p.scale) ** 2).exp()
    mean_distance = math.sqrt(2 / math.pi) * p.scale * density + gap * (math.sqrt(0.5) * gap / p.scale).erf()
    return (2 * q.scale).log() + mean_distance / q.scale - p.entropy()


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    return _cross_exponential(q, p.mean) - p.entropy()


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    return _cross_gamma(q, p.mean, p.scale.log() + 1 / p.alpha) - p.entropy()


def _mean_log(low, high):
    """The mean of log(x) for x in [low, high]."""
    return (_C.torch.xlogy(high, high) - _C.torch.xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    logs = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    return _infinite_where((p.high > 1) | (p.low < 0), log_beta - logs - p.entropy())


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return _infinite_where(p.low < 0, _cross_exponential(q, p.mean) - p.entropy())


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    return _infinite_where(p.low < 0, _cross_gamma(q, p.mean, _mean_log(p.low, p.high)) - p.entropy())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    mean_exp = q.scale / (p.high - p.low) * ((-p.low / q.scale).exp() - (-p.high / q.scale).exp())
    return _cross_gumbel(q, p.mean, mean_exp) - p.entropy()


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    cross = (q.alpha + 1) * _mean_log(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()
    return _infinite_where(p.low < q.scale, cross - p.entropy())

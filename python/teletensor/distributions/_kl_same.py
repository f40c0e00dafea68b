"""Divergences between distributions of the same type. See _kl_mixed.py for those of different types."""

from __future__ import annotations

import math

from .. import _C
from ..autograd.gradients import grad
from ._kl_registry import kl_divergence, register_kl
from .categorical import Categorical, OneHotCategorical
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Pareto
from .continuous_bernoulli import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .exp_family import ExponentialFamily
from .gamma import Beta, Dirichlet, Gamma
from .independent import Independent
from .log_normal import LogNormal
from .normal import HalfNormal, Normal
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
def _log_normal(p, q):
    return _normal(p, q)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = _C.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t1 = _C.torch.where(p.probs == 0, 0.0, _C.torch.where(q.probs == 0, math.inf, t1))
    t2 = _C.torch.where(p.probs == 1, 0.0, _C.torch.where(q.probs == 1, math.inf, t2))
    return t1 + t2


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = _C.torch.where(q.probs == 0, math.inf, terms)
    return _C.torch.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, gap = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + gap / q.scale + ratio * (-gap / p.scale).exp() - 1


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    t1 = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return t1 + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _C.torch.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    """Waits for the engine, to read whether q has more trials than p anywhere."""
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return _C.torch.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    norms = p._cont_bern_log_norm() - q._cont_bern_log_norm()
    return p.mean * (p.logits - q.logits) + norms + (-p.probs).log1p() - (-q.probs).log1p()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, gap = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return ratio * euler_constant - ratio.log() - gap + (gap + (1 + ratio).lgamma()).exp() - (1 + euler_constant)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _C.torch.where(p.scale < q.scale, math.inf, result)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log normalizer between the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}: they are different "
            "exponential families, between which there is no Bregman divergence"
        )
    parameters = [t.detach().requires_grad_() for t in p._natural_params]
    normalizer = p._log_normalizer(*parameters)
    result = q._log_normalizer(*q._natural_params) - normalizer
    slopes = grad(normalizer.sum(), parameters, create_graph=True)
    for a, b, slope in zip(parameters, q._natural_params, slopes):
        term = (b - a) * slope
        # A parameter can have fewer dimensions than an event, for example the degrees of freedom of matrices.
        result = result - _sum_rightmost(term, term.dim() - len(p.batch_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "KL between transformed distributions is implemented only for equal transforms and event shapes, got "
            f"{p.transforms} on {tuple(p.event_shape)} and {q.transforms} on {tuple(q.event_shape)}"
        )
    return kl_divergence(p.base_dist, q.base_dist)

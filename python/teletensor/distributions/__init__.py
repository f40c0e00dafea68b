"""Probability distributions; see torch.distributions. Argument checks wait for the engine and are off by default."""

from . import constraints, kl, transforms, utils
from .bernoulli import Bernoulli
from .categorical import (
    Categorical, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough, RelaxedOneHotCategorical,
)  # fmt: skip
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Pareto, Weibull
from .discrete import Binomial, Geometric, NegativeBinomial, Poisson
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from .independent import Independent
from .kl import kl_divergence, register_kl
from .multivariate_normal import MultivariateNormal
from .normal import HalfNormal, LogNormal, Normal
from .transformed_distribution import TransformedDistribution
from .transforms import (
    AbsTransform, AffineTransform, ComposeTransform, ExpTransform, PowerTransform, SigmoidTransform, SoftmaxTransform,
    SoftplusTransform, TanhTransform, Transform, identity_transform,
)  # fmt: skip
from .uniform import Uniform

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "Gamma",
    "Geometric", "Gumbel", "HalfNormal", "Independent", "Laplace", "LogNormal", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PowerTransform", "RelaxedOneHotCategorical", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StudentT",
    "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "Weibull", "constraints", "identity_transform",
    "kl", "kl_divergence", "register_kl", "transforms", "utils",
]  # fmt: skip

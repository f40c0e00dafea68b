"""Probability distributions; see torch.distributions. Argument checks wait for the engine and are off by default."""

from .._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "bernoulli": "Bernoulli",
    "categorical": "Categorical Multinomial OneHotCategorical OneHotCategoricalStraightThrough",
    "constraint_registry": "biject_to transform_to",
    "continuous": "Cauchy Exponential Gumbel Laplace Pareto Weibull",
    "continuous_bernoulli": "ContinuousBernoulli",
    "discrete": "Binomial Geometric NegativeBinomial Poisson",
    "distribution": "Distribution",
    "exp_family": "ExponentialFamily",
    "fishersnedecor": "FisherSnedecor",
    "gamma": "Beta Chi2 Dirichlet Gamma StudentT",
    "generalized_pareto": "GeneralizedPareto",
    "half_cauchy": "HalfCauchy",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kl": "kl_divergence register_kl",
    "kumaraswamy": "Kumaraswamy",
    "lkj_cholesky": "LKJCholesky",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multivariate_normal": "MultivariateNormal",
    "log_normal": "LogNormal",
    "normal": "HalfNormal Normal",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "transformed_distribution": "TransformedDistribution",
    "transforms": (
        "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
        "CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform "
        "PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftmaxTransform SoftplusTransform "
        "StackTransform StickBreakingTransform TanhTransform Transform identity_transform"
    ),
    "uniform": "Uniform",
    "von_mises": "VonMises",
    "wishart": "Wishart",
}


__all__ = [  # noqa: F822 - imported at their first use
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet",
    "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto",
    "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform", "InverseGamma", "Kumaraswamy",
    "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "LowerCholeskyTransform",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform", "Transform",
    "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "identity_transform",
    "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)  # also the modules of single distributions

"""Cases of distributions, transforms and constraints, evaluated by PyTorch (reference.py) and by the tests alike."""

from __future__ import annotations

COVARIANCE = [[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]]
FACTOR = [[1.2, 0.0, 0.0], [0.4, 0.9, 0.0], [-0.3, 0.2, 1.1]]
CORRELATION_FACTOR = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, 0.6, 0.64]]
POINTS = [[0.3, 0.1, 1.0], [2.0, 0.0, -0.5]]

# name, tensor parameters, other parameters, values
DISTRIBUTIONS = [
    ("Bernoulli", {"probs": [0.3, 0.6]}, {}, [[0.0, 1.0], [1.0, 1.0]]),
    ("Beta", {"concentration1": [2.5, 0.7], "concentration0": [1.5, 1.2]}, {}, [[0.1, 0.5], [0.9, 0.4]]),
    ("Binomial", {"probs": [0.3, 0.6]}, {"total_count": 7}, [[0.0, 2.0], [7.0, 5.0]]),
    ("Categorical", {"logits": [0.1, 1.0, -0.5]}, {}, [0.0, 2.0]),
    ("Cauchy", {"loc": [0.5, -1.0], "scale": [1.5, 0.4]}, {}, [[-1.0, 0.6], [2.0, 0.1]]),
    ("Chi2", {"df": [3.0, 0.8]}, {}, [[0.3, 1.0], [2.0, 0.1]]),
    ("ContinuousBernoulli", {"probs": [0.3, 0.5, 0.4995, 0.9]}, {}, [[0.1, 0.2, 0.7, 0.9], [0.0, 1.0, 0.5, 0.3]]),
    ("ContinuousBernoulli", {"logits": [-1.3, 0.0, 2.5]}, {}, [[0.1, 0.2, 0.7]]),
    ("Dirichlet", {"concentration": [[2.0, 0.5, 3.0], [0.4, 0.5, 0.6]]}, {}, [[[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]]),
    ("Exponential", {"rate": [1.7, 0.2]}, {}, [[0.1, 1.0], [3.0, 2.0]]),
    ("FisherSnedecor", {"df1": [3.0, 1.5, 6.0], "df2": [5.0, 1.2, 3.0]}, {}, [[0.2, 1.0, 3.0]]),
    ("Gamma", {"concentration": [2.5, 0.7], "rate": [1.5, 0.2]}, {}, [[0.3, 1.0], [2.0, 7.0]]),
    ("GeneralizedPareto", {"loc": [0.0, 1.0, -1.0, 0.5], "scale": [1.0, 2.0, 0.5, 1.5], "concentration": [0.0, 0.3, -0.4, 1.2]},
     {}, [[0.5, 1.5, -0.5, 2.0], [2.0, 4.0, 0.1, 0.6]]),
    ("Geometric", {"probs": [0.3, 0.6]}, {}, [[0.0, 1.0], [5.0, 2.0]]),
    ("Gumbel", {"loc": [0.5, -1.0], "scale": [1.5, 0.4]}, {}, [[-1.0, -0.6], [2.0, 0.1]]),
    ("HalfCauchy", {"scale": [1.5, 0.4]}, {}, [[0.3, 1.0], [2.0, 0.1]]),
    ("HalfNormal", {"scale": [1.5, 0.4]}, {}, [[0.3, 1.0], [2.0, 0.1]]),
    ("InverseGamma", {"concentration": [2.5, 0.7], "rate": [1.5, 0.2]}, {}, [[0.3, 1.0], [2.0, 7.0]]),
    ("Kumaraswamy", {"concentration1": [2.5, 0.7], "concentration0": [1.5, 1.2]}, {}, [[0.1, 0.5], [0.9, 0.4]]),
    ("LKJCholesky", {"concentration": [0.7, 2.5]}, {"dim": 3}, [[CORRELATION_FACTOR, CORRELATION_FACTOR]]),
    ("Laplace", {"loc": [0.5, -1.0], "scale": [1.5, 0.4]}, {}, [[-1.0, -0.6], [2.0, 0.1]]),
    ("LogNormal", {"loc": [0.5, -1.0], "scale": [1.5, 0.4]}, {}, [[1.0, 0.6], [2.0, 0.1]]),
    ("LogisticNormal", {"loc": [0.5, -1.0], "scale": [1.5, 0.4]}, {}, [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
    ("LowRankMultivariateNormal", {"loc": [0.1, -0.2, 0.3], "cov_factor": [[1.0, 0.2], [0.5, -0.4], [0.0, 0.7]],
                                   "cov_diag": [0.5, 1.0, 0.3]}, {}, POINTS),
    ("Multinomial", {"probs": [0.2, 0.3, 0.5]}, {"total_count": 6}, [[1.0, 2.0, 3.0], [0.0, 0.0, 6.0]]),
    ("MultivariateNormal", {"loc": [0.1, -0.2, 0.3], "covariance_matrix": COVARIANCE}, {}, POINTS),
    ("MultivariateNormal", {"loc": [[0.1, -0.2, 0.3], [1.0, 0.0, 0.0]], "precision_matrix": COVARIANCE}, {}, POINTS),
    ("MultivariateNormal", {"loc": [0.1, -0.2, 0.3], "scale_tril": FACTOR}, {}, POINTS),
    ("NegativeBinomial", {"total_count": [4.0, 2.0], "probs": [0.3, 0.6]}, {}, [[0.0, 2.0], [7.0, 1.0]]),
    ("Normal", {"loc": [0.5, -1.0], "scale": [1.5, 0.4]}, {}, [[-1.0, -0.6], [2.0, 0.1]]),
    ("OneHotCategorical", {"logits": [0.1, 1.0, -0.5]}, {}, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    ("Pareto", {"scale": [1.5, 0.5], "alpha": [2.5, 0.8]}, {}, [[1.6, 1.0], [5.0, 0.6]]),
    ("Poisson", {"rate": [3.5, 0.4]}, {}, [[0.0, 2.0], [7.0, 1.0]]),
    ("RelaxedBernoulli", {"temperature": 0.7, "probs": [0.3, 0.6]}, {}, [[0.1, 0.5], [0.9, 0.4]]),
    ("RelaxedBernoulli", {"temperature": 1.7, "logits": [0.3, -0.6]}, {}, [[0.1, 0.5], [0.9, 0.4]]),
    ("RelaxedOneHotCategorical", {"temperature": 0.7, "logits": [0.1, 1.0, -0.5]}, {}, [[0.2, 0.3, 0.5]]),
    ("StudentT", {"df": [5.0, 1.5], "loc": [0.5, 0.0], "scale": [1.5, 1.0]}, {}, [[-1.0, 0.6], [2.0, 0.1]]),
    ("Uniform", {"low": [-1.0, 0.0], "high": [3.0, 0.5]}, {}, [[-0.5, 0.1], [2.9, 0.4]]),
    ("VonMises", {"loc": [0.5, -1.0, 0.0], "concentration": [0.3, 3.0, 50.0]}, {}, [[-1.0, -0.6, 0.1], [3.0, 2.0, 0.0]]),
    ("Weibull", {"scale": [1.5, 0.4], "concentration": [2.5, 1.3]}, {}, [[0.3, 1.0], [2.0, 0.1]]),
    ("Wishart", {"df": [4.5, 6.0], "covariance_matrix": COVARIANCE}, {}, [[COVARIANCE, COVARIANCE]]),
    ("Wishart", {"df": 7.0, "scale_tril": FACTOR}, {}, [COVARIANCE]),
    ("Wishart", {"df": 7.0, "precision_matrix": COVARIANCE}, {}, [COVARIANCE]),
]  # fmt: skip
PROPERTIES = ["mean", "mode", "variance", "stddev", "batch_shape", "event_shape", "has_rsample", "has_enumerate_support"]
METHODS = ["entropy", "enumerate_support", "perplexity"]
PROBABILITIES = [0.1, 0.45, 0.8]

# expression of a transform, in terms of `D` (the module) and `tensor`; input
VECTOR, MATRIX = [[0.3, -1.2, 0.7]], [[[0.3, -1.2, 0.7], [0.1, 0.5, -0.4], [1.0, 0.2, -0.6]]]
TRANSFORMS = [
    ("D.ExpTransform()", VECTOR), ("D.SigmoidTransform()", VECTOR), ("D.TanhTransform()", VECTOR),
    ("D.SoftplusTransform()", VECTOR), ("D.AffineTransform(1.5, -2.0)", VECTOR),
    ("D.AffineTransform(tensor([1.0, 2.0, 3.0]), tensor([0.5, -1.0, 2.0]), event_dim=1)", VECTOR),
    ("D.PowerTransform(tensor(1.7))", [[0.3, 1.2, 0.7]]), ("D.PowerTransform(tensor(-0.5)).inv", [[0.3, 1.2, 0.7]]),
    ("D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 3.0)])", VECTOR),
    ("D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()])", VECTOR),
    ("D.ComposeTransform([D.AffineTransform(0.0, 2.0, cache_size=1), D.TanhTransform(cache_size=1)], cache_size=1)", VECTOR),
    ("D.IndependentTransform(D.ExpTransform(), 1)", VECTOR), ("D.ReshapeTransform((3,), (3, 1))", VECTOR),
    ("D.CorrCholeskyTransform()", VECTOR), ("D.CorrCholeskyTransform()", [[0.4]]), ("D.StickBreakingTransform()", VECTOR),
    ("D.CumulativeDistributionTransform(D.Normal(tensor(0.5), tensor(2.0)))", VECTOR),
    ("D.CatTransform([D.ExpTransform(), D.TanhTransform()], dim=1, lengths=[2, 1])", VECTOR),
    ("D.CatTransform([D.ExpTransform(), D.IndependentTransform(D.TanhTransform(), 0)], dim=-1, lengths=[1, 2])", VECTOR),
    ("D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.identity_transform], dim=1)", VECTOR),
    ("D.SoftmaxTransform()", VECTOR), ("D.LowerCholeskyTransform()", MATRIX), ("D.PositiveDefiniteTransform()", MATRIX),
    ("D.AbsTransform()", [[0.3, 1.2]]),
    ("D.biject_to(D.constraints.positive)", VECTOR), ("D.biject_to(D.constraints.less_than(2.0))", VECTOR),
    ("D.biject_to(D.constraints.interval(-1.0, tensor(3.0)))", VECTOR), ("D.biject_to(D.constraints.simplex)", VECTOR),
    ("D.biject_to(D.constraints.unit_interval)", VECTOR), ("D.biject_to(D.constraints.corr_cholesky)", VECTOR),
    ("D.biject_to(D.constraints.real_vector)", VECTOR), ("D.transform_to(D.constraints.simplex)", VECTOR),
    ("D.biject_to(D.constraints.cat([D.constraints.real, D.constraints.positive], 1, [1, 2]))", VECTOR),
    ("D.biject_to(D.constraints.stack([D.constraints.real, D.constraints.positive, D.constraints.unit_interval], 1))", VECTOR),
    ("D.transform_to(D.constraints.lower_cholesky)", MATRIX), ("D.transform_to(D.constraints.positive_definite)", MATRIX),
]  # fmt: skip

# expression of a constraint; values
NUMBERS = [-1.0, 0.0, 0.5, 1.0, 2.0, float("nan"), float("inf")]
VECTORS = [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 2.0, -3.0], [1.0, 1.0, 1.0]]
CONSTRAINTS = [
    *[(f"C.{name}", NUMBERS) for name in ("boolean", "positive", "nonnegative", "real", "unit_interval", "positive_integer",
       "nonnegative_integer", "greater_than(0.5)", "greater_than_eq(0.5)", "less_than(0.5)", "interval(0.0, 1.0)",
       "half_open_interval(0.0, 1.0)", "integer_interval(0, 1)")],
    *[(f"C.{name}", VECTORS) for name in ("simplex", "one_hot", "real_vector", "multinomial(3)", "independent(C.positive, 1)",
       "cat([C.positive, C.unit_interval], 1, [1, 2])", "stack([C.positive, C.real, C.boolean], -1)",
       "MixtureSameFamilyConstraint(C.positive)")],
    *[(f"C.{name}", [m]) for name in ("square", "symmetric", "lower_triangular", "lower_cholesky", "corr_cholesky",
       "positive_definite", "positive_semidefinite")
      for m in (COVARIANCE, FACTOR, CORRELATION_FACTOR, [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0, 3.0]],
                [[1.0, 2.0], [2.0, 1.0]])],
]  # fmt: skip

# Parameters for the divergences of all pairs: the second is wider, so that more of the divergences are finite.
SCALARS = {
    "Bernoulli": ({"probs": 0.3}, {"probs": 0.6}), "Beta": ({"concentration1": 2.5, "concentration0": 2.0},) * 2,
    "Binomial": ({"total_count": 5.0, "probs": 0.3}, {"total_count": 5.0, "probs": 0.6}),
    "Cauchy": ({"loc": 0.5, "scale": 2.0}, {"loc": 0.0, "scale": 1.0}), "Chi2": ({"df": 3.0}, {"df": 2.0}),
    "ContinuousBernoulli": ({"probs": 0.3}, {"probs": 0.6}), "Exponential": ({"rate": 0.5}, {"rate": 2.0}),
    "Gamma": ({"concentration": 2.5, "rate": 2.0}, {"concentration": 1.5, "rate": 1.0}),
    "Geometric": ({"probs": 0.3}, {"probs": 0.6}), "Gumbel": ({"loc": 0.5, "scale": 0.7}, {"loc": 0.0, "scale": 1.0}),
    "HalfNormal": ({"scale": 0.5}, {"scale": 2.0}), "InverseGamma": ({"concentration": 2.5, "rate": 2.0},) * 2,
    "Laplace": ({"loc": 0.5, "scale": 2.0}, {"loc": 0.0, "scale": 1.0}),
    "LogNormal": ({"loc": 0.5, "scale": 2.0}, {"loc": 0.0, "scale": 1.0}),
    "Normal": ({"loc": 0.5, "scale": 2.0}, {"loc": 0.2, "scale": 1.0}),
    "Pareto": ({"scale": 1.5, "alpha": 2.5}, {"scale": 0.1, "alpha": 1.2}), "Poisson": ({"rate": 3.0}, {"rate": 2.0}),
    "Uniform": ({"low": 0.2, "high": 0.7}, {"low": -1.0, "high": 3.0}),
}  # fmt: skip
MATRICES = {
    "MultivariateNormal": {"loc": [0.1, -0.2, 0.3], "scale_tril": FACTOR},
    "LowRankMultivariateNormal": {"loc": [0.0, 0.4, 0.3], "cov_factor": [[1.0], [0.5], [0.2]], "cov_diag": [0.5, 1.0, 0.3]},
}
WISHARTS = [{"df": 4.5, "covariance_matrix": COVARIANCE}, {"df": 6.0, "scale_tril": FACTOR}]


def as_tensors(torch, parameters: dict, requires_grad: bool = False) -> dict:
    return {
        name: torch.tensor(value, dtype=torch.float64, requires_grad=requires_grad) for name, value in parameters.items()
    }


def attempt(function):
    """The function's result as nested lists, or the error's type where it is not implemented or rejects the values."""
    try:
        result = function()
    except (NotImplementedError, ValueError) as error:
        return type(error).__name__
    return result.tolist() if hasattr(result, "tolist") else list(result) if isinstance(result, tuple) else result


def evaluate(torch, row) -> dict:
    """All that a distribution computes without random numbers, and the gradients of log_prob and entropy."""
    name, parameters, others, values = row
    make = getattr(torch.distributions, name)
    d = make(**as_tensors(torch, parameters), **others, validate_args=True)
    values = torch.tensor(values, dtype=torch.float64)
    results = {key: attempt(lambda key=key: getattr(d, key)) for key in PROPERTIES}
    results |= {key: attempt(getattr(d, key)) for key in METHODS}
    results["log_prob"], results["cdf"] = attempt(lambda: d.log_prob(values)), attempt(lambda: d.cdf(values))
    if not d.event_shape:
        results["icdf"] = [attempt(lambda p=p: d.icdf(torch.full(d.batch_shape, p, dtype=torch.float64))) for p in PROBABILITIES]
    leaves = as_tensors(torch, parameters, requires_grad=True)
    make(**leaves, **others, validate_args=False).log_prob(values).sum().backward()
    # PyTorch's cholesky_solve has a gradient for the elements above the diagonal, which it does not read.
    grads = {key: leaf.grad.tril() if key == "scale_tril" else leaf.grad for key, leaf in leaves.items()}
    results["gradients"] = {key: grad.tolist() for key, grad in grads.items()}
    larger = d.expand((2, *d.batch_shape))
    results["expanded"] = [list(larger.batch_shape), attempt(lambda: larger.log_prob(values))]
    return results


def evaluate_transform(torch, row) -> dict:
    expression, values = row
    tensor = lambda v: torch.tensor(v, dtype=torch.float64)  # noqa: E731
    transform = eval(expression, {"D": torch.distributions, "tensor": tensor})
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    y = transform(x)
    results = {"y": y.tolist(), "x": attempt(lambda: transform.inv(y.detach())), "bijective": transform.bijective}
    results["domains"] = [transform.domain.event_dim, transform.codomain.event_dim]
    results["sign"] = attempt(lambda: transform.sign)
    results["shapes"] = [list(transform.forward_shape(x.shape)), list(transform.inverse_shape(y.shape))]
    results["jacobian"] = attempt(lambda: transform.log_abs_det_jacobian(x, y))
    (y * torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape)).sum().backward()
    results["gradient"] = x.grad.tolist()
    return results


def evaluate_constraint(torch, row) -> dict:
    expression, values = row
    constraint = eval(expression, {"C": torch.distributions.constraints})
    valid = constraint.check(torch.tensor(values, dtype=torch.float64))
    return {"valid": valid.tolist(), "event_dim": constraint.event_dim, "is_discrete": constraint.is_discrete}


def evaluate_divergences(torch) -> dict:
    D, results = torch.distributions, {}
    kl = lambda p, q: attempt(lambda: D.kl_divergence(p, q))  # noqa: E731
    for name_p, (first, _) in SCALARS.items():
        for name_q, (_, second) in SCALARS.items():
            p = getattr(D, name_p)(**as_tensors(torch, first), validate_args=False)
            q = getattr(D, name_q)(**as_tensors(torch, second), validate_args=False)
            results[f"{name_p}, {name_q}"] = kl(p, q)
    for name_p, first in MATRICES.items():
        for name_q, second in MATRICES.items():
            p, q = getattr(D, name_p)(**as_tensors(torch, first)), getattr(D, name_q)(**as_tensors(torch, second))
            results[f"{name_p}, {name_q}"] = kl(p, q)
    results["Wishart, Wishart"] = kl(*[D.Wishart(**as_tensors(torch, w)) for w in WISHARTS])
    return results

"""Errors, registries, caches, and the rules by which divergences are found."""

import pickle
import re

import numpy as np
import pytest

# expression in terms of `D` and `t` (torch), the error's type, a part of its message
ERRORS = [
    ("D.Normal(0, -1)", ValueError, r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal\(loc: 0.0, scale: -1.0\) "
     r"to satisfy the constraint GreaterThan\(lower_bound=0.0\), but found invalid values:\n-1.0"),
    ("D.Normal(t.tensor([0.0, float('nan'), 0.0]), t.ones(3))", ValueError,
     r"parameter loc \(Tensor of shape \(3,\)\).* constraint Real\(\)"),
    ("D.Normal(0.0, 1e-60)", ValueError, "parameter scale"),
    ("D.LogNormal(0.0, -1.0)", ValueError, "parameter scale"),
    ("D.Chi2(-1.0)", ValueError, "parameter df"),
    ("D.Beta(t.ones(2), t.tensor([1.0, -1.0]))", ValueError, "parameter concentration0"),
    ("D.Uniform(1.0, 0.0)", ValueError, "low>= high"),
    ("D.Uniform(0.0, 1e-50)", ValueError, "low>= high"),
    ("D.Geometric(t.tensor([0.0, 0.5]))", ValueError, "to be positive"),
    ("D.Geometric(0.0)", ValueError, "to be positive"),
    ("D.Categorical(t.tensor([-1.0, 2.0]))", ValueError, "parameter probs"),
    ("D.Exponential(0.2).log_prob(t.tensor(-1.5))", ValueError, r"Expected value argument \(Tensor of shape \(\)\) to be within the "
     r"support \(GreaterThanEq\(lower_bound=0.0\)\) of the distribution Exponential"),
    ("D.LogNormal(0.0, 1.0).log_prob(t.tensor(-1.0))", ValueError, r"support \(GreaterThan\(lower_bound=0.0\)\)"),
    ("D.Binomial(3, t.tensor(0.5)).log_prob(t.tensor([1.0, 4.0]))", ValueError, "within the support"),
    ("D.Independent(D.Gamma(t.ones(2), t.ones(2)), 1).log_prob(-t.ones(2))", ValueError, "within the support"),
    ("t.func.vmap(lambda s: D.Normal(0.0, s).log_prob(t.tensor(0.0)))(t.tensor([1.0, -1.0]))", ValueError, "parameter scale"),
    ("D.ContinuousBernoulli(t.tensor(1.5), validate_args=True)", ValueError, "to satisfy the constraint"),
    ("D.ContinuousBernoulli()", ValueError, "Either `probs` or `logits`"),
    ("D.FisherSnedecor(-1.0, 2.0, validate_args=True)", ValueError, "parameter df1"),
    ("D.GeneralizedPareto(0.0, 0.0, 1.0, validate_args=True)", ValueError, "parameter scale"),
    ("D.GeneralizedPareto(0.0, 1.0, -0.5, validate_args=True).log_prob(t.tensor(2.5))", ValueError, "within the support"),
    ("D.HalfCauchy(-1.0, validate_args=True)", ValueError, "parameter scale"),
    ("D.InverseGamma(0.0, 1.0, validate_args=True)", ValueError, "parameter concentration"),
    ("D.Kumaraswamy(0.0, 1.0, validate_args=True)", ValueError, "parameter concentration1"),
    ("D.LKJCholesky(1)", ValueError, "greater than or equal to 2"),
    ("D.LKJCholesky(3, -1.0, validate_args=True)", ValueError, "parameter concentration"),
    ("D.LogisticNormal(0.0, -1.0, validate_args=True)", ValueError, "parameter scale"),
    ("D.LowRankMultivariateNormal(t.zeros(3), t.ones(2, 1), t.ones(3))", ValueError, "cov_factor must be"),
    ("D.LowRankMultivariateNormal(t.zeros(3), t.ones(3, 1), t.ones(2))", ValueError, "cov_diag must be"),
    ("D.LowRankMultivariateNormal(t.zeros(2, 3), t.ones(4, 3, 1), t.ones(3))", ValueError, "Incompatible batch shapes"),
    ("D.LowRankMultivariateNormal(t.zeros(3), t.ones(3, 1), -t.ones(3), validate_args=True)", ValueError, "parameter cov_diag"),
    ("D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(t.zeros(2), 1.0))", ValueError, "Categorical"),
    ("D.MixtureSameFamily(D.Categorical(t.ones(2)), 3)", ValueError, "Component distribution"),
    ("D.MixtureSameFamily(D.Categorical(t.ones(3)), D.Normal(t.zeros(2), 1.0))", ValueError, "does not equal"),
    ("D.MixtureSameFamily(D.Categorical(t.ones(4, 2)), D.Normal(t.zeros(3, 2), 1.0))", ValueError, "not compatible"),
    ("D.MultivariateNormal(t.zeros(2), -t.eye(2), validate_args=True)", ValueError, "PositiveDefinite"),
    ("D.MultivariateNormal(t.zeros(2))", ValueError, "Exactly one"),
    ("D.RelaxedBernoulli(t.tensor(1.0), t.tensor(1.5), validate_args=True)", ValueError, "parameter probs"),
    ("D.VonMises(0.0, -1.0, validate_args=True)", ValueError, "parameter concentration"),
    ("D.Wishart(1.0, t.eye(3))", ValueError, "greater than ndim - 1"),
    ("D.Wishart(t.tensor(1.0), t.eye(3), validate_args=True)", ValueError, "parameter df"),
    ("D.Wishart(4.0, t.eye(3), scale_tril=t.eye(3))", AssertionError, "Exactly one"),
    ("D.Wishart(4.0, t.eye(3)).rsample((), max_try_correction=3)", NotImplementedError, "max_try_correction"),
    ("D.Normal(t.zeros(2), t.ones(2), validate_args=True).log_prob(t.zeros(3))", ValueError, "not broadcastable"),
    ("D.Dirichlet(t.ones(3), validate_args=True).log_prob(t.ones(2))", ValueError, "right-most size"),
    ("D.Normal(0.0, 1.0, validate_args=True).log_prob(0.5)", ValueError, "must be a Tensor"),
    ("D.Normal('0', 1.0)", ValueError, "instances of Number"),
    ("D.Binomial(t.tensor([2.0, 3.0]), t.tensor(0.5)).enumerate_support()", NotImplementedError, "Inhomogeneous"),
    ("D.StudentT(3.0).cdf(t.tensor(0.0))", NotImplementedError, "^$"),
    ("D.TransformedDistribution(D.Normal(0.0, 1.0), [3])", ValueError, "list of Transforms"),
    ("D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform())", ValueError, "shape with size at least 1"),
    ("D.ExpTransform(cache_size=2)", ValueError, "cache_size must be 0 or 1"),
    ("D.ReshapeTransform((2,), (3,))", ValueError, "different numbers of elements"),
    ("D.CorrCholeskyTransform().forward_shape((2,))", ValueError, "lower-diagonal"),
    ("D.CatTransform([D.ExpTransform()], 0, [2])(t.zeros(3))", AssertionError, "expected size 2"),
    ("D.StackTransform([3])", AssertionError, "Transform instances"),
    ("D.IndependentTransform(D.ExpTransform(), 2)(t.zeros(3))", ValueError, "Too few dimensions"),
    ("D.transform_to(D.constraints.boolean)", NotImplementedError, "Cannot transform"),
    ("D.biject_to(D.constraints.lower_cholesky)", NotImplementedError, "Cannot transform"),
    ("D.biject_to.register(3, None)(len)", TypeError, "Constraint subclass"),
    ("D.constraints.dependent.check(t.zeros(2))", ValueError, "Cannot determine validity"),
    ("D.constraints.dependent.event_dim", NotImplementedError, "statically"),
    ("D.constraints.independent(D.constraints.real, 2).check(t.zeros(3))", ValueError, "value.dim"),
    ("D.constraints.cat([D.constraints.real], 0, [1, 2])", AssertionError, "must match"),
    ("D.register_kl(3, D.Normal)", TypeError, "Distribution subclass"),
    ("D.kl_divergence(D.MultivariateNormal(t.zeros(2), t.eye(2)), D.MultivariateNormal(t.zeros(3), t.eye(3)))", ValueError,
     "different event shapes"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "error", "message"), ERRORS, ids=[row[0] for row in ERRORS])
def test_errors(torch, expression, error, message):
    with pytest.raises(error, match=message):
        eval(expression, {"D": torch.distributions, "t": torch})


def test_all_support_constraints_have_bijections(torch):
    D = torch.distributions
    for d in [D.Gamma(1.0, 1.0), D.Beta(1.0, 1.0), D.Uniform(-1.0, torch.tensor(3.0)), D.Dirichlet(torch.ones(3)),
              D.LKJCholesky(3), D.Normal(0.0, 1.0), D.Pareto(2.0, 1.0), D.GeneralizedPareto(0.0, 1.0, -0.5)]:  # fmt: skip
        transform = D.biject_to(d.support)
        unconstrained = torch.randn(transform.inverse_shape((*d.batch_shape, *d.event_shape)))
        assert transform.bijective and d.support.check(transform(unconstrained)).all().item()


def test_constraints_are_classes(torch):
    C = torch.distributions.constraints
    assert isinstance(C.interval(0, 1), C.interval) and isinstance(C.positive, C.greater_than)
    assert C.unit_interval.lower_bound == 0 and repr(C.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(C.real_vector) == "IndependentConstraint(Real(), 1)"
    assert C.is_dependent(torch.distributions.Uniform.support) and not C.is_dependent(C.real)
    assert torch.distributions.Uniform.support.event_dim == 0


def test_registered_constraints(torch):
    D = torch.distributions

    class Even(D.constraints.Constraint):
        def __init__(self, scale):
            self.scale = scale

    registry = D.constraint_registry.ConstraintRegistry()

    @registry.register(Even)
    def _to_even(constraint):
        return D.AffineTransform(0.0, constraint.scale)

    assert registry(Even(2.0)) == D.AffineTransform(0.0, 2.0)
    assert registry(Even(2.0)) != D.AffineTransform(0.0, 3.0)


def test_cached_transforms_return_the_same_tensor(torch):
    D = torch.distributions
    x = torch.full((3,), 20.0)
    assert torch.isinf(D.TanhTransform().inv(D.TanhTransform()(x))).all().item()
    cached = D.TanhTransform().with_cache()
    assert cached.inv(cached(x)) is x and cached.inv.inv is cached
    composed = D.ComposeTransform([D.ExpTransform(), D.TanhTransform()], cache_size=1)
    assert composed.inv(composed(x)) is x
    copied = pickle.loads(pickle.dumps(D.StickBreakingTransform()))
    assert copied == D.StickBreakingTransform()


def test_closest_divergence_is_found(torch):
    D = torch.distributions

    class First(D.Normal):
        pass

    class Second(D.Normal):
        pass

    D.register_kl(First, D.Normal)(lambda p, q: "first")
    D.register_kl(D.Normal, Second)(lambda p, q: "second")
    registry = D._kl_registry._KL_REGISTRY
    try:
        assert D.kl_divergence(First(0.0, 1.0), D.Normal(0.0, 1.0)) == "first"
        assert D.kl_divergence(D.Normal(0.0, 1.0), Second(0.0, 1.0)) == "second"
        with pytest.warns(RuntimeWarning, match=r"register_kl\(First, Second\)"):
            assert D.kl_divergence(First(0.0, 1.0), Second(0.0, 1.0)) == "first"
    finally:
        del registry[First, D.Normal], registry[D.Normal, Second]


def test_transformed_divergence(torch):
    D = torch.distributions
    p, q, r = (D.TransformedDistribution(D.Normal(m, 1.0), [D.ExpTransform(), D.AffineTransform(s, 2.0)])
               for m, s in [(0.0, 1.0), (1.0, 1.0), (0.0, 3.0)])  # fmt: skip
    assert D.kl_divergence(p, q).item() == pytest.approx(0.5)
    with pytest.raises(NotImplementedError, match="equal transforms"):
        D.kl_divergence(p, r)


def test_entropy_of_an_exponential_family(torch):
    """The general formula agrees with the classes' own."""
    D = torch.distributions
    vector = torch.tensor([0.4, 1.3, 2.5], dtype=torch.float64)
    for d in [D.Exponential(vector), D.Bernoulli(logits=vector), D.ContinuousBernoulli(logits=vector),
              D.Wishart(vector + 1, torch.eye(2, dtype=torch.float64))]:  # fmt: skip
        general = D.ExponentialFamily.entropy(d).detach().numpy()
        np.testing.assert_allclose(general, d.entropy().numpy(), rtol=1e-8)
    with pytest.raises(NotImplementedError):
        D.Poisson(vector).entropy()


def test_copies_set_whether_arguments_are_checked_last(torch):
    """Subclasses define it as a property that depends on the parameters."""
    D = torch.distributions

    class Forwarding(D.Independent):
        @property
        def _validate_args(self):
            return self.base_dist._validate_args

        @_validate_args.setter
        def _validate_args(self, value):
            self.base_dist._validate_args = value

    base = D.Normal(torch.zeros(3), torch.ones(3), validate_args=True)
    copy = Forwarding(base, 1, validate_args=False).expand((4,))
    assert copy.batch_shape == (4,) and copy._validate_args is False and copy.base_dist is not base
    assert D.Dirichlet(torch.ones(3), validate_args=True).expand((2,))._validate_args is True


# Expressions of a distribution with parameter tensors, which are one read to check, and with numbers, which are none.
READS = [
    ("D.Normal({0}, {0})", "0.5"), ("D.LogNormal({0}, {0})", "0.5"), ("D.Uniform(0.0, {0})", "0.5"), ("D.Beta({0}, {0})", "0.5"),
    ("D.Chi2({0})", "0.5"), ("D.InverseGamma({0}, {0})", "0.5"), ("D.Bernoulli({0})", "0.5"), ("D.HalfCauchy({0})", "0.5"),
    ("D.Kumaraswamy({0}, {0})", None), ("D.MultivariateNormal({0}, t.eye(3))", None), ("D.RelaxedBernoulli({0}, {0})", None),
    ("D.RelaxedOneHotCategorical({0}, {0})", None), ("D.LogisticNormal({0}, {0})", None), ("D.Multinomial(2, {0})", None),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "number"), READS, ids=[row[0] for row in READS])
def test_checks_of_one_call_are_one_read(torch, expression, number):
    def reads() -> int:
        found = re.match(r"waited for (\d+) round trip", torch.sync_report())
        return int(found[1]) if found else 0

    names = {"D": torch.distributions, "t": torch, "v": torch.full((3,), 0.5)}
    start = reads()
    d = eval(expression.format("v"), names)
    assert reads() == start + 1
    value = d.sample()
    torch.synchronize()
    start = reads()
    d.log_prob(value)
    assert reads() == start + 1
    if number is not None:
        start = reads()
        eval(expression.format(number), names)
        assert reads() == start


def test_captured_functions_are_not_validated_by_default(torch):
    """As in PyTorch, and the default of the other functions remains."""
    Normal = torch.distributions.Normal

    def density(scale):
        return Normal(torch.zeros(3), scale).log_prob(torch.zeros(3))

    assert torch.compile(density, fullgraph=True)(-torch.ones(3)).isnan().all()
    assert torch.fx.experimental.proxy_tensor.make_fx(density)(torch.ones(3))(-torch.ones(3)).isnan().all()
    with pytest.raises(ValueError, match="parameter scale"):
        density(-torch.ones(3))
    with pytest.raises(ValueError, match="parameter scale"):
        torch.compile(lambda s: Normal(0.0, s, validate_args=True).mean + 1)(-torch.ones(3))


def test_the_default_can_be_changed(torch):
    D = torch.distributions
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).log_prob(torch.tensor(0.0)).isnan()
    finally:
        D.Distribution.set_default_validate_args(True)


def test_a_distribution_without_a_support_warns(torch):
    class Unknown(torch.distributions.Distribution):
        @property
        def support(self):
            raise NotImplementedError

    with pytest.warns(UserWarning, match="does not define `support`"):
        Unknown()._validate_sample(torch.tensor(0.0))

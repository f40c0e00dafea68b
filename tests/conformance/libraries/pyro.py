"""pyro: models with guides, log densities, enumeration, HMC's potential and flows."""

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.infer import SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO
from pyro.infer.autoguide import AutoDelta, AutoDiagonalNormal, AutoMultivariateNormal
from pyro.nn import AutoRegressiveNN, PyroModule, PyroSample

from .tools import fill, randn

X, Y = randn(20, 3), randn(20, seed=1)


def _regression(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), 1.0).to_event(1))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight, scale), obs=y)


def density_forward():
    conditioned = poutine.condition(_regression, {"weight": torch.tensor([0.5, -0.2, 0.1]), "scale": torch.tensor(0.7)})
    trace = poutine.trace(conditioned).get_trace(X, Y)
    return [
        trace.log_prob_sum(),
        {n: s["log_prob"] for n, s in trace.nodes.items() if s["type"] == "sample" and "log_prob" in s},
    ]


def potential_backward():
    """The potential energy of HMC and its gradient, in unconstrained coordinates."""
    from pyro.infer.mcmc.util import initialize_model

    torch.manual_seed(0)
    _, potential, transforms, _ = initialize_model(_regression, (X, Y))
    at = {"weight": torch.tensor([0.1, 0.2, 0.3], requires_grad=True), "scale": torch.tensor(-0.3, requires_grad=True)}
    value = potential(at)
    gradients = torch.autograd.grad(value, list(at.values()))
    return [value, gradients, sorted(transforms)]


def delta_training():
    """MAP estimates draw nothing, so every step is the same with both libraries."""
    pyro.clear_param_store()
    guide = AutoDelta(
        _regression,
        init_loc_fn=pyro.infer.autoguide.init_to_value(values={"weight": torch.zeros(3), "scale": torch.tensor(1.0)}),
    )
    svi = SVI(_regression, guide, pyro.optim.Adam({"lr": 0.05, "eps": 1e-4}), Trace_ELBO())
    losses = [svi.step(X, Y) for _ in range(6)]
    return [losses, {n: p.detach() for n, p in pyro.get_param_store().items()}]


def normal_training():
    """Draws differ between the libraries; the loss must fall."""
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    target = X @ torch.tensor([1.0, -2.0, 0.5]) + 0.05 * Y
    rows = []
    for guide in (AutoDiagonalNormal(_regression), AutoMultivariateNormal(_regression)):
        pyro.clear_param_store()
        svi = SVI(
            _regression,
            guide,
            pyro.optim.ClippedAdam({"lr": 0.05}),
            TraceMeanField_ELBO() if guide is None else Trace_ELBO(),
        )
        losses = [svi.step(X, target) for _ in range(60)]
        samples = Predictive(_regression, guide=guide, num_samples=5)(X)
        rows.append([sum(losses[-10:]) < sum(losses[:10]), list(samples["weight"].shape), list(samples["y"].shape)])
    return rows


def enumeration_training():
    data = torch.tensor([0.0, 1, 10, 11, 12])

    @pyro.infer.config_enumerate
    def mixture():
        weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
        places = pyro.param("places", torch.tensor([1.0, 9.0]))
        with pyro.plate("data", len(data)):
            assignment = pyro.sample("assignment", dist.Categorical(weights))
            pyro.sample("x", dist.Normal(places[assignment], 2.0), obs=data)

    pyro.clear_param_store()
    svi = SVI(mixture, lambda: None, pyro.optim.Adam({"lr": 0.1, "eps": 1e-4}), TraceEnum_ELBO(max_plate_nesting=1))
    return [[svi.step() for _ in range(5)], {n: p.detach() for n, p in pyro.get_param_store().items()}]


def distributions_forward():
    x = torch.tensor([0.3, 0.7])
    return [
        dist.VonMises(0.5, 2.0).log_prob(x),
        dist.BetaBinomial(2.0, 3.0, total_count=5).log_prob(torch.tensor([1.0, 4.0])),
        dist.GammaPoisson(2.0, 1.5).log_prob(torch.tensor([0.0, 3.0])),
        dist.Delta(torch.tensor(1.0)).log_prob(torch.tensor(1.0)),
        dist.MaskedMixture(torch.tensor([True, False]), dist.Normal(0, 1), dist.Normal(1, 2)).log_prob(x),
        dist.ZeroInflatedPoisson(torch.tensor(2.0), gate=torch.tensor(0.3)).log_prob(torch.tensor([0.0, 2.0])),
        dist.LKJCholesky(3, 1.5).log_prob(torch.eye(3)),
        dist.Stable(1.5, 0.1).stability,
        dist.MultivariateStudentT(3.0, torch.zeros(2), torch.eye(2)).log_prob(x),
    ]


def flow_backward():
    flow = fill(dist.transforms.AffineAutoregressive(AutoRegressiveNN(3, [8], permutation=torch.arange(3))), 0.5)
    spline = fill(dist.transforms.spline_coupling(4, hidden_dims=[6]), 0.5)
    base = dist.TransformedDistribution(dist.Normal(torch.zeros(3), 1.0), [flow])
    value = (
        base.log_prob(randn(5, 3)).sum()
        + dist.TransformedDistribution(dist.Normal(torch.zeros(4), 1.0), [spline]).log_prob(randn(5, 4)).sum()
    )
    value.backward()
    return [value.detach(), {n: p.grad for n, p in [*flow.named_parameters(), *spline.named_parameters()]}]


def module_forward():
    class Bayesian(PyroModule):
        def __init__(self):
            super().__init__()
            self.linear = PyroModule[torch.nn.Linear](3, 1)
            self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 3]).to_event(2))

        def forward(self, x):
            return self.linear(x).squeeze(-1)

    model = Bayesian()
    with torch.no_grad():
        model.linear.bias.fill_(0.25)
    return poutine.condition(model, {"linear.weight": torch.tensor([[1.0, 2.0, 3.0]])})(X)


def nuts_other():
    """Draws differ between the libraries; the posterior's mean must be near the weights."""
    from pyro.infer import MCMC, NUTS

    pyro.set_rng_seed(1)

    def model(x, y):
        weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 1.0).to_event(1))
        with pyro.plate("data", len(x)):
            pyro.sample("y", dist.Normal(x @ weight, 0.3), obs=y)

    x = X[:, :2]
    mcmc = MCMC(NUTS(model), num_samples=30, warmup_steps=20, disable_progbar=True)
    mcmc.run(x, x @ torch.tensor([1.0, -0.5]))
    error = (mcmc.get_samples()["weight"].mean(0) - torch.tensor([1.0, -0.5])).abs().max()
    return bool(error < 0.3)

"""botorch: Gaussian processes, acquisition functions and their optimization."""

import torch
from botorch import acquisition, fit_gpytorch_mll, models
from botorch.acquisition.multi_objective import qLogExpectedHypervolumeImprovement
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import Branin, Hartmann
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from botorch.utils.multi_objective.pareto import is_non_dominated
from botorch.utils.transforms import normalize, unnormalize
from gpytorch.mlls import ExactMarginalLogLikelihood

from .tools import randn


def _data(count=8):
    x = torch.linspace(0, 1, count, dtype=torch.float64)
    inputs = torch.stack([x, (x * 3.7) % 1], 1)
    return inputs, (torch.sin(6 * inputs[:, :1]) + inputs[:, 1:] ** 2)


def _model():
    model = models.SingleTaskGP(*_data(), input_transform=Normalize(2), outcome_transform=Standardize(1))
    return model.eval()


def _points(q=1):
    return torch.linspace(0.1, 0.9, 5 * q * 2, dtype=torch.float64).reshape(5, q, 2)


def functions_forward():
    x = randn(6, 6).double().sigmoid()
    bounds = torch.stack([x.amin(0), x.amax(0)])
    return [Branin()(x[:, :2] * 10), Hartmann()(x), Hartmann(negate=True).evaluate_true(x), normalize(x, bounds), unnormalize(x, bounds)]


def posterior_forward():
    with torch.no_grad():
        posterior = _model().posterior(_points()[:, 0])
    return [posterior.mean, posterior.variance, posterior.mvn.covariance_matrix]


def posterior_backward():
    x = _points()[:, 0].requires_grad_()
    posterior = _model().posterior(x)
    (posterior.mean.sum() + posterior.variance.log().sum()).backward()
    return x.grad


def likelihood_backward():
    model = models.SingleTaskGP(*_data()).train()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    value = mll(model(*model.train_inputs), model.train_targets)
    value.backward()
    return [value.detach(), {name: p.grad for name, p in model.named_parameters()}]


def analytic_forward():
    model, best = _model(), _data()[1].max()
    functions = [
        acquisition.LogExpectedImprovement(model, best), acquisition.ExpectedImprovement(model, best),
        acquisition.ProbabilityOfImprovement(model, best), acquisition.UpperConfidenceBound(model, beta=2.0),
        acquisition.PosteriorMean(model),
    ]  # fmt: skip
    return [f(_points()).detach() for f in functions]


def analytic_backward():
    x = _points().requires_grad_()
    acquisition.LogExpectedImprovement(_model(), _data()[1].max())(x).sum().backward()
    return x.grad


def sampled_other():
    """Estimates by samples, which are those of Sobol points that differ: sizes and whether they are near the analytic value."""
    model, best = _model(), _data()[1].max()
    sampler = SobolQMCNormalSampler(torch.Size([512]), seed=1)
    found = acquisition.qExpectedImprovement(model, best, sampler)(_points())
    exact = acquisition.ExpectedImprovement(model, best)(_points())
    bound = acquisition.qUpperConfidenceBound(model, 0.2)(_points(2))
    return [list(found.shape), bool((found - exact).abs().max() < 0.05), list(bound.shape)]


def fit_training():
    model = models.SingleTaskGP(*_data(), input_transform=Normalize(2), outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        return [round(float(v), 2) for v in model.posterior(_points()[:, 0]).mean]


def optimize_other():
    """The optimum of an acquisition function, from starts that are given."""
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    best, value = optimize_acqf(
        acquisition.UpperConfidenceBound(_model(), beta=2.0), bounds, q=1, num_restarts=3, raw_samples=None,
        batch_initial_conditions=torch.tensor([[[0.2, 0.9]], [[0.3, 0.8]], [[0.25, 0.7]]]).double(),
    )  # fmt: skip
    return [[round(v, 2) for v in best.flatten().tolist()], round(value.item(), 2)]


def objectives_forward():
    y = torch.stack([_data()[1][:, 0], 1 - _data()[1][:, 0] ** 2 + 0.3 * _data()[0][:, 1]], 1)
    partition = FastNondominatedPartitioning(torch.zeros(2).double() - 1, y)
    return [is_non_dominated(y), partition.compute_hypervolume(), partition.pareto_Y]


def objectives_other():
    x, y = _data()
    model = models.ModelListGP(models.SingleTaskGP(x, y), models.SingleTaskGP(x, 1 - y**2)).eval()
    partition = FastNondominatedPartitioning(torch.zeros(2).double() - 2, torch.cat([y, 1 - y**2], 1))
    value = qLogExpectedHypervolumeImprovement(model, [-2.0, -2.0], partition, SobolQMCNormalSampler(torch.Size([16]), seed=0))(_points(2))
    return [list(value.shape), bool(value.isfinite().all())]

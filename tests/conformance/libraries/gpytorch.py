"""gpytorch: exact and variational Gaussian processes, kernels, means and likelihoods."""

import gpytorch
import torch

from .tools import fill, randn, train

K = gpytorch.kernels


def _line(count=20):
    x = torch.linspace(0, 1, count)
    return x, torch.sin(6 * x) + 0.1 * randn(count)


class Exact(gpytorch.models.ExactGP):
    """Regression with an RBF kernel."""

    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = K.ScaleKernel(K.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def kernels_forward():
    a, b = randn(5, 3), randn(4, 3, seed=1)
    kernels = {
        "rbf": K.RBFKernel(ard_num_dims=3),
        "matern": K.MaternKernel(nu=1.5),
        "periodic": K.PeriodicKernel(),
        "linear": K.LinearKernel(),
        "polynomial": K.PolynomialKernel(2),
        "rq": K.RQKernel(),
        "cosine": K.CosineKernel(),
        "scaled sum": K.ScaleKernel(K.RBFKernel() + K.MaternKernel()),
        "product": K.RBFKernel() * K.LinearKernel(),
        "mixture": K.SpectralMixtureKernel(num_mixtures=2, ard_num_dims=3),
    }
    return {name: k(a, b).to_dense() for name, k in kernels.items() if name != "mixture"}


def _exact():
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    x, y = _line()
    return Exact(x, y, likelihood), likelihood, x, y


def exact_forward():
    model, likelihood, x, y = _exact()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(torch.linspace(0.05, 0.95, 7)))
    low, high = predicted.confidence_region()
    return [predicted.mean, predicted.variance, low, high, predicted.covariance_matrix]


def exact_backward():
    model, likelihood, x, y = _exact()
    model.train()
    loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), y)
    loss.backward()
    return [loss.detach(), {n: p.grad for n, p in model.named_parameters()}]


def exact_training():
    model, likelihood, x, y = _exact()
    model.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return train(model, lambda: -mll(model(x), y), torch.optim.Adam(model.parameters(), lr=0.1, eps=1e-4), 5)


class Variational(gpytorch.models.ApproximateGP):
    """Classification with inducing points."""

    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        strategy = gpytorch.variational.VariationalStrategy(self, points, distribution, learn_inducing_locations=True)
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = K.ScaleKernel(K.MaternKernel(nu=2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def variational_training():
    x = torch.linspace(0, 1, 24).unsqueeze(1)
    y = (torch.sin(6 * x[:, 0]) > 0).float()
    model, likelihood = (
        Variational(torch.linspace(0.1, 0.9, 6).unsqueeze(1)),
        gpytorch.likelihoods.BernoulliLikelihood(),
    )
    model.variational_strategy.variational_params_initialized.fill_(1)
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=24)
    trained = train(model, lambda: -mll(model(x), y), torch.optim.Adam(model.parameters(), lr=0.05, eps=1e-4), 4)
    model.eval()
    return [*trained, likelihood(model(x)).mean]


def multitask_forward():
    class Tasks(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=2)
            self.covar_module = K.MultitaskKernel(K.RBFKernel(), num_tasks=2, rank=1)

        def forward(self, x):
            return gpytorch.distributions.MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))

    x, y = _line(10)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
    model = fill(Tasks(x, torch.stack([y, y.cos()], -1), likelihood))
    model.eval(), likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(torch.linspace(0, 1, 4)))
    return [predicted.mean, predicted.variance]

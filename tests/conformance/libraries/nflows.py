"""nflows: normalizing flows, with autoregressive networks, splines and their inverses."""

import torch
from nflows import distributions, flows, transforms

from .tools import EPSILON, fill, randn, train


class Conditioner(torch.nn.Module):
    """The network of a coupling layer."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.first, self.last = torch.nn.Linear(inputs, 8), torch.nn.Linear(8, outputs)

    def forward(self, x, context=None):
        return self.last(torch.relu(self.first(x)))


def splines_forward():
    steps = transforms.PiecewiseRationalQuadraticCouplingTransform, transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform
    coupling = fill(steps[0](torch.tensor([1, 0, 1]), Conditioner, tails="linear"))
    autoregressive = fill(steps[1](features=3, hidden_features=8, num_bins=5, tails="linear", tail_bound=3.0))
    with torch.no_grad():
        return [[*step(randn(10, 3)), *step.inverse(randn(10, 3, seed=1))] for step in (coupling, autoregressive)]


def autoregressive_training():
    """In float64, because batch normalization over few samples enlarges rounding errors."""
    steps = []
    for _ in range(2):
        steps += [transforms.ReversePermutation(4), transforms.MaskedAffineAutoregressiveTransform(4, 8)]
    steps += [transforms.LULinear(4), transforms.BatchNorm(4)]
    flow = fill(flows.Flow(transforms.CompositeTransform(steps), distributions.StandardNormal([4]))).double()
    optimizer = torch.optim.AdamW(flow.parameters(), lr=1e-2, eps=EPSILON)
    return train(flow, lambda: -flow.log_prob(randn(16, 4).double()).mean(), optimizer, steps=3)

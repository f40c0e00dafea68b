"""torchcde: interpolation of irregular series, and controlled differential equations."""

import math

import torch
import torchcde

from .tools import fill, gradients, randn


class Field(torch.nn.Module):
    """The vector field of an equation."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 12)

    def forward(self, t, z):
        return self.linear(z).tanh().view(-1, 4, 3)


def _series():
    x = randn(3, 7, 3)
    x[0, 2, 1] = math.nan  # missing
    return x


def interpolation_forward():
    natural = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(_series()))
    linear = torchcde.LinearInterpolation(torchcde.linear_interpolation_coeffs(_series(), rectilinear=0))
    return [natural.evaluate(torch.tensor(2.3)), natural.derivative(torch.tensor(1.7)), linear.evaluate(3.5)]


def equation_backward():
    field = fill(Field())
    control = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(_series()))
    options = {"adjoint": False, "method": "rk4", "options": {"step_size": 0.5}}
    state = torchcde.cdeint(X=control, func=field, z0=randn(3, 4), t=control.interval, **options)
    state[:, -1].sum().backward()
    return [state, gradients(field)]

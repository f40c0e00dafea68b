"""torchdiffeq: solvers of ordinary differential equations, adjoint gradients and events."""

import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event

from .tools import fill, gradients, randn, train

ADAPTIVE = ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")
FIXED = ("euler", "midpoint", "rk4", "heun3", "explicit_adams", "implicit_adams")


class Field(torch.nn.Module):
    """A vector field that a small network computes."""

    def __init__(self):
        super().__init__()
        self.net = fill(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))

    def forward(self, t, y):
        return self.net(y) * torch.cos(t)


def _times():
    return torch.linspace(0, 2, 5)


def adaptive_forward():
    field, start = Field(), randn(4, 3)
    with torch.no_grad():
        return {method: odeint(field, start, _times(), method=method, rtol=1e-5, atol=1e-6) for method in ADAPTIVE}


def fixed_forward():
    field, start = Field(), randn(4, 3)
    with torch.no_grad():
        return {method: odeint(field, start, _times(), method=method, options={"step_size": 0.1}) for method in FIXED}


def tuples_forward():
    x, v = randn(3), randn(3, seed=1)
    return list(odeint(lambda t, state: (state[1], -state[0]), (x, v), _times(), rtol=1e-6, atol=1e-7))


def backwards_in_time_forward():
    return odeint(Field(), randn(4, 3), torch.tensor([2.0, 1.0, 0.0]), rtol=1e-5, atol=1e-6).detach()


def solver_backward():
    field, start, times = Field(), randn(4, 3).requires_grad_(), _times().requires_grad_()
    odeint(field, start, times, method="rk4").square().sum().backward()
    return [start.grad, times.grad, gradients(field)]


def adjoint_backward():
    field, start = Field(), randn(4, 3).requires_grad_()
    odeint_adjoint(field, start, _times(), rtol=1e-5, atol=1e-6).square().sum().backward()
    return [start.grad, gradients(field)]


def event_other():
    """A ball that falls to the ground."""
    state = (torch.tensor([10.0]), torch.tensor([0.0]))
    moment, states = odeint_event(
        lambda t, y: (y[1], torch.full_like(y[1], -9.81)), state, torch.tensor(0.0), event_fn=lambda t, y: y[0][0], atol=1e-6, rtol=1e-6
    )
    return [moment, [(part[-1] + 1).round(decimals=3) for part in states]]


def errors_other():
    found = []
    for options in ({"method": "unknown"}, {"rtol": -1.0, "method": "dopri5"}):
        try:
            odeint(Field(), randn(1, 3), torch.tensor([0.0, 0.0]), **options)
        except Exception as error:  # noqa: BLE001 - any error is a result
            found.append(type(error).__name__)
    return found


def field_training():
    field, start, goal = Field(), randn(4, 3), randn(4, 3, seed=2)
    return train(field, lambda: (odeint_adjoint(field, start, _times(), method="rk4")[-1] - goal).square().mean())

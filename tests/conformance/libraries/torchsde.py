"""torchsde: solvers of stochastic differential equations, Brownian motion, adjoints and their training."""

import numpy
import torch
import torchsde

from .tools import fill, gradients, randn, train

METHODS = {
    "ito": ("euler", "milstein", "srk"),
    "stratonovich": ("euler_heun", "heun", "midpoint", "milstein", "log_ode", "reversible_heun"),
}


class Equation(torch.nn.Module):
    """An equation whose drift and diffusion are small networks."""

    def __init__(self, kind="ito", noise="diagonal"):
        super().__init__()
        self.sde_type, self.noise_type = kind, noise
        self.drift = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        self.diffusion = torch.nn.Linear(3, 6 if noise == "general" else 3)
        fill(self)

    def f(self, t, y):
        return self.drift(y) * torch.cos(t)

    def g(self, t, y):
        diffusion = 0.3 * torch.sigmoid(self.diffusion(y))
        return (
            diffusion.view(-1, 3, 2)
            if self.noise_type == "general"
            else diffusion.unsqueeze(-1)
            if self.noise_type == "scalar"
            else diffusion
        )

    def h(self, t, y):
        return -0.5 * y


class Noise(torchsde.BaseBrownian):
    """Given increments of Brownian motion, so that both libraries compute the same path."""

    def __init__(self, size, levy="space-time"):
        super().__init__()
        self._size, self._levy = size, levy

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        begin, end = float(ta), float(tb if tb is not None else 0)
        random = numpy.random.default_rng([int(round(begin * 1000)), int(round(end * 1000))])
        w, h, a = (
            torch.tensor(random.standard_normal(size).astype("float32"))
            for size in (self._size, self._size, (*self._size, self._size[-1]))
        )
        step = end - begin
        w, u, a = (
            w * step**0.5,
            step * (0.5 * w * step**0.5 + h * (step / 12) ** 0.5),
            step * 0.1 * (a - a.transpose(-1, -2)),
        )
        found = (w, *((u,) if return_U else ()), *((a,) if return_A else ()))
        return found[0] if len(found) == 1 else found

    def __repr__(self):
        return "Noise()"

    dtype, device = torch.float32, torch.device("cpu")
    shape = property(lambda self: self._size)
    levy_area_approximation = property(lambda self: self._levy)


def _times():
    return torch.linspace(0, 1, 3)


def _options(size=(4, 3)):
    return {"bm": Noise(size), "dt": 0.125}


def diagonal_forward():
    found = {}
    with torch.no_grad():
        for kind, methods in METHODS.items():
            for method in methods:
                if method != "log_ode":
                    found[f"{kind} {method}"] = torchsde.sdeint(
                        Equation(kind), randn(4, 3), _times(), method=method, **_options()
                    )
    return found


def general_forward():
    equation, scalar = Equation("stratonovich", "general"), Equation("ito", "scalar")
    with torch.no_grad():
        return [
            torchsde.sdeint(equation, randn(4, 3), _times(), method="midpoint", **_options((4, 2))),
            torchsde.sdeint(equation, randn(4, 3), _times(), method="log_ode", bm=Noise((4, 2), "foster"), dt=0.125),
            torchsde.sdeint(scalar, randn(4, 3), _times(), method="srk", **_options((4, 1))),
        ]


def divergence_forward():
    """Paths with the divergence from the prior."""
    with torch.no_grad():
        return list(torchsde.sdeint(Equation(), randn(4, 3), _times(), method="euler", logqp=True, **_options((4, 4))))


def solver_backward():
    equation, start = Equation(), randn(4, 3).requires_grad_()
    torchsde.sdeint(equation, start, _times(), method="srk", **_options()).square().sum().backward()
    return [start.grad, gradients(equation)]


def adjoint_backward():
    found = []
    for kind, method in (("ito", "euler"), ("stratonovich", "midpoint"), ("stratonovich", "reversible_heun")):
        equation, start = Equation(kind), randn(4, 3).requires_grad_()
        options = {"adjoint_method": "adjoint_reversible_heun"} if method == "reversible_heun" else {}
        torchsde.sdeint_adjoint(
            equation, start, _times(), method=method, **options, **_options()
        ).square().sum().backward()
        found.append([start.grad, gradients(equation)])
    return found


def motion_other():
    """Properties of drawn Brownian motion: sums of increments, and equal queries."""
    motion = torchsde.BrownianInterval(0.0, 1.0, size=(64, 3), entropy=5, levy_area_approximation="space-time")
    whole, parts = motion(0.0, 1.0), motion(0.0, 0.3) + motion(0.3, 1.0)
    tree = torchsde.BrownianTree(0.0, torch.zeros(4, 3), t1=1.0, entropy=5)
    return [
        bool((whole - parts).abs().max() < 1e-5),
        bool((motion(0.1, 0.2) == motion(0.1, 0.2)).all()),
        0.8 < float(whole.std()) < 1.2,
        bool((tree(0.5) == tree(0.5)).all()),
        list(torchsde.BrownianPath(0.0, torch.zeros(4, 3))(0.5).shape),
    ]


def errors_other():
    found = []
    for options in ({"method": "unknown"}, {"method": "srk", "adaptive": 3, "bm": 5}, {"names": {"drift": "nothing"}}):
        try:
            torchsde.sdeint(Equation(), randn(4, 3), _times(), **options)
        except Exception as error:  # noqa: BLE001 - any error is a result
            found.append(type(error).__name__)
    return found


def equation_training():
    equation, start, goal = Equation(), randn(4, 3), randn(4, 3, seed=2)
    return train(
        equation,
        lambda: (torchsde.sdeint(equation, start, _times(), method="euler", **_options())[-1] - goal).square().mean(),
    )

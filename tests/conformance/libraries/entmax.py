"""entmax: sparse probabilities, their losses and gradients, also of the exponent."""

import entmax
import torch

from .tools import integers, randn

FUNCTIONS = {
    "sparsemax": entmax.sparsemax,
    "entmax15": entmax.entmax15,
    "bisection": lambda x: entmax.entmax_bisect(x, alpha=1.3),
    "normmax": entmax.normmax_bisect,
    "budget": lambda x: entmax.budget_bisect(x, budget=2),
}


def probabilities_backward():
    found = {}
    for name, function in FUNCTIONS.items():
        x = randn(4, 6).requires_grad_()
        probabilities = function(x)
        (probabilities * randn(4, 6, seed=1)).sum().backward()
        found[name] = [probabilities, x.grad]
    alpha = torch.tensor(1.4, requires_grad=True)
    (entmax.entmax_bisect(randn(4, 6), alpha) * randn(4, 6, seed=1)).sum().backward()
    return [found, alpha.grad]


def losses_backward():
    found = []
    for loss in (entmax.SparsemaxLoss(), entmax.Entmax15Loss(), entmax.EntmaxBisectLoss()):
        x = randn(4, 6).requires_grad_()
        value = loss(x, integers(6, 4))
        value.backward()
        found.append([value, x.grad])
    return found

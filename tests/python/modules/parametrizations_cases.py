"""Parametrizations: identity of the original, checks, removal, orthogonal matrices and saved states."""

import copy
from importlib import import_module

from ..names.record import error
from .hooks_cases import filled, values


def tools(torch):
    """The modules parametrize and parametrizations."""
    return [import_module(f"{torch.__name__}.nn.utils.{name}") for name in ("parametrize", "parametrizations")]


def case_orthogonal(torch):
    _, parametrizations = tools(torch)
    results = []
    for rows, columns in ((3, 3), (4, 2), (2, 4)):
        for kind in ("matrix_exp", "cayley", "householder", None):
            for trivial in (True, False):
                layer = filled(torch, torch.nn.Linear(columns, rows, bias=False)).double()
                before = layer.weight
                parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)
                (layer.weight**2 * values(torch, rows, columns).double()).sum().backward()
                original = layer.parametrizations.weight.original
                # Completion to a square matrix is random.
                shown = [layer.weight, original.grad] if rows == columns or not trivial else []
                results.append([original is before, list(layer.state_dict()), *shown])
    small = torch.nn.Linear(2, 2)
    return [*results, error(parametrizations.orthogonal, small, "bias"), error(parametrizations.orthogonal, small, "weight", "qr")]


def case_originals(torch):
    """The original is the tensor itself; an assignment goes through right_inverse; removal leaves a parameter."""
    parametrize, _ = tools(torch)
    nn = torch.nn

    class Square(nn.Module):
        def forward(self, x):
            return x**2

        def right_inverse(self, y):
            return y.sqrt()

    class Sum(nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, y):
            return y / 2, y / 2

    class Flat(nn.Module):
        def forward(self, x):
            return x.reshape(-1)

    class Twice(nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, y):
            return y / 2

    layer = filled(torch, nn.Linear(2, 2))
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Twice())
    parametrize.register_parametrization(layer, "bias", Sum())
    layer.weight = torch.ones(2, 2)
    results = [layer.parametrizations.weight.original is weight, weight, list(layer.state_dict()), repr(layer)]
    copied = copy.deepcopy(layer)
    parametrize.remove_parametrizations(copied, "bias")
    results += [list(copied.state_dict()), list(layer.state_dict()), type(copied).__name__]
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    results += [layer.weight is weight, type(layer).__name__]
    other = filled(torch, nn.Linear(2, 2))
    results.append(error(parametrize.register_parametrization, other, "weight", Flat()))
    parametrize.register_parametrization(other, "weight", Flat(), unsafe=True)
    results += [other.weight, error(setattr, other, "weight", torch.ones(4))]
    squared = nn.Linear(2, 2)
    with torch.no_grad():
        squared.weight.fill_(4.0)
    parametrize.register_parametrization(squared, "weight", Square())
    squared.weight = torch.full((2, 2), 9.0)
    parametrize.register_parametrization(squared, "weight", Square())
    wrong = error(parametrize.register_parametrization, squared, "x", Flat())[:30]
    return [*results, squared.parametrizations.weight.original, squared.weight, wrong]


def case_weight_norm(torch):
    """A state saved with the names of the old weight_norm is loaded."""
    _, parametrizations = tools(torch)
    layer = parametrizations.weight_norm(filled(torch, torch.nn.Linear(2, 3)))
    state = {"bias": torch.zeros(3), "weight_g": torch.ones(3, 1), "weight_v": values(torch, 3, 2)}
    found = layer.load_state_dict(state)
    bad = error(parametrizations.spectral_norm, torch.nn.Linear(2, 3), n_power_iterations=0)
    return [str(found), layer.weight, list(layer.state_dict()), bad]


def case_stateless(torch):
    """Parameters and buffers replaced within a context."""
    stateless, nn = import_module(f"{torch.__name__}.nn.utils.stateless"), torch.nn
    layer, norm = filled(torch, nn.Linear(2, 2)), nn.BatchNorm1d(2)
    weight, x, buffers = layer.weight, values(torch, 3, 2), {k: v.clone() for k, v in norm.named_buffers()}
    with stateless._reparametrize_module(layer, {"weight": torch.full((2, 2), 3.0)}):
        results = [layer(x)]
    with stateless._reparametrize_module(norm, buffers):
        norm(x)

    def strictly(given):
        with stateless._reparametrize_module(layer, given, strict=True):
            return None

    return [
        *results, layer.weight is weight, buffers["running_mean"], norm.running_mean, error(strictly, {"weight": weight}),
        error(strictly, {"weight": weight, "bias": layer.bias, "x": weight}),
        stateless._functional_call(layer, {"bias": torch.ones(2)}, (x,)),
    ]  # fmt: skip

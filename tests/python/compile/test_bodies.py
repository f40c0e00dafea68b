"""Operators and transforms that call functions, autograd.Function, hooks and parametrizations: graphs, values and gradients."""

from __future__ import annotations

import json
import pathlib

import pytest

import teletensor as torch
from teletensor._dynamo.utils import counters

from . import body_rows
from .test_rows import compare

PEER = json.loads(pathlib.Path(__file__).with_name("body_rows.json").read_text())
# Rows with more graphs or breaks than with PyTorch.
MORE = {"dual_numbers", "saved_tensors_hooks", "save_on_cpu", "gradients_inside"}


@pytest.fixture(autouse=True)
def _modules(request):
    if getattr(body_rows, "session", None) is not torch.connection():
        body_rows.make_tensors()
        body_rows.session = torch.connection()


def results(function, args):
    """The result and the gradient of the first argument."""
    for module in (body_rows.NET, body_rows.WEIGHTED):
        module.zero_grad()
    value = function(*args)
    grads = []
    if value.requires_grad:
        leaves = [t for t in (*args, *body_rows.NET.parameters(), *body_rows.WEIGHTED.parameters()) if t.requires_grad]
        grads = torch.autograd.grad(value.sin().sum(), leaves, allow_unused=True)
    return value, *(g for g in grads if g is not None)


def arguments(needs_grad, seed):
    torch.manual_seed(seed)
    return torch.randn(3, 4, requires_grad=needs_grad), torch.randn(3, 4)


@pytest.mark.parametrize("function", body_rows.ROWS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_graphs_values_and_gradients(function, needs_grad):
    torch._dynamo.reset()
    made = []

    def backend(module, inputs):
        made.append(module)
        return module.forward

    compiled = torch.compile(function, backend=backend)
    for seed in range(2):
        compare(results(compiled, arguments(needs_grad, seed)), results(function, arguments(needs_grad, seed)))
        if seed == 0 and function.__name__ not in MORE:
            graphs, breaks = PEER[function.__name__][needs_grad]
            assert 0 < len(made) <= graphs, counters
            assert sum(counters["graph_break"].values()) <= breaks, counters
    assert not counters["internal"]


@pytest.mark.parametrize("function", body_rows.ROWS, ids=lambda f: f.__name__)
def test_the_engine(function):
    torch._dynamo.reset()
    compiled = torch.compile(function)
    for seed in range(2):
        pairs = zip(results(compiled, arguments(True, seed)), results(function, arguments(True, seed)), strict=True)
        for got, want in pairs:
            torch.testing.assert_close(got, want)

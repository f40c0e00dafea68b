"""torch.compile of functions that the transforms of torch.func have made, and of calls of them."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor import func
from teletensor.utils import _pytree as pytree


def wave(a):
    return (a.sin() * a).sum()


def wide(a):
    return a.sin() * a


MADE = {
    "vmap": func.vmap(lambda a: a.softmax(0)),
    "vmap of two": func.vmap(lambda a, b: a @ b, in_dims=(0, None)),
    "grad": func.grad(wave),
    "grad_and_value": func.grad_and_value(wave),
    "jacrev": func.jacrev(wide),
    "jacfwd": func.jacfwd(wide),
    "hessian": func.hessian(wave),
    "vmap of grad": func.vmap(func.grad(wave)),
    "vmap of hessian": func.vmap(func.hessian(wave)),
    "functionalize": func.functionalize(lambda a: a.clone().mul_(2)),
}


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()
    torch._dynamo.utils.counters["engine"].clear()


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("inside", [False, True])
def test_made_functions(name, inside):
    f = MADE[name]
    args = (torch.randn(5), ) if name in ("jacrev", "jacfwd", "hessian") else (torch.randn(4, 5),)
    args += (torch.randn(5),) if name == "vmap of two" else ()
    compiled = torch.compile((lambda *a: f(*a)) if inside else f, fullgraph=True)
    for _ in range(2):
        for found, wanted in zip(pytree.tree_leaves(compiled(*args)), pytree.tree_leaves(f(*args)), strict=True):
            torch.testing.assert_close(found, wanted)
    assert set(torch._dynamo.utils.counters["engine"]) == {"programs"}


def test_calls_without_gradients():
    compiled, x = torch.compile(MADE["vmap of grad"], fullgraph=True), torch.randn(4, 5)
    wanted = MADE["vmap of grad"](x)
    for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        with mode():
            torch.testing.assert_close(compiled(x), wanted)
            torch.testing.assert_close(MADE["vmap of grad"](x), wanted)


def test_the_name_is_kept():
    assert torch.compile(func.grad(wave)).__name__ == "wave"

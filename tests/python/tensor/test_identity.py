"""Calls that have nothing to do return the tensor itself, as PyTorch's do: also a Parameter, and its gradient arrives."""

from __future__ import annotations

import pytest

import teletensor as torch

SAME = {
    "contiguous": lambda x: x.contiguous(),
    "contiguous, format": lambda x: x.contiguous(memory_format=torch.contiguous_format),
    "contiguous, class": lambda x: torch.Tensor.contiguous(x),
    "flatten": lambda x: x.flatten(0, 0),
    "flatten, last": lambda x: torch.flatten(input=x, start_dim=-1),
    "real": lambda x: torch.real(x),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, torch.ones(()))[0],
    "to": lambda x: x.to(torch.float32),
    "cpu": lambda x: x.cpu(),
    "conj": lambda x: x.conj(),
    "positive": lambda x: +x,
    "sum_to_size": lambda x: x.sum_to_size(x.shape),
}
OTHER = {
    "ravel": lambda x: x.ravel(),
    "reshape": lambda x: x.reshape(x.shape),
    "view": lambda x: x.view(x.shape),
    "expand": lambda x: x.expand_as(x),
    "transpose": lambda x: x.transpose(0, 0),
    "squeeze": lambda x: x.squeeze(),
    "index": lambda x: x[...],
    "einsum": lambda x: torch.einsum("...->...", x),
    "chunk": lambda x: x.chunk(1)[0],
}
SHAPES = [(3,), (2, 3), (0, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", SAME)
def test_itself(name, shape):
    x = torch.nn.Parameter(torch.ones(shape))
    found = SAME[name](x)
    assert found is x
    (found * 2).sum().backward()
    assert found.grad is x.grad and x.grad.tolist() == torch.full(shape, 2.0).tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OTHER)
def test_view(name, shape):
    x = torch.nn.Parameter(torch.ones(shape))
    found = OTHER[name](x)
    assert found is not x and type(found) is torch.Tensor and found._base is x


def test_zero_dim():
    x = torch.nn.Parameter(torch.tensor(2.0))
    assert x.contiguous() is x and torch.real(x) is x and x.mT is x and x.flatten().shape == (1,)


def test_work_is_done():
    x = torch.arange(6.0).reshape(2, 3)
    y = x.t().contiguous()
    assert y is not x and y.is_contiguous() and y.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert x.flatten() is not x and x.flatten(0, -1).shape == (6,)
    assert torch.real(torch.ones(2, dtype=torch.complex64)).dtype == torch.float32
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.flatten(2, 2)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_compiled(backend):
    """A compiled function keeps the copy for another layout, and returns values of the layout that it is called with."""

    @torch.compile(backend=backend)
    def f(x):
        return x.contiguous() * 1, x.flatten(0, 0) + 1

    for x in (torch.ones(2, 3), torch.ones(3, 2).t(), torch.ones(2, 3)):
        y, z = f(x)
        assert y.is_contiguous() == x.contiguous().mul(1).is_contiguous() and z.tolist() == [[2.0] * 3] * 2


ERRORS = {
    "mT": lambda: torch.ones(3).mT, "mH": lambda: torch.ones(3).mH, "H": lambda: torch.ones(2, 2, 2).H,
    "chunk": lambda: torch.tensor(1.0).chunk(2), "split": lambda: torch.tensor(1.0).split(1),
    "split with sizes": lambda: torch.tensor(1.0).split([1]), "tensor_split": lambda: torch.tensor(1.0).tensor_split(2),
    "tensor_split at": lambda: torch.tensor(1.0).tensor_split((1,)), "cartesian_prod": lambda: torch.cartesian_prod(torch.ones(2, 2)),
    "chain_matmul": lambda: torch.chain_matmul(torch.ones(2)), "chain_matmul of nothing": lambda: torch.chain_matmul(),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_too_few_dimensions(name):
    with pytest.raises(RuntimeError):
        ERRORS[name]()


def test_objects_of_handles():
    """What a view, a node and a hook name is the object that the program has."""
    x, p = torch.ones(3), torch.nn.Parameter(torch.ones(2, 3))
    y = x.view(3)[1:]
    assert y._base is x and p.view(6)._base is p and p.view(6).grad_fn.next_functions[0][0].variable is p
    received = []

    def pack(t):
        received.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        z = p * x
    assert {id(t) for t in received} == {id(p), id(x)} or {id(t) for t in received} == {id(x)}
    assert z.grad_fn._saved_self is None or z.grad_fn._saved_self is p
    del x
    assert type(y._base) is torch.Tensor and y._base.shape == (3,)
    y.data = torch.zeros(2)
    assert y.tolist() == [0, 0]


def test_an_object_that_is_freed_is_not_found():
    seen = []

    class Watched(torch.nn.Parameter):
        def __del__(self):
            seen.append(self.view(3)._base is self)

    class Last:
        def __init__(self, view):
            self.view = view

        def __del__(self):
            seen.append(type(self.view._base))

    p = Watched(torch.ones(3))
    p.last = Last(p.view(3))
    del p
    assert seen[0] is True and len(seen) == 2


def test_strides_of_new_dimensions():
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert x.expand(1, 2, 3, 4).stride() == (24, 12, 4, 1) and torch.arange(3).expand(1, 3).stride() == (3, 1)
    assert torch.zeros(2, 1).expand(1, 2, 1).stride() == (2, 1, 1) and torch.tensor(3.0).expand(1, 1).stride() == (0, 0)
    assert x.expand(5, 2, 3, 4).stride() == (0, 12, 4, 1)

"""Compiled functions that change the metadata of their arguments."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.utils import counters

METHODS = {
    "t_": lambda a: a.t_(),
    "unsqueeze_": lambda a: a.unsqueeze_(0),
    "squeeze_": lambda a: a.squeeze_(),
    "squeeze_dim": lambda a: a.squeeze_(2),
    "transpose_": lambda a: a.transpose_(0, 1),
    "swapaxes_": lambda a: a.swapaxes_(0, 2),
    "swapdims_": lambda a: a.swapdims_(1, 2),
    "then_add_": lambda a: a.transpose_(0, 1).add_(1),
}


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", METHODS)
def test_in_place_methods(name, backend):
    if name == "t_":
        make = lambda: torch.arange(6.0).view(2, 3)  # noqa: E731
    else:
        make = lambda: torch.arange(6.0).view(2, 3, 1)  # noqa: E731
    method = METHODS[name]
    f = torch.compile(lambda a: (method(a), a.shape), backend=backend)
    for _ in range(2):
        expected, got = make(), make()
        method(expected)
        result, shape = f(got)
        assert result is got and got.shape == shape == expected.shape and got.stride() == expected.stride()
        torch.testing.assert_close(got, expected)


OUT = {
    "add": lambda a, out: torch.add(a, 1, out=out),
    "cat": lambda a, out: torch.cat([a, a], out=out),
    "mm": lambda a, out: torch.mm(a, a, out=out),
    "arange": lambda a, out: torch.arange(4.0, out=out),
    "sort": lambda a, out: torch.sort(a, out=(out, torch.zeros(0, dtype=torch.int64)))[0],
    "stack": lambda a, out: torch.stack([a, a], out=out),
    "sum": lambda a, out: torch.sum(a, 0, out=out),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", OUT)
def test_out_is_resized(name, backend):
    function = OUT[name]
    f = torch.compile(function, backend=backend)
    a = torch.arange(4.0).view(2, 2)
    for _ in range(2):
        expected, got = torch.zeros(0), torch.zeros(0)
        function(a, expected)
        result = f(a, got)
        assert got.shape == expected.shape and result.shape == expected.shape
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(result, expected)
    fitting = torch.zeros_like(expected)
    f(a, fitting)
    torch.testing.assert_close(fitting, expected)


def test_other_writes_are_still_programs():
    before = counters["engine"]["programs"]
    a, out = torch.ones(3), torch.zeros(3)
    torch.compile(lambda a, out: torch.add(a, 1, out=out).mul_(2))(a, out)
    assert out.tolist() == [4] * 3 and counters["engine"]["programs"] == before + 1

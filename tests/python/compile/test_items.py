"""`item()` in compiled functions with capture_scalar_outputs: the number is read after the graph."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported
from teletensor._dynamo.utils import counters


@pytest.fixture(autouse=True)
def _captured():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        yield


def same(got, want):
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype and got.requires_grad == want.requires_grad
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    elif isinstance(want, (tuple, list)):
        for a, b in zip(got, want, strict=True):
            same(a, b)
    else:
        assert got == want


LOG = {"loss": None}


def returned(x):
    y = (x * 2).sum()
    return y.item(), x.sum().long().item(), y


def scaled(x):
    return x * x.sum().item() + 1


def shifted(x):
    return x.mean().item() - x, x / x.double().max().item(), x + x.long().sum().item()


def stored(x):
    LOG["loss"] = x.square().sum().item()
    return x + 1


def in_a_list(x):
    return [x.sum().item()] * 2, x * 2


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", [returned, scaled, shifted, stored, in_a_list])
def test_numbers(function, backend):
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(3, 4, requires_grad=True)
        got, log = compiled(x), dict(LOG)
        same(got, function(x))
        assert log == LOG
    assert not counters["recompiles"] and (backend == "eager" or counters["engine"] == {"programs": 1})


@pytest.mark.parametrize("function", [
    lambda x: x + 1 if x.sum().item() > 0 else x - 1, lambda x: x[: int(x.sum().item()) % 2 + 1] * 2,
    lambda x: torch.zeros(3) + x.sum().item() ** 0.5 if x.sum() > 0 else x, lambda x: f"{x.sum().item()}",
    lambda x: torch.arange(x.square().sum().item()), lambda x: x * (x.sum().item() > 0),
])  # fmt: skip
def test_other_uses_end_the_graph(function):
    compiled = torch.compile(function)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(3, 4)
        same(compiled(x), function(x))
    with pytest.raises(Unsupported):
        torch.compile(function, fullgraph=True)(x)


def written_after(x):
    total = x.sum()
    before, first = total.item(), x[0].item()
    total.add_(5)
    x.zero_()
    return before, first, total, x + before


def test_numbers_of_tensors_that_are_written_later():
    compiled = torch.compile(written_after, fullgraph=True)
    for n in (3, 4, 5):
        same(compiled(torch.arange(1.0, n)), written_after(torch.arange(1.0, n)))

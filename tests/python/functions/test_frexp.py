"""torch.frexp: special values, all floating-point dtypes, derivatives, and its place in compiled and recorded functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import teletensor as torch

SPECIAL = [0.0, -0.0, 1.0, -8.0, 0.1, 0.5, 1e-40, -1.4e-45, 3e38, 2**-126, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_values(name: str) -> None:
    x = torch.tensor(SPECIAL, dtype=getattr(torch, name))
    found = torch.frexp(x)
    mantissa, exponent = np.frexp(x.double().numpy())  # the numbers of the dtype; float64 has no subnormal among them
    assert found.mantissa.dtype is x.dtype and found.exponent.dtype is torch.int32
    np.testing.assert_array_equal(found.mantissa.double().numpy(), mantissa)
    np.testing.assert_array_equal(np.signbit(found.mantissa.double().numpy()), np.signbit(mantissa))
    assert found.exponent.tolist() == np.where(np.isfinite(x.double().numpy()), exponent, 0).tolist()


def test_subnormal_doubles() -> None:
    x = torch.tensor([5e-324, -2.5e-310], dtype=torch.float64)
    mantissa, exponent = torch.frexp(x)
    assert (mantissa.tolist(), exponent.tolist()) == tuple(a.tolist() for a in np.frexp(x.numpy()))


def test_derivative() -> None:
    x = torch.tensor([0.3, -5.0, 1024.0, 1e-3], dtype=torch.float64, requires_grad=True)
    mantissa, exponent = torch.frexp(x)
    assert not exponent.requires_grad
    (g,) = torch.autograd.grad(mantissa.sum(), x)
    assert g.tolist() == [2.0 ** -math.frexp(v)[1] for v in x.tolist()]
    assert torch.func.jvp(lambda t: torch.frexp(t).mantissa, (x.detach(),), (torch.ones_like(x),))[1].tolist() == g.tolist()


def test_hashes_of_integers() -> None:
    x = torch.tensor([[1, 2, 4], [-1, 0, 7]])
    assert torch.hash_tensor(x).item() == 7 ^ (2**64 - 1) ^ 7
    assert torch.hash_tensor(x.to(torch.int32), 1).tolist() == [7, (2**64 - 1) ^ 7]
    single = torch.tensor([3])
    copy = torch.hash_tensor(single)
    single.add_(1)
    assert copy.item() == 3


def test_integers_are_refused() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.frexp(torch.tensor([1, 2]))


def test_out_has_the_dtypes_of_the_results() -> None:
    x = torch.tensor([3.0, 0.5])
    out = torch.empty(2), torch.empty(2, dtype=torch.int32)
    torch.frexp(x, out=out)
    assert [t.tolist() for t in out] == [[0.75, 0.5], [2, 0]]
    for mantissa, exponent in ((torch.float32, torch.int64), (torch.float64, torch.int32), (torch.float32, torch.float32)):
        with pytest.raises(RuntimeError, match="dtype"):
            torch.frexp(x, out=(torch.empty(2, dtype=mantissa), torch.empty(2, dtype=exponent)))


def test_functions_are_one_operator_in_programs() -> None:
    x = torch.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    target = torch.tensor([2, 0])

    @torch.compile
    def f(x):
        return (
            torch.frexp(x).exponent, torch.cov(x), torch.corrcoef(x), torch.renorm(x, 2, 0, 1.0), torch.vander(x[0]), torch.diagflat(x),
            torch.norm_except_dim(x, 2, 1), torch.hash_tensor(x, 1), torch.nn.functional.multi_margin_loss(x, target),
        )  # fmt: skip

    for _ in range(2):
        compiled = f(x)
    single = (
        torch.frexp(x).exponent, torch.cov(x), torch.corrcoef(x), torch.renorm(x, 2, 0, 1.0), torch.vander(x[0]), torch.diagflat(x),
        torch.norm_except_dim(x, 2, 1), torch.hash_tensor(x, 1), torch.nn.functional.multi_margin_loss(x, target),
    )  # fmt: skip
    for a, b in zip(compiled, single, strict=True):
        assert a.dtype is b.dtype and a.tolist() == b.tolist()

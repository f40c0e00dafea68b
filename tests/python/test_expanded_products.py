"""Batches of products whose operands are the same matrix in all entries."""

from __future__ import annotations

import pytest

import teletensor as torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("expands_both", [False, True])
def test_products_of_expanded_matrices_and_their_gradients(dtype, expands_both):
    def product(expand):
        torch.manual_seed(0)
        a = torch.randn(90, 80).to(dtype).requires_grad_()
        b = torch.randn(120, 80).to(dtype).requires_grad_()
        c = expand(a, 3) @ (expand(b.t(), 3) if expands_both else b.t())
        c.float().sum().backward()
        return c.detach(), a.grad, b.grad

    got = product(lambda x, n: x.expand(n, *x.shape))
    expected = product(lambda x, n: torch.stack([x] * n))
    for x, y in zip(got, expected):
        tolerance = {torch.float32: 1e-4, torch.float64: 1e-10}.get(dtype, 0.1)
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance * 10)

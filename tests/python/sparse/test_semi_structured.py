"""Semi-structured (2:4) matrices."""

from __future__ import annotations

import pytest

import teletensor as torch

pytestmark = pytest.mark.usefixtures("device")  # on the CPU and on a GPU

semi = torch.sparse.to_sparse_semi_structured


def _weight(rows: int = 4, columns: int = 16):
    torch.manual_seed(0)
    mask = torch.tensor([0, 1, 0, 1], dtype=torch.bool).tile((rows, columns // 4))
    mask[1] = torch.tensor([1, 1, 0, 0], dtype=torch.bool).tile(columns // 4)
    return torch.randn(rows, columns).masked_fill(~mask, 0.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_values_and_products(dtype: str) -> None:
    w = _weight().to(getattr(torch, dtype))
    a = semi(w)
    assert a.shape == w.shape and a.values().shape == (4, 8) and isinstance(a, torch.sparse.SparseSemiStructuredTensor)
    assert torch.equal(a.to_dense(), w)
    x = torch.randn(16, 3).to(w.dtype)
    tolerance = {} if dtype == "float32" else {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(torch.mm(a, x), w @ x, **tolerance)
    torch.testing.assert_close(a @ x, w @ x, **tolerance)
    torch.testing.assert_close(x.t() @ a.t(), x.t() @ w.t(), **tolerance)
    bias = torch.randn(4).to(w.dtype)
    y = torch.randn(2, 5, 16).to(w.dtype)
    torch.testing.assert_close(torch.nn.functional.linear(y, a, bias), torch.nn.functional.linear(y, w, bias), **tolerance)


def test_linear_module() -> None:
    layer = torch.nn.Linear(16, 4)
    layer.weight = torch.nn.Parameter(_weight())
    x = torch.randn(3, 16)
    want = layer(x).detach()
    layer.weight = torch.nn.Parameter(semi(layer.weight.detach()), requires_grad=False)
    torch.testing.assert_close(layer(x).detach(), want)


def test_the_two_largest_of_four_are_stored() -> None:
    a = semi(torch.tensor([[1.0, -3, 2, 0.5] * 4]))
    assert a.to_dense().tolist() == [[0.0, -3, 2, 0] * 4]


def test_refusals() -> None:
    for tensor in (torch.ones(4), torch.ones(4, 12), torch.ones(16, 4).t(), torch.ones(4, 16, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="original_tensor"):
            semi(tensor)
    a = semi(_weight())
    for call in (lambda: a + 1, lambda: torch.randn(2, 4) @ a, lambda: a.t() @ torch.randn(4, 2), lambda: a.sin()):
        with pytest.raises(NotImplementedError):
            call()

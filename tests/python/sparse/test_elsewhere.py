"""Sparse tensors in compiled and traced functions, autocast, transforms, modules and other parts."""

from __future__ import annotations

import pytest

import teletensor as torch


def _matrix():
    return torch.tensor([[0, 1.0, 0], [2, 0, 3]]).to_sparse()


def test_compiled_functions_compute_with_their_arguments() -> None:
    s, x = _matrix(), torch.ones(3, 2)
    f = torch.compile(lambda a, b: torch.sparse.mm(a, b).relu() + 1)
    for k in (1, 2):
        assert f(s * k, x).tolist() == [[1 + k] * 2, [1 + 5 * k] * 2]
    assert f((s * 3).to_sparse_csr(), x).tolist() == [[4, 4], [16, 16]]
    leaf = s.clone().requires_grad_()
    torch.compile(lambda a, b: torch.sparse.mm(a, b).sum())(leaf, x).backward()
    assert leaf.grad.layout == torch.sparse_coo and leaf.grad.values().tolist() == [2, 2, 2]
    assert torch.compile(lambda y: (y + 1).to_sparse().to_dense() * 2)(torch.eye(2) - 1).tolist() == [[2, 0], [0, 2]]


def test_traced_functions_refuse_sparse_arguments() -> None:
    with pytest.raises(RuntimeError, match="no values in the engine"):
        torch.compiler.trace(lambda a: a * 2, _matrix())


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_autocast_lowers_products(kind: str) -> None:
    dense = torch.tensor([[0.0, 1.5], [2.0, 0.0]])
    s = getattr(dense, f"to_sparse_{kind}")(*([(1, 1)] if kind == "bsr" else [])).requires_grad_()
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        products = [s @ x, torch.sparse.mm(s, x), torch.mm(s, x), torch.sparse.addmm(x, s, x), torch.nn.functional.linear(x, s)]
        assert all(p.dtype is torch.bfloat16 for p in products)
        assert (s + s).dtype is (s * 2).dtype is (s.double() @ x.double()).to(torch.float32).dtype is torch.float32
        assert (s.double() @ x.double()).dtype is torch.float64
    products[0].sum().backward()
    assert s.grad.dtype is torch.float32 and s.grad.to_dense().tolist() == [[0, 7], [3, 0]]
    assert (s @ x).dtype is torch.float32


def test_transforms_of_strided_arguments() -> None:
    s = _matrix()
    grad = torch.func.grad(lambda x: torch.sparse.mm(s, x).sum())(torch.ones(3, 1))
    assert grad.tolist() == [[2], [1], [3]]
    assert torch.vmap(lambda x: s @ x)(torch.ones(4, 3)).tolist() == [s.to_dense().sum(1).tolist()] * 4


def test_weights_of_modules() -> None:
    layer = torch.nn.Linear(3, 2, bias=False)
    layer.weight = torch.nn.Parameter(_matrix().to_sparse_csr())
    assert isinstance(layer.weight, torch.nn.Parameter) and layer(torch.ones(1, 3)).tolist() == [[1, 5]]
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.weight.grad.layout == torch.sparse_csr
    torch.optim.SGD(layer.parameters(), lr=0.0)
    layer.zero_grad()
    assert layer.weight.grad is None


def test_comparisons() -> None:
    s = _matrix()
    torch.testing.assert_close(s, s.clone())
    torch.testing.assert_close(s, s.to_sparse_csr(), check_layout=False)
    for other, match in ((s * 2, "not close"), (s.to_sparse_csr(), "layout"), (s * torch.eye(3)[:2], "not close")):
        with pytest.raises(AssertionError, match=match):
            torch.testing.assert_close(s, other)


def test_low_rank_decompositions() -> None:
    d = torch.randn(12, 7) * (torch.rand(12, 7) > 0.5)
    for function in (torch.svd_lowrank, torch.pca_lowrank):
        want = function(d, q=7, niter=3)[1]
        for s in (d.to_sparse(), d.to_sparse_csr()):
            torch.testing.assert_close(function(s, q=7, niter=3)[1], want, rtol=1e-4, atol=1e-4)


def test_a_strided_gradient_after_a_sparse_one() -> None:
    w = torch.ones(3, 2, requires_grad=True)
    torch.nn.functional.embedding(torch.tensor([1]), w, sparse=True).sum().backward()
    assert w.grad.is_sparse
    (w * 2).sum().backward()
    assert w.grad.tolist() == [[2, 2], [3, 3], [2, 2]]
    torch.nn.functional.embedding(torch.tensor([0]), w, sparse=True).sum().backward()
    assert w.grad.tolist() == [[3, 3], [3, 3], [2, 2]]


def test_inputs_of_backward_select_sparse_gradients() -> None:
    v, w = (torch.ones(3, 2, requires_grad=True) for _ in range(2))
    loss = sum(torch.nn.functional.embedding(torch.tensor([1]), t, sparse=True).sum() for t in (v, w))
    loss.backward(inputs=[v])
    assert v.grad is not None and w.grad is None


def test_a_function_of_a_sparse_and_a_dense_tensor():
    """A sparse argument that requires no gradient takes no part in the recorded operation."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, sparse, dense, factor):
            ctx.save_for_backward(sparse)
            ctx.factor = factor
            return sparse @ dense * factor

        @staticmethod
        def backward(ctx, grad):
            (sparse,) = ctx.saved_tensors
            return None, sparse.t() @ grad * ctx.factor, None

    sparse, dense = torch.eye(3).to_sparse(), torch.ones(3, 2, requires_grad=True)
    Product.apply(sparse, dense, 3.0).sum().backward()
    assert dense.grad.tolist() == [[3.0, 3.0]] * 3

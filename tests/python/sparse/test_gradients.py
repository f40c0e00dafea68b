"""Gradients of sparse tensors: against finite differences, and where they are stored."""

from __future__ import annotations

import numpy as np
import pytest

import teletensor as torch

pytestmark = pytest.mark.usefixtures("device")  # on the CPU and on a GPU

check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)


def _matrix(layout: str = "sparse_coo"):
    d = torch.tensor([[0, 1.5, 0, -0.5], [2, 0, 3, 0], [0, 0, 0.25, 1]], dtype=torch.float64)
    block = {"blocksize": (1, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    return d.to_sparse(layout=getattr(torch, layout), **block)


def _dense(*size: int):
    return torch.arange(float(torch.Size(size).numel()), dtype=torch.float64).reshape(size).sin()


ANY = {
    "to_dense": lambda s: s.to_dense(), "product": lambda s: torch.sparse.mm(s, _dense(4, 2)), 
    "left": lambda s: torch.sparse.mm(_dense(2, 3), s),
    "twice": lambda s: s * 2, "square": lambda s: s * s, "sum": lambda s: s.sum(), "transpose": lambda s: s.transpose(0, 1),
    "coo": lambda s: s.to_sparse(),
}  # fmt: skip
ROWS = {
    "sparse_coo": {
        "sin": lambda s: s.sin(), "pow": lambda s: s**2, "sum of columns": lambda s: torch.sparse.sum(s, 0), "norm": lambda s: s.norm(),
        "softmax": lambda s: torch.sparse.softmax(s, 1), "log_softmax": lambda s: torch.sparse.log_softmax(s, 0),
        "sparse product": lambda s: torch.sparse.mm(s, s.t()), "add": lambda s: s + (s.t().t() * 2).coalesce(),
        "cat": lambda s: torch.cat([s, s]),
        "select": lambda s: s[1], "index_select": lambda s: s.index_select(1, torch.tensor([3, 1, 1])), "csr": lambda s: s.to_sparse_csr(),
        "bsr": lambda s: s.to_sparse_bsr((3, 2)), "smm": lambda s: torch.smm(s, _dense(4, 2)), "stack": lambda s: torch.stack([s, s]),
        "addmm": lambda s: torch.sparse.addmm(_dense(3, 2), s, _dense(4, 2), beta=2, alpha=3), "dense sum": lambda s: _dense(3, 4) + s,
        "mul dense": lambda s: s * _dense(3, 4), "mask": lambda s: s.sparse_mask((s.detach() * 0 + s.detach().abs()).coalesce()),
        "coalesce": lambda s: torch.cat([s, s]).coalesce().values(), "bmm": lambda s: torch.bmm(torch.stack([s, s]), _dense(2, 4, 2)),
        "transposed product": lambda s: torch.sparse.mm(s.t(), _dense(3, 2)),
        "linear": lambda s: torch.nn.functional.linear(_dense(2, 4), s),
    },
    "sparse_csr": {
        "sin": lambda s: s.sin(), "csc": lambda s: s.to_sparse_csc(), "matmul": lambda s: s @ _dense(4), "sparse": lambda s: s @ s.t(),
        "mean": lambda s: torch.sparse.mm(s, _dense(4, 2), "mean"), "amax": lambda s: torch.sparse.mm(s, _dense(4, 2), "amax"),
        "sampled": lambda s: torch.sparse.sampled_addmm(s, _dense(3, 2), _dense(2, 4), beta=2, alpha=3), "add": lambda s: s + s * 2,
    },
    "sparse_csc": {"csr": lambda s: s.to_sparse_csr()}, "sparse_bsr": {"bsc": lambda s: s.to_sparse_bsc((1, 2))},
    "sparse_bsc": {"bsr": lambda s: s.to_sparse_bsr((1, 2))},
}  # fmt: skip


@pytest.mark.parametrize("layout", ROWS)
def test_gradients_of_stored_elements(layout: str) -> None:
    for name, function in {**ANY, **ROWS[layout]}.items():
        if layout not in ("sparse_coo", "sparse_csr") and name in ("square",):
            continue
        assert check(function, [_matrix(layout).requires_grad_()], masked=True, raise_exception=False), name


def test_gradients_of_all_elements() -> None:
    for function in (ANY["product"], ANY["sum"], ROWS["sparse_coo"]["sin"]):
        assert check(function, [_matrix().requires_grad_()], masked=False)


def test_gradients_of_strided_arguments() -> None:
    s, csr = _matrix(), _matrix("sparse_csr")
    gradcheck = torch.autograd.gradcheck
    for function, size in (
        (lambda x: torch.sparse.mm(s, x), (4, 2)), (lambda x: x @ s, (2, 3)), (lambda x: torch.sparse.mm(csr, x, "amin"), (4, 2)),
        (lambda x: torch.sparse.sampled_addmm(csr, x, _dense(2, 4)).values(), (3, 2)), (lambda x: (s * x).coalesce().values(), (3, 4)),
        (lambda x: x.to_sparse().to_dense(), (2, 3)), (lambda x: torch.sparse_coo_tensor([[0, 2, 0]], x, (3,)).to_dense(), (3,)),
        (lambda x: x.sparse_mask(s).to_dense(), (3, 4)), (lambda x: torch.triangular_solve(x, _lower(), upper=False)[0], (3, 2)),
        (lambda x: torch.triangular_solve(x, _lower(), upper=False, transpose=True)[0], (3, 2)),
    ):  # fmt: skip
        assert gradcheck(function, (_dense(*size).add(1.3).requires_grad_(),))


def _lower():
    return torch.tensor([[2.0, 0, 0], [1, 4, 0], [0, 3, 5]], dtype=torch.float64).to_sparse_csr()


def test_gradient_of_a_triangular_matrix() -> None:
    function = lambda a: torch.triangular_solve(_dense(3, 2), a, upper=False)[0]  # noqa: E731
    assert check(function, [_lower().requires_grad_()], masked=True)


@pytest.mark.parametrize("layout", ROWS)
def test_leaf(layout: str) -> None:
    s = _matrix(layout).requires_grad_()
    assert s.is_leaf and s.requires_grad and s.grad is None and s.grad_fn is None
    out = torch.sparse.mm(s, _dense(4, 2))
    assert out.requires_grad and not (s * 2).is_leaf
    out.sum().backward()
    assert s.grad.layout == s.layout and s.grad.shape == s.shape
    stored = torch.ones(3, 4, dtype=torch.float64).sparse_mask(s.detach()).to_dense()
    torch.testing.assert_close(s.grad.to_dense(), _dense(4, 2).sum(1).expand(3, 4) * stored)
    torch.sparse.mm(s, _dense(4, 2)).sum().backward()
    torch.testing.assert_close(s.grad.to_dense(), 2 * _dense(4, 2).sum(1).expand(3, 4) * stored)
    s.grad = None
    assert s.grad is None
    (gradient,) = torch.autograd.grad((s * 3).sum(), [s])
    assert gradient.layout == s.layout and gradient.values().unique().tolist() == [3.0]
    assert not s.detach().requires_grad and (s * 2).grad_fn is not None


def test_gradient_of_an_uncoalesced_leaf() -> None:
    s = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], [1.0, 2.0, 3.0], (2, 3), requires_grad=True)
    torch.sparse.mm(s, torch.ones(3, 2)).sum().backward()
    assert s.grad.to_dense().tolist() == [[0, 2, 0], [2, 0, 0]]


def test_values_that_require_grad() -> None:
    v = torch.tensor([1.0, 2.0], requires_grad=True)
    s = torch.sparse_coo_tensor([[0, 1]], v, (3,))
    assert s.requires_grad and not s.is_leaf
    (s * 3).to_dense().sum().backward()
    assert v.grad.tolist() == [3, 3] and s.grad is None
    leaf = torch.sparse_coo_tensor([[0, 1]], v, (3,), requires_grad=True)
    assert leaf.is_leaf
    leaf.to_dense().sum().backward()
    assert v.grad.tolist() == [3, 3] and leaf.grad.values().tolist() == [1, 1]


def test_backward_from_a_sparse_root() -> None:
    s = _matrix().requires_grad_()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (s * 2).backward()
    (s * 2).backward(s.detach())
    torch.testing.assert_close(s.grad.to_dense(), 2 * s.detach().to_dense())
    s.grad = None
    (s * 2).backward(torch.ones(3, 4, dtype=torch.float64))
    assert s.grad.values().unique().tolist() == [2.0]


def test_hooks() -> None:
    s, seen = _matrix().requires_grad_(), []
    s.register_hook(lambda g: seen.append(str(g.layout)) or g * 5)
    s.sum().backward()
    assert seen == ["torch.sparse_coo"] and s.grad.values().unique().tolist() == [5.0]


def test_unmasked_gradients_through_to_sparse_are_refused() -> None:
    d = torch.eye(3, requires_grad=True)
    for function in (lambda: d.to_sparse() @ torch.ones(3, 2), lambda: d.to_sparse().sum(), lambda: torch.ones(3, 3) + d.to_sparse()):
        with pytest.raises(NotImplementedError, match="where the tensor is zero"):
            function()
    torch.sparse.mm(d.to_sparse(), torch.ones(3, 2)).sum().backward()
    assert d.grad.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_second_derivatives() -> None:
    s = _matrix().requires_grad_()
    (first,) = torch.autograd.grad((s * s * s).sum(), [s], create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), [s])
    torch.testing.assert_close(second.to_dense(), 6 * s.detach().to_dense())


@pytest.mark.parametrize(
    ("size", "sparse_dim", "other"),
    [((4,), 1, (3, 4)), ((3, 1), 2, (4,)), ((3, 1), 2, (2, 3, 4)), ((1, 1), 2, (3, 4)), ((3, 1, 2), 2, (3, 4, 2)),
     ((3, 1, 1), 2, (3, 4, 2)), ((3, 1), 1, (3, 4)), ((1, 4), 1, (3, 4)), ((3, 1), 2, (3, 0)), ((0, 1), 2, (1, 4)), ((3, 1), 2, (0, 3, 1))],
)  # fmt: skip
def test_products_that_broadcast_the_sparse_tensor(size: tuple, sparse_dim: int, other: tuple) -> None:
    rng = np.random.default_rng(1)
    a, b = torch.tensor(rng.integers(0, 3, size).astype("float64")), torch.tensor(rng.normal(size=other), requires_grad=True)
    s = a.to_sparse(sparse_dim).requires_grad_()
    dense = a.clone().requires_grad_()
    for product in (s * b, b * s):
        torch.testing.assert_close(product.to_dense(), dense * b)
        found = torch.autograd.grad(product.to_dense().square().sum(), [s, b])
        wanted = torch.autograd.grad((dense * b).square().sum(), [dense, b])
        torch.testing.assert_close(found[0].to_dense(), wanted[0].sparse_mask(s.detach()).to_dense())
        torch.testing.assert_close(found[1], wanted[1])


def test_products_of_vectors() -> None:
    a, m = torch.tensor([0, 2.0, 0, 3], dtype=torch.float64), _dense(4, 3)
    s, v = a.to_sparse().requires_grad_(), a.clone().requires_grad_()
    for function in (lambda x: x @ m, lambda x: m.t() @ x, lambda x: torch.mv(m.t(), x), lambda x: torch.nn.functional.linear(x, m.t())):
        torch.testing.assert_close(function(s), function(v))
        found, wanted = (torch.autograd.grad(function(x).square().sum(), [x])[0] for x in (s, v))
        torch.testing.assert_close(found.to_dense(), wanted.sparse_mask(s.detach()).to_dense())


def test_products_of_tensors_without_sparse_dimensions() -> None:
    s = torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.int64), torch.tensor([[1.0], [2.0]]), (1,))
    other = torch.tensor([1.0, 2, 3])
    leaf = s.clone().requires_grad_()
    product = leaf * other
    assert product.shape == (3,) and product.sparse_dim() == 0 and product.to_dense().tolist() == [3, 6, 9]
    (gradient,) = torch.autograd.grad(product.to_dense().sum(), [leaf])
    assert gradient.shape == (1,) and gradient._values().unique().tolist() == [6]
    s.mul_(other)
    assert s.shape == (3,) and s.sparse_dim() == 0 and s.to_dense().tolist() == [3, 6, 9]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_outer_products_without_the_input_have_a_gradient_of_zeros_for_it(layout: str) -> None:
    s = (_matrix(layout) * torch.inf).requires_grad_()
    v, w = _dense(3).float().requires_grad_(), _dense(4).float()
    product = torch.addr(s, v, w, beta=0, alpha=2)
    assert product.dtype is torch.float64
    torch.testing.assert_close(product, 2 * torch.outer(v, w).double())
    zeros, gradient = torch.autograd.grad(product.sum(), [s, v])
    assert zeros.layout == s.layout and zeros.shape == s.shape and zeros.values().tolist() == [0] * 6
    torch.testing.assert_close(gradient, (2 * w.sum()).expand(3))
    with torch.no_grad():
        assert not torch.addr(s, v, w, beta=0).requires_grad

"""vmap over sparse_coo tensors, and with sparse tensors that are not mapped. The cases that PyTorch computes have its layouts."""

from __future__ import annotations

import pytest

import teletensor as torch

pytestmark = pytest.mark.filterwarnings("ignore:vmap. .* has no batching rule")

M = [[0, 1.0, 0, 2], [2, 0, 3, 0]]


def _batch() -> torch.Tensor:
    m = torch.tensor(M)
    return torch.stack([m, m * 2, m.flip(0)]).to_sparse()


def _dense(t: torch.Tensor) -> torch.Tensor:
    return t.to_dense() if t.is_sparse else t


SPARSE = {
    "number": lambda x: x * 2, "abs": lambda x: x.abs(), "relu": torch.relu, "neg": lambda x: -x, "sqrt": lambda x: x.sqrt(),
    "add": lambda x: x + x, "sub": lambda x: x - x * 3, "mul": lambda x: x * x, "div": lambda x: x / 2, "pow": lambda x: x**2,
    "sum": lambda x: x.sum(), "sum of rows": lambda x: x.sum(-1), "sum of columns": lambda x: x.sum(0), "itself": lambda x: x,
    "clone": lambda x: x.clone(), "detach": lambda x: x.detach(), "in place": lambda x: x.clone().mul_(2),
    "double": lambda x: x.double(), "select": lambda x: x[0], "unsqueeze": lambda x: x.unsqueeze(0), "cat": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack([x, x]), "strided factor": lambda x: x * torch.full((2, 4), 3.0), "zeros_like": torch.zeros_like,
}  # fmt: skip
STRIDED = {"constant": lambda x: torch.ones(2)}
# Those that PyTorch refuses.
MORE = {
    "mm": lambda x: x @ torch.ones(4, 2), "mv": lambda x: x @ torch.ones(4), "to_dense": lambda x: x.to_dense(), "t": lambda x: x.t(),
    "sum with a strided tensor": lambda x: torch.ones(2, 4) + x, "coalesce": lambda x: x.coalesce() * 1,
    "index_select": lambda x: x.index_select(0, torch.tensor([1])), "any": lambda x: x.any(), "norm": lambda x: x.norm(),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SPARSE, *STRIDED, *MORE])
def test_functions(name: str) -> None:
    function = {**SPARSE, **STRIDED, **MORE}[name]
    s = _batch()
    found = torch.vmap(function)(s)
    dense = s.to_dense()
    if name == "coalesce":
        function = lambda x: x  # noqa: E731 - a strided tensor has no coalesce()
    expected = torch.stack([_dense(function(x)) for x in dense])
    assert torch.equal(_dense(found), expected) and found.dtype is expected.dtype
    if name not in MORE:
        assert found.is_sparse == (name in SPARSE)


def test_functions_of_torch_sparse() -> None:
    s = _batch()
    assert torch.vmap(torch.sparse.sum)(s).tolist() == [8.0, 16.0, 8.0]
    assert torch.vmap(lambda x: torch.sparse.sum(x, (0, 1), torch.float64))(s).dtype is torch.float64
    assert torch.vmap(torch.sparse.sum)((s.to_dense() > 0).to_sparse()).tolist() == [4, 4, 4]
    for dim in (0, 1, -1):
        found = torch.vmap(lambda x: torch.sparse.sum(x, dim))(s)  # noqa: B023
        assert found.is_sparse and torch.equal(found.to_dense(), torch.stack([x.sum(dim) for x in s.to_dense()]))
        for function in (torch.sparse.softmax, torch.sparse.log_softmax):
            found = torch.vmap(lambda x: function(x, dim))(s)  # noqa: B023
            assert torch.allclose(found.to_dense(), torch.stack([function(x, dim).to_dense() for x in s.unbind(0)]))
    twice = torch.vmap(torch.vmap(torch.sparse.sum))(s)
    assert torch.equal(_dense(twice), s.to_dense().sum(2))
    assert torch.equal(torch.vmap(lambda x: torch.sparse.mm(x, torch.ones(4, 2)))(s), s.to_dense() @ torch.ones(4, 2))
    with pytest.raises(IndexError):
        torch.vmap(lambda x: torch.sparse.sum(x, 2))(s)


def test_attributes() -> None:
    seen = []

    def function(x):
        seen.append((x.is_sparse, x.layout, tuple(x.shape), x.sparse_dim(), x.dense_dim(), x.dtype))
        return x

    torch.vmap(function)(_batch())
    torch.vmap(function)(torch.tensor(M).to_sparse(1))
    assert seen == [(True, torch.sparse_coo, (2, 4), 2, 0, torch.float32), (True, torch.sparse_coo, (4,), 0, 1, torch.float32)]


def test_dimensions() -> None:
    s = _batch()
    for dim in (0, 1, 2, -1):
        found = torch.vmap(lambda x: x * 2, in_dims=dim)(s)
        assert found.is_sparse and torch.equal(found.to_dense(), (s.to_dense() * 2).movedim(dim, 0))
    assert torch.equal(torch.vmap(lambda x: x * 2, out_dims=1)(s).to_dense(), (s.to_dense() * 2).movedim(0, 1))
    assert torch.equal(torch.vmap(torch.vmap(lambda x: x * 2))(s).to_dense(), s.to_dense() * 2)
    assert torch.equal(torch.vmap(lambda x: x * 2, chunk_size=2)(s).to_dense(), s.to_dense() * 2)
    with pytest.raises(RuntimeError, match="dense"):
        torch.vmap(lambda x: x * 2, in_dims=1)(torch.tensor(M).to_sparse(1))


def test_several_arguments() -> None:
    s, d = _batch(), torch.arange(24.0).reshape(3, 2, 4)
    assert torch.equal(torch.vmap(torch.add)(s, s * 2).to_dense(), s.to_dense() * 3)
    assert torch.equal(torch.vmap(torch.mul)(s, d).to_dense(), s.to_dense() * d)
    assert torch.equal(torch.vmap(lambda x, y: x @ y)(s, d.mT), s.to_dense() @ d.mT)
    w = torch.tensor([1.0, 2, 3])
    assert torch.equal(_dense(torch.vmap(lambda x, w: x * w)(s, w)), s.to_dense() * w.reshape(3, 1, 1))
    m, v = torch.tensor(M), torch.arange(12.0).reshape(3, 4)
    vectors = torch.vmap(lambda x, y: x @ y, in_dims=(0, None))(m.to_sparse(), torch.arange(4.0))
    assert torch.equal(_dense(vectors), m @ torch.arange(4.0))
    for other in (m.to_sparse(), m.to_sparse_csr(), m.to_sparse_csc()):  # not mapped
        assert torch.equal(torch.vmap(lambda x: other @ x)(v), v @ m.t())  # noqa: B023
        assert torch.equal(torch.vmap(lambda x: other @ x)(d.mT), m @ d.mT)  # noqa: B023
        assert torch.equal(torch.vmap(lambda x, o: o @ x, in_dims=(0, None))(v, other), v @ m.t())


def test_gradients() -> None:
    s = _batch().requires_grad_()
    torch.vmap(lambda x: x * 3)(s).to_dense().sum().backward()
    assert s.grad.is_sparse and s.grad._values().tolist() == [3.0] * 12
    w = torch.tensor([1.0, 2, 3])
    found = torch.vmap(torch.func.grad(lambda w, x: (x.to_dense() * w).sum()))(w, _batch())
    assert found.tolist() == _batch().to_dense().sum((1, 2)).tolist()
    x = torch.ones(3, 4, requires_grad=True)
    torch.vmap(lambda x: torch.tensor(M).to_sparse() @ x)(x).sum().backward()
    assert x.grad.tolist() == [[2.0, 1, 3, 2]] * 3


@pytest.mark.parametrize("name", ["indices", "values", "_nnz", "_values", "to_sparse_csr"])
def test_numbers_of_elements_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"vmap: {name} of a mapped tensor of layout torch.sparse_coo"):
        torch.vmap(lambda x: getattr(x, name)() * 1)(_batch())


def test_other_refusals() -> None:
    with pytest.raises(NotImplementedError, match="'aten::mean'"):
        torch.vmap(lambda x: x.mean())(_batch())
    with pytest.raises(NotImplementedError, match="torch.sparse_csr"):
        torch.vmap(lambda x: x * 2)(torch.tensor(M).to_sparse_csr())
    with pytest.raises(NotImplementedError, match="quint8: dequantize"):
        torch.vmap(lambda x: x * 2)(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8))
    with pytest.raises(RuntimeError, match="vmap: matmul has no batching rule, and a batch of size 0"):
        torch.vmap(lambda x: x @ torch.ones(4, 2))(torch.sparse_coo_tensor(size=(0, 3, 4)))

"""Calls of sparse tensors that mix layouts, and indices that change."""

import pytest


def dense(torch):
    return torch.arange(12.0).reshape(3, 4)


def test_strided_tensors_like_sparse_ones(torch):
    s = dense(torch).to_sparse()
    for name in ("zeros_like", "empty_like", "ones_like", "rand_like", "randn_like"):
        made = getattr(torch, name)(s, layout=torch.strided)
        assert made.layout == torch.strided and made.shape == s.shape
    assert torch.full_like(s, 2.0, layout=torch.strided).sum().item() == 24
    assert torch.zeros_like(s).layout == torch.sparse_coo


def test_new(torch):
    s = dense(torch).to_sparse()
    assert s.new(torch.tensor([[1]]), torch.tensor([2.0]), (5,)).to_dense().tolist() == [0, 2, 0, 0, 0]
    assert s.new().layout == s.new(2, 3).layout == torch.sparse_coo and s.new(2, 3).shape == (2, 3)
    for call in (
        lambda: torch.ones(1).new(torch.ones(1), torch.ones(1)), lambda: torch.ones(1).new(1, 2, (3,)),
        lambda: torch.FloatTensor(torch.tensor([[0]]), torch.tensor([1.0])),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()


def test_index_select_takes_time_of_the_elements(torch):
    big = torch.sparse_coo_tensor([[0, 5, 5], [1, 2, 3]], [1.0, 2.0, 3.0], (2**40, 8))
    got = big.index_select(0, torch.tensor([5, 3, 5, 0])).to_dense()
    row = [0, 0, 2, 3, 0, 0, 0, 0]
    assert got.tolist() == [row, [0] * 8, row, [0, 1, 0, 0, 0, 0, 0, 0]]


def test_products_and_masks(torch):
    a = dense(torch)
    s, layer = a.to_sparse(), torch.nn.Linear(4, 2)
    torch.testing.assert_close(layer(s), layer(a))
    torch.testing.assert_close(layer(s.to_sparse_csr()), layer(a))
    w = torch.ones(2, 4, requires_grad=True)
    torch.nn.functional.linear(s, w).sum().backward()
    torch.testing.assert_close(w.grad, a.sum(0).expand(2, 4))
    x = torch.ones(2, 5, 3)
    torch.testing.assert_close(x @ s, x @ a)
    assert (s.to_sparse_csr() * s).layout == torch.sparse_csr
    assert torch.ones(4, 4).to_sparse_bsr(2).values().shape == (4, 2, 2)
    assert s.true_divide(2).to_dense().tolist() == (a / 2).tolist()
    doubled = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,))
    assert doubled.sparse_mask(doubled).to_dense().tolist() == [3, 0, 0]
    i = torch.eye(3, dtype=torch.int64).to_sparse()
    with pytest.raises(RuntimeError, match="argument beta must not be a floating point number"):
        torch.addmm(i.to_dense(), i, i.to_dense(), beta=0.5)


def test_indices_of_embeddings_that_change(torch):
    e, i = torch.nn.Embedding(4, 1, sparse=True), torch.tensor([0, 1])
    e(i).sum().backward()
    i.fill_(3)
    assert e.weight.grad.to_dense().tolist() == [[1], [1], [0], [0]]
    i = torch.tensor([0, 1])
    loss = e(i).sum()
    i[0] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_strided_integers_do_not_receive_sparse_floats(torch):
    s = torch.tensor([0.0, 1.5]).to_sparse()
    for name in ("add_", "sub_", "mul_"):
        with pytest.raises(RuntimeError, match="Can't convert result type torch.float32 to output torch.int64"):
            getattr(torch.tensor([1, 2]), name)(s)


@pytest.mark.parametrize(("convert", "names"), [
    ("to_sparse", "indices values coalesce is_coalesced to_dense sparse_dim dense_dim"),
    ("to_sparse_csr", "crow_indices col_indices values to_dense sparse_dim dense_dim"),
    ("to_sparse_csc", "ccol_indices row_indices values to_dense sparse_dim dense_dim"),
])  # fmt: skip
def test_methods_of_the_base_class(torch, convert, names):
    tensor = getattr(dense(torch), convert)()
    for name in names.split():
        by_class, own = getattr(torch.Tensor, name)(tensor), getattr(tensor, name)()
        if isinstance(own, torch.Tensor):
            assert type(by_class) is type(own) and by_class.to_dense().equal(own.to_dense())
        else:
            assert by_class == own
    with pytest.raises(RuntimeError, match="expected sparse row compressed tensor layout but got Strided"):
        torch.Tensor.crow_indices(torch.ones(2))

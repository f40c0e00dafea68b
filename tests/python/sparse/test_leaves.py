"""Leaves: sparse ones that change in place, and strided ones with sparse gradients, hooks and several passes."""

from __future__ import annotations

import threading

import pytest

import teletensor as torch

pytestmark = pytest.mark.usefixtures("device")  # on the CPU and on a GPU

embedding = torch.nn.functional.embedding


def _leaf():
    s = torch.sparse_coo_tensor([[0, 1], [2, 0]], [1.0, 4.0], (2, 3)).coalesce().requires_grad_()
    torch.sparse.mm(s, torch.ones(3, 2)).sum().backward()
    return s


def _weight():
    return torch.ones(5, 2, requires_grad=True)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (lambda s: s.mul_(2), [[0, 0, 2], [8, 0, 0]]), (lambda s: s.div_(2), [[0, 0, 0.5], [2, 0, 0]]),
        (lambda s: s.neg_(), [[0, 0, -1], [-4, 0, 0]]), (lambda s: s.sqrt_(), [[0, 0, 1], [2, 0, 0]]),
        (lambda s: s.sub_(s.grad), [[0, 0, -1], [2, 0, 0]]), (lambda s: s.add_(torch.eye(2, 3).to_sparse()), [[1, 0, 1], [4, 1, 0]]),
    ],
)  # fmt: skip
def test_changes_in_place_without_recording_keep_the_leaf(change, want: list) -> None:
    s = _leaf()
    with torch.no_grad():
        change(s)
    assert s.is_leaf and s.requires_grad and s.detach().to_dense().tolist() == want
    assert s.grad.to_dense().tolist() == [[0, 0, 2], [2, 0, 0]]
    torch.sparse.mm(s, torch.ones(3, 2)).sum().backward()
    assert s.grad.to_dense()[0, 2].item() == 4


def test_data_of_a_leaf() -> None:
    s = _leaf()
    s.data = torch.eye(2, 3).to_sparse()
    assert s.is_leaf and s.requires_grad and s.detach().to_dense().tolist() == [[1, 0, 0], [0, 1, 0]]


def test_a_saved_tensor_that_changed_is_an_error() -> None:
    s = _leaf()
    out = s.sin().to_dense().sum()
    with torch.no_grad():
        s.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
        s.grad.values().tolist()


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_sgd_of_sparse_parameters(layout: str) -> None:
    for options in ({}, {"momentum": 0.5}):
        s = torch.tensor([[0.0, 2], [1, 0]]).to_sparse(layout=getattr(torch, layout)).requires_grad_()
        optimizer = torch.optim.SGD([s], lr=0.25, **options)
        for _ in range(2):
            optimizer.zero_grad()
            torch.sparse.mm(s, torch.ones(2, 1)).sum().backward()
            optimizer.step()
        step = 0.25 * (2 + options.get("momentum", 0))
        assert s.requires_grad and s.detach().to_dense().tolist() == [[0, 2 - step], [1 - step, 0]]


def test_products_after_changes_of_indices() -> None:
    s = torch.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 2.0], (3, 3), is_coalesced=True)
    x = torch.eye(3)
    torch.sparse.mm(s, x)
    s.indices()[0].copy_(torch.tensor([1, 2]))
    assert torch.sparse.mm(s, x).tolist() == s.to_dense().tolist() == [[0, 0, 0], [1, 0, 0], [0, 2, 0]]


def test_hooks_after_accumulation_receive_sparse_gradients() -> None:
    weight, seen = _weight(), []

    def step(leaf) -> None:
        seen.append((str(leaf.grad.layout), leaf.grad._nnz()))
        leaf.grad = None

    weight.register_post_accumulate_grad_hook(step)
    embedding(torch.tensor([1, 2, 1]), weight, sparse=True).sum().backward()
    assert seen == [("torch.sparse_coo", 3)] and weight.grad is None


def test_hooks_receive_the_sum_of_sparse_gradients() -> None:
    weight, seen = _weight(), []
    weight.register_hook(lambda g: seen.append(g.to_dense()[1, 0].item()) or g * g)
    (embedding(torch.tensor([1]), weight, sparse=True).sum() + embedding(torch.tensor([1]), weight, sparse=True).sum() * 2).backward()
    assert seen == [3] and weight.grad.to_dense()[1].tolist() == [9, 9]


def test_hooks_that_change_one_of_two_kinds_of_gradients_are_refused() -> None:
    weight = _weight()
    loss = embedding(torch.tensor([1]), weight, sparse=True).sum() + weight.sum()
    with (pytest.raises(NotImplementedError, match="a sparse and a strided gradient"), weight.register_hook(lambda g: g * 2)):
        loss.backward(retain_graph=True)
    with weight.register_hook(lambda g: None):
        weight.grad = None
        loss.backward()
    assert weight.grad[:2].tolist() == [[1, 1], [2, 2]]


def test_passes_inside_of_passes() -> None:
    weight, other = _weight(), torch.ones(2, requires_grad=True)
    rows = embedding(torch.tensor([1]), weight, sparse=True) * 3
    rows.register_hook(lambda g: torch.enable_grad()(other.sum)().backward())
    rows.sum().backward()
    assert weight.grad.to_dense()[1].tolist() == [3, 3] and other.grad.tolist() == [1, 1]


def test_passes_of_several_threads() -> None:
    weight = _weight()

    def run(row: int) -> None:
        for _ in range(5):
            embedding(torch.tensor([row]), weight, sparse=True).sum().backward()

    threads = [threading.Thread(target=run, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert weight.grad.to_dense()[:, 0].tolist() == [5, 5, 5, 5, 0]


def test_sums_of_bools_count_equal_indices() -> None:
    b = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [True, True, True], (2, 3))
    assert b.sum(0).to_dense().tolist() == [1, 2, 0] and b.sum().item() == 3
    assert torch.sparse.sum(b).item() == 2 and torch.sparse.sum(b, [0, 1]).item() == 3  # as in PyTorch
    assert torch.sparse.sum(b, 0).dtype is torch.bool and torch.sparse.sum(b.int(), 0).dtype is torch.int32


def test_sizes_whose_number_of_elements_overflows() -> None:
    for make in (
        lambda: torch.sparse_coo_tensor([[0], [0]], [1.0], (2**62, 2**62)), lambda: torch.sparse_coo_tensor((2**62, 4)),
        lambda: torch.sparse_csr_tensor([0, 0, 0], torch.zeros(0, dtype=torch.int64), torch.zeros(0), (2, 2**62)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="overflow"):
            make()


def test_out_of_products_is_resized() -> None:
    out = torch.empty(0)
    assert torch.mm(_leaf().detach(), torch.ones(3, 2), out=out) is out and out.tolist() == [[1, 1], [4, 4]]
    with pytest.raises(NotImplementedError, match="spmm_reduce_kernel"):
        torch.sparse.mm(torch.eye(2, dtype=torch.int64).to_sparse_csr(), torch.ones(2, 2, dtype=torch.int64), "mean")

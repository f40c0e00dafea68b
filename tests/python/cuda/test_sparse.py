"""Sparse tensors on a GPU: creation, conversions, products, gradients, training and invalid indices, without the CPU.

tests/python/sparse and tests/operators run their cases on a GPU too; these tests look at where the components are, and at
errors that a kernel finds after its call returned.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import IN_PROCESS, SIMULATED

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def components(s) -> list:
    """The tensors that hold a sparse tensor."""
    if s.is_sparse:
        return [s._indices(), s._values()]
    rows = "csr" in str(s.layout) or "bsr" in str(s.layout)
    return [*((s.crow_indices(), s.col_indices()) if rows else (s.ccol_indices(), s.row_indices())), s.values()]


def is_on_gpu(s) -> bool:
    """Whether the tensor and its components are on a GPU."""
    return s.is_cuda and s.device.type == "cuda" and all(t.device == s.device for t in components(s))


def dense(torch, device="cuda"):
    return torch.tensor([[0, 1.5, 0, -0.5], [2, 0, 3, 0], [0, 0, 0, 0], [0, 0, 0.25, 1]], device=device)


def converted(d, layout: str):
    """The tensor in a layout; in blocks of 2 x 2."""
    return getattr(d, "to_sparse" if layout == "sparse_coo" else f"to_{layout}")(*([(2, 2)] if "bs" in layout else []))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions(torch, layout):
    d = dense(torch)
    s = converted(d, layout)
    assert is_on_gpu(s) and str(s.layout) == f"torch.{layout}"
    assert s.to_dense().is_cuda and s.to_dense().tolist() == d.tolist()
    assert s.cpu().device.type == "cpu" and s.cpu().to_dense().tolist() == d.tolist()
    back = converted(d.cpu(), layout).cuda()
    assert is_on_gpu(back) and [t.tolist() for t in components(back)] == [t.tolist() for t in components(s)]
    assert s.cuda() is s and s.to("cuda") is s and is_on_gpu(s.double()) and is_on_gpu(s.to("cpu").to(d))
    for other in LAYOUTS[:3]:
        if "bs" not in layout:
            assert is_on_gpu(converted(s, other)) and converted(s, other).to_dense().tolist() == d.tolist()


@pytest.mark.skipif(not SIMULATED, reason="the machine may have one GPU")
def test_moves_between_gpus(torch):
    s = dense(torch).to_sparse()
    moved = s.to("cuda:1")
    assert is_on_gpu(moved) and moved.device.index == 1 and (moved * 2).device.index == 1
    assert torch.sparse.mm(moved, torch.ones(4, 1, device="cuda:1")).tolist() == [[1], [5], [0], [1.25]]
    with pytest.raises(RuntimeError, match="device"):
        torch.sparse.mm(moved, torch.ones(4, 1, device="cuda:0")).tolist()


def test_creation(torch):
    s = torch.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], [3.0, 4, 5], (2, 3), device="cuda")
    assert is_on_gpu(s) and s.coalesce().values().tolist() == [8, 4] and s.coalesce().indices().tolist() == [[0, 1], [2, 0]]
    csr = torch.sparse_csr_tensor([0, 1, 2], [2, 0], [8.0, 4], (2, 3), device="cuda", check_invariants=True)
    assert is_on_gpu(csr) and csr.to_dense().tolist() == s.to_dense().tolist()
    assert is_on_gpu(torch.zeros(3, 4, layout=torch.sparse_coo, device="cuda")) and is_on_gpu(torch.zeros_like(csr))
    assert torch.cuda.sparse.FloatTensor(torch.tensor([[1], [0]], device="cuda"), torch.ones(1, device="cuda"), (2, 2)).is_cuda
    assert is_on_gpu(torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([1]), (3, 3)).cuda())


def test_elements_and_products(torch):
    d = dense(torch)
    s, r = d.to_sparse(), d.relu().to_sparse()
    x = torch.arange(8.0, device="cuda").reshape(4, 2)
    for a, want in (
        (s + r, d + d.relu()), (s - r, d - d.relu()), (s * r, d * d.relu()), (s * 2, d * 2), (s.sin(), d.sin()), (s.t(), d.t()),
        (torch.sparse.mm(s, r.t()), d @ d.relu().t()), (torch.cat([s, r]), torch.cat([d, d.relu()])), (torch.sparse.sum(s, 0), d.sum(0)),
    ):  # fmt: skip
        assert is_on_gpu(a)
        torch.testing.assert_close(a.to_dense(), want)
    for layout in LAYOUTS:
        product = converted(d, layout) @ x
        assert product.is_cuda and product.tolist() == (d @ x).tolist()
    assert (s @ x[:, 0]).tolist() == (d @ x[:, 0]).tolist()
    torch.testing.assert_close(torch.sparse.softmax(s, 1).to_dense()[3, 2:], torch.softmax(d[3, 2:], 0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients(torch, layout):
    x = torch.arange(8.0, device="cuda").reshape(4, 2).requires_grad_()
    s = converted(dense(torch), layout).requires_grad_()
    torch.sparse.mm(s, x).square().sum().backward()
    assert is_on_gpu(s.grad) and s.grad.layout == s.layout and x.grad.is_cuda
    d, y = dense(torch).requires_grad_(), x.detach().clone().requires_grad_()
    (d @ y).square().sum().backward()
    pattern = (dense(torch) != 0).float()
    if "bs" in layout:
        pattern = pattern.reshape(2, 2, 2, 2).amax((1, 3)).repeat_interleave(2, 0).repeat_interleave(2, 1)
    torch.testing.assert_close(s.grad.to_dense(), d.grad * pattern)
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("bag", [False, True])
def test_sparse_embeddings_train_as_on_the_cpu(torch, bag):
    index, start, weights = torch.tensor([[0, 3, 3], [1, 0, 2]]), torch.arange(1, 25.0).reshape(6, 4) / 10, []
    for device in ("cpu", "cuda"):
        kind = torch.nn.EmbeddingBag if bag else torch.nn.Embedding
        module = kind(6, 4, sparse=True, _weight=start.clone()).to(device)
        optimizer = torch.optim.SparseAdam(module.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            (module(index.to(device)) * (step + 1)).square().sum().backward()
            assert module.weight.grad.is_sparse and module.weight.grad.device.type == device
            optimizer.step()
        weights.append(module.weight.detach().cpu())
    torch.testing.assert_close(weights[1], weights[0])
    assert weights[1][4:].equal(start[4:]) and not (weights[1][:4] == start[:4]).any()


def failure(call) -> str:
    """The message of the RuntimeError that reading the result of a call raises."""
    with pytest.raises(RuntimeError) as found:
        call().to_dense().tolist()
    return str(found.value)


def test_errors_of_invalid_indices_are_the_cpus(torch):
    """Kernels find them after the call returned; the values that depend on them are errors, and others are not."""
    good = torch.ones(3, device="cuda")
    for make in (
        lambda device: torch.sparse_coo_tensor([[0, 3], [0, 1]], [1.0, 2], (3, 3), device=device, check_invariants=False),
        lambda device: torch.sparse_coo_tensor([[0, 1], [-1, 1]], [1.0, 2], (3, 3), device=device, check_invariants=False).coalesce(),
        lambda device: torch.sparse_csr_tensor([0, 1, 3, 2], [0, 1], [1.0, 2], (3, 3), device=device, check_invariants=False),
        lambda device: torch.sparse_csr_tensor([0, 1, 2, 2], [0, 7], [1.0, 2], (3, 3), device=device, check_invariants=False)
        @ torch.ones(3, 2, device=device),
        lambda device: torch.sparse_csr_tensor(
            [0, 1, 2, 2], [0, -9], [1.0, 2], (3, 3), device=device, check_invariants=False
        ).to_sparse_csc(),
    ):  # fmt: skip
        assert failure(lambda make=make: make("cuda")) == failure(lambda make=make: make("cpu"))
        assert (good * 2).tolist() == [2, 2, 2]


def test_an_error_reaches_only_dependent_values(torch):
    s = torch.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2], (2, 2), device="cuda", check_invariants=False)
    product = s @ torch.ones(2, 2, device="cuda")
    dependent, independent = product.sum() + 1, torch.ones(2, device="cuda").sum()
    assert independent.item() == 2
    with pytest.raises(RuntimeError, match="index 5 is out of range"):
        dependent.item()


def test_results_without_elements_report_invalid_indices(torch):
    s = torch.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2], (2, 2), device="cuda", check_invariants=False)
    with pytest.raises(RuntimeError, match="expected compressed indices"):
        (s @ torch.ones(2, 0, device="cuda")).tolist()
    same = torch.sparse_coo_tensor([[1, 1]], [1.0, 2], (2,), device="cuda", is_coalesced=True, check_invariants=False)
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        (same * torch.sparse_coo_tensor([[0]], [1.0], (2,), device="cuda").coalesce()).to_dense().tolist()


def test_invariants_are_checked(torch):
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.sparse_coo_tensor([[0, 3]], [1.0, 2], (3,), device="cuda", check_invariants=True)
    with pytest.raises(RuntimeError, match="col_indices < ncols"):
        torch.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2], (2, 2), device="cuda", check_invariants=True)


def test_autocast_lowers_products(torch):
    s, x = dense(torch).to_sparse(), torch.ones(4, 2, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (s @ x).dtype is torch.bfloat16 and (s.double() @ x.double()).dtype is torch.float64
        assert (s.cpu() @ x.cpu()).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (s @ x).dtype is torch.float32
    assert (s @ x).dtype is torch.float32


def test_files(torch, tmp_path):
    s = dense(torch).to_sparse_csr()
    torch.save(s, tmp_path / "s.pt")
    assert is_on_gpu(torch.load(tmp_path / "s.pt")) and torch.load(tmp_path / "s.pt").to_dense().tolist() == s.to_dense().tolist()
    assert torch.load(tmp_path / "s.pt", map_location="cpu").device.type == "cpu"


def test_semi_structured_products(torch):
    w = torch.tensor([[0, 1.0, 0, 2], [3, 0, 0, -4]], dtype=torch.float16, device="cuda").repeat(8, 8)
    s, x = torch.sparse.to_sparse_semi_structured(w), torch.ones(32, 3, dtype=torch.float16, device="cuda")
    assert (s @ x).is_cuda and (s @ x).tolist() == (w @ x).tolist()
    assert s.to_dense().tolist() == w.tolist()


def test_products_in_captured_graphs(torch):
    s, x = dense(torch).to_sparse_csr(), torch.ones(4, 2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.sparse.mm(s, x) * 2
    for k in (1, 3):
        x.fill_(k)
        graph.replay()
        assert y.tolist() == (dense(torch).sum(1, keepdim=True) * 2 * k).expand(4, 2).tolist()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        assert torch.sparse.mm(s, x[:, :0]).shape == (4, 0)
    with pytest.raises(RuntimeError, match="capture|graph"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.to_sparse()


def test_repeated_steps_give_the_cpus_losses(torch):
    """Steps that repeat, whose launches are replayed, with products in both directions."""
    losses = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        d = (torch.rand(40, 30) > 0.8).float() * torch.rand(40, 30)
        s, x, w = d.to(device).to_sparse_csr(), torch.rand(30, 8).to(device), torch.rand(8, 4).to(device).requires_grad_()
        x.requires_grad_()
        optimizer, found = torch.optim.Adam([x, w], lr=0.05), []
        for _ in range(12):
            optimizer.zero_grad()
            loss = (torch.sparse.mm(s, x).relu() @ w - 1).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=1e-4, atol=1e-5)
    assert losses[1][-1] < losses[1][0] / 2


def random_calls(torch, rng) -> dict:
    """Calls of operators with components of random small tensors, some of whose indices are invalid, by name."""
    ops = torch._C.ops
    rows, columns, k, nnz = (int(n) for n in rng.integers(0, 6, 4))

    def indices(limit: int, count: int):
        found = rng.integers(0, max(limit, 1), count)
        for i in (rng.random(count) < 0.02).nonzero()[0]:
            found[i] = rng.choice([-1, limit, 2**31, -(2**62)])
        return torch.tensor(found)

    def matrix(rows: int, columns: int):
        starts = np.concatenate([[0], np.sort(rng.integers(0, nnz + 1, max(rows - 1, 0))), [nnz]])[: rows + 1]
        if rng.random() < 0.1:
            starts[rng.integers(0, rows + 1)] = rng.choice([-1, nnz + 1, 2**40])
        return torch.tensor(starts), indices(columns, nnz)

    (crow, col), (crow2, col2) = matrix(rows, columns), matrix(columns, 4)
    v, x, y = (torch.tensor(rng.standard_normal(size)) for size in ((nnz,), (columns, k), (rows, k)))
    coo, parts = torch.stack([indices(rows, 7), indices(columns, 7)]), torch.tensor(rng.standard_normal((7, 2)))
    size = [rows, columns]
    return {
        "mm": (lambda *a: ops.sparse_csr_mm(*a), (crow, col, v, x)),
        "mm_transposed": (lambda *a: ops.sparse_csr_mm_transposed(*a, columns), (crow, col, v, y)),
        "sddmm": (lambda *a: ops.sparse_csr_sddmm(*a), (crow, col, y, x)),
        "transpose": (lambda *a: ops.sparse_transpose(*a, columns), (crow, col)),
        "expand": (lambda *a: ops.sparse_expand(*a, nnz), (crow,)),
        "check": (lambda *a: ops.sparse_check_compressed(*a, rows, columns), (crow, col)),
        "matmul": (lambda *a: ops.sparse_csr_matmul(*a, 4), (crow, col, v, crow2, col2, v)),
        "compress": (lambda *a: ops.sparse_compress(*a, rows), (coo[0],)),
        "coalesce": (lambda *a: ops.sparse_coalesce(*a, size), (coo, parts)),
        "scatter": (lambda *a: ops.sparse_scatter(*a, size), (coo, parts)),
        "gather": (lambda *a: ops.sparse_gather(*a), (torch.tensor(rng.standard_normal((rows, columns, 2))), coo)),
        "union": (lambda *a: ops.sparse_union(*a, size), (coo[:, :2], coo[:, 2:4])),
        "intersection": (lambda *a: ops.sparse_intersection(*a, size), (coo[:, :2], coo[:, 2:4])),
        "softmax": (lambda *a: ops.sparse_softmax(*a, rows, False), (parts, coo[0])),
    }


@pytest.mark.parametrize("seed", range(4))
def test_random_components_give_the_cpus_results(torch, seed):
    """Results, or an error of the same kind: which of several invalid indices is reported may differ."""
    rng, computed, refused = np.random.default_rng(seed), 0, 0
    for _ in range(50):
        for name, (call, arguments) in random_calls(torch, rng).items():
            found = []
            for device in ("cpu", "cuda"):
                try:
                    results = call(*(t.to(device) for t in arguments))
                    found.append([t.tolist() for t in (results if isinstance(results, (tuple, list)) else [results])])
                except RuntimeError as error:
                    found.append(type(error))
            if any(isinstance(f, type) for f in found):
                if arguments[-1].numel() or name not in ("mm", "mm_transposed"):  # the CPU does not read indices there
                    assert found[0] is found[1], name
                refused += 1
                continue
            computed += 1
            for want, got in zip(*found, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=name)
    assert computed > 100 and refused > 100

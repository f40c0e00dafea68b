"""Random sparse matrices against scipy.sparse."""

from __future__ import annotations

import pytest

import teletensor as torch

scipy_sparse = pytest.importorskip("scipy.sparse")
np = pytest.importorskip("numpy")

SIZES = ((1, 1, 0.5), (7, 5, 0.0), (40, 30, 0.1), (200, 150, 0.02), (64, 64, 1.0))


def _pair(rows: int, columns: int, density: float, seed: int, layout: str):
    matrix = scipy_sparse.random(rows, columns, density, format="csr", random_state=seed, dtype=np.float64)
    matrix.sort_indices()
    t = torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr.astype(np.int64)), torch.from_numpy(matrix.indices.astype(np.int64)), torch.from_numpy(matrix.data),
        matrix.shape,
    )  # fmt: skip
    return matrix, t if layout == "csr" else t.to_sparse_csc() if layout == "csc" else t.to_sparse()


def _same(got, want) -> None:
    got = got.to_dense().numpy()
    np.testing.assert_allclose(got, want.toarray() if scipy_sparse.issparse(want) else want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_products_and_sums(layout: str) -> None:
    for seed, (rows, columns, density) in enumerate(SIZES):
        a, t = _pair(rows, columns, density, seed, layout)
        b, u = _pair(rows, columns, density / 2, seed + 50, layout)
        x = np.random.default_rng(seed).normal(size=(columns, 6))
        _same(t, a)
        _same(t @ torch.from_numpy(x), a @ x)
        _same(torch.from_numpy(x.T.copy()) @ t.transpose(0, 1), x.T @ a.T)
        _same(t @ u.transpose(0, 1), a @ b.T)
        _same(t + u, a + b)
        if layout != "csc":
            _same(t * u, a.multiply(b))
        _same(t.transpose(0, 1), a.T)
        assert abs(t.sum().item() - a.sum()) < 1e-9


def test_conversions() -> None:
    a, t = _pair(24, 36, 0.1, 3, "csr")
    for other in (t.to_sparse_csc(), t.to_sparse(), t.to_sparse_bsr((3, 4)), t.to_sparse_bsc((2, 6)), t.to_sparse_csc().to_sparse_csr()):
        _same(other, a)
    blocks = scipy_sparse.bsr_matrix(a, blocksize=(3, 4))
    blocks.sort_indices()
    bsr = t.to_sparse_bsr((3, 4))
    assert bsr.crow_indices().tolist() == blocks.indptr.tolist() and bsr.col_indices().tolist() == blocks.indices.tolist()
    np.testing.assert_array_equal(bsr.values().numpy(), blocks.data)


def test_reductions_and_rows() -> None:
    a, t = _pair(30, 20, 0.2, 5, "coo")
    _same(torch.sparse.sum(t, 0), np.asarray(a.sum(0)).ravel())
    _same(torch.sparse.sum(t, 1), np.asarray(a.sum(1)).ravel())
    assert abs(t.norm().item() - scipy_sparse.linalg.norm(a)) < 1e-12
    rows = [3, 3, 0, 29]
    _same(t.index_select(0, torch.tensor(rows)), a[rows])
    _same(torch.cat([t, t], 1), scipy_sparse.hstack([a, a]))


def test_triangular_solve() -> None:
    a = (scipy_sparse.tril(scipy_sparse.random(30, 30, 0.2, random_state=1)) + 2 * scipy_sparse.eye(30)).tocsr()
    a.sort_indices()
    x = np.random.default_rng(0).normal(size=(30, 4))
    t = torch.sparse_csr_tensor(*(torch.from_numpy(v) for v in (a.indptr.astype(np.int64), a.indices.astype(np.int64), a.data)), a.shape)
    got = torch.triangular_solve(torch.from_numpy(x), t, upper=False)[0]
    np.testing.assert_allclose(got.numpy(), scipy_sparse.linalg.spsolve_triangular(a, x, lower=True), rtol=1e-9)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("largest", [True, False])
def test_eigenvalues_of_sparse_matrices(layout: str, largest: bool) -> None:
    n, seed = 150, np.random.default_rng(1)
    a, _ = _pair(n, n, 0.02, 5, layout)
    symmetric = (a + a.T + scipy_sparse.diags(np.arange(n))).tocsr()
    t = torch.from_numpy(symmetric.toarray()).to_sparse(layout=getattr(torch, f"sparse_{layout}"))
    start = torch.from_numpy(seed.normal(size=(n, 5)))
    values, vectors = torch.lobpcg(t, k=3, X=start, largest=largest, tol=1e-10)
    expected = np.linalg.eigvalsh(symmetric.toarray())
    np.testing.assert_allclose(values.numpy(), expected[::-1][:3] if largest else expected[:3], rtol=1e-9)
    np.testing.assert_allclose((t @ vectors).numpy(), (vectors * values).numpy(), atol=1e-6)
    np.testing.assert_allclose((vectors.mT @ vectors).numpy(), np.eye(3), atol=1e-10)


def test_generalised_eigenvalues_of_sparse_matrices() -> None:
    n = 60
    a, b = np.diag(np.arange(1.0, n + 1)) + 0.5 * np.eye(n, k=1) + 0.5 * np.eye(n, k=-1), np.diag(np.linspace(1, 3, n))
    half = np.diag(b.diagonal() ** -0.5)
    expected = np.linalg.eigvalsh(half @ a @ half)
    t, u = (torch.from_numpy(x).to_sparse_csr() for x in (a, b))
    start = torch.from_numpy(np.random.default_rng(0).normal(size=(n, 3)))
    preconditioner = torch.from_numpy(np.diag(1 / a.diagonal())).to_sparse_csr()
    values, vectors = torch.lobpcg(t, k=2, B=u, X=start, iK=preconditioner, largest=False, tol=1e-10)
    np.testing.assert_allclose(values.numpy(), expected[:2], rtol=1e-9)
    np.testing.assert_allclose((vectors.mT @ (u @ vectors)).numpy(), np.eye(2), atol=1e-9)
    values, _ = torch.lobpcg(t, k=1, X=start, niter=1)
    assert 0.5 * n < values.item() < expected[-1] * 3  # one step only
    with pytest.raises(NotImplementedError, match="do not require grad"):
        torch.lobpcg(t.detach().requires_grad_(), k=1)
    with pytest.raises(ValueError, match="smaller than 3 x"):
        torch.lobpcg(t, k=40)

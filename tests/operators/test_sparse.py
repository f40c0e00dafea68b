"""Operators on components of sparse tensors, of sizes at which kernels use vectors, tiles and threads, beside SciPy; and
indices that are not valid."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

pytestmark = pytest.mark.usefixtures("device")  # on the CPU and on a GPU

TOLERANCES = {"float32": 1e-4, "float64": 1e-10, "float16": 2e-2, "bfloat16": 1e-1, "complex128": 1e-10, "int64": 0}
LARGEST = 2**63 - 1


def operators():
    """The functions of the operators."""
    from teletensor import _C

    return _C.ops


def matrix(rows: int, columns: int, density: float = 0.05, dtype: str = "float64", seed: int = 0) -> sp.csr_matrix:
    """A random CSR matrix with sorted columns; some rows are empty."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((rows, columns))
    if dtype == "complex128":
        dense = dense + 1j * rng.standard_normal((rows, columns))
    if dtype == "int64":
        dense = rng.integers(-5, 6, (rows, columns))
    dense[rng.random((rows, columns)) >= density] = 0
    dense[rows // 3] = 0
    result = sp.csr_matrix(dense.astype(dtype if dtype in ("complex128", "int64") else "float64"))
    result.sort_indices()
    return result


def components(torch, a: sp.csr_matrix, dtype: str = "float64") -> list:
    """The components of a matrix as tensors."""
    return [
        torch.tensor(a.indptr.astype("int64")),
        torch.tensor(a.indices.astype("int64")),
        torch.tensor(a.data).to(getattr(torch, dtype)),
    ]


def numbers(t) -> np.ndarray:
    """Values in a dtype of NumPy."""
    return (t.double() if t.is_floating_point() else t).cpu().numpy()


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("k", [1, 3, 7, 8, 16, 31, 33, 64, 130, 400])
def test_products(torch, k, dtype):
    a = matrix(97, 61, dtype=dtype)
    crow, col, values = components(torch, a, dtype)
    a.data = numbers(values)
    rng = np.random.default_rng(k)

    def operand(rows):
        dense = torch.tensor(rng.integers(-4, 5, (rows, k)) if dtype == "int64" else rng.standard_normal((rows, k)))
        dense = dense.to(getattr(torch, dtype))
        return dense, numbers(dense)

    (x, nx), (y, ny) = operand(61), operand(97)
    limits = {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype] * 8}
    ops = operators()
    np.testing.assert_allclose(numbers(ops.sparse_csr_mm(crow, col, values, x)), a @ nx, **limits)
    np.testing.assert_allclose(numbers(ops.sparse_csr_mm_transposed(crow, col, values, y, 61)), a.T @ ny, **limits)
    row = np.repeat(np.arange(97), np.diff(a.indptr))
    sampled = (ny[row] * nx[a.indices]).sum(1)
    limits["atol"] *= k**0.5
    np.testing.assert_allclose(numbers(ops.sparse_csr_sddmm(crow, col, y, x)), sampled, **limits)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_tiles(torch, dtype):
    """A dense operand that does not fit into the cache."""
    a, k = matrix(160, 1100, 0.1), 333
    x = np.random.default_rng(0).standard_normal((1100, k))
    crow, col, values = components(torch, a, dtype)
    assert len(a.data) >= 8 * 1100  # a copy of tiles pays
    product = operators().sparse_csr_mm(crow, col, values, torch.tensor(x).to(getattr(torch, dtype)))
    np.testing.assert_allclose(numbers(product), a @ x, rtol=1e-3, atol=TOLERANCES[dtype] * 8)


@pytest.mark.parametrize("blocks", [(1, 3), (2, 2), (4, 1), (8, 5)])
@pytest.mark.parametrize("k", [1, 20, 70])
def test_block_products(torch, blocks, k):
    p, q = blocks
    a = matrix(11 * p, 9 * q, 0.1).tobsr(blocks)
    x = np.random.default_rng(0).standard_normal((9 * q, k))
    crow, col = (torch.tensor(i.astype("int64")) for i in (a.indptr, a.indices))
    product = operators().sparse_bsr_mm(crow, col, torch.tensor(a.data), torch.tensor(x))
    np.testing.assert_allclose(numbers(product), a @ x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_matmul(torch, index):
    a, b = matrix(300, 200, seed=1), matrix(200, 150, seed=2)
    left, right = (components(torch, m) for m in (a, b))
    left, right = ([*(t.to(getattr(torch, index)) for t in c[:2]), c[2]] for c in (left, right))
    crow, col, values = operators().sparse_csr_matmul(*left, *right, 150)
    expected = (a @ b).tocsr()
    expected.sort_indices()
    np.testing.assert_array_equal(crow.cpu().numpy(), expected.indptr)
    np.testing.assert_array_equal(col.cpu().numpy(), expected.indices)
    np.testing.assert_allclose(values.cpu().numpy(), expected.data, rtol=1e-9, atol=1e-12)
    assert repr(col.dtype) == f"torch.{index}"


@pytest.mark.parametrize("size", [(40,), (50000,), (300, 200), (2**40, 2**40)])
def test_coalesce(torch, size):
    """Each way to sort: by counting, by digits, and by comparison."""
    rng = np.random.default_rng(0)
    few = rng.integers(0, [[min(n, 2**40)] for n in size], (len(size), 700))
    indices = np.concatenate([few, few[:, rng.permutation(700)[:300]]], 1)
    values = rng.standard_normal((1000, 5))
    columns, sums, inverse = operators().sparse_coalesce(torch.tensor(indices), torch.tensor(values), list(size))
    expected, places = np.unique(indices, axis=1, return_inverse=True)
    np.testing.assert_array_equal(columns.cpu().numpy(), expected)
    np.testing.assert_array_equal(inverse.cpu().numpy(), places.reshape(-1))
    total = np.zeros((expected.shape[1], 5))
    np.add.at(total, places.reshape(-1), values)
    np.testing.assert_allclose(sums.cpu().numpy(), total, rtol=1e-12, atol=1e-12)


def test_round_trip(torch):
    """Dense to COO, CSR, CSC and back."""
    ops, a = operators(), matrix(70, 50)
    dense = torch.tensor(a.toarray())
    indices = ops.sparse_nonzero(dense, 2)
    values = ops.sparse_gather(dense, indices)
    crow = ops.sparse_compress(indices[0], 70)
    np.testing.assert_array_equal(crow.cpu().numpy(), a.indptr)
    np.testing.assert_array_equal(indices[1].cpu().numpy(), a.indices)
    ccol, row, permutation = ops.sparse_transpose(crow, indices[1], 50)
    columns = a.tocsc()
    columns.sort_indices()
    np.testing.assert_array_equal(ccol.cpu().numpy(), columns.indptr)
    np.testing.assert_array_equal(row.cpu().numpy(), columns.indices)
    np.testing.assert_array_equal(values[permutation].cpu().numpy(), columns.data)
    back = ops.sparse_scatter(torch.stack([ops.sparse_expand(crow, len(values)), indices[1]]), values, [70, 50])
    np.testing.assert_array_equal(back.cpu().numpy(), a.toarray())


@pytest.mark.parametrize("maximize", [False, True])
def test_adam_step(torch, maximize):
    rng = np.random.default_rng(0)
    param, average, square = (rng.standard_normal((9, 37)) ** 2 for _ in range(3))
    rows, grad = np.array([4, 0, 8]), rng.standard_normal((3, 37))
    tensors = [torch.tensor(a) for a in (param, average, square)]
    operators().sparse_adam_step(*tensors, torch.tensor(rows), torch.tensor(grad), 0.1, 0.9, 0.99, 1e-8, 3, maximize)
    g = -grad if maximize else grad
    average[rows] += (g - average[rows]) * 0.1
    square[rows] += (g * g - square[rows]) * 0.01
    step = 0.1 * np.sqrt(1 - 0.99**3) / (1 - 0.9**3)
    param[rows] -= step * average[rows] / (np.sqrt(square[rows]) + 1e-8)
    for t, expected in zip(tensors, (param, average, square)):
        np.testing.assert_allclose(t.cpu().numpy(), expected, rtol=1e-12)


BAD_ROWS = [[0, 1, 9, 2], [1, 1, 1, 2], [0, -5, 1, 2], [0, 2, 1, 2], [0, 1, 1, LARGEST], [-LARGEST, 0, 0, 2]]
BAD_COLUMNS = [[0, 3], [-1, 0], [LARGEST, 0], [0, -LARGEST]]


def calls_of_csr(torch, crow, col) -> dict:
    """Calls with a 3 x 3 matrix of two entries, by operator."""
    ops, (crow, col) = operators(), (torch.tensor(i) for i in (crow, col))
    v, x, good = torch.ones(2), torch.ones(3, 4), (torch.tensor([0, 1, 1, 2]), torch.tensor([0, 2]))
    return {
        "mm": lambda: ops.sparse_csr_mm(crow, col, v, x),
        "mv": lambda: ops.sparse_csr_mm(crow, col, v, x[:, :1]),
        "mm of complex": lambda: ops.sparse_csr_mm(crow, col, v.to(torch.complex64), x.to(torch.complex64)),
        "mm of vectors": lambda: ops.sparse_csr_mm(crow, col, v, torch.ones(3, 300)),
        "mm_transposed": lambda: ops.sparse_csr_mm_transposed(crow, col, v, x, 3),
        "sddmm": lambda: ops.sparse_csr_sddmm(crow, col, x, x),
        "extremum": lambda: ops.sparse_csr_mm_extremum(crow, col, v, x, True),
        "bsr_mm": lambda: ops.sparse_bsr_mm(crow, col, torch.ones(2, 2, 2), torch.ones(6, 4)),
        "matmul": lambda: ops.sparse_csr_matmul(crow, col, v, *good, v, 3),
        "matmul, second": lambda: ops.sparse_csr_matmul(*good, v, crow, col, v, 3),
        "sampled, first": lambda: ops.sparse_csr_sampled_matmul(crow, col, v, *good, v, *good, 3),
        "sampled, second": lambda: ops.sparse_csr_sampled_matmul(*good, v, crow, col, v, *good, 3),
        "sampled, positions": lambda: ops.sparse_csr_sampled_matmul(*good, v, *good, v, crow, col, 3),
        "solve": lambda: ops.sparse_csr_triangular_solve(crow, col, v, x, True, False, False),
        "transpose": lambda: ops.sparse_transpose(crow, col, 3),
        "check": lambda: ops.sparse_check_compressed(crow, col, 3, 3),
    }


CALLS = ["mm", "mv", "mm of complex", "mm of vectors", "mm_transposed", "sddmm", "extremum", "bsr_mm", "matmul", "matmul, second",
         "sampled, first", "sampled, second", "sampled, positions", "solve", "transpose", "check"]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_invalid_csr(torch, call):
    """No index leads outside of a tensor: each raises, and the engine computes on."""
    cases = [(crow, [0, 2]) for crow in BAD_ROWS] + [([0, 1, 1, 2], col) for col in BAD_COLUMNS]
    for crow, col in cases:
        calls = calls_of_csr(torch, crow, col)
        assert list(calls) == CALLS
        with pytest.raises(RuntimeError, match="expected compressed indices|out of range|is not satisfied"):
            result = calls[call]()
            for t in result if isinstance(result, (tuple, list)) else [result]:
                t.tolist()
    assert torch.ones(2).neg().tolist() == [-1, -1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [3, 16, 32, 64])
def test_invalid_column_of_long_row(torch, dtype, k):
    """At every place of a row whose entries are added four at a time."""
    crow, values = torch.tensor([0, 0, 11, 13]), torch.ones(13, dtype=getattr(torch, dtype))
    x = torch.ones(12, k, dtype=values.dtype)
    for place in range(13):
        col = [*range(11), 0, 1]
        assert operators().sparse_csr_mm(crow, torch.tensor(col), values, x).tolist() == [[0.0] * k, [11.0] * k, [2.0] * k]
        col[place] = 12 + place
        with pytest.raises(RuntimeError, match=f"index {12 + place} is out of range"):
            operators().sparse_csr_mm(crow, torch.tensor(col), values, x).tolist()


@pytest.mark.parametrize("index", [3, -1, LARGEST, -LARGEST])
def test_invalid_coo(torch, index):
    ops, i = operators(), torch.tensor([[0, index], [1, 1]])
    good, written = torch.tensor([[0, 1], [1, 1]]), [torch.ones(3, 2) for _ in range(3)]
    for call in (
        lambda: ops.sparse_coalesce(i, torch.ones(2), [3, 3])[1],
        lambda: ops.sparse_unique(i, [3, 3])[1],
        lambda: ops.sparse_unique(i, [3, LARGEST])[1],
        lambda: ops.sparse_scatter(i, torch.ones(2), [3, 3]),
        lambda: ops.sparse_gather(torch.ones(3, 3), i),
        lambda: ops.sparse_union(i, good, [3, 3])[1],
        lambda: ops.sparse_intersection(good, i, [3, 3])[1],
        lambda: ops.sparse_softmax(torch.ones(2), i[0], 3, False),
        lambda: ops.sparse_compress(i[0], 3),
        lambda: ops.sparse_adam_step(*written, i[0], torch.ones(2, 2), 0.1, 0.9, 0.9, 1e-8, 1, False) or written[0],
    ):
        with pytest.raises(RuntimeError, match="out of range"):
            call().tolist()


def test_empty_dimensions(torch):
    """An index of an empty dimension is invalid too."""
    ops, one = operators(), torch.tensor([0])
    crow, v = torch.tensor([0, 1]), torch.ones(1)
    for call in (
        lambda: ops.sparse_csr_mm(crow, one, v, torch.ones(0, 2)),
        lambda: ops.sparse_csr_mm_transposed(crow, one, v, torch.ones(1, 2), 0),
        lambda: ops.sparse_csr_sddmm(crow, one, torch.ones(1, 2), torch.ones(0, 2)),
        lambda: ops.sparse_scatter(one[None], v, [0]),
        lambda: ops.sparse_compress(one, 0),
        lambda: ops.sparse_transpose(crow, one, 0)[0],
    ):
        with pytest.raises(RuntimeError, match="empty dimension|out of range"):
            call().tolist()

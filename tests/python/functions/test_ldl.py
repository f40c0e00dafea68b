"""linalg.ldl_factor and ldl_solve."""

import pytest

import teletensor as tt

DTYPES = [tt.float32, tt.float64, tt.complex64, tt.complex128]


def _lower(LD, pivots, hermitian):
    """A from its factors, by LAPACK's definition of sytrf's result."""
    n = LD.shape[-1]
    L, D, i = tt.eye(n, dtype=LD.dtype), tt.zeros(n, n, dtype=LD.dtype), 0
    while i < n:
        size = 1 if pivots[i] > 0 else 2
        block = LD[i : i + size, i : i + size].tril()
        D[i : i + size, i : i + size] = block + (block.tril(-1).mH if hermitian else block.tril(-1).mT)
        step = tt.eye(n, dtype=LD.dtype)
        step[i + size :, i : i + size] = LD[i + size :, i : i + size]
        swap, row = tt.eye(n, dtype=LD.dtype), i + size - 1
        other = abs(int(pivots[row])) - 1
        order = list(range(n))
        order[row], order[other] = order[other], order[row]
        L = L @ swap[order] @ step
        i += size
    return L @ D @ (L.mH if hermitian else L.mT)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_factors_and_solution(dtype, hermitian):
    tt.manual_seed(0)
    a = tt.randn(2, 5, 5, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    LD, pivots = tt.linalg.ldl_factor(a, hermitian=hermitian)
    for i in range(2):
        assert tt.allclose(_lower(LD[i], pivots[i], hermitian), a[i], atol=1e-4)
    b = tt.randn(2, 5, 3, dtype=dtype)
    x = tt.linalg.ldl_solve(LD, pivots, b, hermitian=hermitian)
    assert tt.allclose(a @ x, b, atol=1e-3)


def test_zero_block():
    factors = tt.linalg.ldl_factor_ex(tt.zeros(2, 2))
    assert factors.info.item() == 1
    with pytest.raises(RuntimeError, match="zero block"):
        tt.linalg.ldl_factor(tt.zeros(2, 2))


def test_empty():
    LD, pivots = tt.linalg.ldl_factor(tt.zeros(3, 0, 0))
    assert LD.shape == (3, 0, 0) and pivots.shape == (3, 0)


def test_there_is_no_gradient():
    a = tt.eye(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::linalg_ldl_factor_ex is not implemented"):
        tt.linalg.ldl_factor(a).LD.sum().backward()


def test_invalid_pivots():
    with pytest.raises(RuntimeError, match="expected pivots from 1 to 3"):
        tt.linalg.ldl_solve(tt.eye(3), tt.tensor([1, 9, 3], dtype=tt.int32), tt.ones(3, 1)).tolist()
    with pytest.raises(RuntimeError, match="two equal negative pivots"):
        tt.linalg.ldl_solve(tt.eye(3), tt.tensor([1, 2, -3], dtype=tt.int32), tt.ones(3, 1)).tolist()

"""`out=` tensors of another dtype than the result's: refused where PyTorch's kernels have a structured result, else cast."""

from __future__ import annotations

import pytest

REFUSED = [
    "logcumsumexp(x, 0, out=d(2, 2))", "svd(x, out=(d(2, 2), d(2), d(2, 2)))", "linalg.svd(x, out=(d(2, 2), d(2), d(2, 2)))",
    "linalg.qr(x, out=(d(2, 2), d(2, 2)))", "qr(x, out=(d(2, 2), d(2, 2)))", "linalg.eigh(x, out=(d(2), d(2, 2)))",
    "linalg.slogdet(x, out=(d(), d()))", "slogdet(x, out=(d(), d()))", "linalg.inv_ex(x, out=(d(2, 2), i()))", "inverse(x, out=d(2, 2))",
    "linalg.cholesky_ex(x, out=(d(2, 2), i()))", "linalg.lu_factor(x, out=(d(2, 2), i(2)))", "linalg.ldl_factor(x, out=(d(2, 2), i(2)))",
    "linalg.lu(x, out=(d(2, 2), d(2, 2), d(2, 2)))", "linalg.solve_ex(x, x, out=(d(2, 2), i()))",
    "triangular_solve(x, x, out=(d(2, 2), d(2, 2)))", "histogram(x, 2, out=(d(2), d(3)))", "linalg.cholesky(x, out=d(2, 2))",
]  # fmt: skip
CAST = [
    "linalg.pinv(x, out=d(2, 2))", "linalg.eigvals(x, out=empty(2, dtype=complex128))", "linalg.cond(x, out=d())",
    "cholesky_inverse(x, out=d(2, 2))", "linalg.tensorinv(x, ind=1, out=d(2, 2))", "linalg.householder_product(x, x[0], out=d(2, 2))",
]  # fmt: skip


def _names(torch) -> dict:
    names = {name: getattr(torch, name) for name in dir(torch)}
    names |= {"d": lambda *s: torch.empty(s, dtype=torch.float64), "i": lambda *s: torch.empty(s, dtype=torch.int32)}
    return names | {"x": torch.tensor([[2.0, 1.0], [1.0, 2.0]])}


@pytest.mark.parametrize("call", REFUSED)
def test_refused(torch, call):
    with pytest.raises(RuntimeError, match="(?i)expected out tensor to have dtype|but got|dtype"):
        eval(f"torch.{call}", {**_names(torch), "torch": torch})


@pytest.mark.parametrize("call", CAST)
def test_cast(torch, call):
    names = {**_names(torch), "torch": torch}
    plain = eval(f"torch.{call[: call.index(', out=')]})", names)
    assert eval(f"torch.{call}", names).to(plain.dtype).allclose(plain)

"""Functions that check values raise their error before they return, as PyTorch does, so that its handler is entered."""

from __future__ import annotations

import pytest

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
COLUMN = [[1.0, 0.0], [1.0, 0.0]]
NAN = [[float("nan"), 1.0], [1.0, 2.0]]

RAISING = {
    "linalg.inv": (lambda t, a: t.linalg.inv(a), SINGULAR),
    "inverse": (lambda t, a: a.inverse(), SINGULAR),
    "linalg.inv(out=)": (lambda t, a: t.linalg.inv(a, out=t.empty(2, 2)), SINGULAR),
    "linalg.inv_ex(check_errors)": (lambda t, a: t.linalg.inv_ex(a, check_errors=True), SINGULAR),
    "linalg.solve": (lambda t, a: t.linalg.solve(a, t.ones(2)), SINGULAR),
    "linalg.solve(left=False)": (lambda t, a: t.linalg.solve(a, t.ones(3, 2), left=False), SINGULAR),
    "linalg.tensorinv": (lambda t, a: t.linalg.tensorinv(a, ind=1), SINGULAR),
    "linalg.tensorsolve": (lambda t, a: t.linalg.tensorsolve(a, t.ones(2)), SINGULAR),
    "linalg.matrix_power": (lambda t, a: t.linalg.matrix_power(a, -1), SINGULAR),
    "linalg.lu_factor": (lambda t, a: t.linalg.lu_factor(a), SINGULAR),
    "linalg.cholesky": (lambda t, a: t.linalg.cholesky(a), INDEFINITE),
    "cholesky": (lambda t, a: a.cholesky(), INDEFINITE),
    "batched linalg.cholesky": (lambda t, a: t.linalg.cholesky(t.stack([t.eye(2), a])), INDEFINITE),
    "linalg.cholesky_ex(check_errors)": (lambda t, a: t.linalg.cholesky_ex(a, check_errors=True), INDEFINITE),
    "linalg.lu_factor_ex(check_errors)": (lambda t, a: t.linalg.lu_factor_ex(a, check_errors=True), SINGULAR),
    "linalg.solve_ex(check_errors)": (lambda t, a: t.linalg.solve_ex(a, t.ones(2), check_errors=True), SINGULAR),
    "linalg.ldl_factor": (lambda t, a: t.linalg.ldl_factor(t.zeros_like(a)), SINGULAR),
    "linalg.ldl_factor_ex(check_errors)": (lambda t, a: t.linalg.ldl_factor_ex(t.zeros_like(a), check_errors=True), SINGULAR),
    "linalg.lstsq": (lambda t, a: t.linalg.lstsq(a, t.ones(2, 1)), NAN),
    "linalg.lstsq(gelsd)": (lambda t, a: t.linalg.lstsq(a, t.ones(2, 1), driver=None if a.is_cuda else "gelsd"), NAN),
    "linalg.lstsq(gels)": (lambda t, a: t.linalg.lstsq(a, t.ones(2, 1), driver="gels"), COLUMN),
    "linalg.eigh": (lambda t, a: t.linalg.eigh(a), NAN),
    "linalg.eigvalsh": (lambda t, a: t.linalg.eigvalsh(a), NAN),
    "linalg.eig": (lambda t, a: t.linalg.eig(a), NAN),
    "linalg.eigvals": (lambda t, a: t.linalg.eigvals(a), NAN),
    "linalg.svd": (lambda t, a: t.linalg.svd(a), NAN),
    "linalg.svdvals": (lambda t, a: t.linalg.svdvals(a), NAN),
    "linalg.pinv": (lambda t, a: t.linalg.pinv(a), NAN),
    "linalg.matrix_rank": (lambda t, a: t.linalg.matrix_rank(a), NAN),
    "linalg.norm(nuc)": (lambda t, a: t.linalg.norm(a, ord="nuc"), NAN),
    "linalg.cond": (lambda t, a: t.linalg.cond(a), NAN),
    "linalg.pinv(hermitian)": (lambda t, a: t.linalg.pinv(a, hermitian=True), NAN),
    "svd_lowrank": (lambda t, a: t.svd_lowrank(a), NAN),
    "lobpcg": (lambda t, a: t.lobpcg(t.eye(9) * a[0, 0], k=2), NAN),
}


@pytest.mark.parametrize("name", RAISING)
def test_the_call_raises(torch, name):
    function, values = RAISING[name]
    with pytest.raises(RuntimeError) as caught:
        function(torch, torch.tensor(values))
    assert type(caught.value) is torch.linalg.LinAlgError or "linalg.ldl" in str(caught.value)
    torch.synchronize()  # nothing of it is pending


@pytest.mark.parametrize("name", [name for name in RAISING if name != "linalg.inv(out=)" and "ldl" not in name])
def test_gradients_are_recorded_after_the_wait(torch, name):
    function, _ = RAISING[name]
    x = torch.tensor([[2.0, 0.5], [0.5, 1.0]], requires_grad=True)
    result = function(torch, x)
    result = result if isinstance(result, torch.Tensor) else result[0]
    if result.requires_grad:
        (result.abs().sum()).backward()
        assert x.grad.isfinite().all()


def test_forms_that_return_their_status_do_not_wait(torch):
    with torch.no_sync():
        a = torch.tensor(SINGULAR)
        results = [torch.linalg.inv_ex(a), torch.linalg.cholesky_ex(a), torch.linalg.lu_factor_ex(a), torch.linalg.det(a)]
    assert results[0].info.item() == 2


def test_waits_are_reported(torch):
    torch.synchronize()
    with pytest.raises(RuntimeError, match="wait"), torch.no_sync():
        torch.linalg.cholesky(torch.eye(2))


def test_jitter_is_added(torch):
    a, jitter = torch.ones(3, 3), 1e-6
    while True:
        try:
            factor = torch.linalg.cholesky(a + jitter * torch.eye(3))
            break
        except torch.linalg.LinAlgError:
            jitter *= 10
    assert factor.isfinite().all()


def test_captures_do_not_wait(torch):
    graph = torch.fx.experimental.proxy_tensor.make_fx(torch.linalg.cholesky)(torch.eye(2))
    with pytest.raises(RuntimeError, match="positive-definite"):
        graph(torch.tensor(INDEFINITE)).tolist()
    compiled = torch.compile(lambda a: torch.linalg.inv(a) + 1)
    assert compiled(torch.eye(2)).tolist() == [[2, 1], [1, 2]]
    with pytest.raises(RuntimeError, match="singular"):
        compiled(torch.tensor(SINGULAR)).tolist()
    assert torch.linalg.cholesky(torch.empty(2, 2, device="meta")).shape == (2, 2)


def test_waits_are_counted(torch):
    torch.linalg.cholesky(torch.eye(3))
    torch.linalg.cholesky_ex(torch.eye(3))
    lines = [line for line in torch.sync_report(limit=10**6).splitlines() if "test_waits_are_counted" in line]
    assert len(lines) == 1 and " 1 x " in lines[0] and " read " in lines[0]


def test_gels_of_zeros(torch):
    """LAPACK's gels returns zero for a matrix of zeros, beside solutions of the others."""
    x = torch.stack([torch.zeros(2, 2), torch.eye(2)]).requires_grad_()
    solution = torch.linalg.lstsq(x, torch.ones(2, 2, 1), driver="gels").solution
    assert solution.flatten().tolist() == [0, 0, 1, 1]
    solution.sum().backward()
    assert x.grad[0].tolist() == [[0, 0], [0, 0]] and x.grad[1].tolist() == [[-1, -1], [-1, -1]]

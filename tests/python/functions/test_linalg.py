"""torch.linalg, compared with NumPy and SciPy on every device; first and second gradients by finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg

pytestmark = pytest.mark.usefixtures("device")

# Results that are specific to LAPACK.
ON_CPU = pytest.mark.parametrize("device", ["cpu"], indirect=True)


def random(*size, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *size]).standard_normal(size)


def square(*batch, n: int = 3, seed: int = 0) -> np.ndarray:
    """Well-conditioned matrices, not symmetric."""
    return random(*batch, n, n, seed=seed) + 3 * np.eye(n)


def positive(*batch, n: int = 3) -> np.ndarray:
    a = random(*batch, n, n)
    return a @ np.swapaxes(a, -1, -2) + n * np.eye(n)


def close(actual, expected, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(actual.detach().cpu().numpy(), expected, rtol=tolerance, atol=tolerance)


VALUES = {
    "inv": (lambda t, a: t.linalg.inv(a), np.linalg.inv, square(2)),
    "det": (lambda t, a: t.linalg.det(a), np.linalg.det, square(2, 2)),
    "det of a singular matrix": (lambda t, a: t.det(a), np.linalg.det, np.ones([2, 2])),
    "slogdet": (lambda t, a: t.linalg.slogdet(a), lambda a: tuple(np.linalg.slogdet(a)), random(5, 3, 3)),
    "logdet": (lambda t, a: t.logdet(a), lambda a: np.linalg.slogdet(a)[1], positive(2)),
    "cholesky": (lambda t, a: t.linalg.cholesky(a), np.linalg.cholesky, positive(2)),
    "cholesky upper": (lambda t, a: a.cholesky(upper=True), lambda a: np.linalg.cholesky(a).T, positive()),
    "cholesky_inverse": (lambda t, a: t.cholesky_inverse(t.linalg.cholesky(a)), np.linalg.inv, positive(2)),
    "eigvalsh": (lambda t, a: t.linalg.eigvalsh(a), np.linalg.eigvalsh, positive(2)),
    "svdvals": (lambda t, a: t.linalg.svdvals(a), lambda a: np.linalg.svd(a)[1], random(2, 3, 4)),
    "pinv tall": (lambda t, a: t.linalg.pinv(a), np.linalg.pinv, random(2, 4, 3)),
    "pinv wide": (lambda t, a: a.pinverse(), np.linalg.pinv, random(3, 4)),
    "pinv hermitian": (lambda t, a: t.linalg.pinv(a, hermitian=True), np.linalg.pinv, positive()),
    "pinv of low rank": (lambda t, a: t.linalg.pinv(a), np.linalg.pinv, random(4, 2) @ random(2, 3, seed=1)),
    "matrix_rank": (lambda t, a: t.linalg.matrix_rank(a), np.linalg.matrix_rank, random(4, 2) @ random(2, 4, seed=1)),
    "matrix_power": (lambda t, a: t.linalg.matrix_power(a, 5), lambda a: np.linalg.matrix_power(a, 5), square(2)),
    "matrix_power -2": (lambda t, a: a.matrix_power(-2), lambda a: np.linalg.matrix_power(a, -2), square()),
    "matrix_exp": (lambda t, a: t.linalg.matrix_exp(a), scipy.linalg.expm, square(2)),
    "cond": (lambda t, a: t.linalg.cond(a), np.linalg.cond, square(2)),
    "cond 1": (lambda t, a: t.linalg.cond(a, 1), lambda a: np.linalg.cond(a, 1), square()),
    "norm": (lambda t, a: t.linalg.norm(a), np.linalg.norm, random(3, 4)),
    "vander": (lambda t, a: t.linalg.vander(a, N=4), lambda a: np.vander(a, 4, True), random(3)),
    "tensorinv": (lambda t, a: t.linalg.tensorinv(a, 1), lambda a: np.linalg.tensorinv(a, 1), random(6, 2, 3)),
    "matrix_sqrth": (lambda t, a: t.linalg.matrix_sqrth(a), lambda a: np.stack([scipy.linalg.sqrtm(m) for m in a]), positive(2)),
    "polar": (lambda t, a: t.linalg.polar(a), lambda a: scipy.linalg.polar(a), random(4, 3)),
    "lu": (lambda t, a: t.linalg.lu(a), lambda a: scipy.linalg.lu(a), random(2, 4, 3)),
    "householder_product": (
        lambda t, a: t.linalg.householder_product(*t.geqrf(a)), lambda a: np.linalg.qr(a)[0], random(4, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(torch, name):
    ours, theirs, a = VALUES[name]
    actual, expected = ours(torch, torch.tensor(a)), theirs(a)
    for x, y in zip(actual, expected) if isinstance(expected, tuple) else [(actual, expected)]:
        close(x, y)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms(torch, ord):
    a = random(3, 4)
    close(torch.linalg.matrix_norm(torch.tensor(a), ord), np.linalg.norm(a, ord))
    b = random(2, 3, 4)
    ours = torch.linalg.norm(torch.tensor(b), ord, (0, 2), True)
    close(ours, np.linalg.norm(b, ord, (0, 2), keepdims=True))


@pytest.mark.parametrize("shapes", [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 4)), ((3, 3), (2, 3, 4))], ids=str)
def test_solve(torch, shapes):
    a, b = square(*shapes[0][:-2]), random(*shapes[1])
    A, B = torch.tensor(a), torch.tensor(b)
    expected = np.linalg.solve(a, b) if b.ndim > 1 else np.linalg.solve(a, b[:, None])[:, 0]
    close(torch.linalg.solve(A, B), expected)
    LU, pivots = torch.linalg.lu_factor(A)
    if b.ndim > 1:
        close(torch.linalg.lu_solve(LU, pivots, B), expected)
        at = np.swapaxes(a, -1, -2)
        close(torch.linalg.lu_solve(LU, pivots, B, adjoint=True), np.linalg.solve(at, b))
        close(torch.linalg.solve(A, B.mT, left=False), np.swapaxes(np.linalg.solve(at, b), -1, -2))
        S = A @ A.mT
        close(torch.cholesky_solve(B, torch.linalg.cholesky(S)), np.linalg.solve(a @ at, b))


@pytest.mark.parametrize("size", [(4, 3), (3, 4), (3, 3), (2, 4, 3), (20, 18)], ids=str)
def test_factors_multiply_to_the_matrix(torch, size):
    a = random(*size)
    A = torch.tensor(a)
    for full in (False, True):
        U, S, Vh = torch.linalg.svd(A, full)
        k = S.shape[-1]
        close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a)
        close(U.mT @ U, np.broadcast_to(np.eye(U.shape[-1]), U.mT.shape[:-2] + (U.shape[-1],) * 2))
        close(S, np.linalg.svd(a)[1])
    for mode in ("reduced", "complete"):
        Q, R = torch.linalg.qr(A, mode)
        close(Q @ R, a)
        close(R, np.linalg.qr(a, mode)[1])
    S = A.mT @ A
    values, vectors = torch.linalg.eigh(S)
    close((vectors * values.unsqueeze(-2)) @ vectors.mT, S.cpu().numpy())


@pytest.mark.parametrize("shapes", [((5, 3), (5, 2)), ((5, 3), (5,)), ((3, 5), (3, 2))], ids=str)
@pytest.mark.parametrize("driver", [None, "gels", "gelsd"])
def test_lstsq(torch, shapes, driver):
    a, b = (random(*s) for s in shapes)
    expected = np.linalg.lstsq(a, b, rcond=None)
    result = torch.linalg.lstsq(torch.tensor(a), torch.tensor(b), driver=driver)
    close(result.solution, expected[0])
    if driver == "gelsd":
        close(result.singular_values, expected[3])
        assert result.rank.item() == expected[2]
        if a.shape[0] > a.shape[1]:
            close(result.residuals, expected[1].reshape(result.residuals.shape))


def test_products(torch):
    parts = [random(3, 4), random(4, 2), random(2, 5), random(5)]
    close(torch.linalg.multi_dot([torch.tensor(p) for p in parts]), np.linalg.multi_dot(parts))
    a, b = random(4, 6, 8, 3), random(4, 6)
    close(torch.linalg.tensorsolve(torch.tensor(a), torch.tensor(b)), np.linalg.tensorsolve(a, b), 1e-8)
    x, y = random(2, 3), random(4, 1, 3)
    close(torch.linalg.cross(torch.tensor(x).unsqueeze(0), torch.tensor(y)), np.cross(x, y))
    close(torch.linalg.vecdot(torch.tensor(x), torch.tensor(y)), (x * y).sum(-1))


# The differentiated functions are invariant under the arbitrary signs of vectors.
GRADIENTS = {
    "inv": (lambda t, a: t.linalg.inv(a), square(2)),
    "det": (lambda t, a: t.linalg.det(a), square(2)),
    "slogdet": (lambda t, a: t.linalg.slogdet(a)[1], square(2)),
    "solve": (lambda t, a, b: t.linalg.solve(a, b), square(2), random(3, 2)),
    "solve from the right": (lambda t, a, b: t.linalg.solve(a, b, left=False), square(), random(2, 3)),
    "lu_factor": (lambda t, a: t.linalg.lu_factor(a)[0], square()),
    "lu wide": (lambda t, a: t.linalg.lu(a)[1:], random(2, 3)),
    "lu tall": (lambda t, a: t.linalg.lu(a)[1:], random(3, 2)),
    "lu_solve": (lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b), square(), random(3, 2)),
    "cholesky": (lambda t, a: t.linalg.cholesky(a @ a.mT), square(2)),
    "cholesky upper": (lambda t, a: t.linalg.cholesky(a @ a.mT, upper=True), square()),
    "qr": (lambda t, a: t.linalg.qr(a), random(4, 3)),
    "qr wide": (lambda t, a: t.linalg.qr(a), random(2, 3)),
    "eigh": (lambda t, a: [(r := t.linalg.eigh(a + a.mT))[0], r[1].abs()], square()),
    "eigvalsh": (lambda t, a: t.linalg.eigvalsh(a + a.mT), square(2)),
    "svd": (lambda t, a: [(r := t.linalg.svd(a, False))[0].abs(), r[1], r[2].abs()], random(4, 3)),
    "svd wide": (lambda t, a: [(r := t.linalg.svd(a, False))[0].abs(), r[1], r[2].abs()], random(2, 3)),
    "svdvals": (lambda t, a: t.linalg.svdvals(a), random(3, 2)),
    "matrix_sqrth": (lambda t, a: t.linalg.matrix_sqrth(a @ a.mT), square()),
    "matrix_sqrth of equal eigenvalues": (lambda t, a: t.linalg.matrix_sqrth((a + a.mT) / 2), np.diag([2.0, 3.0, 2.0])),
    "matrix_sqrth complex": (lambda t, a: t.linalg.matrix_sqrth((a + a.mH) / 2), 2 * np.eye(2) + 0j),
    "polar": (lambda t, a: t.linalg.polar(a), random(3, 2)),
    "polar of orthonormal columns": (lambda t, a: t.linalg.polar(a), np.eye(3)[:, [2, 0]]),
    "pinv": (lambda t, a: t.linalg.pinv(a), random(3, 2)),
    "pinv wide": (lambda t, a: t.linalg.pinv(a), random(2, 3)),
    "lstsq": (lambda t, a, b: t.linalg.lstsq(a, b).solution, random(4, 2), random(4, 2, seed=1)),
    "matrix_exp": (lambda t, a: t.matrix_exp(a), random(2, 2, 2)),
    "nuclear norm": (lambda t, a: t.linalg.matrix_norm(a, "nuc"), random(3, 2)),
    "cond": (lambda t, a: t.linalg.cond(a), square()),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(torch, name):
    function, *arrays = GRADIENTS[name]
    inputs = [torch.tensor(a).requires_grad_() for a in arrays]
    assert torch.autograd.gradcheck(lambda *x: function(torch, *x), inputs, atol=1e-5, rtol=1e-4)
    assert torch.autograd.gradgradcheck(lambda *x: function(torch, *x), inputs, atol=1e-4, rtol=1e-3)


ONES = np.ones((2, 2))
# (function, derivative in the direction of ones) at the identity, whose eigenvalues and singular values are equal.
AT_THE_IDENTITY = {
    "matrix_sqrth": (lambda t, a: t.linalg.matrix_sqrth(a), ONES / 2),
    "polar": (lambda t, a: t.linalg.polar(a).H, ONES),
    "eigvalsh": (lambda t, a: t.linalg.eigh(a).eigenvalues.sum(), np.eye(2)),
    "svdvals": (lambda t, a: t.linalg.svd(a).S.sum(), np.eye(2)),
    "eigh": (lambda t, a: (r := t.linalg.eigh(a)).eigenvectors * r.eigenvalues.sqrt() @ r.eigenvectors.mT, np.full((2, 2), np.nan)),
    "svd": (lambda t, a: (r := t.linalg.svd(a)).Vh.mT * r.S @ r.Vh, np.full((2, 2), np.nan)),
}


@pytest.mark.parametrize("name", AT_THE_IDENTITY)
def test_gradients_at_equal_eigenvalues(torch, name):
    """The derivative, or NaN where it depends on vectors that are not unique, as in PyTorch; never another number."""
    function, expected = AT_THE_IDENTITY[name]
    a = torch.eye(2, dtype=torch.float64).requires_grad_()
    function(torch, a).sum().backward()
    close(a.grad, expected)


@pytest.mark.parametrize("name", ["matrix_sqrth", "polar"])
def test_forward_derivatives_at_equal_eigenvalues(torch, name):
    function, expected = AT_THE_IDENTITY[name]
    identity, ones = torch.eye(2, dtype=torch.float64), torch.ones(2, 2, dtype=torch.float64)
    close(torch.func.jvp(lambda a: function(torch, a), (identity,), (ones,))[1], expected)
    (batch,) = torch.func.vmap(torch.func.grad(lambda a: function(torch, a).sum()))(identity[None])
    close(batch, expected)


def test_gradient_of_a_singular_determinant_is_the_adjugate(torch):
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    torch.linalg.det(a).backward()
    close(a.grad, [[4.0, -2.0], [-2.0, 1.0]])
    (recorded,) = torch.autograd.grad(torch.linalg.det(a), [a], create_graph=True)
    close(recorded, [[4.0, -2.0], [-2.0, 1.0]])
    (second,) = torch.autograd.grad(recorded.square().sum(), [a])
    close(second, [[2.0, 4.0], [4.0, 8.0]])


@pytest.mark.parametrize("complex", [False, True])
def test_second_derivatives_of_singular_and_regular_determinants(torch, complex):
    """cofactor(A) of 2x2 matrices is linear in A, so both derivatives are known."""
    a = np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 5.0]], [[0.0, 1.0], [0.0, 3.0]]])
    if complex:
        a = a * np.array([1 + 2j, 2 - 1j, 1j]).reshape(3, 1, 1)
    t = torch.tensor(a, requires_grad=True)
    weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    (slope,) = torch.autograd.grad((torch.linalg.det(t) * weight).real.sum(), [t], create_graph=True)
    cofactors = np.stack([[[m[1, 1], -m[1, 0]], [-m[0, 1], m[0, 0]]] for m in a.conj()])
    close(slope, cofactors * weight.cpu().numpy().reshape(3, 1, 1), 1e-9)
    if complex:  # the gradient of singular vectors divides by the singular values, as PyTorch's does
        return
    (second,) = torch.autograd.grad(slope[:, 0, 1].sum(), [t])
    close(second, np.array([[0.0, 0.0], [-1.0, 0.0]]) * weight.cpu().numpy().reshape(3, 1, 1), 1e-9)


@pytest.mark.parametrize("diagonal", [[0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
def test_recorded_gradient_of_a_determinant_requires_distinct_singular_values(torch, diagonal):
    a = torch.tensor(np.diag(diagonal), requires_grad=True)
    (slope,) = torch.autograd.grad(torch.linalg.det(a), [a])
    close(slope, np.diag([np.prod(np.delete(diagonal, i)) for i in range(len(diagonal))]))
    with pytest.raises(NotImplementedError, match="a singular matrix with equal singular values"):
        torch.autograd.grad(torch.linalg.det(a), [a], create_graph=True)[0].sum().item()


ERRORS = [
    (lambda t: t.linalg.inv(t.ones(2, 2)), "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed"),
    (lambda t: t.linalg.inv(t.ones(3, 2, 2)), r"\(Batch element 0\): The diagonal element 2 is zero"),
    (lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2)), "torch.linalg.solve: The solver failed because the input matrix is singular"),
    (lambda t: t.linalg.cholesky(-t.eye(2)), "leading minor of order 1 is not positive-definite"),
    (lambda t: t.linalg.lu_factor(t.zeros(2, 2)), r"U\[1,1\] is zero"),
    (lambda t: t.linalg.eigh(t.full([2, 2], t.nan)), "linalg.eigh: The algorithm failed to converge"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_unsolvable_systems_raise_linalg_error(torch, call, message):
    with pytest.raises(torch.linalg.LinAlgError, match=message):
        result = call(torch)
        (result[0] if isinstance(result, tuple) else result).tolist()
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)
    assert torch.linalg.inv_ex(torch.zeros(2, 2)).info.item() == 1


def test_invalid_arguments(torch):
    with pytest.raises(RuntimeError, match="linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"):
        torch.linalg.inv(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="Low precision dtypes not supported. Got Half"):
        torch.linalg.qr(torch.ones(2, 2).half())
    with pytest.raises(RuntimeError, match=r"Incompatible shapes of A and B for the equation AX = B \(3x3 and 2x2\)"):
        torch.linalg.solve(torch.eye(3), torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        x = torch.ones(3, 2, requires_grad=True)
        torch.autograd.grad(torch.linalg.qr(x, "complete")[1].sum(), [x])[0].tolist()


def complex_matrices(*sizes):
    rng = np.random.default_rng(sum(sizes))
    return rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_matrices(torch, dtype):
    a, b = complex_matrices(2, 4, 4), complex_matrices(2, 4, 3)
    t, right = torch.tensor(a.astype(dtype)), torch.tensor(b.astype(dtype))
    limit = {"rtol": 2e-4, "atol": 2e-4} if dtype == "complex64" else {"rtol": 1e-10, "atol": 1e-10}

    def same(actual, expected):
        np.testing.assert_allclose(actual.numpy(force=True) if hasattr(actual, "numpy") else actual, expected, **limit)

    linalg, hermitian = torch.linalg, a @ a.conj().swapaxes(1, 2) + np.eye(4)
    h = torch.tensor(hermitian.astype(dtype))
    same(linalg.inv(t), np.linalg.inv(a))
    same(linalg.solve(t, right), np.linalg.solve(a, b))
    same(linalg.det(t), np.linalg.det(a))
    sign, size = linalg.slogdet(t)
    same(sign * size.exp(), np.linalg.det(a))
    assert not size.is_complex() and sign.is_complex()
    same(linalg.cholesky(h), np.linalg.cholesky(hermitian))
    same(linalg.cholesky(h, upper=True), np.linalg.cholesky(hermitian).conj().swapaxes(1, 2))
    same(torch.cholesky_solve(right, linalg.cholesky(h)), np.linalg.solve(hermitian, b))
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(right, mode)
        same(q @ r, b)
        same(q.mH @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:1] + (q.shape[-1],) * 2))
    same(linalg.householder_product(*torch.geqrf(right)), linalg.qr(right).Q.numpy(force=True))
    same(torch.ormqr(*torch.geqrf(right), right, True, True)[:, :3], linalg.qr(right).R.numpy(force=True))
    p, lower, upper = linalg.lu(t)
    same(p @ lower @ upper, a)
    same(linalg.lu_solve(*linalg.lu_factor(t), right, adjoint=True), np.linalg.solve(a.conj().swapaxes(1, 2), b))
    values, vectors = linalg.eigh(h)
    assert not values.is_complex()
    same(vectors @ (values.unsqueeze(-1) * vectors.mH), hermitian)
    same(linalg.eigvalsh(h, UPLO="U"), np.linalg.eigvalsh(hermitian))
    u, s, vh = linalg.svd(right, full_matrices=False)
    same(u @ (s.unsqueeze(-1) * vh), b)
    same(linalg.svdvals(right), np.linalg.svd(b)[1])
    same(linalg.pinv(right), np.linalg.pinv(b))
    same(linalg.matrix_exp(t / 4), np.stack([scipy.linalg.expm(m / 4) for m in a]))
    same(linalg.lstsq(t, right).solution, np.linalg.solve(a, b))
    same(linalg.matrix_norm(t, "nuc"), np.linalg.norm(a, "nuc", (1, 2)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_eigenvalues_of_any_matrix(torch, dtype):
    a = complex_matrices(3, 5, 5)
    a = a.real if dtype == "float64" else a
    values, vectors = torch.linalg.eig(torch.tensor(a))
    assert values.dtype is vectors.dtype is torch.complex128
    np.testing.assert_allclose(a @ vectors.numpy(force=True), vectors.numpy(force=True) * values.numpy(force=True)[:, None], atol=1e-10)
    np.testing.assert_allclose(vectors.abs().square().sum(-2).numpy(force=True), np.ones((3, 5)))
    by_size = lambda v: np.take_along_axis(v, np.lexsort((v.imag, v.real)), -1)  # noqa: E731
    np.testing.assert_allclose(by_size(torch.linalg.eigvals(torch.tensor(a)).numpy(force=True)), by_size(np.linalg.eigvals(a)), atol=1e-10)


@ON_CPU
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [4, 40])
def test_pivots_and_signs_equal_lapacks(torch, dtype, n):
    """Pivots, the order of eigenvalues, and signs and phases of vectors equal LAPACK's, as in PyTorch and SciPy."""
    a = complex_matrices(n, n)
    a = a.real if dtype == "float64" else a
    hermitian = a + a.conj().T
    t, h = torch.tensor(a), torch.tensor(hermitian)

    def same(ours, theirs):
        np.testing.assert_allclose(ours.numpy(force=True), theirs, atol=1e-9)

    packed, exchanges = scipy.linalg.lu_factor(a)
    factors = torch.linalg.lu_factor(t)
    np.testing.assert_array_equal(factors.pivots.numpy(force=True), exchanges + 1)
    same(factors.LU, packed)
    values, vectors = scipy.linalg.eig(a)
    ours = torch.linalg.eig(t)
    same(ours.eigenvalues, values)
    if dtype == "float64":  # LAPACK versions differ in the sign of a pair's vectors
        vectors *= np.sign((ours.eigenvectors.numpy(force=True).conj() * vectors).sum(0).real)
    same(ours.eigenvectors, vectors)
    same(torch.linalg.eigvals(t), scipy.linalg.eigvals(a))
    for uplo in "LU":
        values, vectors = scipy.linalg.eigh(hermitian, lower=uplo == "L", driver="evd")
        same(torch.linalg.eigh(h, uplo).eigenvalues, values)
        same(torch.linalg.eigh(h, uplo).eigenvectors, vectors)
    for m in (a, a[:, : n // 2], a[: n // 2]):
        for ours, theirs in zip(torch.linalg.svd(torch.tensor(m), False), scipy.linalg.svd(m, False)):
            same(ours, theirs)
        for ours, theirs in zip(torch.linalg.qr(torch.tensor(m)), scipy.linalg.qr(m, mode="economic")):
            same(ours, theirs)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [1e-3, 0.2, 0.8, 2.0, 5.0, 30.0])
def test_exponentials_of_every_degree(torch, dtype, size):
    a = complex_matrices(6, 6)
    a = (a.real if dtype.startswith("float") else a) * (size / np.linalg.norm(a, 1))
    ours, theirs = torch.linalg.matrix_exp(torch.tensor(a.astype(dtype))).numpy(force=True), scipy.linalg.expm(a)
    limit = 1e-12 if dtype in ("float64", "complex128") else 2e-5
    assert np.linalg.norm(ours - theirs) <= limit * np.linalg.norm(theirs)
    assert torch.linalg.matrix_exp(torch.full([2, 2], torch.inf)).isnan().all().item()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_exponentials_of_16_bit_floats_are_rounded_from_float32(torch, dtype):
    dtype = getattr(torch, dtype)
    for size in (0.01, 0.5, 3.0, 8.0):
        a = torch.tensor(random(2, 5, 5) * (size / 5), dtype=dtype)
        for x in (a, a.mT, a[..., :0, :0]):
            result, wide = torch.linalg.matrix_exp(x), x.float().requires_grad_()
            expected = torch.linalg.matrix_exp(wide)
            assert result.dtype == dtype and torch.equal(result, expected.to(dtype))
            leaf = x.clone().requires_grad_()
            torch.linalg.matrix_exp(leaf).sum().backward()
            expected.sum().backward()
            assert torch.equal(leaf.grad, wide.grad.to(dtype))
    out = torch.empty(2, 5, 5, dtype=dtype)
    assert torch.equal(torch.matrix_exp(a, out=out), torch.matrix_exp(a))
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor as input. Got Long"):
        torch.linalg.matrix_exp(torch.ones(2, 2, dtype=torch.int64)).sum().item()


def test_nonfinite_inputs(torch):
    """NaN inputs give an error, or NaN as in PyTorch, and never an endless loop. Only the triangle that is read
    matters."""
    linalg, nan = torch.linalg, torch.nan
    for call in (linalg.eig, linalg.svd, linalg.eigh, lambda x: linalg.eigh(x, "U"), linalg.cholesky):
        for size in (2, 70):
            for bad in (nan, torch.inf):
                a = torch.eye(size)
                a[-1, -1] = bad
                with pytest.raises(linalg.LinAlgError):
                    call(a)[0].tolist()
    assert linalg.eigvalsh(torch.tensor([[1.0, nan], [0.0, 3.0]])).tolist() == [1.0, 3.0]
    assert linalg.cholesky_ex(torch.tensor([[2.0, 1.0], [1.0, nan]])).info.item() == 2
    assert linalg.lu_factor_ex(torch.tensor([[nan, 1.0], [1.0, 2.0]])).info.item() == 0


def test_complex_gradients(torch):
    def check(function, *arrays):
        assert torch.autograd.gradcheck(function, [torch.tensor(x).requires_grad_() for x in arrays], atol=1e-5, rtol=1e-4)

    linalg, a, b, wide = torch.linalg, complex_matrices(3, 3), complex_matrices(3, 2), complex_matrices(2, 3)
    check(linalg.inv, a)
    check(linalg.solve, a, b)
    check(linalg.det, a)
    check(lambda x: linalg.slogdet(x).logabsdet, a)
    check(lambda x: linalg.slogdet(x).sign, a)
    check(lambda x: linalg.cholesky(x @ x.mH + torch.eye(3, dtype=x.dtype)), a)
    check(lambda x: tuple(linalg.qr(x)), b)
    check(lambda x: linalg.eigvalsh(x + x.mH), a)
    check(lambda x: (lambda v: v * v[0:1].conj() / v[0:1].abs())(linalg.eigh(x + x.mH).eigenvectors).abs(), a)
    check(linalg.eigvals, a)
    check(lambda x: linalg.eig(x).eigenvectors.abs(), a)
    check(linalg.eigvals, a.real)
    for m in (a, b, wide):
        check(linalg.svdvals, m)
        check(lambda x: (lambda u, s, vh: u @ (s.exp().unsqueeze(-1) * vh))(*linalg.svd(x, full_matrices=False)), m)
        check(linalg.pinv, m)
    check(linalg.matrix_exp, a / 2)
    check(lambda x: linalg.matrix_norm(x, "nuc"), b)


@pytest.mark.parametrize("size", [(0, 0), (2, 0, 0)], ids=str)
def test_empty_matrices(torch, size):
    a = np.zeros(size)
    for name in ("inv", "det", "cholesky", "eigvalsh", "svdvals"):
        theirs = (lambda x: np.linalg.svd(x)[1]) if name == "svdvals" else getattr(np.linalg, name)
        close(getattr(torch.linalg, name)(torch.tensor(a)), theirs(a))


def test_large_matrices(torch):
    """Sizes above the thresholds of the blocked algorithms."""
    a = square(n=200)
    A, n = torch.tensor(a), 200
    close(torch.linalg.inv(A) @ A, np.eye(n), 1e-8)
    s = a @ a.T
    L = torch.linalg.cholesky(torch.tensor(s))
    close(L @ L.mT, s, 1e-9)
    values, vectors = torch.linalg.eigh(torch.tensor(s))
    close((vectors * values) @ vectors.mT, s, 1e-9)
    U, S, Vh = torch.linalg.svd(A)
    close((U * S) @ Vh, a, 1e-9)
    single = torch.linalg.svd(A.float())
    np.testing.assert_allclose(((single.U * single.S) @ single.Vh).cpu().numpy(force=True), a, atol=1e-3)


@pytest.mark.parametrize("dtype, size", [("float32", 1e30), ("float64", 1e200), ("complex128", 1e-200)])
def test_qr_of_very_large_and_small_elements(torch, dtype, size):
    a = (np.arange(6).reshape(3, 2) + 1.0).astype(dtype) * np.dtype(dtype).type(size)
    q, r = torch.linalg.qr(torch.from_numpy(a))
    np.testing.assert_allclose((q @ r).numpy(force=True) / size, a / size, rtol=1e-5)


def test_condition_numbers_of_singular_and_empty_matrices(torch):
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    for p in (1, -1, math.inf, -math.inf, "fro"):
        assert torch.linalg.cond(singular, p).item() == math.inf
    assert 1e6 < torch.linalg.cond(singular, "nuc").item() < math.inf
    for p in (None, 2, 1, "nuc", "fro"):
        assert torch.linalg.cond(torch.zeros(2, 0, 0), p).tolist() == [0, 0]

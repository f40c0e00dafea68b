"""Complex numbers, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("device")


@pytest.fixture
def z():
    rng = np.random.default_rng(5)
    return rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))


def test_numbers_and_arrays_round_trip(torch, z):
    t = torch.tensor(z)
    assert t.dtype is torch.complex128 and t.is_complex() and not t.is_floating_point()
    np.testing.assert_array_equal(t.cpu().numpy(), z)
    assert torch.tensor([1, 2.5, 3j]).dtype is torch.complex64
    assert torch.tensor(1 + 2j).item() == 1 + 2j
    assert torch.tensor([[1j, 2]]).tolist() == [[1j, 2 + 0j]]
    assert complex(torch.tensor(2 - 1j)) == 2 - 1j
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor(1j, dtype=torch.float32)


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [("float32", 1j, "complex64"), ("float64", 1j, "complex128"), ("int64", 1j, "complex64"), ("complex64", 2.5, "complex64"),
     ("complex128", 1j, "complex128"), ("uint16", 1j, "complex64")],
)  # fmt: skip
def test_numbers_promote_weakly(torch, dtype, number, expected):
    assert (torch.ones(2, dtype=getattr(torch, dtype)) * number).dtype is getattr(torch, expected)


def test_tensors_promote(torch):
    c, d = torch.ones(2, dtype=torch.complex64), torch.ones(2, dtype=torch.float64)
    assert (c + d).dtype is torch.complex128
    assert (c + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.complex64
    assert torch.promote_types(torch.complex64, torch.int8) is torch.complex64
    assert torch.can_cast(torch.float64, torch.complex64) and not torch.can_cast(torch.complex64, torch.float64)


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_repr(torch):
    assert repr(torch.tensor([1 + 2j, 3 - 4j])) == "tensor([1.+2.j, 3.-4.j])"
    assert repr(torch.tensor([1j], dtype=torch.complex128)) == "tensor([0.+1.j], dtype=torch.complex128)"


def test_parts_are_views(torch, z):
    t = torch.tensor(z)
    np.testing.assert_array_equal(t.real.cpu().numpy(), z.real)
    np.testing.assert_array_equal(t.T.imag.cpu().numpy(), z.T.imag)
    t.imag.zero_()
    np.testing.assert_array_equal(t.cpu().numpy(), z.real + 0j)
    t.real = torch.ones(3, 4, dtype=torch.float64)
    assert (t == 1).all()
    pairs = torch.view_as_real(torch.tensor(z)[1:, ::2])
    np.testing.assert_array_equal(pairs.cpu().numpy(), np.stack([z[1:, ::2].real, z[1:, ::2].imag], -1))
    np.testing.assert_array_equal(torch.view_as_complex(pairs).cpu().numpy(), z[1:, ::2])
    x = torch.ones(2)
    assert x.real is x and torch.real(x).tolist() == [1, 1]
    with pytest.raises(TypeError, match="imag is not implemented for tensors with non-complex dtypes"):
        x.imag  # noqa: B018


def test_conjugates(torch, z):
    t = torch.tensor(z)
    np.testing.assert_array_equal(t.conj().cpu().numpy(), z.conj())
    np.testing.assert_array_equal(t.mH.cpu().numpy(), z.T.conj())
    np.testing.assert_array_equal(t.H.cpu().numpy(), z.T.conj())
    assert not t.conj().is_conj() and t.resolve_conj() is t
    x = torch.ones(2)
    assert x.conj() is x
    np.testing.assert_allclose(torch.vdot(t[0], t[1]).item(), np.vdot(z[0], z[1]))
    assert torch.isreal(torch.tensor([1 + 0j, 1j])).tolist() == [True, False]


def test_creation(torch):
    assert torch.zeros(2, dtype=torch.complex64).tolist() == [0j, 0j]
    assert torch.full((2,), 1j).dtype is torch.complex64
    assert torch.eye(2, dtype=torch.complex128).tolist() == [[1, 0], [0, 1]]
    torch.manual_seed(0)
    x = torch.randn(20000, dtype=torch.complex128)
    assert abs(x.abs().square().mean().item() - 1) < 0.05
    assert 0 <= torch.rand(100, dtype=torch.complex64).imag.min().item()
    np.testing.assert_allclose(torch.linspace(0, 1 + 1j, 3, dtype=torch.complex64).cpu().numpy(), np.linspace(0, 1 + 1j, 3))


def test_copies_and_casts(torch, z):
    t = torch.tensor(z)
    np.testing.assert_array_equal(t.to(torch.complex64).cpu().numpy(), z.astype("complex64"))
    np.testing.assert_array_equal(torch.arange(3).to(torch.complex64).cpu().numpy(), np.arange(3).astype("complex64"))
    np.testing.assert_array_equal(t.to(torch.float32).cpu().numpy(), z.real.astype("float32"))
    assert torch.tensor([0j, 1j]).to(torch.bool).tolist() == [False, True]
    y = torch.zeros(3, 4, dtype=torch.complex128)
    y[:, 1] = t[:, 2]
    y[0, 0] = 1j
    assert y[0, 0].item() == 1j and y[1, 1].item() == z[1, 2]
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.ones(3).mul_(1j)


def test_indexing_and_joining(torch, z):
    t = torch.tensor(z)
    index = torch.tensor([2, 0])
    np.testing.assert_array_equal(t[index].cpu().numpy(), z[[2, 0]])
    np.testing.assert_array_equal(t.t().contiguous().cpu().numpy(), z.T)
    np.testing.assert_array_equal(torch.cat([t, t.flip(0)]).cpu().numpy(), np.concatenate([z, z[::-1]]))
    np.testing.assert_array_equal(torch.where(t.real > 0, t, 0).cpu().numpy(), np.where(z.real > 0, z, 0))
    np.testing.assert_array_equal(t.gather(1, torch.tensor([[0, 3]])).cpu().numpy(), z[:1, [0, 3]])
    np.testing.assert_array_equal(t.index_add(0, index, t[:2], alpha=1j).cpu().numpy(), z + 1j * np.stack([z[1], 0 * z[0], z[0]]))
    np.testing.assert_array_equal(torch.zeros(2, dtype=torch.complex128).scatter_add(0, torch.tensor([1, 1, 0, 1]), t[0]).cpu().numpy(),
                                  [z[0, 2], z[0, 0] + z[0, 1] + z[0, 3]])  # fmt: skip
    np.testing.assert_array_equal(t.tril().cpu().numpy(), np.tril(z))
    np.testing.assert_array_equal(t.masked_fill(torch.eye(3, 4, dtype=torch.bool), 2j).cpu().numpy(), np.where(np.eye(3, 4), 2j, z))
    assert torch.tensor([0j, 1j, 2]).nonzero().tolist() == [[1], [2]]


@pytest.mark.parametrize("name", ["lt", "ge", "maximum", "fmod", "floor_divide"])
def test_ordering_is_rejected(torch, name):
    with pytest.raises(RuntimeError, match="not implemented for"):
        getattr(torch, name)(torch.ones(2, dtype=torch.complex64), torch.ones(2, dtype=torch.complex64)).tolist()


def test_complex_number_requires_a_complex_result(torch):
    with pytest.raises(RuntimeError, match="argument alpha must not be a complex number"):
        torch.add(torch.ones(2), torch.ones(2), alpha=1j).tolist()
    with pytest.raises(TypeError):
        torch.nan_to_num(torch.ones(2), 1j)


def test_division_keeps_its_range(torch):
    b = torch.tensor([1e200 + 1e200j, 1e-200 + 1e-200j], dtype=torch.complex128)
    assert (b / b - 1).abs().max().item() < 1e-15


def test_reductions(torch, z):
    t = torch.tensor(z)
    for name in ("sum", "mean", "prod"):
        np.testing.assert_allclose(getattr(t, name)().item(), getattr(np, name)(z))
        np.testing.assert_allclose(getattr(t, name)(1).cpu().numpy(), getattr(np, name)(z, 1))
    np.testing.assert_allclose(t.sum((0, 1), keepdim=True).cpu().numpy(), z.sum(keepdims=True))
    np.testing.assert_allclose(t.T.cumsum(0).cpu().numpy(), z.T.cumsum(0))
    np.testing.assert_allclose(t.cumprod(1).cpu().numpy(), z.cumprod(1))
    for p in (0, 1, 2, 3, np.inf):
        np.testing.assert_allclose(torch.linalg.vector_norm(t, p).item(), np.linalg.norm(z.ravel(), p))
    np.testing.assert_allclose(t.var(0).cpu().numpy(), z.var(0, ddof=1))
    np.testing.assert_allclose(t.std().item(), z.std(ddof=1))
    assert t.var().dtype is torch.float64 and (t * 0).count_nonzero().item() == 0 and t.any().item()
    assert torch.tensor(3j).sum().item() == 3j
    with pytest.raises(RuntimeError):
        t.amax().item()


def test_products(torch, z):
    t = torch.tensor(z)
    np.testing.assert_allclose((t @ t.T).cpu().numpy(), z @ z.T)
    np.testing.assert_allclose((t.to(torch.complex64) @ t.to(torch.complex64).mH).cpu().numpy(), z @ z.conj().T, rtol=1e-5)
    np.testing.assert_allclose(torch.einsum("ij,kj->ik", t, t.conj()).cpu().numpy(), z @ z.conj().T)
    np.testing.assert_allclose(torch.dot(t[0], t[1]).item(), z[0] @ z[1])
    np.testing.assert_allclose(torch.addmm(t @ t.T, t, t.T, beta=1j, alpha=2).cpu().numpy(), (1j + 2) * (z @ z.T))
    batch = np.stack([z, 2j * z])
    np.testing.assert_allclose(torch.bmm(torch.tensor(batch), torch.tensor(batch).mT).cpu().numpy(), batch @ batch.swapaxes(1, 2))


def test_gradients_equal_pytorchs(torch):
    """The gradient of a real L by z = x + iy is dL/dx + i dL/dy."""
    z = torch.tensor(3 + 4j, dtype=torch.complex128, requires_grad=True)
    (g,) = torch.autograd.grad(z.abs(), z)
    assert g.item() == pytest.approx(0.6 + 0.8j)
    (g,) = torch.autograd.grad((z * z).real, z)
    assert g.item() == pytest.approx(6 - 8j)
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad((x * z).imag, x)
    assert g.item() == pytest.approx(4.0) and g.dtype is torch.float64
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got torch.complex128"):
        (z * 2).backward()
    torch.autograd.backward([z * 2j], [torch.tensor(1.0 + 0j, dtype=torch.complex128)])
    assert z.grad.item() == -2j


def test_save_and_load(torch, z, tmp_path):
    torch.save({"z": torch.tensor(z), "n": torch.tensor([2**64 - 1], dtype=torch.uint64)}, tmp_path / "t")
    loaded = torch.load(tmp_path / "t")
    np.testing.assert_array_equal(loaded["z"].cpu().numpy(), z)
    assert loaded["n"].item() == 2**64 - 1


@pytest.mark.parametrize("draw", ["uniform_", "normal_"])
def test_random_numbers_fill_both_parts(torch, draw):
    torch.manual_seed(3)
    t = getattr(torch.empty(4000, dtype=torch.complex64), draw)(1, 2).numpy(force=True)
    assert abs(t.real.mean() - t.imag.mean()) < 0.1 and len(np.unique(t.imag)) > 1000
    assert abs(t.std() - (np.sqrt(1 / 6) if draw == "uniform_" else 2)) < 0.1


@pytest.mark.parametrize("drop", ["dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_dropout_drops_both_parts(torch, drop):
    torch.manual_seed(3)
    x = torch.full((8, 8, 4), 1 + 1j)
    result = getattr(torch.nn.functional, drop)(x, 0.5, True)
    assert result.dtype is torch.complex64
    values = {complex(v) for v in result.numpy(force=True).round(4).reshape(-1)}
    assert len(values) == 2 and (0j in values or "alpha" in drop)


def test_weights_of_covariances_are_real(torch, z):
    weights = np.array([0.5, 1.0, 2.0, 1.5])
    got = torch.cov(torch.tensor(z), aweights=torch.tensor(weights))
    np.testing.assert_allclose(got.numpy(force=True), np.cov(z, aweights=weights), rtol=1e-9)

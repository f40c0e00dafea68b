"""Top-level functions, compared with NumPy's and SciPy's."""

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.signal.windows
import scipy.spatial.distance


def close(got, expected, rtol=1e-6):
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=1e-7)


def test_unique(torch):
    x = torch.tensor([[3, 1, 3], [1, 2, 3]])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [[2, 0, 2], [0, 1, 2]], [2, 1, 3])
    assert x.unique().tolist() == [1, 2, 3]
    rows = torch.tensor([[2, 1], [0, 5], [2, 1], [0, 4]])
    values, inverse, counts = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([[0, 4], [0, 5], [2, 1]], [2, 1, 2, 0], [1, 1, 2])
    assert torch.unique(rows.t(), dim=1).tolist() == [[0, 0, 2], [4, 5, 1]]
    values, inverse, counts = torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 2, 1]), True, True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 1, 1, 2], [2, 3, 1])
    assert torch.unique_consecutive(torch.tensor([[1, 2], [1, 2], [0, 0]]), dim=0).tolist() == [[1, 2], [0, 0]]


def test_statistics_of_no_elements_and_plain_tuples(torch):
    for name in ("std_mean", "var_mean"):
        assert all(type(getattr(torch, name)(*args)) is tuple for args in ((torch.ones(3),), (torch.ones(3, 2), 0)))
    for name in ("median", "nanmedian"):
        assert getattr(torch, name)(torch.empty(0, dtype=torch.int64)).item() == -(2**63)
        assert getattr(torch, name)(torch.empty(0, dtype=torch.uint8)).item() == 0
        with pytest.raises(IndexError, match="reduction dim 1 to have non-zero size"):
            getattr(torch, name)(torch.empty(2, 0), 1)


def test_ranges_of_booleans_are_integers(torch):
    assert torch.arange(True).dtype == torch.arange(False, True).dtype == torch.arange(False, True, True).dtype == torch.int64
    assert torch.arange(False, 1.5).dtype == torch.float32


def test_copies_of_views_are_contiguous(torch):
    x = torch.arange(24).reshape(2, 3, 4)
    for got, view in (
        (torch.permute_copy(x, (2, 0, 1)), x.permute(2, 0, 1)), (torch.transpose_copy(x, 0, 1), x.transpose(0, 1)),
        (torch.unbind_copy(x, 2)[1], x[..., 1]), (torch.detach_copy(x.mT), x.mT), (torch.unfold_copy(x, 2, 2, 1), x.unfold(2, 2, 1)),
    ):  # fmt: skip
        assert got.is_contiguous() and torch.equal(got, view)


def test_unravel_index_checks_its_arguments(torch):
    i = torch.tensor([5])
    assert [t.tolist() for t in torch.unravel_index(i, torch.Size((2, 3)))] == [[1], [2]]
    for indices, shape in ((i.float(), 6), (i == 5, 6), (i, 2.0), (i, "ab"), (i, (2, 3.0))):
        with pytest.raises(TypeError, match="expected '(indices|shape)'"):
            torch.unravel_index(indices, shape)
    with pytest.raises(ValueError, match="negative"):
        torch.unravel_index(i, (-2, 3))


EQUATIONS = [
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ii->i", [(3, 3)]),
    ("ij->", [(2, 3)]), ("i,j,k->kji", [(2,), (3,), (4,)]), ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("ab,bc,cd,de,ea->", [(2, 3), (3, 4), (4, 5), (5, 6), (6, 2)]), ("ij,ij->ij", [(2, 3), (2, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=[e for e, _ in EQUATIONS])
def test_einsum(torch, equation, shapes):
    operands = [torch.randn(*s, dtype=torch.float64) for s in shapes]
    close(torch.einsum(equation, *operands), np.einsum(equation, *(t.numpy() for t in operands)))


def test_einsum_promotes_outer_products(torch):
    """Pairs without a summed dimension are multiplied as by mul(); pairs with one require equal dtypes, as in PyTorch."""
    a, b = torch.ones(3, 4, dtype=torch.complex64) * 1j, torch.arange(6, dtype=torch.float32).reshape(2, 3)
    close(torch.einsum("hn,bh->bhn", a, b), np.einsum("hn,bh->bhn", a.numpy(), b.numpy()))
    assert torch.einsum("i,j->ij", torch.ones(2), torch.arange(3)).dtype is torch.float32
    assert torch.einsum("hn,h->hn", torch.ones(3, 4), b[0].double()).dtype is torch.float64
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.einsum("hn,bh->bn", a, b).numpy()


# dtype, eps, max, min, tiny; the first three have no tensors
LIMITS = [
    ("float8_e4m3fnuz", 0.125, 240.0, -240.0, 2.0**-7), ("float8_e5m2fnuz", 0.25, 57344.0, -57344.0, 2.0**-15),
    ("float8_e8m0fnu", 1.0, 2.0**127, 2.0**-127, 2.0**-127), ("float8_e5m2", 0.25, 57344.0, -57344.0, 2.0**-14),
]  # fmt: skip


@pytest.mark.parametrize("name, eps, largest, least, tiny", LIMITS)
def test_limits_of_small_floats(torch, name, eps, largest, least, tiny):
    info = torch.finfo(getattr(torch, name))
    assert (info.bits, info.eps, info.max, info.min, info.tiny, info.smallest_normal) == (8, eps, largest, least, tiny, tiny)
    assert info.resolution == 1.0 and info.dtype == name and repr(info).endswith(f"dtype={name})")


def test_limits_are_read_only_and_comparable(torch):
    for info in (torch.finfo, torch.iinfo):
        dtypes = (torch.float16, torch.float32) if info is torch.finfo else (torch.int8, torch.int16)
        a, b = map(info, dtypes)
        assert a == info(dtypes[0]) != b and hash(a) == hash(info(dtypes[0]))
        with pytest.raises(AttributeError, match="not writable"):
            a.max = 1
    with pytest.raises(NotImplementedError, match="Float4_e2m1fn_x2"):
        torch.finfo(torch.float4_e2m1fn_x2)


def test_python_types_as_dtypes(torch):
    assert torch.finfo(float).eps == 2**-52 and torch.finfo(complex).dtype == "float64"
    assert torch.iinfo(int).max == 2**63 - 1
    assert repr(torch.iinfo(int)) == "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"
    with pytest.raises(TypeError, match="requires a floating point input type"):
        torch.finfo(int)
    with pytest.raises(TypeError, match="torch.bool is not supported by torch.iinfo"):
        torch.iinfo(bool)
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        torch.set_default_dtype(float)
    with pytest.raises(ValueError, match="invalid type: 'float'"):
        torch.ones(2).type(float)
    module = torch.nn.Linear(2, 2)
    assert module.to(float).weight.dtype is torch.float64
    assert module.to("cpu", dtype=complex).weight.dtype is torch.complex128
    with pytest.raises(TypeError, match="got desired dtype=torch.int64"):
        module.to(int)


def test_einsum_plans_are_reused_per_shape(torch):
    from teletensor._ops import einsum

    einsum._plan.cache_clear()
    for n in (3, 4, 3):
        a, b = torch.randn(2, n), torch.randn(n, 5)
        close(torch.einsum("ij,jk->ki", a, b), (a.numpy() @ b.numpy()).T, 1e-5)
    assert einsum._plan.cache_info()[:2] == (1, 2)  # hits, misses
    x = torch.randn(3, 3)
    close(torch.einsum("ij,ij->", x, x), (x.numpy() ** 2).sum(), 1e-5)  # the same operand twice
    for _ in range(2):
        with pytest.raises(RuntimeError, match="does not match the number of dimensions"):
            torch.einsum("ijk,jk->i", x, x)
        with pytest.raises(RuntimeError):
            torch.einsum("ij,jk->ik", x, torch.randn(4, 5))


def test_einsum_contracts_smallest_first(torch):
    from teletensor._ops.einsum import _cheapest_pair

    # (a b)(b c)(c): the vector is multiplied first.
    assert _cheapest_pair(["ab", "bc", "c"], "a", {"a": 50, "b": 60, "c": 70}) == (1, 2)
    a, b = torch.randn(2, 3), torch.randn(3, 4)
    close(torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), a.numpy() @ b.numpy(), 1e-5)


def test_pairwise_products(torch):
    a, b = torch.randn(2, 3, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    close(torch.kron(a, b), np.kron(a.numpy(), b.numpy()))
    close(torch.kron(a[0], b), np.kron(a[0].numpy(), b.numpy()))
    planes, lines = torch.randn(2, 20, 40, dtype=torch.float64), torch.randn(12, 8, dtype=torch.float64)
    close(torch.kron(planes, lines), np.kron(planes.numpy(), lines.numpy()))
    close(torch.tensordot(a, torch.randn(2, 3, dtype=torch.float64) * 0 + 1, 2), a.numpy().sum())
    close(torch.block_diag(a, b, torch.tensor(3.0, dtype=torch.float64)), scipy.linalg.block_diag(a.numpy(), b.numpy(), 3.0))
    assert torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4])).tolist() == [[1, 3], [1, 4], [2, 3], [2, 4]]
    x = torch.tensor([5, 6, 7])
    assert torch.combinations(x).tolist() == [list(c) for c in itertools.combinations([5, 6, 7], 2)]
    assert torch.combinations(x, 2, True).shape == (6, 2) and torch.combinations(x, 4).shape == (0, 4)


def test_statistics(torch):
    x = torch.randn(3, 6, dtype=torch.float64)
    weights = torch.tensor([1, 2, 3, 1, 1, 2])
    close(torch.cov(x), np.cov(x.numpy()))
    close(torch.cov(x, fweights=weights, correction=0), np.cov(x.numpy(), fweights=weights.numpy(), ddof=0))
    close(torch.cov(x, aweights=weights.to(torch.float64)), np.cov(x.numpy(), aweights=weights.numpy()))
    close(torch.corrcoef(x), np.corrcoef(x.numpy()))
    places = torch.tensor([0.0, 1, 3, 4, 6, 7], dtype=torch.float64)
    trapezoid = np.trapezoid if hasattr(np, "trapezoid") else np.trapz
    close(torch.trapezoid(x, places), trapezoid(x.numpy(), places.numpy()))
    assert torch.cumulative_trapezoid(torch.tensor([1.0, 2, 3])).tolist() == [1.5, 4.0]
    close(torch.pdist(x), scipy.spatial.distance.pdist(x.numpy()))
    close(torch.vander(torch.tensor([1.0, 2, 3])), np.vander([1.0, 2, 3]))


def test_triangles_and_diagonals(torch):
    for offset in (-1, 0, 2):
        assert torch.triu_indices(3, 4, offset).tolist() == [i.tolist() for i in np.triu_indices(3, offset, 4)]
        assert torch.tril_indices(3, 4, offset).tolist() == [i.tolist() for i in np.tril_indices(3, offset, 4)]
    assert torch.diagflat(torch.tensor([[1, 2], [3, 4]])).tolist() == np.diagflat([[1, 2], [3, 4]]).tolist()
    x = torch.zeros(3, 3)
    assert x.fill_diagonal_(2.0) is x and x.tolist() == (2 * np.eye(3)).tolist()
    assert [t.shape for t in torch.atleast_3d(torch.tensor(1.0), torch.ones(2))] == [(1, 1, 1), (1, 2, 1)]
    assert torch.range(1, 4).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("periodic", [True, False])
def test_windows(torch, periodic):
    for name in ("hann", "hamming", "blackman", "bartlett"):
        got = getattr(torch, f"{name}_window")(9, periodic, dtype=torch.float64)
        close(got, scipy.signal.windows.get_window(name, 9, fftbins=periodic))
    close(torch.kaiser_window(9, periodic, 8.0, dtype=torch.float64), scipy.signal.windows.get_window(("kaiser", 8.0), 9, fftbins=periodic))
    assert torch.hann_window(1).tolist() == [1.0] and torch.hann_window(0).tolist() == []


def test_views_in_place(torch):
    x = torch.arange(6).reshape(1, 2, 3)
    alias = x
    assert x.squeeze_(0) is x and alias.shape == (2, 3)
    assert x.transpose_(0, 1).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.unsqueeze_(-1).shape == (3, 2, 1)
    x.fill_(7)
    assert alias.sum().item() == 42
    y = torch.ones(2, requires_grad=True) * 3
    y.unsqueeze_(0)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.ones(2, requires_grad=True).unsqueeze_(0)


def test_other_sizes_and_storage(torch):
    x = torch.arange(4)
    x.resize_(2, 3)
    assert x.shape == (2, 3) and x.reshape(-1)[:4].tolist() == [0, 1, 2, 3]
    assert x.resize_(2).tolist() == [0, 1]
    assert torch.zeros(1).resize_as_(torch.ones(2, 2)).shape == (2, 2)
    base = torch.arange(6)
    y = torch.empty(0, dtype=torch.int64).set_(base, 1, (2, 2), (2, 1))
    assert y.tolist() == [[1, 2], [3, 4]]
    y.fill_(0)
    assert base.tolist() == [0, 0, 0, 0, 0, 5]
    assert x.new(3).shape == (3,) and x.new([1, 2]).tolist() == [1, 2] and x.new(torch.ones(2, 2).size()).shape == (2, 2)
    assert torch.tensor([-1.0, 2]).prelu(torch.tensor([0.5])).tolist() == [-0.5, 2]
    z = torch.tensor([1.0, 4.0])
    assert torch.sqrt_(z) is z and z.tolist() == [1, 2]


def test_renorm(torch):
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    close(x.renorm(2, 0, 1.0), [[0.6, 0.8], [0.3, 0.4]], 1e-5)
    close(x.renorm(2, 1, 1.0)[0], np.array([3, 4]) / np.linalg.norm(x.numpy(), axis=0), 1e-5)


def test_comparisons_in_place(torch):
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x.ge_(2.0) is x and x.tolist() == [0, 1, 1]
    assert x.logical_not_().tolist() == [1, 0, 0]
    assert torch.functional.norm(torch.tensor([[3.0, 4.0]]), dim=1).tolist() == [5.0]


def test_indices_by_dimension(torch):
    x = torch.tensor([[0, 1], [2, 0]])
    assert [p.tolist() for p in torch.where(x > 0)] == [p.tolist() for p in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    assert [p.tolist() for p in torch.nonzero(torch.tensor(3), as_tuple=True)] == [[0]]
    assert torch.where(x > 0, x, -1).tolist() == [[-1, 1], [2, -1]]


def test_tensordot_of_small_integers(torch):
    a, b = torch.ones(2, 1, dtype=torch.uint8), torch.ones(1, 3, dtype=torch.uint8)
    assert torch.tensordot(a, b, 1).tolist() == [[1] * 3] * 2 and torch.tensordot(a, b, 1).dtype is torch.uint8


def test_roll_accepts_none_and_repeated_dimensions(torch):
    assert torch.roll(torch.arange(3), 1, None).tolist() == torch.roll(torch.arange(3), 1, dims=None).tolist() == [2, 0, 1]
    assert torch.roll(torch.arange(5), (1, 1), (0, -1)).tolist() == [3, 4, 0, 1, 2]
    assert torch.fft.fftshift(torch.arange(5), dim=(0, 0)).tolist() == [1, 2, 3, 4, 0]


def test_condition_numbers_of_singular_matrices(torch):
    for p in (1, -1, "fro", float("inf"), -float("inf")):
        found = torch.linalg.cond(torch.stack([torch.eye(2), torch.zeros(2, 2)]), p).tolist()
        assert found[1] == float("inf") and found[0] < 3


def test_renorm_refuses_a_negative_norm(torch):
    with pytest.raises(RuntimeError, match="expected maxnorm to be >= 0"):
        torch.ones(3, 2).renorm(2, 1, -1.0)


def test_cosine_similarity_promotes(torch):
    found = torch.nn.functional.cosine_similarity(torch.ones(3), torch.tensor([1, 2, 3]), 0)
    assert abs(found.item() - 0.9258) < 1e-4


def test_the_first_seed_is_restored(torch):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        assert torch.initial_seed() == 1
    assert torch.initial_seed() == 5
    torch.manual_seed(9)
    torch.set_rng_state(state)
    assert torch.initial_seed() == 5
    generator = torch.Generator().manual_seed(3)
    state = generator.get_state()
    generator.manual_seed(4)
    generator.set_state(state)
    torch.rand(2, generator=generator)
    assert generator.initial_seed() == 3 and generator.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1

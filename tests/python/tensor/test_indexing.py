"""Slicing of tensors, and composite pointwise functions, compared with NumPy's."""

import numpy as np
import pytest
import scipy.special


def close(got, expected, rtol=1e-6):
    np.testing.assert_allclose(got.numpy(), expected, rtol=rtol, atol=1e-7)


def test_splits_and_stacks(torch):
    x = torch.arange(24).reshape(2, 4, 3)
    for name, how in (("hsplit", 2), ("hsplit", [1, 3]), ("vsplit", 2), ("dsplit", 3)):
        got, wanted = getattr(torch, name)(x, how), getattr(np, name)(x.numpy(), how)
        assert [g.tolist() for g in got] == [w.tolist() for w in wanted]
    with pytest.raises(RuntimeError, match="not divisible by the split_size 3"):
        torch.hsplit(x, 3)
    a, b = torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])
    assert torch.column_stack([a, b]).tolist() == np.column_stack([a.numpy(), b.numpy()]).tolist()
    assert torch.dstack([a, b]).tolist() == np.dstack([a.numpy(), b.numpy()]).tolist()
    assert [p.tolist() for p in torch.split_with_sizes(a, [1, 2])] == [[1], [2, 3]]


def test_writes_to_splits_do_not_change_the_source(torch):
    x, ones = torch.zeros(3, 4, requires_grad=True), torch.ones(3, requires_grad=True)
    y = x.select_scatter(ones, 1, 2)
    assert y.tolist() == [[0, 0, 1, 0]] * 3 and x.sum().item() == 0
    (y * y).sum().backward()
    assert ones.grad.tolist() == [2, 2, 2] and x.grad.sum().item() == 0
    assert torch.slice_scatter(x, torch.ones(3, 2), 1, 0, 4, 2).tolist() == [[1, 0, 1, 0]] * 3
    assert torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2)).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(RuntimeError, match="src to have a size equal to the slice"):
        torch.select_scatter(x, torch.ones(2), 1, 0)


def test_copies_share_nothing(torch):
    x = torch.zeros(2, 3)
    y = torch.transpose_copy(x, 0, 1)
    y.fill_(1)
    assert y.shape == (3, 2) and x.sum().item() == 0
    assert [t.tolist() for t in torch.unbind_copy(x)] == [[0, 0, 0]] * 2


def test_indices_and_sizes(torch):
    index = torch.tensor([[0, 5], [11, 7]])
    for got, wanted in zip(torch.unravel_index(index, (3, 4)), np.unravel_index(index.numpy(), (3, 4))):
        assert got.tolist() == wanted.tolist()
    assert torch.ones(4, 2, 3).sum_to_size(2, 1).tolist() == [[12], [12]]
    with pytest.raises(RuntimeError, match="is not expandable"):
        torch.ones(2, 3).sum_to_size(2, 2)
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)


def test_pointwise(torch):
    x = torch.tensor([-3.7, 0.0, 0.25, 1.0, 8.0, 1e30, 1e-30, float("inf")], dtype=torch.float64)
    mantissa, exponent = torch.frexp(x)
    wanted = np.frexp(x.numpy())
    assert mantissa.tolist() == wanted[0].tolist() and exponent.tolist() == [*wanted[1][:-1].tolist(), 0]
    close(torch.ldexp(torch.tensor([1.5, -2.0]), torch.tensor([3, -1])), [12, -1])
    close(torch.logaddexp2(torch.tensor([1.0, 300.0]), torch.tensor([2.0, 300.0])), np.logaddexp2([1.0, 300.0], [2.0, 300.0]))
    assert torch.angle(torch.tensor([-1.0, 2.0])).tolist() == [pytest.approx(np.pi), 0]
    assert torch.isreal(torch.ones(2)).tolist() == [True, True] and x.real is x and x.conj() is x
    close(torch.addr(torch.ones(2, 3), torch.tensor([1.0, 2]), torch.tensor([1.0, 2, 3]), beta=2), 2 + np.outer([1, 2], [1, 2, 3]))


@pytest.mark.parametrize("n", [1, 5, 16, 33])
def test_logcumsumexp(torch, n):
    x = torch.randn(3, n, dtype=torch.float64) * 50
    wanted = [[scipy.special.logsumexp(row[: i + 1]) for i in range(n)] for row in x.numpy()]
    close(torch.logcumsumexp(x, 1), wanted, 1e-12)
    close(torch.logcumsumexp(x.t(), 0).t(), wanted, 1e-12)
    assert torch.autograd.gradcheck(lambda t: torch.logcumsumexp(t, 1), [(x / 50).requires_grad_()])


def test_sets_and_histograms(torch):
    x = torch.tensor([[1, 5], [3, 8]])
    assert torch.isin(x, torch.tensor([8, 1])).tolist() == [[True, False], [False, True]]
    assert torch.isin(x, torch.tensor([8, 1]), invert=True).tolist() == [[False, True], [True, False]]
    data = torch.randn(50, dtype=torch.float64)
    for bins in (7, torch.tensor([-1.0, 0.0, 0.5, 2.0], dtype=torch.float64)):
        counts, edges = torch.histogram(data, bins)
        wanted = np.histogram(data.numpy(), bins if isinstance(bins, int) else bins.numpy())
        close(counts, wanted[0])
        close(edges, wanted[1])
    close(torch.histogram(data, 4, density=True)[0], np.histogram(data.numpy(), 4, density=True)[0])


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradients_of_samples(torch, edge_order):
    x = torch.randn(5, 4, dtype=torch.float64)
    for got, wanted in zip(torch.gradient(x, spacing=0.5, edge_order=edge_order), np.gradient(x.numpy(), 0.5, edge_order=edge_order)):
        close(got, wanted)
    places = torch.tensor([0.0, 1.0, 1.5, 4.0], dtype=torch.float64)
    expected = np.gradient(x.numpy(), places.numpy(), axis=1, edge_order=edge_order)
    close(torch.gradient(x, spacing=[places], dim=1, edge_order=edge_order)[0], expected)


def test_nextafter_is_exact(torch):
    a, b = np.array([0.0, -0.0, np.inf, 1.0, 1.0], "float32"), np.array([1, -1, 0, 2, np.nan], "float32")
    assert np.array_equal(torch.nextafter(torch.from_numpy(a), torch.from_numpy(b)).numpy(), np.nextafter(a, b), equal_nan=True)


def test_exponentials_of_infinite_complex_numbers(torch):
    inf, nan = np.inf, np.nan
    x = torch.tensor([complex(inf, inf), complex(-inf, nan), complex(inf, 0), complex(-800, inf), complex(nan, 0)])
    for got, expected in (
        (torch.exp(x), [complex(inf, nan), 0, complex(inf, 0), complex(nan, nan), complex(nan, 0)]),
        (torch.expm1(x), [complex(inf, nan), -1, complex(inf, 0), complex(nan, nan), complex(nan, 0)]),
    ):
        expected = np.array(expected)
        np.testing.assert_array_equal(got.numpy().real, expected.real)
        np.testing.assert_array_equal(got.numpy().imag, expected.imag)


def test_copies_of_complex_numbers(torch):
    x = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    y = x.clone()
    assert y.tolist() == [1 + 2j] and y.dtype is torch.complex128
    assert int(torch.tensor(2**64 - 1, dtype=torch.uint64)) == 2**64 - 1


def test_a_second_ellipsis(torch):
    x = torch.arange(60).reshape(3, 4, 5)
    assert x[..., ...].shape == (3, 4, 5) and x[..., 0, ...].shape == (3, 4) and x[..., None, ...].shape == (3, 4, 5, 1)
    assert x[..., 0, 0, ..., 0].item() == 0
    for index in ((..., ..., 0), (..., ..., slice(0, 1), 0), (0, ..., ..., 1)):
        with pytest.raises(IndexError):
            x[index]
        with pytest.raises(IndexError):
            x[index] = 1


def test_copies_keep_the_shape(torch):
    """`copy_()` and in-place operators refuse sources with more dimensions; assignments drop leading ones of size 1."""
    x = torch.zeros(3)
    for write in (
        lambda: x.copy_(torch.ones(1, 3)),
        lambda: x.eq_(torch.ones(1, 3)),
        lambda: x[0].copy_(torch.ones(1)),
        lambda: torch.zeros((), dtype=torch.bool).logical_or_(torch.ones(1, dtype=torch.bool)),
    ):
        with pytest.raises(RuntimeError, match=r"output with shape \[3?\] doesn't match the broadcast shape \[1(, 3)?\]"):
            write()
    with pytest.raises(RuntimeError, match=r"shape \[1, 3\] doesn't match the broadcast shape \[2, 5, 3\]"):
        torch.zeros(1, 3).copy_(torch.ones(2, 5, 3))
    x[:] = torch.ones(1, 1, 3)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("size, values", [((), (1,)), ((2,), (1, 2))])
def test_values_without_an_index_have_no_more_dimensions(torch, size, values):
    for accumulate in (False, True):
        with pytest.raises(RuntimeError, match="shape mismatch"):
            torch.zeros(size).index_put([], torch.ones(values), accumulate)


@pytest.mark.parametrize("include_self, expected", [(True, [2 + 1j, 4j, 1]), (False, [3 + 2j, 6j, 1])])
def test_mean_of_scattered_complex_numbers(torch, include_self, expected):
    x, index = torch.tensor([1, 0, 1], dtype=torch.complex64), torch.tensor([0, 1, 1])
    src = torch.tensor([3 + 2j, 8j, 4j], dtype=torch.complex64)
    assert x.scatter_reduce(0, index, src, "mean", include_self=include_self).tolist() == expected

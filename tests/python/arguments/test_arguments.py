"""Kinds of arguments that PyTorch's functions accept; each case was found by PyTorch's op_db samples."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.special


def test_quantile_accepts_a_number(torch):
    assert torch.quantile(torch.arange(5.0), 0.25).item() == 1
    assert torch.tensor([1.0, float("nan"), 3.0]).nanquantile(0.5).item() == 2


def test_searchsorted_and_bucketize(torch):
    edges = torch.tensor([1.0, 3.0, 5.0])
    assert torch.searchsorted(edges, 3.0).item() == 1 and torch.searchsorted(edges, 3.0, side="right").item() == 2
    assert torch.bucketize(torch.tensor([0.0, 6.0]), edges, out_int32=True).dtype is torch.int32
    shuffled, sorter = torch.tensor([5.0, 1.0, 3.0]), torch.tensor([1, 2, 0])
    assert torch.searchsorted(shuffled, torch.tensor([4.0]), sorter=sorter).tolist() == [2]
    with pytest.raises(RuntimeError, match="opposites"):
        torch.searchsorted(edges, 3.0, side="left", right=True)


def test_diff_with_prepend_and_append(torch):
    x = torch.tensor([3.0, 5.0])
    assert torch.diff(x, prepend=torch.tensor([0.0]), append=torch.tensor([6.0])).tolist() == [3, 2, 1]
    assert torch.diff(x, 0, prepend=torch.tensor([0.0])).tolist() == [3, 5]


def test_tensor_split_and_repeat_interleave_by_tensors(torch):
    x = torch.arange(6)
    assert [p.tolist() for p in torch.tensor_split(x, torch.tensor([1, 4]))] == [[0], [1, 2, 3], [4, 5]]
    assert [p.tolist() for p in x.tensor_split((2, -1))] == [[0, 1], [2, 3, 4], [5]]
    assert torch.repeat_interleave(torch.tensor([7, 8]), torch.tensor([0, 2])).tolist() == [8, 8]
    assert torch.repeat_interleave(torch.tensor([2, 0, 1])).tolist() == [0, 0, 2]


def test_negative_indices(torch):
    assert torch.take(torch.arange(9).reshape(3, 3), torch.tensor([-4, 0])).tolist() == [5, 0]
    x = torch.tensor([[1, 2], [3, 4]])
    assert torch.take_along_dim(x, torch.tensor([[-1], [0]]), 1).tolist() == [[2], [3]]
    assert torch.take_along_dim(x, torch.tensor([3, 0])).tolist() == [4, 1]


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("dim", [None, 1])
def test_take_along_dim_requires_int64_indices(torch, dtype, dim):
    with pytest.raises(RuntimeError, match="dtype of indices should be Long"):
        torch.take_along_dim(torch.ones(2, 2), torch.ones(2, 2, dtype=getattr(torch, dtype)), dim)


def test_scatter_with_reduce(torch):
    x = torch.tensor([1.0, 2.0, 3.0])
    index = torch.tensor([0, 2])
    assert x.scatter(0, index, torch.tensor([10.0, 20.0]), reduce="add").tolist() == [11, 2, 23]
    assert x.scatter_(0, index, 2.0, reduce="multiply") is x and x.tolist() == [2, 2, 6]


def test_index_fill_with_a_tensor_differentiates_in_it(torch):
    value = torch.tensor(2.0, requires_grad=True)
    result = torch.zeros(3).index_fill(0, torch.tensor([0, 2, 2]), value)
    result.sum().backward()
    assert result.tolist() == [2, 0, 2] and value.grad.item() == 2  # a repeated index counts once


def test_fractional_corrections(torch):
    x = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 9.0]])
    t = torch.tensor(x)
    assert t.var(correction=1.5).item() == pytest.approx(x.var() * 6 / 4.5)
    np.testing.assert_allclose(torch.std(t, 1, correction=0.5).numpy(), np.sqrt(x.var(1) * 3 / 2.5))
    assert t.var(dim=1, correction=None).tolist() == t.var(1).tolist()


def test_int_is_a_dimension_and_not_a_bool(torch):
    x = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 9.0]])
    t = torch.tensor(x)
    np.testing.assert_allclose(t.var(1).numpy(), x.var(1, ddof=1))
    np.testing.assert_allclose(torch.std(t, 0).numpy(), x.std(0, ddof=1))
    assert t.var(False).item() == pytest.approx(x.var())


def test_max_of_two_zero_dim_tensors_is_elementwise(torch):
    assert torch.max(torch.tensor(3), torch.tensor(6)).item() == 6
    assert torch.ones(3).min(torch.tensor(0)).tolist() == [0, 0, 0]


def test_polygamma_method_takes_order_as_argument(torch):
    assert torch.tensor(9.0).polygamma(2).item() == pytest.approx(scipy.special.polygamma(2, 9.0))


def test_to_accepts_positional_flags(torch):
    x = torch.ones(2)
    assert x.to(torch.zeros(3), True) is x and x.to(torch.float64, False).dtype is torch.float64
    copied = x.to(torch.zeros(3), False, True)
    assert copied is not x and copied.tolist() == [1, 1]
    assert x.to(int).dtype is torch.int64


def test_shifts_in_place_keep_the_tensor(torch):
    x = y = torch.tensor([1, 2])
    x <<= 2
    assert x is y and y.tolist() == [4, 8]
    x >>= torch.tensor([1, 2])
    assert x is y and y.tolist() == [2, 2]


def test_integers_from_fractions(torch):
    assert torch.linspace(4.3, -3, 10, dtype=torch.int64).tolist() == [4, 3, 2, 1, 0, 0, 0, -1, -2, -3]
    assert torch.arange(-0.9, 5.1, 1.5, dtype=torch.int64).tolist() == [0, 1, 2, 3]
    assert torch.logspace(0, 1.2, 5, dtype=torch.int64).tolist() == [1, 1, 3, 5, 10]
    assert torch.linspace(torch.tensor(1.0), torch.tensor(2.0), 3).tolist() == [1, 1.5, 2]


def test_integers_are_scaled_by_integers(torch):
    i = torch.tensor([[0, 1], [2, 3]])
    assert torch.addmm(i, i, i, beta=0.6, alpha=1.6).tolist() == [[2, 3], [6, 11]]
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        torch.addr(i, i[0], i[1], beta=0.6)


def test_bools_scale_products(torch):
    x, a, b = torch.ones(2, 2), torch.full((2, 3), 0.5), torch.ones(3, 2)
    for dtype in (torch.float32, torch.float64, torch.int64):
        x, a, b = x.to(dtype), a.to(dtype), b.to(dtype)
        product = a @ b
        assert torch.equal(torch.addmm(x, a, b, beta=True, alpha=True), x + product)
        assert torch.equal(torch.addmm(x, a, b, beta=False), product)
        assert torch.equal(torch.addmv(x[0], a, b[:, 0], alpha=False), x[0])
        assert torch.equal(torch.baddbmm(x, a[None], b[None], beta=True), (x + product)[None])
        assert torch.equal(torch.addbmm(x, a[None], b[None], beta=True), x + product)


def test_gradients_of_numbers_are_precise(torch):
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    torch.lerp(x, x.detach() * 3, 0.4).sum().backward()
    assert x.grad.item() == pytest.approx(0.6, rel=1e-15)


def test_gradients_of_products_without_elements(torch):
    a, b = torch.ones(5, 0, requires_grad=True), torch.ones(0, 10, requires_grad=True)
    (a @ b).sum().backward()
    assert a.grad.shape == (5, 0) and b.grad.shape == (0, 10)


def test_equal_singular_values_have_gradients(torch):
    A = torch.eye(3, dtype=torch.float64, requires_grad=True)  # noqa: N806
    torch.linalg.svdvals(A).sum().backward()
    assert A.grad.tolist() == np.eye(3).tolist()


def test_transposed_convolution_with_more_output_than_a_stride(torch):
    x, w = torch.ones(1, 1, 3), torch.tensor([[[1.0, 2.0]]])
    result = torch.nn.functional.conv_transpose1d(x, w, stride=1, padding=1, output_padding=1, dilation=2)
    assert result.tolist() == [[[1, 3, 2, 2]]]


@pytest.mark.parametrize("eps", [0.6, 1.0])
def test_logit_with_eps_above_one_half(torch, eps):
    low, high = np.log(eps / max(1 - eps, 1e-300)), np.log((1 - eps) / eps) if eps < 1 else -np.inf
    got = torch.logit(torch.tensor([eps / 2, 1.5], dtype=torch.float64), eps).tolist()
    assert got[0] == pytest.approx(low) if eps < 1 else got[0] == np.inf
    assert got[1] == pytest.approx(high)


@pytest.mark.parametrize("shape", [(2, 1, 4, 3), (8, 5, 4, 3), (2, 4, 3)])
@pytest.mark.parametrize("mode, numpys", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_padding_reads_original_elements_only(torch, shape, mode, numpys):
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    for pad in ([1, 2], [2, 1, 1, 3], [0, 2, 0, 0], [0, 0, 2, 1], [1, 0, 0, 0, 1, 0]):
        if mode == "reflect" and len(pad) == 6 and shape[-3] == 1:
            continue
        sides = [(0, 0)] * (len(shape) - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2], strict=True))
        padded = torch.nn.functional.pad(x, pad, mode)
        want = np.pad(x.detach().numpy(), sides, numpys)
        own = np.pad(np.arange(x.numel()).reshape(shape), sides, numpys)
        assert np.array_equal(padded.detach().numpy(), want)
        weights = torch.randn(*want.shape, dtype=torch.float64)
        (gradient,) = torch.autograd.grad((padded * weights).sum(), x)
        sums = np.bincount(own.reshape(-1), weights.numpy().reshape(-1), x.numel()).reshape(shape)
        assert np.allclose(gradient.numpy(), sums)


def test_circular_padding_wraps_cropped_input(torch):
    x = torch.arange(4.0).reshape(1, 1, 4)
    assert torch.nn.functional.pad(x, (-2, 1), "circular").tolist() == [[[2, 3, 2]]]


def test_losses(torch):
    F = torch.nn.functional  # noqa: N806
    loss = F.gaussian_nll_loss(torch.ones(2, 2), torch.zeros(2, 2), torch.tensor([1.0, 2.0]), reduction="none")
    np.testing.assert_allclose(loss.numpy(), [[0.5] * 2, [0.5 * (np.log(2) + 0.5)] * 2], rtol=1e-6)
    assert F.hinge_embedding_loss(torch.tensor(2.0), torch.tensor(0.3)).item() == 2
    assert F.cosine_embedding_loss(torch.tensor([[0, 1]]), torch.tensor([[0, 1]]), torch.tensor([1])).item() == pytest.approx(0, abs=1e-6)
    with pytest.raises(ValueError, match="margin must be greater than 0"):
        F.triplet_margin_loss(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2), margin=-1.0)


def test_pooling(torch):
    F = torch.nn.functional  # noqa: N806
    x = torch.randn(2, 3, 4, 5, 6)
    values, places = F.adaptive_max_pool3d(x, (2, None, 3), return_indices=True)
    assert values.tolist() == F.adaptive_max_pool3d(x, (2, None, 3)).tolist()
    assert x.flatten(2).gather(2, places.flatten(2)).tolist() == values.flatten(2).tolist()
    pooled, where = F.fractional_max_pool2d(x[0], 2, output_size=(3, 4), return_indices=True)
    assert pooled.shape == (3, 4, 3, 4)
    assert x[0].flatten(2).gather(2, where.flatten(2)).tolist() == pooled.flatten(2).tolist()
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        F.adaptive_avg_pool2d(torch.ones(2, 2), 1)


def test_nuclear_norm(torch):
    assert torch.norm(torch.ones(3, 3), "nuc").item() == pytest.approx(3, rel=1e-6)


def test_covariance(torch):
    x = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]])
    f, a = np.array([1, 2, 1]), np.array([0.5, 1.0, 2.0])
    got = torch.cov(torch.tensor(x), fweights=torch.tensor(f), aweights=torch.tensor(a))
    np.testing.assert_allclose(got.numpy(), np.cov(x, fweights=f, aweights=a))
    assert torch.cov(torch.tensor([[1, 2, 4]])).item() == pytest.approx(7 / 3)
    with pytest.raises(RuntimeError, match="two or fewer dimensions"):
        torch.cov(torch.ones(2, 2, 2))


@pytest.mark.parametrize(
    ("sizes", "dtype", "weights", "expected"),
    [((), "float64", ((), "float32"), "float64"), ((), "int32", ((), "float16"), "float32"), ((2,), "int32", ((2,), "float16"), "float16"),
     ((), "float16", ((), "float64"), "float16"), ((1,), "float32", ((), "float64"), "float32"),
     ((2,), "float32", ((2,), "float64"), "float64"),
     ((2,), "int64", None, "float32"), ((), "complex64", ((), "float64"), "complex64")],
)  # fmt: skip
def test_dtypes_of_covariances(torch, sizes, dtype, weights, expected):
    """Weights without dimensions do not promote the matrix of numbers."""
    aweights = None if weights is None else torch.ones(weights[0], dtype=getattr(torch, weights[1]))
    found = torch.cov(torch.ones(sizes, dtype=getattr(torch, dtype)), correction=0, aweights=aweights)
    assert found.dtype is getattr(torch, expected) and found.item() == 0


def test_covariances_under_autocast(torch):
    """Rows are centred before the lower precision."""
    x = torch.tensor([[1001.0, 1002.0, 1004.0], [3.0, 1.0, 0.0]], requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        found, coefficients, wide = torch.cov(x), torch.corrcoef(x), torch.cov(x.double())
        compiled = torch.compile(torch.cov)(x)
    assert [t.dtype for t in (found, coefficients, wide, compiled)] == [torch.bfloat16, torch.bfloat16, torch.float64, torch.bfloat16]
    np.testing.assert_allclose(found.float().tolist(), np.cov(x.tolist()), rtol=0.01)
    np.testing.assert_allclose(coefficients.float().tolist(), np.corrcoef(x.tolist()), rtol=0.01)
    assert compiled.tolist() == found.tolist()
    (grad,) = torch.autograd.grad(found.sum(), x)
    y = x.detach().requires_grad_()
    assert grad.dtype is torch.float32 and torch.equal(grad, torch.autograd.grad(torch.cov(y).sum(), y)[0])


def test_renorm_without_a_limit(torch):
    x = torch.tensor([[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    (grad,) = torch.autograd.grad(torch.renorm(x, 2, 0, float("inf")).sum(), x)
    assert torch.renorm(x, 2, 0, float("inf")).tolist() == x.tolist() and grad.tolist() == torch.ones(3, 2).tolist()


def test_classes_below_minus_one(torch):
    loss = torch.nn.functional.multilabel_margin_loss
    assert loss(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, -1, 2])).item() == pytest.approx((1.1 + 1.2) / 3)
    for target in ([0, -2, 1], [0, -1, -2], [0, 3, 1]):
        with pytest.raises((RuntimeError, IndexError), match="out of"):
            loss(torch.tensor([0.1, 0.2, 0.3]), torch.tensor(target)).item()


@pytest.mark.parametrize("kind", [IndexError, RuntimeError])
def test_either_clause_catches_an_invalid_index(torch, kind):
    x, index = torch.arange(3.0), torch.tensor([3])
    for call in (
        lambda: x.gather(0, index), lambda: x[index], lambda: x.sum(3),
        lambda: torch.nn.functional.embedding_bag(index[None], torch.ones(2, 2)), lambda: torch.nn.functional.one_hot(index, 2),
    ):  # fmt: skip
        with pytest.raises(kind) as error:
            call().tolist()
        assert isinstance(pickle.loads(pickle.dumps(error.value)), kind)


def test_unsupported_dtypes_are_not_implemented(torch):
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.hypot(torch.tensor([1]), torch.tensor([2]))
    with pytest.raises(NotImplementedError, match="could not infer output dtype"):
        torch.tensor([1]).mean()


@pytest.mark.parametrize(
    ("kind", "message", "call"),
    [
        (RuntimeError, "rtol must be", lambda t: t.isclose(t.ones(1), t.ones(1), rtol=-1.0)),
        (RuntimeError, "only supports floating-point", lambda t: t.multinomial(t.tensor([1, 2]), 1)),
        (IndexError, "tensor has no dimensions", lambda t: t.roll(t.tensor(1.0), 0, 0)),
        (RuntimeError, "at least 2 dimensions", lambda t: t.renorm(t.tensor(1.0), 0.5, 0, 1.0)),
        (RuntimeError, "must have length 3", lambda t: t.linalg.cross(t.ones(5, 3), t.ones(5, 1))),
        (RuntimeError, "scalar or 1D", lambda t: t.prelu(t.ones(2, 8, 3), t.ones(2, 4))),
        (ValueError, "min_val cannot be greater", lambda t: t.nn.functional.hardtanh(t.ones(1), 0.5, -0.5)),
        (RuntimeError, "lambda must be", lambda t: t.nn.functional.softshrink(t.ones(1), -0.5)),
        (RuntimeError, "channels to be greater than 0", lambda t: t.nn.functional.group_norm(t.ones(1, 0, 2), 1)),
        (RuntimeError, "sigma > 0.0", lambda t: t.ones(2).cauchy_(0.0, 0.0)),
        (RuntimeError, "only supports boolean masks", lambda t: t.ones(2).masked_scatter(t.tensor([1, 0]), t.ones(2)).tolist()),
        (RuntimeError, "contracted dimensions", lambda t: t.tensordot(t.ones(2, 3), t.ones(2, 3), 1)),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected(torch, kind, message, call):
    with pytest.raises(kind, match=message):
        call(torch)

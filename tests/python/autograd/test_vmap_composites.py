"""vmap computes losses and other composites for all entries at once, with the values of single calls."""

from __future__ import annotations

import math
import warnings

import pytest

import teletensor as torch
import teletensor.nn.functional as F  # noqa: N812 - the usual name
from teletensor.func import grad, vmap

CALLS = {
    "huber_loss": lambda a, b: F.huber_loss(a, b, delta=0.3),
    "huber_loss without reduction": lambda a, b: F.huber_loss(a, b, reduction="none"),
    "binary_cross_entropy": lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
    "binary_cross_entropy_with_logits": lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid()),
    "with logits and weights": lambda a, b: F.binary_cross_entropy_with_logits(a, b.sigmoid(), weight=b.exp(), pos_weight=a.exp()),
    "kl_div": lambda a, b: F.kl_div(a, b.sigmoid(), reduction="batchmean"),
    "kl_div of logarithms": lambda a, b: F.kl_div(a, b, reduction="sum", log_target=True),
    "l1_loss": lambda a, b: F.l1_loss(a, b),
    "smooth_l1_loss with beta 0": lambda a, b: F.smooth_l1_loss(a, b, beta=0.0),
    "poisson_nll_loss": lambda a, b: F.poisson_nll_loss(a, b.exp(), full=True),
    "soft_margin_loss": lambda a, b: F.soft_margin_loss(a, b.sign()),
    "cosine_embedding_loss": lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor([1.0, -1.0, 1.0]), margin=0.1),
    "triplet_margin_loss": lambda a, b: F.triplet_margin_loss(a, b, a * b, swap=True),
    "cross_entropy with smoothing": lambda a, b: F.cross_entropy(a, torch.tensor([0, 1, -100]), label_smoothing=0.1),
    "cross_entropy of probabilities": lambda a, b: F.cross_entropy(a, b.softmax(1), label_smoothing=0.2),
    "cosine_similarity": lambda a, b: F.cosine_similarity(a, b, dim=0),
    "bilinear": lambda a, b: F.bilinear(a, b, torch.ones(2, 4, 4), torch.ones(2)),
    "cdist": lambda a, b: torch.cdist(a, b),
    "cdist with p=inf": lambda a, b: torch.cdist(a, b, p=float("inf")),
    "trapezoid": lambda a, b: torch.trapezoid(a, b),
    "cumulative_trapezoid": lambda a, b: torch.cumulative_trapezoid(a, dx=0.5, dim=0),
    "gru_cell": lambda a, b: torch.gru_cell(a, b, torch.ones(12, 4), torch.ones(12, 4)),
    "lstm_cell": lambda a, b: torch.lstm_cell(a, (b, a), torch.ones(16, 4), torch.ones(16, 4))[1],
    "mvlgamma": lambda a, b: torch.special.multigammaln(a.abs() + 2, 3),
    "prelu": lambda a, b: F.prelu(a, b[0]),
    "rot90": lambda a, b: a.rot90(3),
    "kron": lambda a, b: torch.kron(a, b[0]),
    "quantile": lambda a, b: a.quantile(torch.tensor([0.1, 0.6]), dim=1, keepdim=True),
    "quantile of all": lambda a, b: a.quantile(0.3, interpolation="midpoint"),
    "affine_grid": lambda a, b: F.affine_grid(a[None, :2, :3], (1, 1, 2, 3), align_corners=False),
    "scatter_reduce": lambda a, b: a.scatter_reduce(0, torch.zeros(3, 4, dtype=torch.int64), b, "mean"),
    "masked_scatter": lambda a, b: a.masked_scatter(a > 0, b),
    "put": lambda a, b: a.put(torch.tensor([1, -2]), b[0, :2]),
    "tile": lambda a, b: a.tile(2, 1, 3),
    "diag": lambda a, b: a.diag(1),
    "diag of a vector": lambda a, b: a[0].diag(-1),
    "vstack": lambda a, b: torch.vstack([a, b[0]]),
    "cov": lambda a, b: torch.cov(a),
    "cov with weights": lambda a, b: torch.cov(a, correction=0, fweights=torch.tensor([1, 2, 1, 3]), aweights=b[0].exp()),
    "corrcoef": lambda a, b: torch.corrcoef(a),
    "vander": lambda a, b: torch.vander(a[0].exp(), 3, increasing=True),
    "diagflat": lambda a, b: torch.diagflat(a, 1),
    "renorm": lambda a, b: a.renorm(2, 0, 1.0),
    "norm_except_dim": lambda a, b: torch.norm_except_dim(a, 2, 1),
    "multi_margin_loss": lambda a, b: F.multi_margin_loss(a, torch.tensor([0, 3, 1]), p=2, weight=b[0].exp()),
    "multilabel_margin_loss": lambda a, b: F.multilabel_margin_loss(a, torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2], [0, 1, 2, 3]])),
    "frexp": lambda a, b: torch.frexp(a).mantissa,
}  # fmt: skip
WITHOUT_GRADIENTS = {
    "any": lambda a, b: (a > 0.9).any(),
    "any along a dimension": lambda a, b: (a > 0.9).any(1, keepdim=True),
    "all": lambda a, b: (a > -0.9).all(0),
    "median": lambda a, b: a.median(),
    "nanmedian": lambda a, b: torch.where(a > 0.5, float("nan"), a).nanmedian(),
    "nanquantile": lambda a, b: torch.where(a > 0.5, float("nan"), a).nanquantile(0.3, dim=1),
    "histc": lambda a, b: torch.histc(a, 5),
    "histc in a range": lambda a, b: torch.histc(a, 4, -0.5, 0.7),
    "isin": lambda a, b: torch.isin((a * 4).long(), (b * 4).long()),
    "searchsorted": lambda a, b: torch.searchsorted(b.sort()[0], a),
    "searchsorted in a vector": lambda a, b: torch.searchsorted(b[0].sort()[0], a, right=True),
    "bucketize": lambda a, b: torch.bucketize(a, b[0].sort()[0]),
    "index_reduce": lambda a, b: a.index_reduce(0, torch.tensor([0, 2, 0]), b, "amax"),
    "scatter_reduce without itself": lambda a, b: a.scatter_reduce(1, torch.ones(3, 4).long(), b, "amin", include_self=False),
}  # fmt: skip


def _values() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(5, 3, 4, generator=generator), torch.randn(5, 3, 4, generator=generator)


def _mapped(f, *args):
    """vmap(f)(*args), which must not call an operator once per entry."""
    from teletensor.func import _batched

    _batched._warned.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return vmap(f)(*args)


@pytest.mark.parametrize("name", [*CALLS, *WITHOUT_GRADIENTS])
def test_values_of_single_calls(name: str) -> None:
    f = {**CALLS, **WITHOUT_GRADIENTS}[name]
    a, b = _values()
    wanted = torch.stack([f(x, y) for x, y in zip(a, b)])
    found = _mapped(f, a, b)
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found, wanted, equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_single_calls(name: str) -> None:
    a, b = _values()

    def total(x, y):
        return (CALLS[name](x, y) * 1.5).sum()

    wanted = torch.stack([grad(total)(x, y) for x, y in zip(a, b)])
    torch.testing.assert_close(_mapped(grad(total), a, b), wanted)


def test_one_mapped_argument() -> None:
    a, b = _values()
    target = b[0].sigmoid()
    for f in (F.huber_loss, F.binary_cross_entropy_with_logits, F.l1_loss, F.cosine_similarity):
        found = vmap(f, in_dims=(0, None))(a, target)
        torch.testing.assert_close(found, torch.stack([f(x, target) for x in a]))
    rows = b[0, 0].sort()[0]
    assert torch.equal(vmap(torch.bucketize, in_dims=(0, None))(a, rows), torch.bucketize(a, rows))
    assert torch.equal(vmap(torch.bucketize, in_dims=(None, 0))(a[0], b[:, 0].sort()[0]),
                       torch.stack([torch.bucketize(a[0], r) for r in b[:, 0].sort()[0]]))  # fmt: skip


def test_equal_elements_share_the_gradient_of_the_median() -> None:
    x = torch.tensor([[1.0, 2.0, 2.0, 5.0], [3.0, 3.0, 3.0, 3.0]])
    wanted = torch.stack([grad(torch.median)(row) for row in x])
    assert torch.equal(vmap(grad(torch.median))(x), wanted)


def test_errors_are_those_of_single_calls() -> None:
    a, b = _values()
    for f in (lambda x, y: F.huber_loss(x, y, reduction="all"), lambda x, y: F.binary_cross_entropy_with_logits(x, y[0])):
        with pytest.raises(ValueError) as single:
            f(a[0], b[0])
        with pytest.raises(ValueError) as mapped:
            vmap(f)(a, b)
        assert str(mapped.value) == str(single.value)


def _integers() -> torch.Tensor:
    return torch.tensor([[1, 5, 3], [4, 2, 6]])


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_extrema_of_scattered_integers(reduce: str, dtype: torch.dtype) -> None:
    x, index = _integers().to(dtype), torch.tensor([[0, 0, 1], [1, 1, 0]])

    def f(a, i):
        return a.scatter_reduce(0, i, a, reduce, include_self=False)

    assert torch.equal(_mapped(f, x, index), torch.stack([f(a, i) for a, i in zip(x, index)]))
    assert vmap(f)(x, index).tolist() == ([[5, 3, 3], [6, 4, 6]] if reduce == "amax" else [[1, 3, 3], [6, 2, 6]])


def test_bilinear_keeps_integers() -> None:
    x, weight = _integers().to(torch.int32).reshape(2, 1, 3), torch.ones(2, 3, 3, dtype=torch.int32)
    found = _mapped(lambda a: F.bilinear(a, a, weight), x)
    assert found.dtype == torch.int32 and found.tolist() == [[[81, 81]], [[144, 144]]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.filterwarnings("ignore:vmap. cross_entropy has no batching rule")
def test_smoothed_losses_of_small_floats_are_those_of_single_calls(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(16, 7, 9, generator=generator).to(dtype)
    classes = torch.randint(9, (16, 7), generator=generator)
    shares = torch.rand(16, 7, 9, generator=generator).to(dtype)
    for target in (classes, shares):
        wanted = torch.stack([F.cross_entropy(a, t, label_smoothing=0.1) for a, t in zip(x, target)])
        assert torch.equal(vmap(lambda a, t: F.cross_entropy(a, t, label_smoothing=0.1))(x, target), wanted)


def test_masks_that_are_larger_than_the_input() -> None:
    masks = torch.tensor([[[True, False, True], [False, True, True]], [[False, False, False], [True, True, True]]])
    x, source = torch.full((2, 3), 7.0), torch.arange(6.0)
    found = _mapped(lambda a, m: a.masked_scatter(m, source), x[:, None].expand(2, 2, 3), masks)
    assert found.tolist() == [[[0, 7, 1], [7, 2, 3]], [[7, 7, 7], [0, 1, 2]]]
    assert torch.equal(_mapped(lambda a, m: torch.masked_scatter(a, m, source), x, masks), found)


@pytest.mark.filterwarnings("ignore:vmap. masked_scatter has no batching rule")
def test_sources_with_few_elements() -> None:
    x, mask = torch.ones(2, 3), torch.tensor([[True, False, True], [False, False, True]])
    found = vmap(lambda a, m: a.masked_scatter(m, torch.tensor([5.0, 6.0])))(x, mask)
    assert found.tolist() == [[5, 1, 6], [1, 1, 5]]
    with pytest.raises(RuntimeError, match=r"^\[masked_scatter\]"):
        vmap(lambda a, m: a.masked_scatter(m, torch.tensor([5.0])))(x, mask).tolist()


def test_put_requires_as_many_values_as_positions() -> None:
    x, index = torch.ones(2, 3), torch.tensor([[0, 1], [1, 2]])
    assert _mapped(lambda a, i: a.put(i, torch.tensor([9.0, 8.0])), x, index).tolist() == [[9, 8, 1], [1, 9, 8]]
    with pytest.raises(RuntimeError, match="expected source and index to have the same number of elements"):
        vmap(lambda a, i: a.put(i, torch.tensor([9.0])))(x, index)


def test_medians_of_no_entries() -> None:
    for f in (torch.median, torch.nanmedian):
        assert vmap(f)(torch.ones(0, 3)).shape == (0,) and vmap(f)(torch.ones(0, 3, 2)).shape == (0,)


INTEGER_SUMS = {
    "addmm": ((2, 2), (2, 3), (3, 2)), "addmv": ((2,), (2, 3), (3,)), "addbmm": ((2, 2), (4, 2, 3), (4, 3, 2)),
    "baddbmm": ((4, 2, 2), (4, 2, 3), (4, 3, 2)), "addr": ((2, 2), (2,), (2,)),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGER_SUMS)
def test_factors_of_integer_products(name: str) -> None:
    operands = [torch.arange(1, 4)[:, None] * torch.ones(3, math.prod(s), dtype=torch.int64) for s in INTEGER_SUMS[name]]
    operands = [t.reshape(3, *s) for t, s in zip(operands, INTEGER_SUMS[name])]
    factors = [{"beta": 2, "alpha": 3}] if name == "addr" else [{"beta": 2.7, "alpha": 3.2}, {"beta": 0.5}, {"alpha": 0.5}]
    for given in factors:
        def f(*args: torch.Tensor, given: dict = given) -> torch.Tensor:
            return getattr(torch, name)(*args, **given)

        wanted, found = torch.stack([f(*entry) for entry in zip(*operands)]), _mapped(f, *operands)
        assert found.dtype == wanted.dtype == torch.int64 and torch.equal(found, wanted)
    if name == "addr":
        for by in ({"beta": 0.5}, {"alpha": 2.0}):
            with pytest.raises(RuntimeError, match="For integral input tensors, argument (beta|alpha) must not be a floating point"):
                vmap(lambda *args, by=by: torch.addr(*args, **by))(*operands)


def test_factors_of_boolean_outer_products() -> None:
    x, v = torch.tensor([[True, False], [False, False]]), torch.tensor([[True, False], [True, True]])
    found = _mapped(lambda a, b: torch.addr(a, b, b, beta=2, alpha=3), x, v)
    assert found.dtype == torch.bool and found.tolist() == [[[True, False], [True, False]], [[True, True], [True, True]]]


@pytest.mark.parametrize("maxnorm", [math.inf, 2.5])
def test_gradients_of_renorm_are_finite(maxnorm):
    x = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    got = vmap(grad(lambda t: torch.renorm(t, 2, 0, maxnorm).sum()))(x)
    assert torch.isfinite(got).all() and torch.equal(got[0], torch.ones(1, 2))
    assert torch.equal(got[1], torch.ones(1, 2)) is (maxnorm == math.inf)


def test_margins_and_covariances_at_the_edges_of_their_arguments():
    x = torch.randn(3, 4)
    with pytest.raises(IndexError, match="-2 is out of bounds"):
        vmap(lambda a: torch.nn.functional.multilabel_margin_loss(a, torch.tensor([1, -2, 0, 0])))(x).tolist()
    weight = torch.tensor(0.5, dtype=torch.float64)
    wanted = torch.cov(x[0, 0], aweights=weight, correction=0)
    assert vmap(lambda a: torch.cov(a, aweights=weight, correction=0))(x[:, 0]).dtype == wanted.dtype == torch.float32

"""Reductions, norms, sorting."""

from __future__ import annotations

from typing import Any

from .cases import Case


def _numbers(t, x, counts):  # noqa: ANN001, ANN202
    """Sizes and places that are values of a tensor, with conditions that they satisfy."""
    count = counts[0].item()
    t._check(count >= 0)
    t._check(count < 5)
    t._check(count != 7)
    return t.zeros(count) + 1, x.sum().item() + x, x.repeat_interleave(counts.sum() * t.ones(3, dtype=t.int64), dim=1)


def _distinct_with_nans(t: Any, x: Any, dim: int | None = None) -> Any:
    """The distinct values of integers, of which those that leave 2 when divided by 3 are replaced by NaN."""
    return t.unique(t.where(x % 3 == 2, t.nan, x), return_inverse=True, return_counts=True, dim=dim)


ROWS: dict[str, Case] = {
    "sum": Case(lambda t, x: (x.sum(), x.sum(0), x.sum((0, 2), keepdim=True)), ["f:n,3,m"]),
    "sum-integers": Case(lambda t, x: (x.sum(), x.sum(1)), ["j:n,3"]),
    "sum-booleans": Case(lambda t, x: x.sum(1), ["b:n,3"]),
    "sum-dtype": Case(lambda t, x: x.sum(1, dtype=t.float64), ["f:n,3"]),
    "sum-of-scalar": Case(lambda t, x: x.sum(), ["f:"]),
    "mean": Case(lambda t, x: (x.mean(), x.mean(0), x.mean((0, -1), keepdim=True)), ["f:n,3,m"]),
    "nansum": Case(lambda t, x: t.nansum(t.log(x), 1), ["f:n,3"]),
    "prod": Case(lambda t, x: (x.prod(), x.prod(1), x.prod(0, keepdim=True)), ["f:n,3"]),
    "amax": Case(lambda t, x: (x.amax(1), x.amin((0, 1)), x.amax(0, keepdim=True)), ["f:n,3"]),
    "amax-integers": Case(lambda t, x: (x.amax(1), x.amin(0)), ["i:n,3"]),
    "max": Case(lambda t, x: (x.max(), x.min()), ["f:n,3"]),
    "max-dim": Case(lambda t, x: (*x.max(1), *x.min(0, keepdim=True)), ["f:n,3"]),
    "max-dim-integers": Case(lambda t, x: tuple(x.max(1)), ["i:n,9"]),
    "aminmax": Case(lambda t, x: tuple(t.aminmax(x, dim=1)), ["f:n,3"]),
    "argmax": Case(lambda t, x: (x.argmax(), x.argmax(1), x.argmin(0, keepdim=True)), ["f:n,3"]),
    "argmax-integers": Case(lambda t, x: (x.argmax(1), x.argmin()), ["i:n,3"]),
    "any": Case(lambda t, x: (x.any(), x.any(1), x.all(), x.all(0, keepdim=True)), ["b:n,3"]),
    "any-floats": Case(lambda t, x: (t.relu(x).any(1), x.all()), ["f:n,3"]),
    "any-dims": Case(lambda t, x: t.any(x, dim=(0, 1)), ["b:n,3,2"]),
    "count_nonzero": Case(lambda t, x: t.count_nonzero(x, dim=1), ["i5:n,3"]),
    "logsumexp": Case(lambda t, x: (x.logsumexp(1), x.logsumexp((0, 1), keepdim=True)), ["f:n,3"]),
    "var": Case(lambda t, x: (x.var(), x.var(1), x.var(0, unbiased=False), x.std(1, keepdim=True)), ["f:n,3"]),
    "var-correction": Case(lambda t, x: (t.var(x, dim=0, correction=2), t.std(x, dim=1, correction=0)), ["f:n,3"]),
    "var_mean": Case(lambda t, x: (*t.var_mean(x, 1), *t.std_mean(x, dim=0, correction=0, keepdim=True)), ["f:n,3"]),
    "norm": Case(lambda t, x: (x.norm(), x.norm(1, 1), x.norm(float("inf"), 0), x.norm(3, 1, True)), ["f:n,3"]),
    "vector_norm": Case(lambda t, x: (t.linalg.vector_norm(x, 2, 1), t.linalg.vector_norm(x, 0, 1), t.linalg.vector_norm(x)), ["f:n,3"]),
    "matrix_norm": Case(lambda t, x: (t.linalg.matrix_norm(x), t.linalg.matrix_norm(x, 1)), ["f:2,n,3"]),
    "linalg-norm": Case(lambda t, x: t.linalg.norm(x, dim=1), ["f:n,3"]),
    "cumsum": Case(lambda t, x: (x.cumsum(0), x.cumsum(-1)), ["f:n,3"]),
    "cumsum-integers": Case(lambda t, x: x.cumsum(1), ["j:n,3"]),
    "cumprod": Case(lambda t, x: (x.cumprod(0), x.cumprod(1)), ["f:n,3"]),
    "cummax": Case(lambda t, x: (*x.cummax(0), *x.cummin(1)), ["f:n,3"]),
    "logcumsumexp": Case(lambda t, x: x.logcumsumexp(1), ["f:n,3"]),
    "topk": Case(lambda t, x: tuple(x.topk(2)), ["f:n,4"]),
    "topk-smallest": Case(lambda t, x: tuple(x.topk(2, 0, False)), ["f:n,4"]),
    "sort": Case(lambda t, x: tuple(x.sort()), ["f:n,4"]),
    "sort-descending": Case(lambda t, x: tuple(x.sort(0, descending=True)), ["f:n,4"]),
    "sort-stable": Case(lambda t, x: tuple(t.sort(x, dim=1, stable=True)), ["i5:n,9"]),
    "argsort": Case(lambda t, x: x.argsort(1), ["f:n,4"]),
    "msort": Case(lambda t, x: t.msort(x), ["f:n,4"]),
    "kthvalue": Case(lambda t, x: tuple(x.kthvalue(2)), ["f:n,4"]),
    "median": Case(lambda t, x: tuple(x.median(1)), ["f:n,5"]),
    "median-all": Case(lambda t, x: x.median(), ["f:3,4"]),
    "unique": Case(lambda t, x: t.unique(x, return_inverse=True, return_counts=True), ["i5:n,3"]),
    "unique-types": Case(lambda t, x, y, z: (t.unique(x), t.unique(y), *t.unique(z, return_counts=True)), ["f:n,3", "j:n", "b:n,2"]),
    "unique-dim": Case(lambda t, x: t.unique(x % 2, return_inverse=True, return_counts=True, dim=1), ["i5:2,9"]),
    "unique-nan": Case(lambda t, x: _distinct_with_nans(t, x.float()), ["i5:n,4"]),
    "unique-nan-types": Case(lambda t, x: (*_distinct_with_nans(t, x.double()), *_distinct_with_nans(t, x.half())), ["i5:n,4"]),
    "unique-nan-dim": Case(lambda t, x: _distinct_with_nans(t, x.float(), dim=0), ["i5:20,n"]),
    "unique-nan-columns": Case(lambda t, x: _distinct_with_nans(t, x.half(), dim=1), ["i5:2,20"]),
    "unique-nan-only": Case(lambda t, x: (t.unique(x * t.nan, dim=0), *t.unique(x * t.nan, False, True, True)), ["f:n,2"]),
    "unique-empty": Case(lambda t, x: t.unique(x[:0], return_inverse=True, return_counts=True), ["f:3"]),
    "unique_consecutive": Case(lambda t, x: t.unique_consecutive(x % 2, return_inverse=True, return_counts=True), ["i5:n,3"]),
    "unique_consecutive-dim": Case(lambda t, x: t.unique_consecutive(x > 1, return_inverse=True, return_counts=True, dim=0), ["i5:9,2"]),
    "unique_consecutive-empty": Case(lambda t, x: t.unique_consecutive(x[:0], return_inverse=True, return_counts=True), ["f:3"]),
    "bincount": Case(lambda t, x: (t.bincount(x), t.bincount(x, minlength=9), t.bincount(x[:0])), ["i5:n"]),
    "bincount-weights": Case(lambda t, x, w: t.bincount(x, w, minlength=7), ["i5:n", "f:n"]),
    "numbers-of-values": Case(_numbers, ["f:n,3", "i5:2"]),
    "searchsorted": Case(lambda t, x, y: t.searchsorted(x.sort().values, y), ["f:5", "f:n,3"]),
    "bucketize": Case(lambda t, x, y: t.bucketize(x, y.sort().values, right=True), ["f:n,3", "f:5"]),
    "nanmean": Case(lambda t, x: t.nanmean(t.log(x)), ["f:4,3"]),
    "dist": Case(lambda t, x, y: t.dist(x, y), ["f:n,3", "f:n,3"]),
    "cdist": Case(lambda t, x, y: (t.cdist(x, y), t.cdist(x, y, p=1.0)), ["f:n,3", "f:4,3"]),
    "pdist": Case(lambda t, x: t.nn.functional.pdist(x), ["f:4,3"]),
    "pairwise_distance": Case(lambda t, x, y: t.nn.functional.pairwise_distance(x, y), ["f:n,3", "f:n,3"]),
    "cosine_similarity": Case(lambda t, x, y: t.nn.functional.cosine_similarity(x, y), ["f:n,3", "f:n,3"]),
    "einsum": Case(lambda t, x, y: t.einsum("bij,bjk->bik", x, y), ["f:n,3,4", "f:n,4,2"]),
    "einsum-sum": Case(lambda t, x, y: t.einsum("ij, kj -> ik", x, y), ["f:n,3", "f:4,3"]),
    "einsum-diagonal": Case(lambda t, x: t.einsum("bii->bi", x), ["f:n,3,3"]),
    "matmul": Case(lambda t, x, y: (x @ y, x[0] @ y, x[0, 0] @ y, y.t() @ x[0, 0]), ["f:n,2,3", "f:3,4"]),
    "matmul-broadcast": Case(lambda t, x, y: x @ y, ["f:n,1,2,3", "f:4,3,2"]),
    "matmul-integers": Case(lambda t, x, y: x @ y, ["i:n,3", "i:3,2"]),
    "mm-bmm": Case(lambda t, x, y: (t.mm(x[0], y[0]), t.bmm(x, y)), ["f:n,2,3", "f:n,3,2"]),
    "mv-dot": Case(lambda t, x, y: (t.mv(x, y), t.dot(y, y)), ["f:n,3", "f:3"]),
    "addmm": Case(lambda t, b, x, y: (t.addmm(b, x, y), t.addmm(b, x, y, beta=0.5, alpha=2)), ["f:2", "f:n,3", "f:3,2"]),
    "baddbmm": Case(lambda t, b, x, y: t.baddbmm(b, x, y, beta=0.5), ["f:n,2,2", "f:n,2,3", "f:n,3,2"]),
    "addmv": Case(lambda t, b, x, y: t.addmv(b, x, y, alpha=2), ["f:n", "f:n,3", "f:3"]),
    "addbmm": Case(lambda t, b, x, y: t.addbmm(b, x, y), ["f:2,2", "f:n,2,3", "f:n,3,2"]),
    "outer": Case(lambda t, x, y: t.outer(x, y), ["f:n", "f:3"]),
    "kron": Case(lambda t, x, y: t.kron(x, y), ["f:n,2", "f:3,2"]),
    "tensordot": Case(lambda t, x, y: t.tensordot(x, y, dims=([1], [0])), ["f:n,3,2", "f:3,4"]),
    "det": Case(lambda t, x: t.linalg.det(x), ["f:n,3,3"]),
    "cross": Case(lambda t, x, y: t.linalg.cross(x, y), ["f:n,3", "f:n,3"]),
    "linear": Case(lambda t: t.nn.Linear(3, 4), ["f:n,3"], is_module=True),
    "linear-3d": Case(lambda t: t.nn.Linear(3, 4, bias=False), ["f:n,m,3"], is_module=True),
    "linear-1d": Case(lambda t: t.nn.Linear(3, 4), ["f:3"], is_module=True),
    "bilinear": Case(lambda t: t.nn.Bilinear(3, 4, 2), ["f:n,3", "f:n,4"], is_module=True),
}  # fmt: skip

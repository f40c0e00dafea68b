"""Products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import Untranslatable, translates


@translates(
    "aten.mm.default aten.bmm.default aten.dot.default aten.mv.default aten.matmul.default aten.vdot.default aten.inner.default"
)
def _matmul(b: Builder, self: Value, other: Any = None, **kwargs: Any) -> Value:
    other = next(iter(kwargs.values())) if other is None else other
    if self.dtype not in (_C.float32, _C.float64, _C.float16, _C.bfloat16, _C.int32, _C.int64):
        return b.cast(b.op("MatMul", b.cast(self, _C.int32), b.cast(other, _C.int32)), self.dtype)
    return b.op("MatMul", self, other)


@translates("aten.linear.default")
def _linear(b: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:  # noqa: A002 - the schema's names
    if input.rank == 2 and weight.rank == 2 and weight.dtype.is_floating_point:
        return b.op("Gemm", input, weight, bias, transB=1)
    turned = b.transpose(weight, [1, 0]) if weight.rank == 2 else weight
    product = b.op("MatMul", input, turned)
    return product if bias is None else b.op("Add", product, bias)


def added(b: Builder, self: Value, product: Value, beta: Any, alpha: Any) -> Value:
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return b.op("Add", self if beta == 1 else self * beta, product)


@translates("aten.addmm.default")
def _addmm(b: Builder, self: Value, mat1: Value, mat2: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    if beta != 0 and self.dtype.is_floating_point:
        return b.op("Gemm", mat1, mat2, self, alpha=float(alpha), beta=float(beta))
    return added(b, self, b.op("MatMul", mat1, mat2), beta, alpha)


@translates("aten.addmv.default aten.baddbmm.default")
def _addmv(b: Builder, self: Value, first: Value, second: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    return added(b, self, b.op("MatMul", first, second), beta, alpha)


@translates("aten.addbmm.default")
def _addbmm(b: Builder, self: Value, batch1: Value, batch2: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    total = b.op("ReduceSum", b.op("MatMul", batch1, batch2), b.const([0], _C.int64), keepdims=0)
    return added(b, self, total, beta, alpha)


@translates("aten.outer.default aten.ger.default")
def _outer(b: Builder, self: Value, vec2: Value) -> Value:
    return b.op("Mul", b.cast(b.unsqueeze(self, [1]), b.dtype), b.cast(vec2, b.dtype))


@translates("aten.addr.default")
def _addr(b: Builder, self: Value, vec1: Value, vec2: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    return added(b, self, b.op("Mul", b.unsqueeze(vec1, [1]), vec2), beta, alpha)


@translates("aten.einsum.default")
def _einsum(b: Builder, equation: str, tensors: Sequence[Value], path: Any = None) -> Value:
    del path
    return b.op("Einsum", *(b.cast(t, b.dtype) for t in tensors), equation=equation.replace(" ", ""))


@translates("aten.bilinear.default")
def _bilinear(b: Builder, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    made = b.op("Einsum", input1, weight, input2, equation="...i,oij,...j->...o")
    return made if bias is None else b.op("Add", made, bias)


@translates("aten.kron.default")
def _kron(b: Builder, self: Value, other: Value) -> Value:
    rank = max(self.rank, other.rank)
    x = b.unsqueeze(self, list(range(rank - self.rank))) if self.rank < rank else self
    y = b.unsqueeze(other, list(range(rank - other.rank))) if other.rank < rank else other
    x, y = b.unsqueeze(x, [2 * d + 1 for d in range(rank)]), b.unsqueeze(y, [2 * d for d in range(rank)])
    product = b.op("Mul", b.cast(x, b.dtype), b.cast(y, b.dtype))
    sizes = [b.arithmetic("Mul", b.size(x, 2 * d), b.size(y, 2 * d + 1)) for d in range(rank)]
    return b.reshape(product, sizes, b.shape)


@translates("aten.tensordot.default")
def _tensordot(b: Builder, self: Value, other: Value, dims_self: Sequence[int], dims_other: Sequence[int]) -> Value:
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(self.rank)]
    right: list[str] = [next(letters) for _ in range(other.rank)]
    for i, j in zip(dims_self, dims_other):
        right[j] = left[i]
    summed = {left[i] for i in dims_self}
    result = [c for c in left + right if c not in summed]
    return b.op("Einsum", self, other, equation=f"{''.join(left)},{''.join(right)}->{''.join(result)}")


@translates("aten.linalg_det.default aten.det.default")
def _det(b: Builder, A: Value = None, self: Value = None) -> Value:  # noqa: N803 - the schema's names
    return b.op("Det", A if A is not None else self)


@translates("aten.cross.default aten.linalg_cross.default")
def _cross(b: Builder, self: Value, other: Value, dim: int | None = None) -> Value:
    if dim is None:
        dim = next(d for d, n in enumerate(self.shape) if n == 3)
    dim %= len(b.shape)
    if self.shape != other.shape:
        raise Untranslatable("a cross product of sizes that are broadcast")

    def turned(x: Value, first: int) -> Value:
        return b.op("Gather", x, b.const([(first + i) % 3 for i in range(3)], _C.int64), axis=dim)

    return b.op("Sub", b.op("Mul", turned(self, 1), turned(other, 2)), b.op("Mul", turned(self, 2), turned(other, 1)))


@translates("aten.cdist.default aten._cdist_forward.default")
def _cdist(b: Builder, x1: Value, x2: Value, p: float = 2.0, compute_mode: Any = None) -> Value:
    del compute_mode
    difference = b.op("Abs", b.op("Sub", b.unsqueeze(x1, [-2]), b.unsqueeze(x2, [-3])))
    last = b.const([-1], _C.int64)
    if p == 2:
        return b.op("ReduceL2", difference, last, keepdims=0)
    if p == 1:
        return b.op("ReduceSum", difference, last, keepdims=0)
    if p == float("inf"):
        return b.op("ReduceMax", difference, last, keepdims=0)
    if p == 0:
        return b.op("ReduceSum", b.cast(b.cast(difference, _C.bool), x1.dtype), last, keepdims=0)
    power = b.op("ReduceSum", b.op("Pow", difference, b.const(float(p), x1.dtype)), last, keepdims=0)
    return b.op("Pow", power, b.const(1 / p, x1.dtype))


@translates("aten._pdist_forward.default aten.pdist.default")
def _pdist(b: Builder, self: Value, p: float = 2.0) -> Value:
    n = b.size(self, 0)
    if type(n) is not int:
        raise Untranslatable("pairwise distances of a dynamic number of rows")
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, second = (b.op("Gather", self, b.const([pair[k] for pair in pairs], _C.int64), axis=0) for k in (0, 1))
    first.shape = second.shape = (len(pairs), self.shape[1])
    both = _cdist(b, b.unsqueeze(first, [1]), b.unsqueeze(second, [1]), p)
    return b.reshape(both, [len(pairs)])


@translates("aten.pairwise_distance.default")
def _pairwise_distance(
    b: Builder, x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    difference = b.op("Sub", x1, x2) + eps
    last = b.const([-1], _C.int64)
    if p == 2:
        return b.op("ReduceL2", difference, last, keepdims=int(keepdim))
    if p == 1:
        return b.op("ReduceL1", difference, last, keepdims=int(keepdim))
    power = b.op(
        "ReduceSum", b.op("Pow", b.op("Abs", difference), b.const(float(p), x1.dtype)), last, keepdims=int(keepdim)
    )
    return b.op("Pow", power, b.const(1 / p, x1.dtype))


@translates("aten.cosine_similarity.default")
def _cosine_similarity(b: Builder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    axis = b.const([dim], _C.int64)

    def unit(x: Value) -> Value:
        return b.op("Div", x, b.op("Max", b.op("ReduceL2", x, axis, keepdims=1), b.const(eps, x.dtype)))

    return b.op("ReduceSum", b.op("Mul", unit(x1), unit(x2)), axis, keepdims=0)

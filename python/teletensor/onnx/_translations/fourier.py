"""Fourier transforms. A complex tensor is one of real numbers with a last dimension for the two parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import TRANSLATIONS, Untranslatable, translates


class Complex:
    """A complex value: `pair` has the real and imaginary parts in its last dimension.

    Attributes:
        shape, dtype: of the complex tensor.
    """

    def __init__(self, pair: Value, shape: tuple) -> None:
        self.pair, self.shape = pair, shape
        self.dtype = _C.complex128 if pair.dtype is _C.float64 else _C.complex64

    @property
    def rank(self) -> int:
        """The number of dimensions of the complex tensor."""
        return len(self.shape)


def _pair(b: Builder, x: Any) -> tuple[Value, tuple]:
    """The real form, with an imaginary part of 0 for real values."""
    if isinstance(x, Complex):
        return x.pair, x.shape
    x = x if x.dtype in (_C.float32, _C.float64) else b.cast(x, _C.float32)
    zero = b.op("Mul", x, b.const(0.0, x.dtype))
    made = b.op(
        "Concat", b.unsqueeze(x, [-1]), b.op("Unsqueeze", zero, b.const([-1], _C.int64)), axis=-1, shape=(*x.shape, 2)
    )
    return made, x.shape


def as_complex(b: Builder, x: Value) -> Complex:
    """A real value with an imaginary part of 0."""
    return Complex(*_pair(b, x))


def _part(b: Builder, x: Complex, i: int) -> Value:
    return b.op("Gather", x.pair, b.const(i, _C.int64), axis=-1, shape=x.shape)


def _sized(b: Builder, pair: Value, shape: tuple, dim: int, n: Any) -> tuple[Value, tuple]:
    """Cropped, or filled with 0, to n elements."""
    if n is None or n == shape[dim]:
        return pair, shape
    size = shape[dim]
    if type(size) is not int or type(n) is not int:
        raise Untranslatable("a Fourier transform that crops or fills a dynamic size")
    new = tuple(n if d == dim else m for d, m in enumerate(shape))
    if n < size:
        return b.op("Slice", pair, b.ints([0]), b.ints([n]), b.ints([dim]), shape=(*new, 2)), new
    pads = [0] * (2 * (len(shape) + 1))
    pads[len(shape) + 1 + dim] = n - size
    return b.op("Pad", pair, b.ints(pads), b.const(0, pair.dtype), mode="constant", shape=(*new, 2)), new


def _scaled(pair: Value, count: Any, norm: str | None, inverse: bool) -> Value:
    """ONNX divides the inverse by the number of elements, which is norm="backward"."""
    if norm in (None, "backward") or not isinstance(norm, str):
        return pair
    if isinstance(count, Value):
        raise Untranslatable("norms of Fourier transforms of dynamic sizes other than 'backward'")
    exponent = {"ortho": -0.5, "forward": -1.0}[norm]
    return pair * float(count ** (exponent + 1 if inverse else exponent))


def _dft(b: Builder, pair: Value, shape: tuple, dim: int, inverse: bool) -> Value:
    """DFT over one dimension; ONNX requires another one before it."""
    x = b.unsqueeze(pair, [0]) if len(shape) == 1 else pair
    dim = 1 if len(shape) == 1 else dim
    if b.opset >= 20:
        made = b.op("DFT", x, None, b.const(dim, _C.int64), shape=x.shape, inverse=int(inverse))
    else:
        made = b.op("DFT", x, axis=dim, shape=x.shape, inverse=int(inverse))
    return b.squeeze(made, [0]) if len(shape) == 1 else made


def _one(kind: str) -> Any:
    def translate(b: Builder, self: Any, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
        return transformed(b, self, kind, None if n is None else [n], [dim], norm)

    return translate


def _many(kind: str, default: Any) -> Any:
    def translate(b: Builder, self: Any, s: Any = None, dim: Any = default, norm: str | None = None) -> Any:
        if dim is None:
            dim = list(range(-len(s), 0)) if s is not None else list(range(self.rank))
        return transformed(b, self, kind, s, list(dim), norm)

    return translate


def transformed(b: Builder, x: Any, kind: str, sizes: Sequence[Any] | None, dims: list[int], norm: str | None) -> Any:
    """A transform over some dimensions: "fft", "ifft", "rfft" (of real numbers, the first half) or "irfft" (the reverse)."""
    rank = len(x.shape)
    dims = [d % rank for d in dims]
    inverse = kind in ("ifft", "irfft")
    pair, shape = _pair(b, x)
    sizes = list(sizes) if sizes is not None else [None] * len(dims)
    count: Any = 1
    if kind == "irfft":
        last = (
            sizes[-1]
            if sizes[-1] is not None
            else (2 * (shape[dims[-1]] - 1) if type(shape[dims[-1]]) is int else None)
        )
        if type(last) is not int:
            raise Untranslatable("an inverse real Fourier transform of a dynamic size")
        for d, n in zip(dims[:-1], sizes[:-1]):
            pair, shape = _sized(b, pair, shape, d, n)
            pair = _dft(b, pair, shape, d, True)
            count *= shape[d]
        pair, shape = _sized(b, pair, shape, dims[-1], last // 2 + 1)
        pair, shape = _mirrored(b, pair, shape, dims[-1], last)
        pair = _dft(b, pair, shape, dims[-1], True)
        made = _part(b, Complex(_scaled(pair, count * last, norm, True), shape), 0)
        return made
    for d, n in zip(dims, sizes):
        pair, shape = _sized(b, pair, shape, d, n)
        count = b.arithmetic("Mul", count, shape[d]) if type(shape[d]) is int else b.value(1, _C.int64)
    order = [dims[-1], *dims[:-1]] if kind == "rfft" else dims
    for i, d in enumerate(order):
        first = kind == "rfft" and i == 0
        pair = _dft(b, pair, shape, d, inverse)
        if first:
            half = b.arithmetic("Add", b.arithmetic("Div", _size(b, pair, shape, d), 2), 1)
            shape = tuple((half if type(half) is int else None) if k == d else m for k, m in enumerate(shape))
            pair = b.op("Slice", pair, b.ints([0]), b.ints([half]), b.ints([d]), shape=(*shape, 2))
    return Complex(_scaled(pair, count, norm, inverse), shape)


def _size(b: Builder, pair: Value, shape: tuple, dim: int) -> Any:
    return shape[dim] if type(shape[dim]) is int else b.size(pair, dim)


def _mirrored(b: Builder, pair: Value, shape: tuple, dim: int, n: int) -> tuple[Value, tuple]:
    """The second half of a spectrum: the first half's conjugates in reverse order."""
    places = [n - k for k in range(n // 2 + 1, n)]
    if places:
        rest = b.op("Gather", pair, b.const(places, _C.int64), axis=dim)
        rest = b.op("Mul", rest, b.const([1.0, -1.0], pair.dtype))
        shape = tuple(n if d == dim else m for d, m in enumerate(shape))
        pair = b.op("Concat", pair, rest, axis=dim, shape=(*shape, 2))
    # the imaginary parts at 0 and, for even n, at n / 2 do not count
    signs = [[1.0, 0.0 if k == 0 or 2 * k == n else 1.0] for k in range(n)]
    mask = b.const(signs, pair.dtype)
    wide = b.reshape(mask, [n] + [1] * (len(shape) - 1 - dim) + [2])
    return b.op("Mul", pair, wide, shape=pair.shape), shape


for _kind in ("fft", "ifft", "rfft", "irfft"):
    TRANSLATIONS[f"aten.fft_{_kind}.default"] = _one(_kind)
    TRANSLATIONS[f"aten.fft_{_kind}2.default"] = _many(_kind, (-2, -1))
    TRANSLATIONS[f"aten.fft_{_kind}n.default"] = _many(_kind, None)


def _from_code(norm: int, inverse: bool) -> str:
    """The engine's and ATen's numbers of norms: 0 none, 1 by the root, 2 by the number of elements."""
    return {0: "forward" if inverse else "backward", 1: "ortho", 2: "backward" if inverse else "forward"}[norm]


@translates("aten._fft_r2c.default")
def _r2c(b: Builder, self: Value, dim: Sequence[int], normalization: int, onesided: bool) -> Complex:
    return transformed(b, self, "rfft" if onesided else "fft", None, list(dim), _from_code(normalization, False))


@translates("aten._fft_c2c.default")
def _c2c(b: Builder, self: Any, dim: Sequence[int], normalization: int, forward: bool) -> Complex:
    return transformed(b, self, "fft" if forward else "ifft", None, list(dim), _from_code(normalization, not forward))


@translates("aten._fft_c2r.default")
def _c2r(b: Builder, self: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Value:
    sizes: list[Any] = [None] * (len(dim) - 1) + [last_dim_size]
    return transformed(b, self, "irfft", sizes, list(dim), _from_code(normalization, True))


# ---- Operators of complex values


def _view_as_real(b: Builder, self: Complex) -> Value:
    del b
    return self.pair


@translates("aten.view_as_complex.default aten.view_as_complex_copy.default")
def _view_as_complex(b: Builder, self: Value) -> Complex:
    del b
    return Complex(self, self.shape[:-1])


@translates("aten.complex.default")
def _complex(b: Builder, real: Value, imag: Value) -> Complex:
    pair = b.op("Concat", b.unsqueeze(real, [-1]), b.unsqueeze(imag, [-1]), axis=-1, shape=(*real.shape, 2))
    return Complex(pair, real.shape)


def _abs(b: Builder, self: Complex) -> Value:
    return b.op("ReduceL2", self.pair, b.const([-1], _C.int64), keepdims=0)


def _angle(b: Builder, self: Complex) -> Value:
    b.dtype = self.pair.dtype
    return TRANSLATIONS["aten.atan2.default"](b, _part(b, self, 1), _part(b, self, 0))


def _conj(b: Builder, self: Complex, *_: Any) -> Complex:
    return Complex(b.op("Mul", self.pair, b.const([1.0, -1.0], self.pair.dtype), shape=self.pair.shape), self.shape)


def _linear(op_type: str) -> Any:
    def translate(b: Builder, self: Any, other: Any, alpha: Any = 1) -> Complex:
        left, right = _operand(b, self), _operand(b, other)
        right = right if alpha == 1 else right * alpha
        return Complex(b.op(op_type, left, right, shape=(*b.shape, 2)), b.shape)

    return translate


def _operand(b: Builder, x: Any) -> Value:
    if isinstance(x, (Complex, Value)):
        return _pair(b, x)[0]
    return b.const([float(complex(x).real), float(complex(x).imag)], _C.float32)


def _mul(b: Builder, self: Any, other: Any) -> Complex:
    if not isinstance(self, Complex):
        self, other = other, self
    if isinstance(other, Value):
        return Complex(
            b.op("Mul", self.pair, b.unsqueeze(b.cast(other, self.pair.dtype), [-1]), shape=(*b.shape, 2)), b.shape
        )
    if isinstance(other, (int, float)):
        return Complex(
            b.op("Mul", self.pair, b.const(float(other), self.pair.dtype), shape=self.pair.shape), self.shape
        )
    a, c = self.pair, _operand(b, other)
    last = b.const([-1], _C.int64)
    real = b.op("ReduceSum", b.op("Mul", b.op("Mul", a, c), b.const([1.0, -1.0], a.dtype)), last, keepdims=1)
    swapped = b.op("Gather", c, b.const([1, 0], _C.int64), axis=-1)
    imag = b.op("ReduceSum", b.op("Mul", a, swapped), last, keepdims=1)
    return Complex(b.op("Concat", real, imag, axis=-1, shape=(*b.shape, 2)), b.shape)


def _narrowed(b: Builder, self: Complex, dim: int, start: Any, length: Any) -> Complex:
    end = b.arithmetic("Add", start, length)
    return Complex(
        b.op("Slice", self.pair, b.ints([start]), b.ints([end]), b.ints([dim % self.rank]), shape=(*b.shape, 2)),
        b.shape,
    )


def _sliced(b: Builder, self: Complex, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Complex:
    bounds = b.ints([0 if start is None else start]), b.ints([2**62 if end is None else end])
    return Complex(
        b.op("Slice", self.pair, *bounds, b.ints([dim % self.rank]), b.ints([step]), shape=(*b.shape, 2)), b.shape
    )


def _reshaped(b: Builder, self: Complex, size: Sequence[Any]) -> Complex:
    return Complex(b.reshape(self.pair, [*size, 2], (*b.shape, 2)), b.shape)


def _in_order(b: Builder, self: Complex, order: Sequence[int]) -> Complex:
    return Complex(b.transpose(self.pair, [*order, self.rank]), tuple(self.shape[d] for d in order))


def _transposed(b: Builder, self: Complex, dim0: int, dim1: int) -> Complex:
    order = list(range(self.rank))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return _in_order(b, self, order)


def _permuted(b: Builder, self: Complex, dims: Sequence[int]) -> Complex:
    return _in_order(b, self, [d % self.rank for d in dims])


def _unsqueezed(b: Builder, self: Complex, dim: int) -> Complex:
    return Complex(b.unsqueeze(self.pair, [dim % (self.rank + 1)]), b.shape)


def _squeezed(b: Builder, self: Complex, dim: Any) -> Complex:
    dims = [d % self.rank for d in ([dim] if isinstance(dim, int) else dim)]
    if any(type(self.shape[d]) is not int for d in dims):
        raise Untranslatable("squeeze of a dynamic size of complex numbers")
    return Complex(b.squeeze(self.pair, [d for d in dims if self.shape[d] == 1]), b.shape)


def _flipped(b: Builder, self: Complex, dims: Sequence[int]) -> Complex:
    pair = self.pair
    for d in dims:
        pair = b.op("Slice", pair, b.ints([-1]), b.ints([-(2**62)]), b.ints([d % self.rank]), b.ints([-1]), shape=pair.shape)
    return Complex(pair, self.shape)


def _selected(b: Builder, self: Complex, dim: int, index: Any) -> Complex:
    index = b.value(index, _C.int64)
    return Complex(b.op("Gather", self.pair, index, axis=dim % self.rank, shape=(*b.shape, 2)), b.shape)


def _joined(b: Builder, tensors: Sequence[Any], dim: int = 0) -> Complex:
    parts = [_pair(b, x)[0] for x in tensors]
    return Complex(b.op("Concat", *parts, axis=dim % len(b.shape), shape=(*b.shape, 2)), b.shape)


def _stacked(b: Builder, tensors: Sequence[Any], dim: int = 0) -> Complex:
    dim = dim % len(b.shape)
    parts = [b.unsqueeze(_pair(b, x)[0], [dim]) for x in tensors]
    return Complex(b.op("Concat", *parts, axis=dim, shape=(*b.shape, 2)), b.shape)


def _expanded(b: Builder, self: Complex, size: Sequence[Any], *, implicit: bool = False) -> Complex:
    del implicit
    grown = b.unsqueeze(self.pair, list(range(len(b.shape) - self.rank))) if len(b.shape) > self.rank else self.pair
    sizes = [1 if type(n) is int and n == -1 else n for n in size]  # Expand keeps what is broadcast with 1
    return Complex(b.expand(grown, [*sizes, 1], (*b.shape, 2)), b.shape)


def _summed(op_type: str) -> Any:
    def translate(b: Builder, self: Complex, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Complex:
        del dtype
        dims = range(self.rank) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
        return Complex(b.reduce(op_type, self.pair, [d % self.rank for d in dims], keepdim) if self.rank else self.pair, b.shape)

    return translate


def _negated(b: Builder, self: Complex) -> Complex:
    return Complex(b.op("Neg", self.pair), self.shape)


def _div(b: Builder, self: Any, other: Any) -> Complex:
    if not isinstance(other, Complex):
        if isinstance(other, complex):
            return _mul(b, self, 1 / other)
        other = b.unsqueeze(b.cast(other, self.pair.dtype), [-1]) if isinstance(other, Value) else float(other)
        return Complex(b.op("Div", self.pair, b.value(other, self.pair.dtype), shape=(*b.shape, 2)), b.shape)
    squares = b.op("ReduceSumSquare", other.pair, b.const([-1], _C.int64), keepdims=1)
    product = _mul(b, self if isinstance(self, Complex) else as_complex(b, self), _conj(b, other))
    return Complex(b.op("Div", product.pair, squares, shape=(*b.shape, 2)), b.shape)


def _same(b: Builder, self: Complex, **_: Any) -> Complex:
    del b
    return self


# Used in place of the table's translations if an argument is complex.
ON_COMPLEX = {
    "aten.abs.default": _abs, "aten.angle.default": _angle, "aten.view_as_real.default": _view_as_real,
    "aten.real.default": lambda b, self: _part(b, self, 0), "aten.imag.default": lambda b, self: _part(b, self, 1),
    "aten.conj.default": _conj, "aten._conj.default": _conj, "aten.resolve_conj.default": _same,
    "aten.conj_physical.default": _conj, "aten._conj_physical.default": _conj, "aten.clone.default": _same,
    "aten.add.Tensor": _linear("Add"), "aten.sub.Tensor": _linear("Sub"), "aten.mul.Tensor": _mul, "aten.mul.Scalar": _mul,
    "aten.view.default": _reshaped, "aten.reshape.default": _reshaped, "aten.view_as_real_copy.default": _view_as_real,
    "aten.narrow.default": _narrowed, "aten.slice.Tensor": _sliced,
    "aten.detach.default": _same, "aten.alias.default": _same, "aten.contiguous.default": _same,
    "aten.transpose.int": _transposed, "aten.permute.default": _permuted, "aten.unsqueeze.default": _unsqueezed,
    "aten.squeeze.dim": _squeezed, "aten.squeeze.dims": _squeezed, "aten.flip.default": _flipped, "aten.select.int": _selected,
    "aten.index_select.default": _selected, "aten.cat.default": _joined, "aten.stack.default": _stacked,
    "aten.expand.default": _expanded, "aten.sum.default": _summed("ReduceSum"), "aten.sum.dim_IntList": _summed("ReduceSum"),
    "aten.mean.default": _summed("ReduceMean"), "aten.mean.dim": _summed("ReduceMean"), "aten.neg.default": _negated,
    "aten.div.Tensor": _div, "aten.div.Scalar": _div,
    **{f"aten.fft_{k}{s}.default": TRANSLATIONS[f"aten.fft_{k}{s}.default"] for k in ("fft", "ifft", "irfft") for s in ("", "2", "n")},
    "aten._fft_c2c.default": _c2c, "aten._fft_c2r.default": _c2r,
}  # fmt: skip

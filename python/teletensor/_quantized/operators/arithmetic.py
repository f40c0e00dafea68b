"""Sums, products, concatenation and matrix products of quantized tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._quantized_names import qint32
from ..define import kernel
from ..quantizer import Quantizer, single
from ..tensor import QuantizedTensor, wrapped


def check_quantized(name: str, *tensors: Any) -> None:
    """Raises RuntimeError for a tensor that is not quantized with one scale."""
    for tensor in tensors:
        if not isinstance(tensor, QuantizedTensor):
            kind = f"a tensor of {tensor.dtype}" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise RuntimeError(f"[quantized::{name}] expected a quantized tensor, got {kind}")
        if tensor._quantizer.axis is not None:
            raise RuntimeError(f"[quantized::{name}] Only per-tensor quantization is supported in '{name}', got {tensor.qscheme()}")


def _check_two(name: str, a: Any, b: Any) -> None:
    check_quantized(name, a, b)
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name} operands should have same data type, got {a.dtype} and {b.dtype}")


def limited(quantizer: Quantizer, relu: bool) -> tuple[int, int]:
    """The limits of a result's integers: after relu, those of numbers from 0."""
    low, high = quantizer.dtype.limits
    return (quantizer.numbers()[1] if relu else low), high


def centered(tensor: QuantizedTensor) -> Tensor:
    """The integers minus the zero point, as float32; of qint32 as int64."""
    if tensor.dtype is qint32:
        return tensor._ints.to(_C.int64) - tensor._quantizer.zero_point
    return _C.ops.dequantize_affine(tensor._ints, 1.0, tensor._quantizer.zero_point)


def scaled(numbers: Tensor, factor: float, quantizer: Quantizer, relu: bool) -> QuantizedTensor:
    """round(numbers * factor) + zero_point as a quantized tensor."""
    low, high = limited(quantizer, relu)
    if quantizer.dtype is qint32:  # PyTorch computes in int32
        steps = (numbers.to(_C.int32).to(_C.float32) * factor).round().to(_C.float64)
        return wrapped((steps + quantizer.zero_point).clamp(low, high).to(_C.int32), quantizer)
    ints = _C.ops.quantize_affine(numbers, factor, quantizer.zero_point, low, high, quantizer.dtype.limits[0] < 0)
    return wrapped(ints, quantizer)


def quantized_numbers(numbers: Tensor, quantizer: Quantizer, relu: bool = False) -> QuantizedTensor:
    """The numbers, after relu if it is wanted, as a quantized tensor."""
    return wrapped(quantizer.quantize(_C.torch.relu(numbers) if relu else numbers), quantizer)


def _sum(name: str, a: Any, b: Any, quantizer: Quantizer, relu: bool) -> QuantizedTensor:
    _check_two(name, a, b)
    return quantized_numbers(a.dequantize() + b.dequantize(), quantizer, relu)


def _product(name: str, a: Any, b: Any, quantizer: Quantizer, relu: bool) -> QuantizedTensor:
    _check_two(name, a, b)
    scales = single(single(a._quantizer.numbers()[0]) * single(b._quantizer.numbers()[0]))
    factor = single(scales * single(1 / single(quantizer.numbers()[0])))
    return scaled(centered(a) * centered(b), factor, quantizer, relu)


def _define(name: str, compute: Callable, number: Callable) -> None:
    """The overloads of add or mul: with two tensors, with a number, and into a tensor; with and without relu."""
    for end, relu in (("", False), ("_relu", True)):
        full = f"{name}{end}"

        def of_tensors(a: Any, b: Any, scale: float, zero_point: int, full: str = full, relu: bool = relu) -> QuantizedTensor:
            check_quantized(full, a)
            return compute(full, a, b, Quantizer(a.dtype, scale, zero_point), relu)

        def into(a: Any, b: Any, out: Any, full: str = full, relu: bool = relu) -> QuantizedTensor:
            check_quantized(full, out)
            out._ints.copy_(compute(full, a, b, out._quantizer, relu)._ints)
            return out

        def of_number(a: Any, b: Any, full: str = full, relu: bool = relu) -> QuantizedTensor:
            a, b = (a, b) if isinstance(a, Tensor) else (b, a)
            check_quantized(full, a)
            return number(a, float(b.item() if isinstance(b, Tensor) else b), relu)

        def number_into(a: Any, b: Any, out: Any, full: str = full, relu: bool = relu) -> QuantizedTensor:
            check_quantized(full, a, out)
            result = number(a, float(b.item() if isinstance(b, Tensor) else b), relu)
            out._ints.copy_(result._ints)
            out._quantizer = result._quantizer
            return out

        kernel(full)(of_tensors)
        kernel(f"{full}.out", f"{full}_out")(into)
        kernel(f"{full}.Scalar", f"{full}.Scalar2", f"{name}_scalar{end}", f"{name}_scalar{end}.Tensor")(of_number)
        kernel(f"{full}.Scalar_out", f"{name}_scalar{end}_out", f"{name}_scalar{end}_out.Tensor")(number_into)


def _relu_ints(a: QuantizedTensor, quantizer: Quantizer, relu: bool) -> QuantizedTensor:
    """The integers of `a` with another quantizer."""
    return wrapped(a._ints.clamp(min=quantizer.zero_point) if relu else a._ints.clone(), quantizer)


def _add_number(a: QuantizedTensor, number: float, relu: bool) -> QuantizedTensor:
    """a + number: another zero point, and another scale where none is in the range."""
    (scale, zero_point), (low, high) = a._quantizer.numbers(), a.dtype.limits
    steps = round(number / scale)
    moved = zero_point - steps
    if low <= moved <= high:
        return _relu_ints(a, Quantizer(a.dtype, scale, moved), relu)
    factor = (high - moved if moved < low else moved - low) / (high - low)
    quantizer = Quantizer(a.dtype, factor * scale, low if moved < low else high)
    return scaled(centered(a) + steps, single(single(scale) * single(1 / single(quantizer.numbers()[0]))), quantizer, relu)


def _multiply_number(a: QuantizedTensor, number: float, relu: bool) -> QuantizedTensor:
    """a * number: another scale; a negative number also reverses the integers."""
    (scale, zero_point), (low, high) = a._quantizer.numbers(), a.dtype.limits
    if number == 0:
        return wrapped(_C.torch.zeros_like(a._ints), Quantizer(a.dtype, 1.0, 0))
    if number > 0:
        return _relu_ints(a, Quantizer(a.dtype, scale * number, zero_point), relu)
    quantizer = Quantizer(a.dtype, scale * -number, high - (zero_point - low))
    return _relu_ints(wrapped(low + high - a._ints, quantizer), quantizer, relu)


_define("add", _sum, _add_number)
_define("mul", _product, _multiply_number)


def _cat(name: str, tensors: Sequence[Any], dim: int, scale: float | None, zero_point: int | None, relu: bool) -> QuantizedTensor:
    check_quantized(name, *tensors)
    first = tensors[0]._quantizer
    if scale is None or zero_point is None:
        default = first.numbers()
        scale, zero_point = default[0] if scale is None else scale, default[1] if zero_point is None else zero_point
    quantizer = Quantizer(first.dtype, scale, zero_point)
    ints = [
        t._ints if t._quantizer.numbers() == quantizer.numbers() else quantizer.quantize(t.dequantize()) for t in tensors
    ]
    joined = _C.torch.cat(ints, dim)
    return wrapped(joined.clamp(min=zero_point) if relu else joined, quantizer)


@kernel("cat")
def cat(tensors: Sequence[Any], dim: int, scale: float | None, zero_point: int | None) -> QuantizedTensor:
    """The tensors, concatenated and quantized with a scale and zero point, by default those of the first tensor."""
    return _cat("cat", tensors, dim, scale, zero_point, relu=False)


@kernel("cat_relu")
def cat_relu(tensors: Sequence[Any], dim: int, scale: float | None, zero_point: int | None) -> QuantizedTensor:
    """relu() of cat()."""
    return _cat("cat_relu", tensors, dim, scale, zero_point, relu=True)


def _cat_into(name: str, relu: bool) -> None:
    @kernel(f"{name}_out")
    def cat_out(tensors: Sequence[Any], dim: int, out: Any) -> QuantizedTensor:
        check_quantized(name, out)
        out._ints.copy_(_cat(name, tensors, dim, *out._quantizer.numbers(), relu=relu)._ints)
        return out


_cat_into("cat", relu=False)
_cat_into("cat_relu", relu=True)


@kernel("matmul")
def matmul(a: Any, b: Any, scale: float, zero_point: int) -> QuantizedTensor:
    """The matrix product, computed exactly in float64 from the integers, and quantized."""
    _check_two("matmul", a, b)
    sums = _C.torch.matmul(centered(a).to(_C.float64), centered(b).to(_C.float64)).to(_C.float32)
    scales = single(single(a._quantizer.numbers()[0]) * single(b._quantizer.numbers()[0]))
    quantizer = Quantizer(a.dtype, scale, zero_point)
    return scaled(sums, single(scales / single(scale)), quantizer, relu=False)

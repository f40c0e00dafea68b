"""Functions of the module torch for integer products, weights of few bits, and layers of quantized tensors."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .quantizer import Quantizer, single
from .tensor import QuantizedTensor, wrapped


def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two int8 matrices, with int32 sums.

    Raises:
        RuntimeError: the arguments are not int8 matrices whose sizes match.
    """
    for name, t in (("self", self), ("mat2", mat2)):
        if t.dim() != 2:
            raise RuntimeError(f"Expected {name} to be of dimension 2 but got {t.dim()}")
        if t.dtype is not _C.int8:
            raise RuntimeError(f"Expected {name} dtype to be of type int8 but got {t.dtype}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"self.size(1) needs to match mat2.size(0) but got {self.shape[1]} and {mat2.shape[0]}")
    return _C.ops.int8_linear(self, mat2.t(), 0, 0)


def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """self @ (mat2 * scales).T for an int8 matrix with a scale per row; sums are float32, the result has self's dtype."""
    if self.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(f"[_weight_int8pack_mm] expected matrices, got {tuple(self.shape)} and {tuple(mat2.shape)}")
    return _C.ops.int8_weight_mm(self, mat2, scales)


def _convert_weight_to_int4pack_for_cpu(self: Tensor, innerKTiles: int) -> Tensor:  # noqa: N803 - PyTorch's name
    """Packs a matrix of int32 with values from 0 to 15, two per byte, for _weight_int4pack_mm_for_cpu.

    The layout differs from PyTorch's: of each 32 columns, byte i contains columns i and 16 + i. ``innerKTiles``, which
    must be 1, 2, 4 or 8, belongs to layouts of GPUs.
    """
    if self.dim() != 2 or self.dtype is not _C.int32:
        raise RuntimeError(f"__func__ : expect weight to be a matrix of int32, got {self.dtype} of {self.dim()} dimensions")
    if innerKTiles not in (1, 2, 4, 8):
        raise RuntimeError(f"[_convert_weight_to_int4pack_for_cpu] expected innerKTiles of 1, 2, 4 or 8, got {innerKTiles}")
    return _C.ops.int4_pack(self)


def _weight_int4pack_mm_for_cpu(self: Tensor, mat2: Tensor, qGroupSize: int, qScaleAndZeros: Tensor) -> Tensor:  # noqa: N803
    """self @ weight.T for packed 4-bit weights: a weight q of a group is (q - 8) * scale + zero.

    Args:
        self: rows of numbers.
        mat2: weights of _convert_weight_to_int4pack_for_cpu().
        qGroupSize: the columns that share a scale: 32, 64, 128 or 256.
        qScaleAndZeros: scales and zeros, with the sizes (groups, rows of the weight, 2).
    """
    return _C.ops.int4_weight_mm(self, mat2, qGroupSize, qScaleAndZeros)


def _weight_int4pack_mm_with_scales_and_zeros(
    self: Tensor, mat2: Tensor, qGroupSize: int, qScale: Tensor, qZeros: Tensor  # noqa: N803
) -> Tensor:
    """_weight_int4pack_mm_for_cpu() with scales and zeros as two tensors of the sizes (groups, rows of the weight)."""
    return _C.ops.int4_weight_mm(self, mat2, qGroupSize, _C.torch.stack([qScale, qZeros], -1))


def _only_gpu(name: str) -> Any:
    def function(*args: Any) -> Tensor:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with {len(args)} arguments: it is for PyTorch's GPU layouts; use {name}_for_cpu"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises NotImplementedError, as PyTorch does on CPUs: use {name}_for_cpu."
    return function


_convert_weight_to_int4pack = _only_gpu("_convert_weight_to_int4pack")
_weight_int4pack_mm = _only_gpu("_weight_int4pack_mm")


def _choose_qparams_per_tensor(self: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and zero point with which quint8 represents the range of a tensor. Waits for the engine."""
    scale, zero_point = _C.ops.choose_quantization_params(self.detach(), 0, 127 if reduce_range else 255)
    return scale.item(), int(zero_point.item())


def _half(number: float) -> float:
    """The number rounded to float16."""
    try:
        return struct.unpack("e", struct.pack("e", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def _loss(x: Tensor, low: float, high: float, limit: int) -> float:
    """The norm of the error of x as integers from 0 to `limit`, which represent the range from `low` to `high`."""
    low = _half(low)
    span = single(high - low)
    scale = _half(single(span / limit)) if span else 1.0
    inverse = single(1 / scale) if scale else 1.0
    ints = _C.torch.round((x - low) * inverse).clamp(0, limit)
    return (x - (ints * scale + low)).square().sum().sqrt().item()


def choose_qparams_optimized(input: Tensor, numel: int, n_bins: int, ratio: float, bit_width: int) -> tuple[Tensor, Tensor]:
    """The largest and smallest number of the range for which integers have the least error, found by a search that waits.

    Args:
        input: a float32 tensor, of which the first ``numel`` elements are used.
        n_bins: the number of steps in the range of the elements.
        ratio: the part of the steps by which the range may become smaller.
        bit_width: the bits of the integers, 1 to 31.

    Raises:
        RuntimeError: the tensor is not float32, ``numel`` exceeds its size, or another argument is outside its range.
    """
    if input.dtype is not _C.float32:
        raise RuntimeError(f"expected scalar type Float but found {str(input.dtype).removeprefix('torch.').capitalize()}")
    if not 0 < numel <= input.numel():
        raise RuntimeError(f"numel is out of the bound of input tensor: expected 1 to {input.numel()}, got {numel}")
    if n_bins < 1 or not 1 <= bit_width <= 31:
        raise RuntimeError(f"[choose_qparams_optimized] expected n_bins >= 1 and 1 to 31 bits, got {n_bins} and {bit_width}")
    x, limit = input.detach().reshape(-1)[:numel], (1 << bit_width) - 1
    low, high = x.min().item(), x.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"[choose_qparams_optimized] expected finite numbers, got the range from {low} to {high}")
    step = single(single(high - low) / n_bins)
    least = single(int(n_bins * (1.0 - single(ratio))) * step)
    best_low, best_high = low, high
    best = loss = _loss(x, low, high, limit)
    while single(low + least) < high:
        from_low, from_high = single(low + step), single(high - step)
        first, second = _loss(x, from_low, high, limit), _loss(x, low, from_high, limit)
        if loss < min(first, second, best):  # PyTorch's: ranges of which both neighbours are worse
            best, best_low, best_high = loss, low, high
        low, high, loss = (from_low, high, first) if first < second else (low, from_high, second)
    return _C.tensor([best_high]), _C.tensor([best_low])


def _check_quantized(name: str, tensor: Any) -> None:
    if not isinstance(tensor, QuantizedTensor):
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: expected a quantized tensor")


def quantized_max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """max_pool1d of a quantized tensor."""
    _check_quantized("quantized_max_pool1d", input)
    one = [n[0] if isinstance(n, Sequence) and n else n for n in (kernel_size, stride, padding, dilation)]
    step = one[0] if one[1] in ((), [], None) else one[1]
    ints = _C.ops.max_pool2d(input._ints.unsqueeze(-2), [1, one[0]], [1, step], [0, one[2]], [1, one[3]], ceil_mode)
    return wrapped(ints.squeeze(-2), input._quantizer)


def _pool(name: str, input: Any, arguments: tuple, ceil_mode: bool) -> QuantizedTensor:
    _check_quantized(f"quantized_{name}", input)
    kernel_size, stride, padding, dilation = arguments
    stride = kernel_size if stride in ((), [], None) else stride
    return wrapped(getattr(_C.ops, name)(input._ints, kernel_size, stride, padding, dilation, ceil_mode), input._quantizer)


def quantized_max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """max_pool2d of a quantized tensor."""
    return _pool("max_pool2d", input, (kernel_size, stride, padding, dilation), ceil_mode)


def quantized_max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """max_pool3d of a quantized tensor."""
    return _pool("max_pool3d", input, (kernel_size, stride, padding, dilation), ceil_mode)


def quantized_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, output_scale: float,
    output_zero_point: int,
) -> Tensor:  # fmt: skip
    """Batch normalisation of a quantized tensor with running statistics; the result has the given scale and zero point."""
    _check_quantized("quantized_batch_norm", input)
    factor = _C.torch.rsqrt(var + eps)
    factor = factor if weight is None else factor * weight
    shift = -mean * factor if bias is None else bias - mean * factor
    shape = [-1, *[1] * (input.dim() - 2)]
    quantizer = Quantizer(input.dtype, float(output_scale), int(output_zero_point))
    return wrapped(quantizer.quantize(input.dequantize() * factor.reshape(shape) + shift.reshape(shape)), quantizer)

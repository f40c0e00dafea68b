"""torchao.kernel.blockwise_quantization: float8 tensors with a scale per block, and their product."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._C import Tensor
from ..._functions import finfo, get_default_dtype
from ...nn import functional as F
from ..quantization.quant_primitives import dequantize_float8

__all__ = ["blockwise_fp8_gemm", "fp8_blockwise_act_quant", "fp8_blockwise_weight_dequant", "fp8_blockwise_weight_quant"]
_FLOAT8 = (_C.float8_e4m3fn, _C.float8_e5m2)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def blockwise_fp8_gemm(a: Tensor, a_s: Tensor, b: Tensor, b_s: Tensor, block_size: int = 128) -> Tensor:
    """``a @ b.T`` of float8 tensors, bfloat16. Sums of a block's products are float32, then multiplied by both scales.

    Args:
        a: (..., K); a_s: its scales, (..., ceil(K / block_size)).
        b: (N, K); b_s: its scales, (ceil(N / block_size), ceil(K / block_size)).
    """
    _require(
        b.dim() == 2 and a.dim() >= 1 and a.shape[-1] == b.shape[1],
        f"expected a of (..., K) and b of (N, K), got {tuple(a.shape)} and {tuple(b.shape)}",
    )
    _require(block_size > 0, f"expected a positive block_size, got {block_size}")
    columns = a.shape[-1]
    rows, scales, blocks = a.reshape(-1, columns), a_s.reshape(-1, a_s.shape[-1]), -(-columns // block_size)
    outputs = -(-b.shape[0] // block_size)
    _require(
        tuple(scales.shape) == (rows.shape[0], blocks) and tuple(b_s.shape) == (outputs, blocks),
        f"expected scales of {(rows.shape[0], blocks)} and {(outputs, blocks)}, got {tuple(scales.shape)} and {tuple(b_s.shape)}",
    )
    if block_size == 128:
        kinds = F.ScalingType.BlockWise1x128, F.ScalingType.BlockWise128x128
        found = F.scaled_mm(rows, b.t(), scales, kinds[0], b_s.t(), kinds[1], output_dtype=_C.bfloat16)
    else:
        found = _C.torch.zeros(rows.shape[0], b.shape[0], device=a.device)
        for i in range(blocks):
            part = slice(i * block_size, (i + 1) * block_size)
            factors = b_s[:, i].repeat_interleave(block_size)[: b.shape[0]]
            products = rows[:, part].to(_C.float32) @ b[:, part].to(_C.float32).t()
            found = found + products * scales[:, i : i + 1] * factors
        found = found.to(_C.bfloat16)
    return found.reshape(*a.shape[:-1], b.shape[0])


def _quantized(x: Tensor, largest: Tensor, scale_shape: tuple, expanded: Any, dtype: Any) -> tuple[Tensor, Tensor]:
    scale = largest / 448.0
    limit = finfo(dtype).max
    return (x.to(_C.float32) / expanded(scale)).clamp(-limit, limit).to(dtype), scale.reshape(scale_shape)


def fp8_blockwise_act_quant(x: Tensor, block_size: int = 128, dtype: Any = _C.float8_e4m3fn) -> tuple[Tensor, Tensor]:
    """A tensor in float8, and its scales (float32), one per ``block_size`` elements of the last dimension.

    Raises:
        AssertionError: the last dimension is not a multiple, or the dtype is not float8.
    """
    _require(
        block_size > 0 and x.dim() > 0 and x.shape[-1] % block_size == 0,
        f"Last dimension size must be divisible by block_size (block_size={block_size})",
    )
    _require(dtype in _FLOAT8, "dtype must be torch.float8_e4m3fn or torch.float8_e5m2")
    blocks = x.to(_C.float32).reshape(-1, block_size)
    shape = (*x.shape[:-1], x.shape[-1] // block_size)
    values, scale = _quantized(blocks, blocks.abs().amax(1, keepdim=True), shape, lambda s: s, dtype)
    return values.reshape(x.shape), scale


def fp8_blockwise_weight_quant(x: Tensor, block_size: int = 128, dtype: Any = _C.float8_e4m3fn) -> tuple[Tensor, Tensor]:
    """A matrix in float8, and its scales (float32), one per square block.

    Raises:
        AssertionError: the sizes are not multiples of ``block_size``, or the dtype is not float8.
    """
    _require(x.dim() == 2, "Input tensor must have 2 dimensions")
    _require(
        block_size > 0 and x.shape[0] % block_size == 0 and x.shape[1] % block_size == 0,
        f"Both dimensions of x must be divisible by block_size (block_size={block_size})",
    )
    _require(dtype in _FLOAT8, "dtype must be torch.float8_e4m3fn or torch.float8_e5m2")
    down, across = x.shape[0] // block_size, x.shape[1] // block_size
    blocks = x.to(_C.float32).reshape(down, block_size, across, block_size)
    values, scale = _quantized(blocks, blocks.abs().amax((1, 3), keepdim=True), (down, across), lambda s: s, dtype)
    return values.reshape(x.shape), scale


def fp8_blockwise_weight_dequant(x: Tensor, s: Tensor, block_size: int = 128) -> Tensor:
    """The numbers of a matrix of fp8_blockwise_weight_quant(), of the default dtype."""
    _require(x.dim() == 2 and s.dim() == 2, "Input tensors must have 2 dimensions")
    shape = tuple(-(-n // block_size) for n in x.shape)
    _require(tuple(s.shape) == shape, f"expected scales of {shape}, got {tuple(s.shape)}")
    scale = s.repeat_interleave(block_size, 0)[: x.shape[0]].repeat_interleave(block_size, 1)[:, : x.shape[1]]
    return dequantize_float8(x, scale, (1, 1), get_default_dtype())

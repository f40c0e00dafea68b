"""The values of quantized blocks, computed in the engine from the file's bytes; bit for bit those of the gguf package.

Each function takes the bytes of n blocks, (n, bytes of a block), uint8, and returns (n, elements of a block), float32.
"""

from __future__ import annotations

from typing import Callable

from ... import _C
from ..._C import Tensor


def _half(blocks: Tensor, start: int) -> Tensor:
    """The float16 number at a byte of each block, as float32: (n, 1)."""
    return blocks[:, start : start + 2].contiguous().view(_C.float16).to(_C.float32)


def _nibbles(packed: Tensor) -> Tensor:
    """The low 4 bits of all bytes, then the high ones."""
    return _C.torch.cat((packed & 15, packed >> 4), -1)


def _bits(packed: Tensor, width: int, bits: int) -> Tensor:
    """Fields of `bits` bits: (n, k * width) bytes to (n, k * 8 / bits, width); each run of `width` bytes, lowest bits first."""
    runs = packed.reshape(packed.shape[0], -1, 1, width)
    fields = [(runs >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return _C.torch.cat(fields, 2).reshape(packed.shape[0], -1, width)


def _fifth_bits(blocks: Tensor, start: int) -> Tensor:
    """32 bits of 4 bytes, (n, 32), as 0 or 16."""
    packed = blocks[:, start : start + 4].unsqueeze(-1)
    return _C.torch.cat([(packed >> i) & 1 for i in range(8)], -1).reshape(-1, 32) << 4


def q4_0(blocks: Tensor) -> Tensor:
    """(q - 8) * d."""
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]).to(_C.float32) - 8)


def q4_1(blocks: Tensor) -> Tensor:
    """q * d + m."""
    return _half(blocks, 0) * _nibbles(blocks[:, 4:]).to(_C.float32) + _half(blocks, 2)


def q5_0(blocks: Tensor) -> Tensor:
    """(q - 16) * d."""
    q = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)
    return _half(blocks, 0) * (q.to(_C.float32) - 16)


def q5_1(blocks: Tensor) -> Tensor:
    """q * d + m."""
    q = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return _half(blocks, 0) * q.to(_C.float32) + _half(blocks, 2)


def q8_0(blocks: Tensor) -> Tensor:
    """q * d."""
    return blocks[:, 2:].contiguous().view(_C.int8).to(_C.float32) * _half(blocks, 0)


def _six_bit_scales(packed: Tensor) -> tuple[Tensor, Tensor]:
    """8 scales and 8 minima of 6 bits in 12 bytes: (n, 8), float32."""
    low, least, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = _C.torch.cat((low & 0x3F, (rest & 0x0F) | ((low >> 2) & 0x30)), 1)
    minima = _C.torch.cat((least & 0x3F, (rest >> 4) | ((least >> 2) & 0x30)), 1)
    return scales.to(_C.float32), minima.to(_C.float32)


def _with_scales(blocks: Tensor, q: Tensor, scales: Tensor, minima: Tensor, start: int) -> Tensor:
    """q * d * scale - dmin * minimum for groups (n, groups, elements)."""
    d, least = _half(blocks, start) * scales, _half(blocks, start + 2) * minima
    return (d.unsqueeze(-1) * q.to(_C.float32) - least.unsqueeze(-1)).reshape(-1, 256)


def q4_k(blocks: Tensor) -> Tensor:
    """8 groups of 32 with 6-bit scales and minima."""
    return _with_scales(blocks, _bits(blocks[:, 16:], 32, 4), *_six_bit_scales(blocks[:, 4:16]), 0)


def q5_k(blocks: Tensor) -> Tensor:
    """As Q4_K, with a fifth bit."""
    high = _bits(blocks[:, 16:48], 32, 1)
    return _with_scales(blocks, _bits(blocks[:, 48:], 32, 4) | (high << 4), *_six_bit_scales(blocks[:, 4:16]), 0)


def q6_k(blocks: Tensor) -> Tensor:
    """16 groups of 16 with 8-bit scales."""
    low = _bits(blocks[:, :128], 64, 4).reshape(-1, 8, 32)
    high = _bits(blocks[:, 128:192], 32, 2)
    q = (low | (high << 4)).reshape(-1, 16, 16).to(_C.float32) - 32
    d = _half(blocks, 208) * blocks[:, 192:208].contiguous().view(_C.int8).to(_C.float32)
    return (d.unsqueeze(-1) * q).reshape(-1, 256)


def q2_k(blocks: Tensor) -> Tensor:
    """16 groups of 16 with 4-bit scales and minima."""
    scales = blocks[:, :16]
    q = _bits(blocks[:, 16:80], 32, 2).reshape(-1, 16, 16)
    return _with_scales(blocks, q, (scales & 15).to(_C.float32), (scales >> 4).to(_C.float32), 80)


def q3_k(blocks: Tensor) -> Tensor:
    """16 groups of 16 with 6-bit scales."""
    packed = blocks[:, 96:108]
    low = _C.torch.cat((packed[:, :8] & 15, packed[:, :8] >> 4), 1)
    high = _C.torch.cat([(packed[:, 8:] >> shift) & 3 for shift in (0, 2, 4, 6)], 1)
    scales = (low | (high << 4)).to(_C.float32) - 32
    least = (_bits(blocks[:, :32], 32, 1) ^ 1) << 2
    q = _bits(blocks[:, 32:96], 32, 2).to(_C.float32) - least.to(_C.float32)
    d = _half(blocks, 108) * scales
    return (d.unsqueeze(-1) * q.reshape(-1, 16, 16)).reshape(-1, 256)


VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q5_1": q5_1, "Q8_0": q8_0, "Q2_K": q2_k, "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k,
    "Q6_K": q6_k,
}  # fmt: skip
PLAIN = {
    "F32": _C.float32, "F16": _C.float16, "BF16": _C.bfloat16, "F64": _C.float64, "I8": _C.int8, "I16": _C.int16, "I32": _C.int32,
    "I64": _C.int64,
}  # fmt: skip

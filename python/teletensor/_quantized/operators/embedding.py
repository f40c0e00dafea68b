"""Embeddings of torch.ops.quantized: tables of 8 or 4 bits with a scale per row."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._C import Tensor
from ..define import kernel
from ..packed import EmbeddingPackedParams
from ..tensor import QuantizedTensor

_SMALL = 1e-8  # avoids a division by 0
_BAG_MODES = ("sum", "mean", "max")


def _rows(packed: Any, indices: Tensor, name: str) -> Tensor:
    """The numbers of the table's rows with these indices, which are checked by the engine."""
    if not isinstance(packed, EmbeddingPackedParams):
        raise RuntimeError(f"[quantized::{name}] expected a table of embedding_bag_prepack, got {type(packed).__name__}")
    flat, weight = indices.reshape(-1), packed._weight
    q = weight._quantizer
    scale, zero_point = (
        v.to(_C.float32)[flat].unsqueeze(-1) if isinstance(v, Tensor) and v.dim() else v for v in (q.scale, q.zero_point)
    )
    ints = weight.rows(flat).to(_C.float32)
    if weight.dtype.per_byte == 1:
        return (ints - zero_point) * scale
    # Tables of 4 and 2 bits have their scales and smallest numbers in float16.
    parameters = (v if isinstance(v, Tensor) else _C.tensor(v) for v in (scale, -zero_point * scale))
    scale, low = (v.to(_C.float16).to(_C.float32) for v in parameters)
    return ints * scale + low


def _check_unpruned(name: str, pruned: bool, mapping: Any = None) -> None:
    if pruned or mapping is not None:
        raise NotImplementedError(f"[quantized::{name}] tables with rows removed (pruned_weights) are not implemented")


@kernel("embedding_bag_prepack")
def embedding_bag_prepack(weight: Any) -> EmbeddingPackedParams:
    """Packs a quantized table."""
    return EmbeddingPackedParams(weight)


@kernel("embedding_bag_unpack")
def embedding_bag_unpack(packed: Any) -> Tensor:
    """The quantized table."""
    return packed.unpack()


@kernel("embedding_byte", "embedding_4bit")
def embedding_byte(packed: Any, indices: Tensor, pruned_weights: bool) -> Tensor:
    """The rows with the given indices, as float32."""
    _check_unpruned("embedding_byte", pruned_weights)
    rows = _rows(packed, indices, "embedding_byte")
    return rows.reshape([*indices.shape, rows.shape[-1]])


def _bags(
    name: str, rows: Tensor, indices: Tensor, offsets: Tensor | None, mode: int, weights: Tensor | None, include_last: bool
) -> Tensor:
    """The sums of rows per bag."""
    from ...nn.functional import embedding_bag

    if mode != 0:
        raise NotImplementedError(f"[quantized::{name}] expected mode 0 (sum), got {mode} ({_BAG_MODES[mode % 3]})")
    places = _C.torch.arange(rows.shape[0], device=rows.device)
    if indices.dim() == 2:
        places, offsets = places.reshape(indices.shape), None
        weights = None if weights is None else weights.reshape(indices.shape)
    elif offsets is None:
        raise RuntimeError(f"[quantized::{name}] embedding_bag_byte expects offsets to be set for 1D indices.")
    else:
        offsets = offsets.to(_C.int64)
    return embedding_bag(places, rows, offsets, mode="sum", per_sample_weights=weights, include_last_offset=include_last)


@kernel("embedding_bag_byte", "embedding_bag_4bit")
def embedding_bag_byte(
    packed: Any, indices: Tensor, offsets: Tensor | None, scale_grad_by_freq: bool, mode: int, pruned_weights: bool,
    per_sample_weights: Tensor | None, compressed_indices_mapping: Tensor | None, include_last_offset: bool,
) -> Tensor:  # fmt: skip
    """The sums of the rows of each bag, as float32."""
    _check_unpruned("embedding_bag_byte", pruned_weights, compressed_indices_mapping)
    if scale_grad_by_freq:
        raise NotImplementedError("[quantized::embedding_bag_byte] scale_grad_by_freq: quantized tables have no gradients")
    rows = _rows(packed, indices, "embedding_bag_byte")
    return _bags("embedding_bag_byte", rows, indices, offsets, mode, per_sample_weights, include_last_offset)


# -- tables as bytes: each row's integers, then its scale and its smallest number


def _bytes_of(numbers: Tensor, dtype: Any) -> Tensor:
    """The bytes of a column of numbers."""
    return numbers.to(dtype).contiguous().view(_C.uint8)


@kernel("embedding_bag_byte_prepack")
def embedding_bag_byte_prepack(weight: Any) -> Tensor:
    """A table as bytes: per row its 8-bit integers, scale and smallest number (both float32)."""
    if isinstance(weight, QuantizedTensor):
        q = weight._quantizer
        if q.axis != 0:
            raise RuntimeError("[quantized::embedding_bag_byte_prepack] expected a table with a scale per row")
        scale = q.scale.to(_C.float32).unsqueeze(-1)  # type: ignore[union-attr]
        low = -q.zero_point.to(_C.float32).unsqueeze(-1) * scale  # type: ignore[union-attr]
        return _C.torch.cat([weight._ints, _bytes_of(scale, _C.float32), _bytes_of(low, _C.float32)], -1)
    x = weight.detach().to(_C.float32)
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return _byte_table(x, low, high)


def _byte_table(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    span = high - low
    ints = ((x - low) * (255.0 / (span + _SMALL))).round().clamp(0, 255).to(_C.uint8)
    return _C.torch.cat([ints, _bytes_of(span / 255.0, _C.float32), _bytes_of(low, _C.float32)], -1)


@kernel("embedding_bag_byte_prepack_with_rowwise_min_max")
def embedding_bag_byte_prepack_with_range(weight: Tensor, rowwise_min_max: Tensor) -> Tensor:
    """embedding_bag_byte_prepack() with given smallest and largest numbers of the rows."""
    x = weight.detach().to(_C.float32)
    return _byte_table(x, rowwise_min_max[..., 0:1].to(_C.float32), rowwise_min_max[..., 1:2].to(_C.float32))


def _byte_numbers(table: Tensor) -> Tensor:
    columns = table.shape[-1] - 8
    scale, low = (table[..., columns + at : columns + at + 4].clone().view(_C.float32) for at in (0, 4))
    return table[..., :columns].to(_C.float32) * scale + low


@kernel("embedding_bag_byte_unpack")
def embedding_bag_byte_unpack(table: Tensor) -> Tensor:
    """The numbers of a table of embedding_bag_byte_prepack()."""
    if table.dtype is not _C.uint8 or table.shape[-1] < 8:
        raise RuntimeError(f"[quantized::embedding_bag_byte_unpack] expected rows of at least 8 bytes, got {tuple(table.shape)}")
    return _byte_numbers(table)


def _rowwise(name: str, numbers: Any) -> None:
    @kernel(name)
    def bag(
        table: Tensor, indices: Tensor, offsets: Tensor | None, scale_grad_by_freq: bool, mode: int, pruned_weights: bool,
        per_sample_weights: Tensor | None, compressed_indices_mapping: Tensor | None, include_last_offset: bool,
    ) -> Tensor:  # fmt: skip
        _check_unpruned(name, pruned_weights, compressed_indices_mapping)
        if scale_grad_by_freq:
            raise NotImplementedError(f"[quantized::{name}] scale_grad_by_freq: quantized tables have no gradients")
        rows = numbers(table.index_select(0, indices.reshape(-1)))
        return _bags(name, rows, indices, offsets, mode, per_sample_weights, include_last_offset)


def _bits_table(weight: Tensor, bits: int, optimized: bool, name: str, span: Tensor | None = None) -> Tensor:
    """A table as bytes: integers of 4 or 2 bits, the first in the lowest bits; then scale and smallest number as float16."""
    if optimized:
        raise NotImplementedError(f"[quantized::{name}] optimized_qparams=True is not implemented")
    x = weight.detach().to(_C.float32)
    per_byte = 8 // bits
    if x.shape[-1] % per_byte:
        raise RuntimeError(f"[quantized::{name}] expected a multiple of {per_byte} columns, got {x.shape[-1]}")
    low = x.amin(-1, keepdim=True) if span is None else span[..., 0:1]
    high = x.amax(-1, keepdim=True) if span is None else span[..., 1:2]
    low = low.to(_C.float16).to(_C.float32)
    limit = 2**bits - 1
    scale = ((high - low) / limit).to(_C.float16).to(_C.float32)
    scale = _C.torch.where(high == low, 1.0, scale)
    inverse = 1 / scale
    scale = _C.torch.where((scale == 0) | inverse.isinf(), 1.0, scale)
    ints = ((x - low) * (1 / scale)).round().clamp(0, limit).to(_C.uint8)
    parts = ints.reshape([*x.shape[:-1], -1, per_byte])
    packed = parts[..., 0]
    for i in range(1, per_byte):
        packed = packed | (parts[..., i] << (i * bits))
    return _C.torch.cat([packed, _bytes_of(scale, _C.float16), _bytes_of(low, _C.float16)], -1)


def _bits_numbers(table: Tensor, bits: int) -> Tensor:
    columns = table.shape[-1] - 4
    scale, low = (table[..., columns + at : columns + at + 2].clone().view(_C.float16).to(_C.float32) for at in (0, 2))
    packed, limit = table[..., :columns], 2**bits - 1
    parts = [(packed >> (i * bits)) & limit for i in range(8 // bits)]
    ints = _C.torch.stack(parts, -1).reshape([*table.shape[:-1], -1])
    return ints.to(_C.float32) * scale + low


def _define_bits(bits: int) -> None:
    base = f"embedding_bag_{bits}bit"

    @kernel(f"{base}_prepack")
    def prepack(weight: Tensor, optimized_qparams: bool, _bins: int, _ratio: float) -> Tensor:
        return _bits_table(weight, bits, optimized_qparams, f"{base}_prepack")

    @kernel(f"{base}_prepack_with_rowwise_min_max")
    def prepack_with_range(weight: Tensor, rowwise_min_max: Tensor, optimized_qparams: bool, _bins: int, _ratio: float) -> Tensor:
        return _bits_table(weight, bits, optimized_qparams, f"{base}_prepack_with_rowwise_min_max", rowwise_min_max)

    @kernel(f"{base}_unpack")
    def unpack(table: Tensor) -> Tensor:
        return _bits_numbers(table, bits)

    _rowwise(f"{base}_rowwise_offsets", lambda table: _bits_numbers(table, bits))


_define_bits(4)
_define_bits(2)
_rowwise("embedding_bag_byte_rowwise_offsets", _byte_numbers)

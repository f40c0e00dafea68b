"""Strides: ONNX's tensors have none. A view of other strides is a Gather of the elements in the order in which they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _C
from .._builder import Builder, Value
from .._registry import Untranslatable, translates


def _stored(b: Builder, self: Value, position: int = 0) -> tuple[Value, Any]:
    """The elements of an operand in the order of its memory, which has no other ones, and the program's example of it."""
    nodes = b.node.all_input_nodes
    example = nodes[position].meta.get("val") if len(nodes) > position else None
    if example is None or any(type(n) is not int for n in self.shape or (None,)):
        raise Untranslatable("as_strided() of a tensor of dynamic sizes; write the same elements with slices, reshapes or unfold()")
    with _C.DisableTorchFunction():
        sizes, strides, offset = tuple(example.shape), list(example.stride()), example.storage_offset()
    order = sorted((d for d in range(len(sizes)) if sizes[d] != 1), key=lambda d: -strides[d])
    step = 1
    for d in reversed(order):
        if strides[d] != step:
            raise Untranslatable("as_strided() of a view that does not have all elements of its memory")
        step *= sizes[d]
    if offset:
        raise Untranslatable("as_strided() of a view that begins within its memory")
    rest = [d for d in range(len(sizes)) if sizes[d] == 1]
    return b.reshape(b.transpose(self, [*rest, *order]), [-1]), example


def _places(self: Value, size: Any, stride: Any, offset: Any) -> np.ndarray:
    """The positions of a view's elements in memory."""
    if any(isinstance(v, Value) for v in (*size, *stride, offset)):
        raise Untranslatable("as_strided() with sizes that depend on dynamic ones")
    found = np.full((), int(offset or 0), np.int64)
    for n, s in zip(size, stride):
        found = found[..., None] + np.arange(int(n), dtype=np.int64) * int(s)
    count = int(np.prod(self.shape, dtype=np.int64))
    if found.size and (found.min() < 0 or found.max() >= count):
        raise Untranslatable("as_strided() reads beyond the elements of its operand")
    return found


@translates("aten.as_strided.default aten.as_strided_copy.default")
def _as_strided(b: Builder, self: Value, size: Any, stride: Any, storage_offset: Any = None) -> Value:
    flat, _ = _stored(b, self)
    return b.op("Gather", flat, b.const(_places(self, size, stride, storage_offset), _C.int64), axis=0, shape=tuple(map(int, size)))


@translates("aten.as_strided_scatter.default")
def _as_strided_scatter(b: Builder, self: Value, src: Value, size: Any, stride: Any, storage_offset: Any = None) -> Value:
    flat, example = _stored(b, self)
    places = _places(self, size, stride, storage_offset).reshape(-1)
    if len(np.unique(places)) != places.size:
        raise Untranslatable("as_strided_scatter() into elements that overlap")
    made = b.op("ScatterElements", flat, b.const(places, _C.int64), b.reshape(src, [-1]), axis=0, shape=flat.shape)
    if not example.is_contiguous():
        raise Untranslatable("as_strided_scatter() into a transposed tensor")
    return b.reshape(made, list(self.shape))


def _is_plain(b: Builder) -> bool:
    example = b.node.all_input_nodes[0].meta.get("val")
    with _C.DisableTorchFunction():
        return example is not None and example.is_contiguous() and example.storage_offset() == 0


@translates("aten.sym_stride.int aten.stride.int")
def _stride(b: Builder, self: Value, dim: int) -> Any:
    if not _is_plain(b):
        raise Untranslatable("the stride of a view; strides are no part of ONNX's tensors")
    total: Any = 1
    for d in range(dim % self.rank + 1, self.rank):
        total = b.arithmetic("Mul", total, b.size(self, d))
    return total


@translates("aten.sym_storage_offset.default aten.storage_offset.default")
def _storage_offset(b: Builder, self: Value) -> int:
    if not _is_plain(b):
        raise Untranslatable(f"the offset of {self.name}, a view; storage is no part of ONNX's tensors")
    return 0


@translates("aten.sym_is_contiguous.default aten.is_contiguous.default")
def _is_contiguous(b: Builder, self: Value, *_: Any) -> bool:
    if not _is_plain(b):
        raise Untranslatable(f"whether {self.name}, a view, is contiguous; strides are no part of ONNX's tensors")
    return True


@translates("aten._local_scalar_dense.default aten.item.default")
def _local_scalar(b: Builder, self: Value) -> Value:
    return b.reshape(self, [])

"""Nested tensors in files, as PyTorch writes them. Arguments from files are untrusted; errors are LoadErrors."""

from __future__ import annotations

import math
from typing import Any

from .. import _C
from .._C import Tensor
from .._layouts import jagged
from .._nested.base import AnyNested
from .._nested.create import nested_tensor_from_jagged
from .._nested.strided import StridedNested, made_of
from .._nested.tensor import NestedTensor
from ._errors import damaged, require

_MODULE = "torch.nested._internal.nested_tensor"
_MAX_DIMS = 64  # of the parts of a nested tensor
_COMPONENTS = {"values", "offsets", "lengths", "_ragged_idx", "_metadata_cache", "requires_grad"}


def rebuild_njt(components: Any) -> NestedTensor:
    """``_rebuild_njt``: a jagged tensor of its values and offsets. Operators check the offsets' numbers."""
    require(isinstance(components, dict) and set(components) <= _COMPONENTS, "the components of a nested tensor", components)
    values, offsets, lengths = (components.get(name) for name in ("values", "offsets", "lengths"))
    ragged_idx, requires_grad = components.get("_ragged_idx", 1), components.get("requires_grad", False)
    for tensor in (values, offsets):
        require(isinstance(tensor, Tensor) and not _C._is_wrapper(tensor), "a tensor", tensor)
    require(lengths is None or (isinstance(lengths, Tensor) and not _C._is_wrapper(lengths)), "lengths or None", lengths)
    require(type(ragged_idx) is int and 1 <= ragged_idx <= values.dim(), "a ragged dimension", ragged_idx)
    require(type(requires_grad) is bool, "requires_grad", requires_grad)
    require(not requires_grad or values.dtype.is_floating_point or values.dtype.is_complex, "a dtype that has gradients", values.dtype)
    try:
        made = nested_tensor_from_jagged(values.detach(), offsets, lengths, ragged_idx)
    except (RuntimeError, ValueError) as error:
        raise damaged(str(error)) from None
    return made.requires_grad_(requires_grad)


def rebuild_nested_tensor(buffer: Any, sizes: Any, strides: Any, storage_offsets: Any) -> StridedNested:
    """``_rebuild_nested_tensor``: a tensor of constituents that are contiguous and follow each other. Reads their sizes."""
    for tensor in (buffer, sizes, strides, storage_offsets):
        require(isinstance(tensor, Tensor) and not _C._is_wrapper(tensor), "a tensor", tensor)
    require(buffer.dim() == 1, "elements of one dimension", buffer.dim())
    for tensor, dims in ((sizes, 2), (strides, 2), (storage_offsets, 1)):
        require(tensor.dtype is _C.int64 and (tensor.dim() == dims or tensor.numel() == 0), "int64 sizes", tensor.dtype)
    require(sizes.dim() < 2 or sizes.shape[1] <= _MAX_DIMS, f"at most {_MAX_DIMS} dimensions", sizes.shape)
    rows = [tuple(row) for row in sizes.tolist()] if sizes.numel() else []
    at = 0
    given_strides, given_offsets = strides.tolist(), storage_offsets.tolist()
    require(len(given_strides) == len(given_offsets) == len(rows), "as many strides and offsets as sizes", len(given_strides))
    for row, stride, offset in zip(rows, given_strides, given_offsets, strict=True):
        require(all(n >= 0 for n in row) and math.prod(row) <= buffer.numel() - at, "sizes within the elements", row)
        contiguous = [math.prod(row[d + 1 :]) for d in range(len(row))]
        if offset != at or stride != contiguous:
            raise NotImplementedError("[load] a nested tensor with constituents that are not contiguous is not implemented")
        at += math.prod(row)
    require(at == buffer.numel(), "as many elements as the sizes have", buffer.numel())
    return made_of(buffer, rows, len(rows[0]) if rows else 0)


def reduce_nested(tensor: AnyNested) -> tuple[str, str | None, tuple]:
    """The names of the function that creates a nested tensor and of its class, and the function's arguments."""
    elements = tensor._elements.detach()
    if tensor.layout != jagged:
        described = (tensor._nested_tensor_size(), tensor._nested_tensor_strides(), tensor._nested_tensor_storage_offsets())
        return "torch._utils _rebuild_nested_tensor", None, (elements, *described)
    components = {
        "values": elements, "offsets": tensor.offsets(), "lengths": tensor.lengths(), "_ragged_idx": tensor._ragged_idx,
        "_metadata_cache": {}, "requires_grad": tensor.requires_grad,
    }  # fmt: skip
    return f"{_MODULE} _rebuild_njt", f"{_MODULE} NestedTensor", (components,)


NAMES = {
    f"{_MODULE}._rebuild_njt": (rebuild_njt, None), f"{_MODULE}.NestedTensor": (rebuild_njt, NestedTensor),
    "torch._utils._rebuild_nested_tensor": (rebuild_nested_tensor, None),
}  # fmt: skip

"""PyTorch's legacy types of sparse tensors, such as torch.sparse.FloatTensor."""

from __future__ import annotations

from typing import Any

from .. import _C
from .create import sparse_coo_tensor
from .tensor import SparseTensor, not_implemented

_DTYPES = {
    "ByteTensor": _C.uint8, "CharTensor": _C.int8, "ShortTensor": _C.int16, "IntTensor": _C.int32, "LongTensor": _C.int64,
    "HalfTensor": _C.float16, "FloatTensor": _C.float32, "DoubleTensor": _C.float64, "BFloat16Tensor": _C.bfloat16,
}  # fmt: skip


def _made(dtype: Any, device: Any, args: tuple) -> SparseTensor:
    if not args:
        return sparse_coo_tensor((0,), dtype=dtype, device=device)
    if isinstance(args[0], int):
        return sparse_coo_tensor(tuple(args), dtype=dtype, device=device)
    if len(args) == 1:
        return sparse_coo_tensor(args[0], dtype=dtype, device=device)
    if isinstance(args[1], _C.Tensor) and args[1].dtype is not dtype:
        raise TypeError(f"expected {dtype} (got {args[1].dtype})")
    return sparse_coo_tensor(*args, dtype=dtype, device=device)


def new(tensor: SparseTensor, *args: Any, device: Any = None) -> SparseTensor:
    """Tensor.new(): a tensor of this one's dtype and device, from indices, values and perhaps a size, or from a size."""
    if not tensor.is_sparse:
        raise not_implemented("new", tensor)
    return _made(tensor.dtype, tensor.device if device is None else device, args)


class _SparseType(type):
    dtype: Any
    kind: str

    def __call__(cls, *args: Any, device: Any = None) -> SparseTensor:
        """Creates a tensor from indices, values and perhaps a size, or an empty one from a size."""
        return _made(cls.dtype, cls.kind if device is None else device, args)

    def __instancecheck__(cls, instance: Any) -> bool:
        same = isinstance(instance, SparseTensor) and instance.is_sparse
        return same and instance.dtype is cls.dtype and instance.device.type == cls.kind


def sparse_types(kind: str) -> dict[str, type]:
    """Creates the types of a device type, by name."""
    module = "teletensor.sparse" if kind == "cpu" else f"teletensor.{kind}.sparse"
    return {
        name: _SparseType(name, (), {"dtype": dtype, "kind": kind, "__module__": module, "__doc__": f"Creates sparse {dtype} tensors."})
        for name, dtype in _DTYPES.items()
    }

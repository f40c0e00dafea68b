"""PyTorch's legacy types of sparse tensors, such as torch.sparse.FloatTensor."""

from __future__ import annotations

from typing import Any

from .. import _C
from .create import sparse_coo_tensor
from .tensor import SparseTensor

_DTYPES = {
    "ByteTensor": _C.uint8, "CharTensor": _C.int8, "ShortTensor": _C.int16, "IntTensor": _C.int32, "LongTensor": _C.int64,
    "HalfTensor": _C.float16, "FloatTensor": _C.float32, "DoubleTensor": _C.float64, "BFloat16Tensor": _C.bfloat16,
}  # fmt: skip


class _SparseType(type):
    dtype: Any
    kind: str

    def __call__(cls, *args: Any, device: Any = None) -> SparseTensor:
        """Creates a tensor from indices, values and perhaps a size, or an empty one from a size."""
        target = cls.kind if device is None else device
        if not args:
            return sparse_coo_tensor((0,), dtype=cls.dtype, device=target)
        if isinstance(args[0], int):
            return sparse_coo_tensor(tuple(args), dtype=cls.dtype, device=target)
        if len(args) == 1:
            return sparse_coo_tensor(args[0], dtype=cls.dtype, device=target)
        if isinstance(args[1], _C.Tensor) and args[1].dtype is not cls.dtype:
            raise TypeError(f"expected {cls.dtype} (got {args[1].dtype})")
        return sparse_coo_tensor(*args, dtype=cls.dtype, device=target)

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

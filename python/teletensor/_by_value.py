"""pickle.dumps of tensors, for worker processes of the same user: the bytes are in the pickle.

Tensors that share memory in one pickle also share it after loading, in the session of the process that loads them.
"""

from __future__ import annotations

from . import _C
from ._C import Tensor
from ._ops.shape import empty_strided
from ._storage import IN_PICKLES, UntypedStorage


def rebuild(storage: UntypedStorage, dtype, offset: int, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    """The tensor that reduce_tensor() described."""
    tensor = storage._as(dtype, offset, size, stride)
    tensor.requires_grad = requires_grad
    return tensor


def rebuild_meta(dtype, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    """A tensor on the meta device."""
    return empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def rebuild_as(kind: type, function, args: tuple, requires_grad: bool, attributes: dict) -> Tensor:
    """A tensor of a subclass, or with attributes. `function` and `args` create it as a plain tensor."""
    tensor = function(*args)
    if kind is not Tensor:
        tensor = kind(tensor) if kind.__module__.startswith("teletensor.nn") else Tensor.__new__(kind, tensor)
    tensor.requires_grad = requires_grad
    tensor.__dict__.update(attributes)
    return tensor


def reduce_tensor(tensor: Tensor) -> tuple:
    """How a tensor is pickled. A result that requires grad becomes a leaf.

    Raises:
        TypeError: a tensor of a wrapper subclass, such as a DTensor.
    """
    if _C._is_wrapper(tensor):
        raise TypeError(f"a {type(tensor).__name__} has no values in the engine and cannot be pickled: pickle the tensors inside")
    place = (tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad)
    if tensor.device.type == "meta":
        plain = rebuild_meta, (tensor.dtype, *place)
    else:
        plain = rebuild, (UntypedStorage._of(tensor), tensor.dtype, tensor.storage_offset(), *place)
    kind, attributes = type(tensor), vars(tensor)
    if kind is Tensor and not attributes:
        return plain
    return rebuild_as, (kind, *plain, tensor.requires_grad, dict(attributes))


for _function in (rebuild, rebuild_meta, rebuild_as, reduce_tensor):
    _function.__module__ = IN_PICKLES

"""Sparse and nested tensors as their components: the functions that create them, by PyTorch's names, and the arguments."""

from __future__ import annotations

from .. import _C
from .._layouts import strided
from ._nested import NAMES, reduce_nested
from ._rebuild import rebuild_sparse_tensor, reduce_sparse

# By the name in files: functions that check their arguments. Each waits for the engine.
REBUILD = {
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
    **{name: function for name, (function, kind) in NAMES.items() if kind is None},
}


def is_composed(value: object) -> bool:
    """Whether a value is a sparse or a nested tensor."""
    return isinstance(value, _C.Tensor) and (value.is_nested or value.layout != strided)


def reduce_composed(tensor: _C.Tensor) -> tuple[str, tuple]:
    """A name of REBUILD, and the arguments with which its function creates the tensor."""
    if tensor.is_nested:
        name, _, args = reduce_nested(tensor.detach())
    else:
        name, args = reduce_sparse(tensor)
    return name.replace(" ", "."), args

"""Changes of a sparse tensor in place that replace its components."""

from __future__ import annotations

from .. import _C
from .tensor import SparseTensor, hooks


def become(tensor: SparseTensor, other: SparseTensor) -> SparseTensor:
    """Gives an object the components, size and dtype of another one, for in-place operators that change them.

    A tensor that requires grad keeps its history and gradient where gradients are not recorded.
    """
    if not tensor.requires_grad:
        return _replace(tensor, other)
    if _C.is_grad_enabled():
        if tensor.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return _replace(tensor, other)
    if _same_indices(tensor, other) and tensor.dtype is other.dtype:
        tensor._elements.copy_(other._elements)
        return tensor
    if not tensor.is_leaf:
        raise NotImplementedError("[no_grad] the indices of a sparse tensor with history can be changed only where gradients are recorded")
    return replace_leaf(tensor, other, True)


def _same_indices(tensor: SparseTensor, other: SparseTensor) -> bool:
    if tensor._layout != other._layout or tensor.shape != other.shape:
        return False
    return tensor._coo is other._coo if tensor.is_sparse else tensor._plain is other._plain and tensor._compressed is other._compressed


def replace_leaf(tensor: SparseTensor, other: SparseTensor, requires_grad: bool) -> SparseTensor:
    """Gives a leaf the components of another tensor, without its history. The gradient keeps its values at the new indices."""
    gradient = tensor.grad
    _replace(tensor, other)
    tensor._elements, tensor._dense_source = other._elements.detach(), False
    tensor._elements.requires_grad = requires_grad
    if gradient is not None and gradient.shape == tensor.shape:
        tensor.grad = gradient
    return tensor


_COMPONENTS = (
    "_layout", "_coo", "_compressed", "_plain", "_elements", "_coalesced", "_dense_source", "_rows", "_rows_version", "_flipped",
)  # fmt: skip


def _replace(tensor: SparseTensor, other: SparseTensor) -> SparseTensor:
    _C._set_wrapper(tensor, other)
    for name in _COMPONENTS:
        if name in vars(other):
            setattr(tensor, name, getattr(other, name))
    return tensor


hooks.update(become=become, replace_leaf=replace_leaf)

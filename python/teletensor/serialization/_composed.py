"""Composed tensors, which are sparse, nested or quantized, as their components: the functions that create them, by name, and the
arguments. PyTorch's functions have its names."""

from __future__ import annotations

from .. import _C
from .._component_tensor import ComponentTensor
from .._grad_mode import no_grad
from .._quantized.tensor import QuantizedTensor
from ..masked._calls import MaskedTensor
from ._nested import NAMES, reduce_nested
from ._rebuild import rebuild_quantized, rebuild_sparse_tensor, reduce_quantized, reduce_sparse

_QUANTIZED = "quantized"

# By the name in files: functions that check their arguments. Each waits for the engine.
REBUILD = {
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
    _QUANTIZED: rebuild_quantized,
    **{name: function for name, (function, kind) in NAMES.items() if kind is None},
}


def is_composed(value: object) -> bool:
    """Whether a value is a sparse, nested or quantized tensor."""
    return isinstance(value, (ComponentTensor, QuantizedTensor))


def require_storable(tensor: object) -> None:
    """Raises NotImplementedError for a tensor whose parts checkpoints do not store."""
    if isinstance(tensor, MaskedTensor):
        raise NotImplementedError("[checkpoint] a MaskedTensor cannot be stored or loaded: use the tensors get_data() and get_mask()")


def reduce_composed(tensor: _C.Tensor) -> tuple[str, tuple]:
    """A name of REBUILD, and the arguments with which its function creates the tensor."""
    if tensor.is_quantized:
        return _QUANTIZED, reduce_quantized(tensor)
    if tensor.is_nested:
        name, _, args = reduce_nested(tensor.detach())
    else:
        name, args = reduce_sparse(tensor)
    return name.replace(" ", "."), args


def check_fits(name: str, target: _C.Tensor, source: _C.Tensor) -> None:
    """Raises RuntimeError unless copy_composed() can copy the source into the target. `name`: what the error calls the target."""
    if described(target) != described(source):
        raise RuntimeError(
            f"[checkpoint] layout mismatch for {name}: the checkpoint has {described(source)}, the tensor is {described(target)}"
        )
    if not target.is_nested and target.shape != source.shape:
        raise RuntimeError(
            f"[checkpoint] size mismatch for {name}: the checkpoint has {list(source.shape)}, the tensor {list(target.shape)}"
        )
    if expected := _misfit(target, source):
        raise RuntimeError(f"[checkpoint] {name} cannot receive the checkpoint's tensor: expected {expected}")


def _misfit(target: _C.Tensor, source: _C.Tensor) -> str:
    """What copy_() requires of a source of the same layout and shape that this one does not have."""
    if target.is_quantized:
        return "" if target.dtype is source.dtype else f"the same dtype {target.dtype}, got {source.dtype}"
    if target.is_nested:
        sizes, found = ([tuple(part.shape) for part in tensor.unbind()] for tensor in (target, source))
        if sizes != found:
            i = next((i for i, (a, b) in enumerate(zip(sizes, found)) if a != b), None)
            got = f"{len(found)} instead of {len(sizes)}" if i is None else f"{found[i]} instead of {sizes[i]} as number {i}"
            return f"constituents of the same sizes, got {got}"
        if getattr(target, "_ragged_idx", None) != getattr(source, "_ragged_idx", None):
            return f"the same ragged dimension {target._ragged_idx}, got {source._ragged_idx}"
        return ""
    if target.is_sparse:
        return ""
    if target._nnz() != source._nnz():
        return f"the same number of specified elements {target._nnz()}, got {source._nnz()}"
    sizes, found = list(target._elements.shape), list(source._elements.shape)
    return "" if sizes == found else f"values of size {sizes}, got {found}"


def described(tensor: _C.Tensor) -> str:
    """The kind of a tensor, for errors."""
    kind = " nested" if tensor.is_nested else " quantized" if tensor.is_quantized else ""
    return f"a{kind} tensor of layout {tensor.layout}"


def copy_composed(name: str, target: _C.Tensor, source: _C.Tensor) -> None:
    """Copies a composed tensor into another one, as copy_() does, without recording gradients.

    sparse_coo receives the source's indices. Other sparse layouts require as many elements, and nested tensors the same sizes.
    Quantized tensors receive the source's scales, and require its dtype.

    Raises:
        RuntimeError: the layouts, shapes, numbers of elements or quantized dtypes differ. The text contains `name`.
    """
    check_fits(name, target, source)
    try:
        with no_grad():
            target.copy_(source)
    except _C.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise RuntimeError(f"[checkpoint] {name} cannot receive the checkpoint's tensor: {error}") from None

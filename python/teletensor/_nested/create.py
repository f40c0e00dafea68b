"""Functions of torch.nested that create nested tensors."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._grad_mode import no_grad
from .._layouts import jagged, strided
from .._options import check_flags
from . import constituents, layers, reductions, shapes  # noqa: F401 - they register the operators; so do those they import
from .base import AnyNested
from .ragged import Ragged, offsets_of
from .strided import StridedNested, from_list
from .tensor import NestedTensor, wrapped


def _checked_list(tensors: list[Tensor]) -> None:
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, values in (("dtype", {t.dtype for t in tensors}), ("device", {str(t.device) for t in tensors})):
        if len(values) > 1:
            where = "on the same device" if what == "device" else f"the same {what}"
            verb = "be" if what == "device" else "have"
            raise RuntimeError(f"When constructing a nested tensor, all tensors in list must {verb} {where}")
    if len({t.dim() for t in tensors}) > 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")


def jagged_from_list(tensors: list[Tensor], dtype: Any, device: Any) -> NestedTensor:
    """The nested tensor of a list of tensors that differ in one dimension; with their gradient history."""
    _checked_list(tensors)
    shapes_ = [tuple(t.shape) for t in tensors]
    different = [d for d in range(len(shapes_[0])) if len({s[d] for s in shapes_}) > 1]
    if len(different) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only allows "
            "for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    place = different[0] if different else 0
    values = _C.torch.cat(tensors, place)
    if dtype is not None or device is not None:
        values = values.to(device=values.device if device is None else device, dtype=values.dtype if dtype is None else dtype)
    sizes = [s[place] for s in shapes_]
    offsets = offsets_of(_C.tensor(sizes, dtype=_C.int64, device=values.device))
    return wrapped(values, Ragged(offsets, sizes=sizes), place + 1)


def nested_tensor(
    tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> AnyNested:
    """Creates a nested tensor, a leaf without gradient history, from copies of tensors.

    Args:
        tensor_list: tensors, or what torch.tensor() accepts, with the same number of dimensions; with layout=torch.jagged also a
            tensor or an array of them.
        dtype: the dtype; by default the first tensor's.
        layout: torch.strided (the default), for tensors that may differ in each dimension, or torch.jagged, for tensors that
            differ in one.
        device: the device; by default the first tensor's.
    """
    check_flags("nested_tensor", pin_memory=pin_memory)
    if not isinstance(tensor_list, (list, tuple)):
        if layout != jagged or not hasattr(tensor_list, "__iter__") or isinstance(tensor_list, dict):
            raise TypeError(f"nested_tensor(): expected a list or tuple of tensors or arrays, got {type(tensor_list).__name__}")
        tensor_list = list(tensor_list)
    tensors = [t if isinstance(t, Tensor) else _C.tensor(t, dtype=dtype) for t in tensor_list]
    with no_grad():
        made = _of_list([t.detach() for t in tensors], dtype, device, layout)
    return made.requires_grad_(requires_grad)


def _of_list(tensors: list[Tensor], dtype: Any, device: Any, layout: Any) -> AnyNested:
    if layout is None or layout == strided:
        return from_list(tensors, dtype, device)
    if layout == jagged:
        return jagged_from_list(tensors, dtype, device)
    raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> AnyNested:
    """A nested tensor of tensors, or of the entries of a tensor's first dimension, with their gradient history.

    Args:
        ts: a list of tensors, a tensor of at least two dimensions, or a nested tensor of the layout.
        layout: torch.strided (the default) or torch.jagged.
    """
    if isinstance(ts, AnyNested):
        if layout != ts.layout:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(device=ts.device if device is None else device, dtype=ts.dtype if dtype is None else dtype)  # type: ignore[return-value]
    is_list = isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    if not is_list and not isinstance(ts, Tensor):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, Tensor) and ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if not isinstance(ts, Tensor) or layout is None or layout == strided:
        return _of_list(list(ts), dtype, device, layout)
    if layout != jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    target = ts.device if device is None else _C.device(device)
    values = ts.contiguous().flatten(0, 1).to(device=target, dtype=ts.dtype if dtype is None else dtype)
    batch, length = ts.shape[:2]
    sizes = [length] * batch
    return wrapped(values, Ragged(offsets_of(_C.tensor(sizes, dtype=_C.int64, device=target)), sizes=sizes))


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
    min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """A nested tensor that is a view of values.

    Args:
        values: the sequences, one after another along a dimension.
        offsets: where they begin, and where the last one ends: int64, int32 or int16 [sequences + 1].
        lengths: their lengths, [sequences] of such a dtype; with offsets, of sequences that do not end where the next one begins.
        jagged_dim: the ragged dimension of the result, at least 1 (the default).
        min_seqlen, max_seqlen: the shortest and the longest length, if they are known; they are not checked.

    The offsets' values are checked when an operator uses them: it raises RuntimeError before it accesses an element.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = offsets_of(lengths), None
    jagged_dim = 1 if jagged_dim is None else jagged_dim
    if jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    if values.is_nested or values.dim() < jagged_dim:
        raise RuntimeError(f"nested_tensor_from_jagged(): expected values of at least {jagged_dim} dimensions that are not nested")
    _check_vector("offsets", offsets, values)
    if lengths is not None:
        _check_vector("lengths", lengths, values)
        if lengths.shape[0] != offsets.shape[0] - 1:
            raise RuntimeError(
                f"offsets and lengths batch sizes must match: offsets.shape[0] - 1 = {offsets.shape[0] - 1}, "
                f"lengths.shape[0] = {lengths.shape[0]}"
            )
    view = values.view_as(values) if values.requires_grad else values
    return wrapped(view, Ragged.of(offsets, lengths, min_seqlen, max_seqlen), jagged_dim)


def _check_vector(name: str, tensor: Tensor, values: Tensor) -> None:
    if tensor.dim() != 1 or (name == "offsets" and tensor.shape[0] == 0):
        raise RuntimeError(f"nested_tensor_from_jagged(): expected {name} of one dimension, got sizes {list(tensor.shape)}")
    if tensor.dtype not in (_C.int64, _C.int32, _C.int16):
        raise RuntimeError(f"nested_tensor_from_jagged(): expected {name} of dtype torch.int64, int32 or int16, got {tensor.dtype}")
    if tensor.device != values.device:
        raise RuntimeError(f"nested_tensor_from_jagged(): expected {name} on the values' device {values.device}, got {tensor.device}")


def _per_sequence(value: Any, name: str, tensor: Tensor) -> Tensor:
    if isinstance(value, int):
        value = _C.tensor([value], dtype=_C.int64, device=tensor.device)
    if value.dim() > 1 or (value.dim() == 1 and value.shape[0] not in (1, tensor.shape[0])):
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that broadcast to "
            "input.shape[0]"
        )
    if value.dtype not in (_C.int64, _C.int32, _C.int16):
        raise RuntimeError(f"narrow(): expected {name} of dtype torch.int64, int32 or int16, got {value.dtype}")
    return value.to(_C.int64).expand(tensor.shape[0])


def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Any = strided) -> AnyNested:
    """A nested tensor of a part of each entry of a tensor's first dimension.

    With layout=torch.jagged it is a view, ``dim`` is 1, and start and length may be tensors of integers: [tensor.shape[0]].
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout == strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        if isinstance(tensor, AnyNested) and tensor.dim() > 0 and dim in (0, -tensor.dim()):
            return from_list(list(tensor.unbind()), None, None).narrow(0, start, length)
        return from_list(list(tensor.narrow(dim, start, length).unbind()), None, None)
    if layout != jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    starts, lengths = _per_sequence(start, "start", tensor), _per_sequence(length, "length", tensor)
    batch, longest = tensor.shape[:2]
    first = _C.torch.arange(0, batch, dtype=_C.int64, device=tensor.device) * longest
    begins = first + starts
    offsets = _C.torch.cat([begins, (begins + lengths)[-1:]]) if batch else _C.torch.zeros(1, dtype=_C.int64, device=tensor.device)
    return wrapped(tensor.flatten(0, 1), Ragged(offsets, lengths.contiguous()))


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """A nested tensor of the elements of each row of the last dimension at which a mask is true."""
    for name, value in (("tensor", tensor), ("mask", mask)):
        if value.layout != strided or value.is_nested:
            raise RuntimeError(f"torch.nested.masked_select requires a strided {name}, given {value.layout}")
    counts = mask.expand(tensor.shape).sum(tensor.dim() - 1).reshape(-1)
    return wrapped(tensor.masked_select(mask), Ragged(offsets_of(counts)))


def to_padded_tensor(input: Tensor, padding: float, output_size: Any = None, out: Tensor | None = None) -> Tensor:
    """A tensor that is not nested, in which padding follows each constituent of a nested one; see Tensor.to_padded_tensor()."""
    if not isinstance(input, AnyNested):
        raise not_nested("to_padded_tensor")
    if out is not None:
        raise NotImplementedError("[to_padded_tensor] expected no out tensor, got one")
    return input.to_padded_tensor(padding, output_size)


def not_nested(name: str) -> RuntimeError:
    """The error for a tensor that must be nested."""
    return RuntimeError(f"{name}(): expected a nested tensor, got one that is not nested")


def nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> StridedNested:
    """A nested tensor, with layout=torch.strided, of the entries (B, T, D) at which a mask (B, T) is true.

    The true entries of each row of the mask must come first, which ``mask_check`` checks. Waits for the mask.
    """
    if mask.dtype is not _C.bool or mask.dim() != 2 or t.dim() != 3 or tuple(mask.shape) != tuple(t.shape[:2]):
        raise RuntimeError("Expected mask of dtype bool and two dimensions that match those of the 3-D input")
    if mask_check and not nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Expected mask to be left-aligned")
    return from_list([row[:n] for row, n in zip(t.unbind(), mask.sum(1).tolist(), strict=True)], None, None)


def nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether the true entries of each row of a mask (B, T) come first. Waits for the mask."""
    counts = mask.sum(1)
    return tuple(mask.shape) == tuple(t.shape[:2]) and bool(
        (mask == (_C.torch.arange(0, mask.shape[1], device=mask.device) < counts.unsqueeze(1))).all()
    )

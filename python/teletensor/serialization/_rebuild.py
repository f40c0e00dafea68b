"""The functions of ``torch._utils`` that files call to create tensors. Arguments are untrusted; errors are LoadErrors."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable

from .. import _C
from .._C import Tensor
from .._quantized_names import (
    QuantizedDType,
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_tensor_affine,
    qint8,
    qint32,
    qscheme,
    quint2x4,
    quint4x2,
    quint8,
)
from ..storage import TypedStorage
from ._constructor import Constructor, is_registered
from ._errors import LoadError, damaged, require

_MAX_DIMS = 64


def _checked_ints(values, what: str) -> list[int]:
    valid = (
        isinstance(values, (tuple, list))
        and len(values) <= _MAX_DIMS
        and all(type(n) is int and 0 <= n < 2**63 for n in values)
    )
    require(valid, f"at most {_MAX_DIMS} {what}", values)
    return list(values)


def _view(storage, offset, size, stride, dtype: _C.dtype | None = None) -> Tensor:
    require(isinstance(storage, TypedStorage), "a storage", storage)
    require(type(offset) is int and 0 <= offset < 2**63, "a storage offset", offset)
    require(type(dtype or storage.dtype) is _C.dtype, "a dtype", dtype or storage.dtype)
    size, stride = _checked_ints(size, "sizes"), _checked_ints(stride, "strides")
    require(len(size) == len(stride), "as many strides as sizes", f"{len(size)} sizes and {len(stride)} strides")
    try:
        return storage._untyped_storage._as(dtype or storage.dtype, offset, size, stride)
    except _C.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise damaged(str(error)) from None


def _finish(tensor: Tensor, requires_grad, hooks) -> Tensor:
    require(type(requires_grad) is bool, "requires_grad", requires_grad)
    if hooks:
        raise LoadError("[load] the file contains a tensor with backward hooks, which are functions and are not loaded")
    can_require = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    require(not requires_grad or can_require, "a dtype that has gradients", tensor.dtype)
    tensor.requires_grad = requires_grad
    return tensor


def _with_bits(storage, metadata) -> Any:
    """The storage with its elements conjugated or negated, as the metadata require; made once per storage."""
    require(isinstance(metadata, dict) and set(metadata) <= {"conj", "neg"}, "the metadata conj and neg", metadata)
    conjugate, negate = bool(metadata.get("conj")), bool(metadata.get("neg"))
    require(isinstance(storage, TypedStorage), "a storage", storage)
    if not (conjugate or negate):
        return storage
    made = storage.__dict__.setdefault("_with_bits", {})
    if (conjugate, negate) not in made:
        from .._storage import UntypedStorage

        elements = storage._elements()
        elements = elements.conj() if conjugate else elements
        elements = elements.neg() if negate else elements
        made[conjugate, negate] = TypedStorage(wrap_storage=UntypedStorage._of(elements), dtype=storage.dtype)
    return made[conjugate, negate]


def rebuild_tensor(storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None) -> Tensor:
    """``_rebuild_tensor`` and ``_rebuild_tensor_v2``: a view of a storage with a dtype."""
    if metadata is not None:
        storage = _with_bits(storage, metadata)
    return _finish(_view(storage, offset, size, stride), requires_grad, hooks)


def rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None) -> Tensor:
    """``_rebuild_tensor_v3``: a view of bytes, for dtypes that have no storage class."""
    require(not metadata, "no metadata", metadata)
    return _finish(_view(storage, offset, size, stride, dtype), requires_grad, hooks)


def parameter_class() -> type:
    """nn.Parameter, which is imported late."""
    from ..nn import Parameter

    return Parameter


def make_parameter(data=None, requires_grad=True) -> Tensor:
    """Parameter(data, requires_grad)."""
    require(
        (data is None or isinstance(data, Tensor)) and type(requires_grad) is bool, "a tensor for a Parameter", data
    )
    return parameter_class()(data, requires_grad)


def rebuild_parameter(data, requires_grad, hooks) -> Tensor:
    """``_rebuild_parameter``."""
    require(isinstance(data, Tensor), "a tensor for a Parameter", data)
    return _finish(parameter_class()(data, False), requires_grad, hooks)


def rebuild_parameter_with_state(data, requires_grad, hooks, state) -> Tensor:
    """``_rebuild_parameter_with_state``: with attributes."""
    return _with_attributes(rebuild_parameter(data, requires_grad, hooks), state)


def _with_attributes(tensor: Tensor, state) -> Tensor:
    if isinstance(state, tuple) and len(state) == 2 and not state[1]:
        state = state[0]
    valid = state is None or (
        isinstance(state, dict) and all(type(name) is str and not hasattr(type(tensor), name) for name in state)
    )
    require(valid, "attributes of a tensor", state)
    tensor.__dict__.update(state or {})
    return tensor


def make_uninitialized(kind: str) -> Callable:
    """The constructor of UninitializedParameter or UninitializedBuffer."""

    def make(requires_grad=False):
        from ..nn import parameter

        require(type(requires_grad) is bool, "requires_grad", requires_grad)
        return getattr(parameter, kind)(requires_grad)

    return make


def rebuild_meta_tensor(dtype, size, stride, requires_grad) -> Tensor:
    """``_rebuild_meta_tensor_no_storage``."""
    from .._ops.shape import empty_strided

    require(type(dtype) is _C.dtype, "a dtype", dtype)
    try:
        tensor = empty_strided(
            _checked_ints(size, "sizes"), _checked_ints(stride, "strides"), dtype=dtype, device="meta"
        )
    except RuntimeError as error:
        raise damaged(str(error)) from None
    return _finish(tensor, requires_grad, None)


def rebuild_device_tensor(data, dtype, _device, requires_grad) -> Tensor:
    """``_rebuild_device_tensor_from_cpu_tensor``: files of devices without storages; the tensor stays on its device."""
    require(isinstance(data, Tensor) and type(dtype) is _C.dtype, "a tensor and a dtype", data)
    return _finish(data if data.dtype is dtype else data.to(dtype), requires_grad, None)


def rebuild_wrapper(kind, dtype, size, stride, offset, _layout, _device, requires_grad) -> Tensor:
    """``_rebuild_wrapper_subclass``: a tensor of a registered subclass that holds other tensors, which its state names."""
    saved = isinstance(kind, type) and is_registered(kind) and getattr(kind, "_saved_with_state", False)
    require(saved, "a registered class of tensors that hold tensors", kind)
    has_gradient = hasattr(kind, "_file_requires_grad")
    require(isinstance(dtype, _C.dtype), "a dtype", dtype)
    require(requires_grad is False or (requires_grad is True and has_gradient), "no requires_grad", requires_grad)
    sizes, strides = _checked_ints(size, "sizes"), _checked_ints(stride, "strides")
    require(len(sizes) == len(strides) and type(offset) is int and 0 <= offset < 2**63, "sizes, strides and an offset", size)
    try:
        made = _C._make_wrapper(kind, sizes, strides, offset, dtype, _C.default_device())
    except RuntimeError as error:
        raise damaged(str(error)) from None
    if has_gradient:
        made._file_requires_grad = requires_grad
    return made


def rebuild_from_type(function, kind, args, state) -> Tensor:
    """``_rebuild_from_type_v2``: a tensor with attributes, or of a subclass that may be loaded: only those arrive as classes."""
    require(isinstance(function, Constructor) and type(args) is tuple, "a function that creates a tensor", function)
    tensor = function(*args)
    require(isinstance(tensor, Tensor), "a tensor", tensor)
    if tensor.is_nested:  # its components, which the state repeats, were the arguments
        return tensor
    if isinstance(kind, type) and issubclass(kind, Tensor):
        tensor = tensor if _C._is_wrapper(tensor) else Tensor.__new__(kind, tensor)
        if hasattr(kind, "__setstate__"):
            try:
                tensor.__setstate__(state)
            except (ValueError, TypeError, AssertionError, ArithmeticError, LookupError, AttributeError) as error:
                raise damaged(str(error)[:200]) from None
            return tensor
    else:
        require(
            isinstance(kind, Constructor) and kind.creates is not None and issubclass(kind.creates, Tensor),
            "a class of tensors",
            kind,
        )
    return _with_attributes(tensor, state)


def make_tensor(*args) -> Tensor:
    """An empty tensor, whose state follows."""
    require(not args, "no arguments", args)
    return _C.torch.empty(0)


def set_tensor_state(tensor: Tensor, state) -> None:
    """The state (storage, offset, size, stride) of a tensor of a file before PyTorch 0.4."""
    require(type(state) is tuple and len(state) == 4, "the state of a tensor", state)
    _C.become(tensor, _view(*state))


def _packed_integers(storage, offset, size, stride) -> Tensor:
    """The bytes of a contiguous tensor of integers of 4 or 2 bits."""
    expected = 1
    for count, step in zip(reversed(_checked_ints(size, "sizes")), reversed(_checked_ints(stride, "strides"))):
        require(count == 1 or step == expected, "contiguous integers of 4 or 2 bits", stride)
        expected *= max(count, 1)
    require(offset == 0 and len(size) == len(stride) and expected < 2**63, "contiguous integers of 4 or 2 bits", offset)
    return _view(storage, 0, (storage.nbytes(),), (1,), _C.uint8)


def rebuild_qtensor(storage, offset, size, stride, quantizer_params, requires_grad, hooks) -> Tensor:
    """``_rebuild_qtensor``: integers, and how they represent numbers: (scheme, scale, zero point[, axis])."""
    require(isinstance(storage, TypedStorage), "a storage", storage)
    few_bits = isinstance(storage.dtype, QuantizedDType)
    ints = _packed_integers(storage, offset, size, stride) if few_bits else _view(storage, offset, size, stride)
    ints, shape = _finish(ints, requires_grad, hooks), _checked_ints(size, "sizes")
    return _quantized(ints, storage.dtype if few_bits else None, shape, quantizer_params)


def rebuild_quantized(ints, dtype, size, parameters) -> Tensor:
    """The inverse of reduce_quantized()."""
    kinds = {repr(kind): kind for kind in (quint8, qint8, qint32, quint4x2, quint2x4)}
    schemes = {str(scheme): scheme for scheme in (per_tensor_affine, per_channel_affine, per_channel_affine_float_qparams)}
    require(isinstance(ints, Tensor) and not _C._is_wrapper(ints), "a tensor of integers", ints)
    require(isinstance(dtype, str) and dtype in kinds, "the name of a quantized dtype", dtype)
    require(type(parameters) is tuple and bool(parameters) and parameters[0] in schemes, "a scheme, scales and zero points", parameters)
    kind, shape = kinds[dtype], _checked_ints(size, "sizes")
    require(ints.dtype is kind.stored, f"integers of {kind.stored}", ints.dtype)
    require(ints.dim() == 1 if kind.per_byte > 1 else list(ints.shape) == shape, "integers of the tensor's size", tuple(ints.shape))
    return _quantized(ints, kind if kind.per_byte > 1 else None, shape, (schemes[parameters[0]], *parameters[1:]))


def _quantized(ints: Tensor, few_bits: QuantizedDType | None, shape: list[int], p: Any) -> Tensor:
    """The tensor of integers; of the bytes of integers of 4 or 2 bits, if there is a dtype."""
    from .._quantized.create import of_packed_parameters, of_parameters

    valid = type(p) is tuple and len(p) in (3, 4) and isinstance(p[0], qscheme)
    if valid and len(p) == 3:
        valid = isinstance(p[1], float) and type(p[2]) is int and abs(p[2]) < 2**31
    elif valid:
        valid = all(isinstance(t, Tensor) and t.dim() == 1 for t in p[1:3]) and type(p[3]) is int and 0 <= p[3] < len(shape)
        valid = valid and p[1].numel() == p[2].numel() == shape[p[3]]
    require(valid, "a scheme, scales and zero points", p)
    try:
        return of_parameters(ints, p) if few_bits is None else of_packed_parameters(ints, few_bits, tuple(shape), p)
    except _C.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise damaged(str(error)) from None


def rebuild_sparse_tensor(layout, data) -> Tensor:
    """``_rebuild_sparse_tensor``: indices and values, of which the indices are checked. Waits for the engine."""
    from .._sparse import functions  # noqa: F401 - registers the operators and the text of sparse tensors
    from .._sparse.create import sparse_compressed_tensor, sparse_coo_tensor

    require(type(data) is tuple and 3 <= len(data) <= 4, "the components of a sparse tensor", data)
    is_coo = layout == "torch.sparse_coo"
    tensors, rest = (data[:2], data[2:]) if is_coo else (data[:3], data[3:])
    require(all(isinstance(t, Tensor) and not _C._is_wrapper(t) for t in tensors), "tensors as components", data)
    require(bool(rest) and isinstance(rest[0], (tuple, list)), "a size", rest)
    size = _checked_ints(tuple(rest[0]), "sizes")
    coalesced = rest[1] if is_coo and len(rest) == 2 else None
    require(coalesced is None or type(coalesced) is bool, "whether the tensor is coalesced", coalesced)
    try:
        if is_coo:
            return sparse_coo_tensor(*tensors, size, check_invariants=True, is_coalesced=coalesced)
        return sparse_compressed_tensor(*tensors, size, layout=layout, check_invariants=True)
    except _C.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as error:
        raise damaged(str(error)[:300]) from None


def not_implemented(name: str) -> Callable:
    """A function that raises NotImplementedError for a kind of tensor that teletensor does not have."""
    kinds = {"_rebuild_device_tensor_from_numpy": "XLA"}

    def refuse(*args):
        raise NotImplementedError(
            f"[load] the file contains a {kinds[name]} tensor (torch._utils.{name}), which is not implemented"
        )

    return refuse


def _parameters_of(q: Any) -> tuple:
    return (q.scheme, *q.numbers()) if q.axis is None else (q.scheme, q.scale, q.zero_point, q.axis)


def reduce_quantized(tensor: Any) -> tuple:
    """The integers of a quantized tensor, the name of its dtype, its size, and how the integers represent numbers."""
    scheme, *rest = _parameters_of(tensor._quantizer)
    ints = tensor._packed if tensor.dtype.per_byte > 1 else tensor._ints
    return ints, repr(tensor.dtype), _C.Size(tensor.shape), (str(scheme), *rest)


def _reduce_quantized(tensor: Any, storage: Any) -> tuple:
    q = tensor._quantizer
    parameters = _parameters_of(q)
    few_bits = q.dtype.per_byte > 1
    ints = tensor._packed if few_bits else tensor._ints
    where = (0 if few_bits else ints.storage_offset(), tuple(tensor.shape), tuple((tensor if few_bits else ints).stride()))
    if tensor.device.type == "meta":
        raise NotImplementedError("[save] a quantized tensor on the meta device has no integers to write")
    return "torch._utils _rebuild_qtensor", (storage(ints, q.dtype), *where, parameters, False, OrderedDict())


def reduce_sparse(tensor: Any) -> tuple:
    """The name of the function that creates a sparse tensor, and its arguments."""
    values = tensor._elements.detach()
    if tensor.is_sparse:
        data = (tensor._coo, values, _C.Size(tensor.shape), tensor._coalesced)
    else:
        data = (tensor._compressed, tensor._plain, values, _C.Size(tensor.shape))
    return "torch._utils _rebuild_sparse_tensor", (tensor.layout, data)


def reduce_tensor(tensor: Tensor, storage: Any) -> tuple:
    """The name of the function that creates a tensor, and its arguments, as PyTorch writes them.

    `storage`: a function of the tensor and a dtype, or None for bytes, that returns the placeholder for its storage.
    """
    from ..storage import NAMES

    if tensor.is_quantized:
        return _reduce_quantized(tensor, storage)
    if _C._is_wrapper(tensor):
        with_state = getattr(type(tensor), "_saved_with_state", False)
        if tensor.layout != "torch.strided" and not with_state:
            return reduce_sparse(tensor)
        if with_state and tensor.layout != "torch.strided":
            raise NotImplementedError(f"[save] expected a {type(tensor).__name__} with strided data, got {tensor.layout}: save its parts")
        if with_state:
            from .._layouts import strided

            sizes = (tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())
            where = (strided, tensor.device, hasattr(type(tensor), "_file_requires_grad") and tensor.requires_grad)
            return "torch._utils _rebuild_wrapper_subclass", (type(tensor), tensor.dtype, *sizes, *where)
        raise NotImplementedError(
            f"[save] a {type(tensor).__name__} has no values in the engine: save the tensors inside; for DTensors use "
            "torch.distributed.checkpoint, or full_tensor()"
        )
    where = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad)
    if tensor.device.type == "meta":
        return "torch._utils _rebuild_meta_tensor_no_storage", (tensor.dtype, *where[1:])
    if tensor.dtype in NAMES and tensor._storage[1] % tensor.dtype.itemsize == 0:
        return "torch._utils _rebuild_tensor_v2", (storage(tensor, tensor.dtype), *where, OrderedDict())
    return "torch._utils _rebuild_tensor_v3", (storage(tensor, None), *where, OrderedDict(), tensor.dtype)

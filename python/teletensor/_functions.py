"""Top-level functions that are not operators: conversion, inspection, defaults."""

from __future__ import annotations

import array
import functools
import numbers
import warnings

from . import _C, _connection
from ._C import Tensor
from ._lazy import set_module
from ._options import check_flags, check_kind, check_optional_flags
from ._storage import is_storage, tensor_of
from ._tensor_types import PYTHON_DTYPES, TensorType, dtype_and_kind, tensor_types

__all__ = [
    "tensor", "as_tensor", "from_numpy",  "asarray", "is_tensor", "is_floating_point", "is_complex", "numel",
    "get_default_dtype", "set_default_dtype", "set_default_tensor_type", "promote_types", "result_type", "can_cast",
    "finfo", "iinfo", "broadcast_shapes", "broadcast_tensors", "allclose", "equal", "meshgrid", "set_num_threads",
    "get_num_threads", "is_storage", "get_default_device", "set_default_device", "use_deterministic_algorithms",
    "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
    "set_float32_matmul_precision", "get_float32_matmul_precision", *tensor_types("cpu"),
]  # fmt: skip


_BUFFERS = (bytearray, memoryview, array.array)
# The device that set_default_device() or a block `with device:` has set, to which tensor(), as_tensor() and asarray() also
# move tensors; None if there is none.
_chosen_device: _C.device | None = None


def tensor(data, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Creates a tensor from numbers, nested sequences or arrays, which it copies, or of a storage, whose bytes it shares.

    ``pin_memory`` has no effect: the client holds no bytes to pin.
    """
    check_flags("tensor", pin_memory=pin_memory)
    device = _chosen_device if device is None else device
    if type(data) in _BUFFERS:  # a sequence of Python's numbers; asarray() keeps the dtype of the elements
        data = memoryview(data).tolist()
    if is_storage(data):
        made = tensor_of(data, dtype)
        made = made if device is None else made.to(device)
        return made.requires_grad_() if requires_grad else made
    if _C._len_torch_dispatch_stack():
        made = _of_recorded_numbers(data, dtype, device)
        made = _entered(_converted(data, dtype, device)) if made is None else made
        return made.requires_grad_() if requires_grad else made
    try:
        return _C.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
    except (TypeError, ValueError) as error:
        from . import _data_errors

        raise _data_errors.replaced(data, dtype is None, error) from error.__cause__


def _converted(data, dtype=None, device=None) -> Tensor:
    try:
        return _C.tensor(data, dtype=dtype, device=device)
    except (TypeError, ValueError) as error:
        from . import _data_errors

        raise _data_errors.replaced(data, dtype is None, error) from error.__cause__


def _entered(made: Tensor) -> Tensor:
    """The tensor as the function transforms that run see it (NewTensors in func/_transformed.py)."""
    for i in range(_C._len_torch_dispatch_stack()):
        made = getattr(_C._get_dispatch_stack_at(i), "enter", _unchanged)(made)
    return made


def _unchanged(made: Tensor) -> Tensor:
    return made


def _of_recorded_numbers(data, dtype, device) -> Tensor | None:
    """A tensor of numbers of which one depends on values of a tensor whose computation is recorded; None for other data."""
    if isinstance(data, (list, tuple)):
        rows = [_of_recorded_numbers(v, dtype, device) for v in data]
        if all(r is None for r in rows):
            return None
        rows = [_C.tensor(v, dtype=dtype, device=device) if r is None else r for r, v in zip(rows, data)]
        common = functools.reduce(_C.promote_types, [r.dtype for r in rows])
        return _C.torch.stack([r.to(common) for r in rows])
    if not getattr(type(data), "is_unbacked", False):
        return None
    if dtype is None:
        dtype = get_default_dtype() if isinstance(data, float) else _C.int64
    return _C.torch.full([], data, dtype=dtype, device=device)


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """Returns `data` itself if it is a Tensor with that dtype and device, otherwise a new tensor."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=_chosen_device if device is None else device)
    return tensor(data, dtype=dtype, device=device)


def asarray(obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool | None = None) -> Tensor:
    """Returns `obj` itself if it is a Tensor with that dtype and device, otherwise a new tensor; `copy` forces a copy.

    Raises:
        ValueError: `copy` is False, and `obj` is not a tensor of that dtype and device. An array is always copied.
    """
    check_optional_flags("asarray", copy=copy, requires_grad=requires_grad)
    device = _chosen_device if device is None else device
    if isinstance(obj, Tensor):
        result = obj.to(dtype=dtype, device=device)
        if copy is False and result is not obj:
            raise ValueError(f"can't alias tensor with {obj.dtype} on {obj.device} as {result.dtype} on {result.device}.")
        result = result.clone() if copy and result is obj else result
    else:
        if copy is False:
            raise ValueError(f"can't alias {type(obj).__name__} into a tensor: the tensor is in another process.")
        if dtype is not None and isinstance(obj, (bytes, *_BUFFERS)):  # the bytes in that dtype
            result = _converted(memoryview(obj).cast("B"), None, device).view(dtype)
        else:
            result = _converted(obj, dtype, device)
    if requires_grad is False and result.requires_grad:
        return result.detach()
    return result.requires_grad_() if requires_grad and not result.requires_grad else result


def from_numpy(ndarray) -> Tensor:
    """Creates a tensor on the CPU with a copy of the array's values. Unlike in PyTorch, array and tensor do not share memory."""
    if not hasattr(ndarray, "__array_interface__"):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return _converted(ndarray, device="cpu")


def is_tensor(obj) -> bool:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's dtype is a floating-point type."""
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the tensor's dtype is complex."""
    return input.dtype.is_complex


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def get_default_dtype():
    """The default dtype (`set_default_dtype`)."""
    return _C.default_dtype()


def set_default_dtype(d) -> None:
    """Sets the dtype of floating-point tensors created without a dtype, and of results computed from integers, in all threads."""
    if not isinstance(d, _C.dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    _C.set_default_dtype(d)


def get_default_device() -> _C.device:
    """The device of new tensors without an explicit device."""
    return _C.default_device()


def _choose(device: _C.device | None) -> _C.device | None:
    """Sets the default device; returns the earlier one."""
    global _chosen_device
    before, _chosen_device = _chosen_device, device
    _C.swap_default_device(device)
    return before


def set_default_device(device) -> None:
    """Sets the default device of new tensors in all threads; None selects the engine's CPU. ``with device:`` sets it for a block.

    As in PyTorch, it concerns the functions that have a parameter `device`, and tensors that ``tensor()``, ``as_tensor()`` and
    ``asarray()`` receive; ``Tensor(2)``, ``FloatTensor(2)``, ``from_numpy()``, ``from_dlpack()`` and storages are on the CPU.
    """
    if isinstance(device, bool):
        raise TypeError("set_default_device() expected a device, str, int or None, got bool")
    _choose(None if device is None else _C.device(device))


_device_stack: list = []


def _enter(self: _C.device) -> _C.device:
    _device_stack.append(_choose(self))
    return self


def _leave(self: _C.device, *_exception) -> None:
    _choose(_device_stack.pop())


_C.device.__enter__, _C.device.__exit__ = _enter, _leave


def set_default_tensor_type(t) -> None:
    """Sets the default dtype and device from a tensor type, such as ``cuda.FloatTensor``, or the type's name.

    Raises:
        TypeError: t is no tensor type, or not one of floating-point numbers.
        ValueError: t is a name, and not that of a tensor type.
    """
    if isinstance(t, str):
        dtype, kind = dtype_and_kind(t)
    elif isinstance(t, TensorType):
        dtype, kind = t.dtype, t.kind
    else:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    _C.set_default_dtype(dtype)
    _C.swap_tensor_type_device(None if kind == "cpu" else _C.device(kind))


def promote_types(type1, type2):
    """The smallest dtype to which both dtypes can be cast."""
    return _C.promote_types(type1, type2)


def can_cast(from_, to) -> bool:
    """Whether a dtype can be cast to another one."""
    return _C.can_cast(from_, to)


def result_type(*operands, **named):
    """Returns the dtype that arithmetic on two tensors or numbers produces.

    The operands may be passed as ``tensor``, ``other``, ``scalar``, or ``scalar1`` and ``scalar2``.
    """
    unknown = named.keys() - {"tensor", "other", "scalar", "scalar1", "scalar2"}
    if unknown or len(operands) + len(named) != 2:
        raise TypeError(f"result_type() expected two operands, got {len(operands)} and {', '.join(named) or 'no keyword'}")
    tensor, other = (*operands, *named.values())
    if not isinstance(tensor, Tensor) and not isinstance(other, Tensor):
        if not isinstance(tensor, numbers.Number) or not isinstance(other, numbers.Number):
            kinds = f"{type(tensor).__name__}, {type(other).__name__}"
            raise TypeError(f"result_type() received an invalid combination of arguments - got ({kinds}): expected tensors or numbers")
        return _C.tensor([tensor, other]).dtype
    either = _C.torch.empty((), dtype=_C.bool, device="meta")
    return _C.ops.where(either, _meta_operand(tensor), _meta_operand(other)).dtype  # where() accepts every dtype


result_type.__overloads__ = ("tensor, other", "scalar, tensor", "tensor, scalar", "scalar1, scalar2")


def _meta_operand(x):
    """Returns a number itself. Replaces a tensor by a meta tensor that promotes in the same way.

    For the promotion only the dtype matters, and whether the tensor has dimensions.
    """
    return _C.torch.empty((1,) * (x.dim() > 0), dtype=x.dtype, device="meta") if isinstance(x, Tensor) else x


def _checked_dtype(name: str, dtype):
    if isinstance(dtype, type):
        dtype = PYTHON_DTYPES.get(dtype, dtype)
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type(dtype).__name__}")
    return dtype


class _Limits:
    """The base of finfo and iinfo: read-only attributes. Two objects of one class and dtype are equal."""

    dtype: str

    def __setattr__(self, name: str, value) -> None:
        raise AttributeError(f"attribute {name!r} of 'torch.{type(self).__name__}' objects is not writable")

    def __eq__(self, other) -> bool:
        return self.dtype == other.dtype if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)


class finfo(_Limits):  # noqa: N801 - PyTorch's name
    """Limits of a floating-point dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    def __init__(self, type=None):
        dtype = _C.default_dtype() if type is None else _checked_dtype("finfo", type)
        dtype = dtype.to_real() if dtype.is_complex else dtype  # the limits of the real and imaginary parts
        row = _FLOATS.get(dtype) or getattr(dtype, "limits", None)  # of a dtype without tensors
        if row is None and dtype.is_floating_point:
            raise NotImplementedError(f"\"epsilon\" not implemented for '{str(dtype).removeprefix('torch.').capitalize()}'")
        if row is None:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        values = dict(zip(("bits", "eps", "max", "tiny", "resolution"), row))
        least = -values["max"] if dtype.is_signed else values["tiny"]
        self.__dict__.update(values, dtype=str(dtype).removeprefix("torch."), min=least, smallest_normal=values["tiny"])

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        limits = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({limits}, dtype={self.dtype})"


# Per dtype: bits, eps, max, tiny, resolution.
_FLOATS = {
    _C.float8_e4m3fn: (8, 2.0**-3, 448.0, 2.0**-6, 1.0),
    _C.float8_e5m2: (8, 2.0**-2, 57344.0, 2.0**-14, 1.0),
    _C.float16: (16, 2.0**-10, 65504.0, 2.0**-14, 1e-3),
    _C.bfloat16: (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 1e-2),
    _C.float32: (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126, 1e-6),
    _C.float64: (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 1e-15),
}


class iinfo(_Limits):  # noqa: N801 - PyTorch's name
    """Limits of an integer dtype: bits, min, max."""

    def __init__(self, type):
        dtype = _checked_dtype("iinfo", type)
        if dtype is _C.bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if dtype.is_floating_point or dtype.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        bits, signed = 8 * dtype.itemsize, getattr(dtype, "stored", dtype).is_signed  # of the integers of a quantized dtype
        least = -(2 ** (bits - 1)) if signed else 0
        self.__dict__.update(bits=bits, min=least, max=2 ** (bits - signed) - 1, dtype=str(dtype).removeprefix("torch."))

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def broadcast_shapes(*shapes) -> _C.Size:
    """The common shape to which all shapes broadcast."""
    if not shapes:
        return _C.Size([])
    metas = [_C.torch.empty(tuple(s) if not isinstance(s, int) else (s,), device="meta") for s in shapes]
    total = metas[0]
    for other in metas[1:]:
        total = total + other
    return total.shape


def broadcast_tensors(*tensors) -> tuple[Tensor, ...]:
    """The tensors, expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    shape = broadcast_shapes(*[t.shape for t in tensors]) if tensors else ()
    is_known = all(type(n) is int for t in tensors for n in t.shape)  # the sizes of a graph are not compared
    return tuple(t if is_known and t.shape == shape else t.expand(shape) for t in tensors)


def meshgrid(*tensors, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Returns a coordinate grid for each of the one-dimensional tensors. ``indexing`` is "ij" (the default) or "xy"."""
    indexing = "ij" if indexing is None else indexing
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(t.shape)}")
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    swap = indexing == "xy" and len(tensors) >= 2
    order = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    shape = [t.numel() for t in order]
    grids = []
    for i, t in enumerate(order):
        view = [1] * len(shape)
        view[i] = shape[i]
        grids.append(t.reshape(view).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all pairs of elements are close. Waits for the engine."""
    check_kind("allclose", "other", other, Tensor)
    if input.dtype != other.dtype:
        raise RuntimeError(f"allclose: expected tensors of one dtype, got {input.dtype} and {other.dtype}")
    return bool(_C.torch.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan).all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same sizes and elements. Waits for the engine."""
    check_kind("equal", "other", other, Tensor)
    if input.is_quantized != other.is_quantized:
        return False
    return input.shape == other.shape and bool((input == other).all())


Tensor.allclose, Tensor.equal = allclose, equal


globals().update(tensor_types("cpu"))


def set_num_threads(nthreads: int) -> None:
    """Limits the threads of this process's operations on the CPU. The engine's own number is the maximum (``--threads``)."""
    if isinstance(nthreads, bool) or not isinstance(nthreads, int):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(nthreads).__name__}")
    if nthreads <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {nthreads}")
    _connection.configure_sessions("set_num_threads", nthreads)


def get_num_threads() -> int:
    """The number of threads that one operation of this process uses on the CPU. Waits for the engine."""
    return _C.ops.get_num_threads().item()


_deterministic = (False, False)  # mode, warn_only


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Requires results to be identical from run to run. The results of CPU kernels always are.

    The results of GPU kernels are identical too, with one exception: the gradients of embedding, max pooling and
    cuDNN's attention may differ in their last bits, because several threads accumulate into one location.

    Raises:
        NotImplementedError: ``mode`` is True and the engine has a GPU. With ``warn_only`` this is a warning.
    """
    from .utils import deterministic  # which few programs use

    global _deterministic
    check_flags("use_deterministic_algorithms", mode=mode, warn_only=warn_only)
    if mode and any(d["device"].startswith("cuda") for d in _connection.connection().engine()["devices"]):
        message = (
            "[use_deterministic_algorithms] on a GPU the gradients of embedding, max pooling and cuDNN's attention may differ "
            "in their last bits from run to run"
        )
        if not warn_only:
            raise NotImplementedError(f"{message}; pass warn_only=True to accept this")
        warnings.warn(message, stacklevel=2)
    _deterministic = (mode, warn_only)
    deterministic.set_mode(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """The last ``mode`` passed to use_deterministic_algorithms; initially False."""
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The last ``warn_only`` passed to use_deterministic_algorithms; initially False."""
    return _deterministic[1]


_float32_matmul_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """'high' and 'medium' allow GPUs to compute float32 matrix products in TF32. CPUs always use full precision."""
    global _float32_matmul_precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', 'medium'")
    _connection.configure_sessions("set_float32_matmul_precision", precision)
    _float32_matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """The last value passed to set_float32_matmul_precision; initially 'highest'."""
    return _float32_matmul_precision


def on_mesh_of(like: Tensor, constant: Tensor) -> Tensor:
    """A constant for a computation with `like`: itself, or replicated on `like`'s mesh."""
    replicated = getattr(type(like), "_replicated", None)
    return constant if replicated is None else replicated(like, constant)


set_module("teletensor", finfo, iinfo)

"""The Tensor methods that are written in Python; all others are generated or written in C++."""

from __future__ import annotations

import copy
import copyreg
import numbers
from typing import TYPE_CHECKING, Any, Callable

from . import _C, _address, _dlpack, _storage
from ._by_value import reduce_tensor
from ._C import Tensor
from ._layouts import by_layout, strided
from ._ops.shape import empty_strided
from ._options import check_flags, check_layout, check_memory_format
from ._pending_array import PendingArray
from ._tensor_str import tensor_str
from ._tensor_types import dtype_and_kind, type_name

if TYPE_CHECKING:
    from ._address import Address

_METHODS: dict[str, Any] = {}


def _method(function: Callable) -> Callable:
    """Registers the function as a method of Tensor, under its own name."""
    _METHODS[function.__name__] = function
    return function


@_method
def __repr__(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """Returns PyTorch's notation. Waits for the values, unless ``tensor_contents`` replaces them."""
    return tensor_str(self, tensor_contents)


@_method
def _repr_html_(self: Tensor) -> str | None:
    """A table for notebooks, of at most the values that printing reads. None, for which a notebook prints the tensor, if a
    subclass has another text or if the values are an error, which printing raises.
    """
    from ._tensor_html import tensor_html  # used in notebooks only

    try:
        return tensor_html(self)
    except Exception:  # printing raises it, and a notebook shows the traceback once
        return None


@_method
def _repr_mimebundle_(self: Tensor, include=None, exclude=None) -> dict[str, str] | None:
    """The text and the table for notebooks, of values that are read once; None as in ``_repr_html_``."""
    from ._tensor_html import bundle

    try:
        return bundle(self, include, exclude)
    except Exception:  # as in _repr_html_
        return None


@_method
def __format__(self: Tensor, spec: str) -> str:
    number = self.dim() == 0 and not self.is_meta and type(self) is Tensor
    return format(self.item(), spec) if number else object.__format__(self, spec)


@_method
def __iter__(self: Tensor):
    """The slices along the first dimension."""
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


@_method
def __contains__(self: Tensor, element) -> bool:
    if not isinstance(element, (Tensor, numbers.Number)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((self == element).any())


@_method
def __reversed__(self: Tensor) -> Tensor:
    return self if self.dim() == 0 else self.flip(0)


@_method
def __array__(self: Tensor, dtype=None, copy=None):
    """Converts the tensor to an array when NumPy's functions and operators receive it. Waits for the engine."""
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested: the tensor is in an engine")
    array = self.numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


@_method
def __array_wrap__(self: Tensor, array, context=None, return_scalar: bool = False) -> Tensor:
    """Converts the result of a NumPy ufunc on tensors to a Tensor. Booleans become uint8, as in PyTorch."""
    return _C.tensor(array.astype("uint8") if array.dtype == bool else array)


@_method
def __complex__(self: Tensor) -> complex:
    return complex(self.item())


def _copied_with_storage(self: Tensor, memo: dict) -> Tensor:
    """A copy whose storage is the copy of this tensor's storage in `memo`: tensors that share bytes still do."""
    storage = self.untyped_storage()
    copies = memo.setdefault("torch", {})
    if storage not in copies:
        if self.is_contiguous() and self.nbytes == storage.nbytes():
            result = self.detach().clone()
            copies[storage] = result.untyped_storage()
            return result
        copies[storage] = storage.clone()
    return copies[storage]._as(self.dtype, self.storage_offset(), self.shape, self.stride())


@_method
def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
        )
    if id(self) in memo:
        return memo[id(self)]
    copied = self.detach().clone() if _C._is_wrapper(self) or self.device.type == "meta" else _copied_with_storage(self, memo)
    result = copied if type(self) is Tensor else type(self)(copied)
    result.requires_grad = self.requires_grad
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    memo[id(self)] = result
    return result


copyreg.pickle(_C.device, lambda device: (_C.device, (str(device),)))  # type: ignore[arg-type]


@_method
def __reduce_ex__(self: Tensor, protocol: int):
    """Pickles the tensor's bytes, for processes of the same user. Waits for the engine."""
    return reduce_tensor(self)


def _numpy_dtype(self: Tensor, name: str, force: bool) -> str:
    """The name of NumPy's dtype for the tensor. Raises the errors of PyTorch's Tensor.numpy()."""
    if self.requires_grad and not force and _C.is_grad_enabled():
        raise RuntimeError(
            f"Can't call {name}() on Tensor that requires grad. Use tensor.detach().{name}() instead."
        )
    if self.device.type != "cpu" and not force:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    if self.dtype in _dlpack.UNSUPPORTED_BY_NUMPY:
        raise TypeError(f"Got unsupported ScalarType {_dlpack.UNSUPPORTED_BY_NUMPY[self.dtype]}")
    return repr(self.dtype).removeprefix("torch.")


@_method
def numpy(self: Tensor, *, force: bool = False):
    """Copies the values from the engine to a new NumPy array. Waits for the engine."""
    import numpy as np

    array = np.empty(tuple(self.shape), dtype=_numpy_dtype(self, "numpy", force))
    if array.size:
        _C.read_into(self, array)
    return array


@_method
def numpy_async(self: Tensor, *, force: bool = False) -> PendingArray:
    """Requests the values without waiting for them; ``wait()`` of the result returns a new NumPy array.

    The values are those of the call: later in-place operations do not change them, because the engine copies the tensor
    first, which takes memory there until the values have been received.

    Args:
        force: also accepts a tensor on a GPU or one that requires grad, as in ``numpy()``.
    """
    return PendingArray(self, _numpy_dtype(self, "numpy_async", force))


@_method
def cpu(self: Tensor, memory_format=None) -> Tensor:
    """Copies the tensor to the engine's CPU. ``.numpy(force=True)`` reads a GPU's tensor without that copy."""
    return self.to("cpu", memory_format=memory_format)


@_method
def cuda(self: Tensor, device=None, non_blocking: bool = False, memory_format=None) -> Tensor:
    """Copies the tensor to a GPU of the engine, by default the current one."""
    device = _C.device("cuda" if device is None else device)
    return self.to(device, non_blocking=non_blocking, memory_format=memory_format)


@_method
def to(
    self: Tensor, *args, dtype=None, device=None, other=None, non_blocking=False, copy=False, memory_format=None
) -> Tensor:
    """``to(dtype)``, ``to(device)``, ``to(device, dtype)`` or ``to(other)``. Returns self if nothing changes.

    ``non_blocking`` has no effect, since no copy waits.
    """
    if len(args) == 1 and type(args[0]) is _C.dtype and dtype is device is other is memory_format is None:
        if non_blocking is copy is False:  # the frequent call, without the checks of the others
            return self if args[0] is self.dtype else _C.ops.to_dtype(self, args[0])
    check_flags("to", non_blocking=non_blocking, copy=copy)
    check_memory_format("to", memory_format)
    if other is not None:
        args = (other, *args)
    flags = [arg for arg in args if isinstance(arg, bool)]  # non_blocking and copy, if passed by position
    copy = copy or flags[1:] == [True]
    for arg in args:
        if isinstance(arg, _C.dtype) or any(arg is kind for kind in (float, int, bool, complex)):
            dtype = arg
        elif isinstance(arg, (str, _C.device)):
            device = arg
        elif isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, bool):
            continue
        elif isinstance(arg, int):
            device = arg
        elif arg is not None:
            raise TypeError(f"to() received an invalid combination of arguments, got {type(arg).__name__}")
    result = self
    if device is not None and (device := _C.placed(device)) != self.device:
        result = _C.ops.to_device(result, device)
    if dtype is not None and dtype is not result.dtype:
        result = _C.ops.to_dtype(result, dtype)
    keeps = memory_format is None or memory_format == "torch.preserve_format"
    if not keeps and not result.is_contiguous(memory_format=memory_format):
        result = _C.ops.contiguous(result, memory_format=memory_format)
    elif not keeps and memory_format != "torch.contiguous_format" and result.is_contiguous() and result.numel():
        # Sizes of 1 allow both formats. As in PyTorch, the strides become those of the requested one.
        if (result.stride(1), result.stride(-1)) != (1, result.shape[1]):
            result = _C.ops.clone(result, memory_format=memory_format)
    return _C.ops.clone(result) if copy and result is self else result


to.__overloads__ = tuple(
    f"{first}non_blocking=False, copy=False, *, memory_format=None" for first in ("dtype, ", "device=None, dtype=None, ", "other, ")
)


def _type(self: Tensor, dtype=None, non_blocking: bool = False):
    """Without arguments, returns the type's name. Otherwise casts the tensor to a dtype or to a legacy tensor type."""
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, _C.dtype):
        return self.to(dtype=dtype, non_blocking=non_blocking)
    if not isinstance(dtype, (str, type)):
        raise TypeError("dtype must be a type, str, or dtype object")
    if dtype is Tensor:  # torch.Tensor stands for the tensor type of the default dtype
        return self.to(dtype=_C.default_dtype(), device="cpu")
    if not isinstance(dtype, str) and not hasattr(dtype, "kind"):
        raise ValueError(f"invalid type: {dtype.__name__!r}")
    dtype, kind = dtype_and_kind(dtype) if isinstance(dtype, str) else (dtype.dtype, dtype.kind)
    return self.to(dtype=dtype, device=self.device if self.device.type == kind else kind)


_METHODS["type"] = _type


def _cast_method(name: str, dtype) -> Callable:
    def cast(self: Tensor, memory_format=None) -> Tensor:
        return self.to(dtype) if memory_format is None else self.to(dtype, memory_format=memory_format)

    cast.__name__ = name
    cast.__doc__ = f"Casts the tensor to {dtype}."
    return cast


for _name, _dtype in {
    "float": _C.float32, "double": _C.float64, "half": _C.float16, "bfloat16": _C.bfloat16, "byte": _C.uint8,
    "char": _C.int8, "short": _C.int16, "int": _C.int32, "long": _C.int64, "bool": _C.bool,
    "cfloat": _C.complex64, "cdouble": _C.complex128,
}.items():  # fmt: skip
    _METHODS[_name] = _cast_method(_name, _dtype)


@_method
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Casts the tensor to the other tensor's dtype, and moves it to the other tensor's device."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    return self.to(device=other.device, dtype=other.dtype)


@_method
def copy_(self: Tensor, other, non_blocking: bool = False) -> Tensor:
    """Overwrites the values with ``other``, broadcast and cast. ``non_blocking`` has no effect, since no copy waits."""
    check_flags("copy_", non_blocking=non_blocking)
    if not isinstance(other, Tensor):
        other = _C.tensor(other, dtype=self.dtype)
    if other.dim() > self.dim():  # x[index] = y uses assign() directly, and accepts them
        both = _C.torch.empty(self.shape, device="meta") + _C.torch.empty(other.shape, device="meta")
        raise RuntimeError(f"[copy_] output with shape {list(self.shape)} doesn't match the broadcast shape {list(both.shape)}")
    return _C.ops.assign(self, other.to(self.device), out=self)


@_method
def fill_(self: Tensor, value) -> Tensor:
    """Sets every element to a number, or to the value of a 0-dimensional tensor, cast to the dtype."""
    if not isinstance(value, Tensor):
        return _C.ops.fill(self, value, out=self)
    if value.dim():
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions.")
    return self.copy_(value)


@_method
def zero_(self: Tensor) -> Tensor:
    """Sets every element to 0."""
    return _C.ops.fill(self, 0, out=self)


@_method
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Sets whether gradients are computed for the tensor, and returns it."""
    self.requires_grad = requires_grad
    return self


@_method
@by_layout
def detach_(self: Tensor) -> Tensor:
    """Detaches the tensor from its graph, in place. It keeps its gradient."""
    grad = self.grad if self.is_leaf or self.retains_grad else None
    _C.detach_in_place(self)
    if grad is not None:
        self.grad = grad
    return self


@_method
def _is_view(self: Tensor) -> bool:
    """Whether the tensor is a view of another one for autograd: whether it has a ``_base``."""
    return self._base is not None


@_method
@by_layout
def retain_grad(self: Tensor) -> None:
    """Makes backward passes store ``.grad`` for this tensor although it is not a leaf."""
    _C.retain_grad(self)
    if not self.is_leaf:
        self.__dict__["_retains_grad"] = True


def _data(self: Tensor) -> Tensor:
    """The values without gradient history. backward() accepts in-place writes to them."""
    result = self.detach()
    if not _C._is_wrapper(result):  # which has no values of its own
        _C.mark_data(result)
    return result


# with_history() of autograd.function, which sets it: a tensor with the storage of the first and the history of the second.
with_history: Callable[[Tensor, Tensor], Tensor] | None = None


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if self.is_leaf:
        _C.replace_data(self, value)
        return
    kept = self.retains_grad
    _C.become(self, with_history(value, self))
    if kept:
        self.retain_grad()


@_method
def new_tensor(self: Tensor, data, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Creates a tensor from data, by default with this tensor's dtype and device."""
    check_flags("new_tensor", pin_memory=pin_memory)
    device = self.device if device is None else device
    try:
        return _C.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)
    except (TypeError, ValueError) as error:
        from . import _data_errors

        raise _data_errors.replaced(data, False, error) from error.__cause__


def _new(name: str) -> Callable:
    function = getattr(_C.torch, name)

    def new(
        self: Tensor, *args, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **sizes
    ) -> Tensor:
        check_flags(f"new_{name}", pin_memory=pin_memory)
        device = self.device if device is None else device
        layout = self.layout if layout is None else layout
        if layout != strided:
            sizes["layout"] = layout
        return function(*args, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad, **sizes)

    keywords = "*, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
    first = "size, fill_value" if name == "full" else "size"
    new.__overloads__ = (f"{first}, {keywords}", *([] if name == "full" else [f"*size: int, {keywords.removeprefix('*, ')}"]))
    new.__name__ = f"new_{name}"
    new.__doc__ = f"{name}() with this tensor's dtype and device by default."
    return new


for _name in ("empty", "zeros", "ones", "full"):
    _METHODS[f"new_{_name}"] = _new(_name)


@_method
def new_empty_strided(self: Tensor, size, stride, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """Creates an uninitialised tensor of given sizes and strides, by default with this tensor's dtype and device."""
    check_layout("new_empty_strided", layout)
    check_flags("new_empty_strided", pin_memory=pin_memory)
    device = self.device if device is None else device
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


@_method
def is_pinned(self: Tensor, device=None) -> bool:
    """Always False: the client holds no bytes to pin."""
    if device is not None:
        _C.device(device)  # raises if the name is invalid
    return False


@_method
def pin_memory(self: Tensor, device=None) -> Tensor:
    """Returns the tensor itself: the client holds no bytes to pin. The engine's own transfers use pinned memory."""
    if device is not None:
        _C.device(device)  # raises if the name is invalid
    return self


@_method
def share_memory_(self: Tensor) -> Tensor:
    """Returns the tensor itself: the bytes are in the engine, not in this process."""
    return self


@_method
def data_ptr(self: Tensor) -> Address | int:
    """A number that identifies the location of the first element; for ctypes, the address of a read-only copy.

    0 if the tensor has no elements.
    """
    return _address.data_ptr(self)


@_method
def const_data_ptr(self: Tensor) -> Address | int:
    """data_ptr()."""
    return self.data_ptr()


@_method
def untyped_storage(self: Tensor) -> _storage.UntypedStorage:
    """The bytes shared by the tensor and its views."""
    return _storage.UntypedStorage._of(self)


@_method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors have the same storage, offset, sizes and strides."""
    same = self.untyped_storage() == tensor.untyped_storage() and self.storage_offset() == tensor.storage_offset()
    return same and self.shape == tensor.shape and self.stride() == tensor.stride()


def _cuda_array_interface(self: Tensor):
    """Raises AttributeError, so that hasattr() is False: a GPU address is meaningless in this process."""
    raise AttributeError(_storage.no_address_error("Tensor.__cuda_array_interface__"))


@_method
def get_device(self: Tensor) -> int:
    """Returns the index of the GPU or other accelerator, or -1 for a tensor on the CPU."""
    return -1 if self.device.index is None else self.device.index


@_method
def __array_namespace__(self: Tensor, /, *, api_version: str | None = None):
    """Returns teletensor.array_api if it supports the requested version."""
    from . import array_api

    if api_version is not None and api_version > array_api.__array_api_version__:
        raise ValueError(f"expected an array API version up to {array_api.__array_api_version__}, got {api_version}")
    return array_api


_METHODS["__dlpack__"], _METHODS["__dlpack_device__"] = _dlpack.dlpack, _dlpack.dlpack_device

for _name, _value in _METHODS.items():
    setattr(Tensor, _name, _value)
Tensor.data = property(_data, _set_data)
Tensor.__cuda_array_interface__ = property(_cuda_array_interface)
Tensor.names = property(lambda self: (None,) * self.dim())
Tensor._cdata = property(id, doc="A number that no other tensor object has while this one exists. It is not an address of values.")
Tensor.itemsize = property(lambda self: self.dtype.itemsize)
Tensor.nbytes = property(lambda self: self.numel() * self.dtype.itemsize)
Tensor.is_sparse = False
Tensor.is_quantized = False
Tensor.__array_priority__ = 1000
Tensor.__rdiv__ = lambda self, other: self.reciprocal() * other  # Python 2's name
Tensor.__module__ = "teletensor"

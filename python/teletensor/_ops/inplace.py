"""Tensor methods that replace a tensor's view, sizes or storage in place, and methods under older names.

An in-place view operation gives the Python object another handle. Other Python objects with the previous handle are
unaffected.
"""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Callable

from .. import _C
from .._C import Tensor
from .._grad_mode import enable_grad
from .._layouts import by_layout
from .._options import check_kind, check_memory_format, check_optional_flags
from .._storage import UntypedStorage, contiguous_strides, is_storage, tensor_of
from .._tensor_types import check_legacy_device, shared
from ..storage import TypedStorage

_METHODS: dict[str, Callable] = {}


def _method(function: Callable) -> Callable:
    _METHODS[function.__name__] = function
    return function


def _view_in_place(name: str) -> Callable:
    function = getattr(Tensor, name)

    def view(self: Tensor, *args, **kwargs) -> Tensor:
        if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
            with contextlib.suppress(IndexError, RuntimeError):  # TypeErrors come first
                function(self, *args, **kwargs)
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        grad = self.grad if self.is_leaf or self.retains_grad else None
        if self.is_leaf and self.requires_grad:  # outside of grad mode
            if _C.is_leaf_in_use(self):
                raise NotImplementedError(
                    f"[{name}_] a leaf that requires grad has hooks, or an earlier result depends on it, whose gradients would be lost: "
                    f"call {name}_() before, or use the result of {name}()"
                )
            _C.replace_data(self, function(self, *args, **kwargs))
        elif self.requires_grad:  # it keeps its history also outside of grad mode
            retains = self.retains_grad
            with enable_grad():
                _C.become(self, function(self, *args, **kwargs))
            if retains:
                self.retain_grad()
        else:
            _C.become(self, function(self, *args, **kwargs))
        if grad is not None:
            self.grad = grad.reshape(self.shape) if name == "as_strided" else function(grad, *args, **kwargs)
        return self

    functools.update_wrapper(view, function)
    view.__name__, view.__doc__ = f"{name}_", f"{name}, in place."
    return view


for _name in ("squeeze", "unsqueeze", "transpose", "t", "swapaxes", "swapdims", "as_strided"):
    if hasattr(Tensor, _name):
        _METHODS[f"{_name}_"] = _view_in_place(_name)


def _check_resizable(self: Tensor) -> None:
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")


_CHANNELS_LAST = {4: ("torch.channels_last", (1, 3, 2, 0)), 5: ("torch.channels_last_3d", (1, 4, 3, 2, 0))}  # last dimension first


def _dense_strides(sizes: list[int], memory_format) -> list[int]:
    """The strides of an empty tensor of these sizes. Raises RuntimeError if they do not fit the format."""
    if memory_format in (None, "torch.contiguous_format"):
        return contiguous_strides(sizes)
    if memory_format == "torch.preserve_format":
        raise RuntimeError("[resize_] unsupported memory format Preserve")
    rank = next(rank for rank, (name, _) in _CHANNELS_LAST.items() if name == memory_format)
    if len(sizes) != rank:
        raise RuntimeError(f"[resize_] required rank {rank} tensor to use {memory_format.removeprefix('torch.')} format")
    strides, step = [0] * rank, 1
    for d in _CHANNELS_LAST[rank][1]:
        strides[d] = step
        step *= sizes[d]
    return strides


def _suggested_format(tensor: Tensor) -> str:
    """The format whose order of dimensions the strides have; row-major if they do not decide between two."""
    name, order = _CHANNELS_LAST.get(tensor.dim(), ("", ()))
    sizes, strides = tensor.shape, tensor.stride()
    least = 0
    for d in order:
        if sizes[d] == 0 or strides[d] < max(least, d == 1) or (d == 0 and least == strides[1]):
            return "torch.contiguous_format"
        least = strides[d] * max(sizes[d], 1)
    return name or "torch.contiguous_format"


@_method
def resize_(self: Tensor, *sizes, size=None, memory_format=None) -> Tensor:
    """Changes the sizes. The elements are those of the storage from the tensor's first one on, in the order of the format;
    elements beyond the end of the storage are uninitialised.

    Without a format, the same sizes change nothing. If the storage is too small, the tensor gets a new one and its views
    keep the old one.
    """
    sizes = sizes if size is None else (*sizes, size)
    if not sizes:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    sizes = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    _check_resizable(self)
    check_memory_format("resize_", memory_format)
    if min(sizes, default=0) < 0:
        raise RuntimeError(f"[resize_] expected sizes that are not negative, got {sizes}")
    strides = _dense_strides(sizes, memory_format)
    if memory_format is None and sizes == list(self.shape):
        return self
    offset, count, item = self.storage_offset(), math.prod(sizes), self.dtype.itemsize
    base = self
    if count and (offset + count) * item > self._storage[1]:
        base = _C.torch.empty(offset + count, dtype=self.dtype, device=self.device)
        kept = self._storage[1] // item
        if kept:
            base[:kept] = self.as_strided((kept,), (1,), 0)
    _C.become(self, base.as_strided(sizes, strides, offset).detach())
    return self


resize_.__overloads__ = ("size, *, memory_format=None", "*size: int, memory_format=None")


@_method
def resize(self: Tensor, *sizes) -> Tensor:
    """The old name of reshape."""
    sizes = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    if math.prod(sizes) != self.numel():
        raise RuntimeError(f"requested resize to {sizes}, but the given tensor has a size of {list(self.shape)}")
    return self.reshape(sizes)


@_method
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format=None) -> Tensor:
    """resize_ to the other tensor's sizes; torch.preserve_format stands for the other tensor's format."""
    check_memory_format("resize_as_", memory_format)
    if memory_format == "torch.preserve_format":
        memory_format = _suggested_format(the_template)
    return self.resize_(list(the_template.shape), memory_format=memory_format)


@_method
def set_(self: Tensor, source=None, storage_offset: int = 0, size=None, stride=None) -> Tensor:
    """Makes the tensor share the source's storage; without a source, makes it an empty tensor.

    Args:
        source: a tensor of the same dtype, a TypedStorage of the same dtype, or an UntypedStorage.
    """
    if source is None:
        source = _C.torch.empty(0, dtype=self.dtype, device=self.device)
    if not hasattr(source, "untyped_storage") and not isinstance(source, UntypedStorage) and not hasattr(source, "_untyped_storage"):
        raise TypeError(f"[set_] expected source to be a tensor or a storage, got {type(source).__name__}")
    if isinstance(source, Tensor) and size is None and (storage_offset != 0 or stride is not None):
        raise TypeError("[set_] expected size together with storage_offset and stride")
    if getattr(source, "dtype", self.dtype) is not self.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}")
    if source.device != self.device:
        raise RuntimeError(
            f"Attempted to set the storage of a tensor on device {self.device} to a storage on different device {source.device}"
        )
    if not isinstance(source, Tensor):
        untyped = getattr(source, "_untyped_storage", source)
        check_kind("set_", "source", untyped, UntypedStorage)
        source = untyped._as(self.dtype, storage_offset, size, stride)
    elif size is not None:
        strides = stride if stride is not None else _C.torch.empty(*size, device="meta").stride()
        source = source.as_strided(list(size), list(strides), storage_offset)
    if self.requires_grad and self.is_leaf:
        _C.replace_data(self, source.detach())  # stays a leaf that requires grad
    else:
        _C.become(self, source.detach())
    return self


@_method
def new(self: Tensor, *args, device=None, **named) -> Tensor:
    """Creates a tensor with this tensor's dtype and device, uninitialised if sizes are given, otherwise from data.

    ``other`` or ``size`` may be given by name. A tensor of this dtype on this type of device shares its memory with the result.

    Raises:
        RuntimeError: `device` is of another type, or given with a tensor.
        TypeError: a tensor of another dtype or on another type of device is given, or arguments that are no sizes.
    """
    if named:
        if args or len(named) > 1 or not named.keys() <= {"other", "size"}:
            raise TypeError(f"new() received an invalid combination of arguments, got {len(args)} by position and {', '.join(named)}")
        if "other" in named:
            check_kind("new", "other", named["other"], Tensor)
        args = (_C.Size(named["size"]) if "size" in named else named["other"],)
    if len(args) == 1 and isinstance(args[0], Tensor):
        if device is not None:
            raise RuntimeError(
                "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use torch.as_tensor(...) instead."
            )
        return shared(args[0], self.dtype, self.device.type)
    check_legacy_device(self.device.type, device)
    device = self.device if device is None else device
    if len(args) > 1 and not all(isinstance(a, int) for a in args):
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({kinds}), but expected sizes, or data")
    if all(isinstance(a, int) for a in args):
        return _C.torch.empty(args or (0,), dtype=self.dtype, device=device)
    if len(args) == 1 and isinstance(args[0], _C.Size):
        return _C.torch.empty(tuple(args[0]), dtype=self.dtype, device=device)
    if is_storage(args[0]):
        return tensor_of(args[0], self.dtype)  # shares its bytes
    return _C.tensor(args[0], dtype=self.dtype, device=device)


@_method
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """Same as functional.prelu."""
    return _C.functional.prelu(self, weight)


@_method
def where(self: Tensor, condition: Tensor, other) -> Tensor:
    """This tensor's elements where condition is True, other's elsewhere."""
    return _C.torch.where(condition, self, other)


@_method
def fliplr(self: Tensor) -> Tensor:
    """Reverses the tensor along dimension 1."""
    if self.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return self.flip(1)


def _cumulative(name: str) -> Callable:
    function = getattr(Tensor, name)

    def cumulative(self: Tensor, dim: int, *, dtype=None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            raise RuntimeError(f"[{name}] expected dtype to be the tensor's, {self.dtype}, in place, got {dtype}")
        return function(self, dim)

    functools.update_wrapper(cumulative, function)
    return cumulative


for _name in ("cumsum_", "cumprod_"):
    _METHODS[_name] = _cumulative(_name)


@_method
def flipud(self: Tensor) -> Tensor:
    """Reverses the tensor along dimension 0."""
    if self.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return self.flip(0)


@_method
def storage(self: Tensor):
    """The storage shared by the tensor and its views, as a TypedStorage."""
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@_method
def _typed_storage(self: Tensor):
    """Same as storage()."""
    return self.storage()


@_method
@by_layout
def to_dense(self: Tensor, dtype=None, *, masked_grad: bool | None = None) -> Tensor:
    """Returns the tensor itself: every tensor is dense. ``masked_grad`` applies to sparse tensors only."""
    check_optional_flags("to_dense", masked_grad=masked_grad)
    return self if dtype is None else self.to(dtype)


@_method
def record_stream(self: Tensor, s) -> None:
    """Only checks the stream's type: the engine tracks which memory its streams use."""
    from ..cuda.streams import Stream

    check_kind("record_stream", "s", s, Stream)


@_method
def apply_(self: Tensor, callable: Callable) -> Tensor:
    """Applies a Python function to each element, in place. Waits for the engine."""
    values = [callable(v) for v in self.reshape(-1).tolist()]
    return self.copy_(_C.tensor(values, dtype=self.dtype, device=self.device).reshape(self.shape))


@_method
def is_complex(self: Tensor) -> bool:
    """Whether the tensor's dtype is complex."""
    return self.dtype.is_complex


@_method
def is_shared(self: Tensor) -> bool:
    """Always True: the bytes are in the engine, not in this process."""
    return True


@_method
def map_(self: Tensor, other: Tensor, callable: Callable) -> Tensor:
    """Applies a Python function to each pair of elements, in place. Waits for the engine."""
    check_kind("map_", "other", other, Tensor)
    pairs = zip(self.reshape(-1).tolist(), other.expand_as(self).reshape(-1).tolist())
    values = [callable(a, b) for a, b in pairs]
    return self.copy_(_C.tensor(values, dtype=self.dtype, device=self.device).reshape(self.shape))


def _overwriting(name: str) -> Callable:
    function = getattr(Tensor, name)

    def method(self: Tensor, *args, **kwargs) -> Tensor:
        return self.copy_(function(self, *args, **kwargs))

    functools.update_wrapper(method, function)
    method.__name__, method.__doc__ = f"{name}_", f"{name}, in place: writes 1 for true and 0 for false."
    return method


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not"):
    _METHODS[f"{_name}_"] = _overwriting(_name)
for _name, _function in _METHODS.items():
    setattr(Tensor, _name, _function)
for _name, _other in {"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne"}.items():
    setattr(Tensor, f"{_name}_", getattr(Tensor, f"{_other}_"))


def _in_place_function(name: str) -> Callable:
    method = getattr(Tensor, name)

    def function(input: Tensor, *args, **kwargs) -> Tensor:
        # Layouts that are composed of tensors have methods of their own.
        own = getattr(type(input), name) if isinstance(input, Tensor) and _C._is_wrapper(input) else method
        return own(input, *args, **kwargs)

    functools.update_wrapper(function, method)
    function.__name__, function.__doc__ = name, f"Tensor.{name}."
    return function


# In-place methods that are also exported as torch.<name>_.
_EXPORTED = (
    "abs_", "acos_", "acosh_", "addmv_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_", "arctanh_", "as_strided_",
    "asin_", "asinh_", "atan_", "atanh_", "ceil_", "clamp_", "clamp_max_", "clamp_min_", "clip_", "conj_physical_", "cos_",
    "cosh_", "deg2rad_", "detach_", "erf_", "erfc_", "exp2_", "exp_", "expm1_", "fill_", "fix_", "floor_", "frac_", "gcd_",
    "i0_", "index_put_", "lcm_", "ldexp_", "log10_", "log1p_", "log2_", "log_", "logit_", "nan_to_num_", "neg_", "negative_",
    "rad2deg_", "reciprocal_", "relu_", "resize_as_", "round_", "rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_",
    "square_", "tan_", "tanh_", "trunc_", "xlogy_", "zero_",
)  # fmt: skip

def in_place_functions() -> dict[str, Callable]:
    """The functions by name, when all methods are defined."""
    names = (*_EXPORTED, "fliplr", "flipud")
    return {name: _in_place_function(name) for name in names if hasattr(Tensor, name)}

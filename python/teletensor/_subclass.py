"""Subclasses of Tensor: how they are created, and what their operations return."""

from __future__ import annotations

from typing import Any

from . import _C
from ._C import Tensor
from ._options import check_flags, check_layout, check_memory_format

# Functions whose results Tensor.__torch_function__ does not convert: gradients and bases keep their own class.
kept_results: set = set()


def _convert(result: Any, cls: type) -> Any:
    """The tensors in a result as objects of the class."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)(_convert(item, cls) for item in result)
    return result


def _torch_function(cls, func, types, args=(), kwargs=None):
    """Calls ``func`` and returns its tensors as objects of the subclass; NotImplemented for types of other classes."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if cls is Tensor or func in kept_results else _convert(result, cls)


def as_subclass(self: Tensor, cls: type) -> Tensor:
    """The same tensor as an object of a subclass of Tensor, with its gradient history."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass(): argument 'cls' must be a subclass of Tensor, got {cls!r}")
    return Tensor.__new__(cls, self)


def _make_wrapper_subclass(
    cls: type, size: Any, *, strides: Any = None, storage_offset: int | None = None, memory_format: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None, dispatch_device: bool = False, dispatch_layout: bool = False,
) -> Tensor:  # fmt: skip
    """Creates a tensor of a subclass without values, whose ``__torch_dispatch__`` handles all operators.

    Args:
        cls: the subclass; it must define ``__torch_dispatch__``.
        size: the sizes that the tensor reports.
        strides: the strides that it reports, by default those of a contiguous tensor.
        storage_offset: the offset that it reports, by default 0.
        dtype: the dtype that it reports, by default the default dtype.
        device: the device that it reports, by default the default device.

    Raises:
        NotImplementedError: ``requires_grad`` (the engine records gradients for the tensors inside), or sizes, strides, a
            device or a layout that methods of the subclass compute.
        RuntimeError: the class does not define ``__torch_dispatch__``.
    """
    check_layout("_make_wrapper_subclass", layout)
    check_memory_format("_make_wrapper_subclass", memory_format)
    check_flags("_make_wrapper_subclass", pin_memory=pin_memory)
    if getattr(cls, "__torch_dispatch__", None) is _C._disabled_torch_dispatch_impl:
        raise RuntimeError(f"{cls.__name__} must define __torch_dispatch__")
    if requires_grad:
        raise NotImplementedError(
            "[_make_wrapper_subclass] requires_grad=True: gradients are recorded in the engine, for the tensors inside the "
            "wrapper; make those require gradients"
        )
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        raise NotImplementedError(
            "[_make_wrapper_subclass] sizes, strides, device and layout cannot be computed by the subclass"
        )
    device = _C.default_device() if device is None else device
    return _C._make_wrapper(cls, size, strides, storage_offset or 0, dtype or _C.default_dtype(), device)


def install() -> None:
    """Adds the methods to Tensor, after its other methods are complete."""
    Tensor.__torch_function__ = classmethod(_torch_function)
    Tensor.__torch_dispatch__ = _C._disabled_torch_dispatch_impl
    Tensor.as_subclass = as_subclass
    Tensor._make_subclass = staticmethod(_C._make_subclass)
    Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
    kept_results.update((Tensor.grad.__get__, Tensor._base.__get__))

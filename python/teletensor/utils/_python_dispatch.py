"""torch.utils._python_dispatch: modes that receive operator calls, and helpers for tensor subclasses.

The level at which handlers run is described in teletensor/_library/dispatch.py and docs/differences.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._C import Tensor

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing",
           "transform_subclass"]  # fmt: skip


class TorchDispatchMode:
    """Receives all operator calls within a ``with`` statement: ``__torch_dispatch__(func, types, args, kwargs)``.

    ``func`` is an overload of torch.ops.aten. The mode is inactive while its handler runs. The operators of a backward pass
    run in the engine and are not received, so backward() raises NotImplementedError while a mode is active.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("[TorchDispatchMode] modes of a dispatch key are not implemented")

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _push_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """Creates a mode; the former spelling of ``with Mode():``."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to the implementation: never."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls each operator unchanged."""

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


_push_mode = _C._push_on_torch_dispatch_stack
_pop_mode = _C._pop_torch_dispatch_stack


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a dispatch mode is active in this thread. No mode is the implementation's, so the argument has no effect."""
    del include_infra_modes
    return _C._len_torch_dispatch_stack() > 0


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a dispatch mode is active in this thread."""
    return _C._len_torch_dispatch_stack() > 0


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The dispatch modes of this thread, the outermost first."""
    return [_C._get_dispatch_stack_at(i) for i in range(_C._len_torch_dispatch_stack())]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost dispatch mode of this thread."""
    return (_get_current_dispatch_mode_stack() or [None])[-1]


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchDispatchMode]:
    """Deactivates the innermost dispatch mode, which it returns."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Deactivates all dispatch modes of this thread, which it returns, the innermost first."""
    modes = [_pop_mode() for _ in range(_C._len_torch_dispatch_stack())]
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether the object is a tensor of a subclass with ``__tensor_flatten__`` and ``__tensor_unflatten__``."""
    return isinstance(t, Tensor) and type(t) is not Tensor and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Same, for a type."""
    return issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(t: Any, callback: Callable[[str, Tensor], Tensor], outer_size: Any = None, outer_stride: Any = None) -> Any:
    """Returns a tensor like ``t`` with ``callback(name, tensor)`` in place of each of its inner tensors.

    Args:
        outer_size: the size of the result, by default that of ``t``.
        outer_stride: the strides of the result, by default those of ``t``.
    """
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: dict | None, out: Any) -> Any:
    """Returns the result of a wrapper subclass's handler: the tensors that ``func`` writes, else ``out``.

    Results that are views keep the storage of their inner tensors; a wrapper has no storage that could be shared.
    """
    written = [a for a in func._schema.arguments if a.is_write]
    if not written:
        return out
    values = dict(zip((a.name for a in func._schema.arguments), args)) | (kwargs or {})
    returned = [values[a.name] for a in written if a.name in values]
    return returned[0] if len(returned) == 1 and not isinstance(out, (tuple, list)) else type(out)(returned)

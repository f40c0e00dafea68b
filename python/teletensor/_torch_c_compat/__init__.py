"""Private names of torch._C that libraries use, found by attribute access on teletensor._C and by imports of torch._C.x.

`_nn`, `_fft`, `_linalg` and `_special` are modules of functions, `_functorch` describes the tensors of torch.func, `_profiler` has the
ranges of generated code. Functions
that switch TorchScript's optimizations or record statistics do nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import _C, _grad_mode
from .._generator import Generator  # noqa: F401

_MODULES = ("_fft", "_functorch", "_linalg", "_nn", "_profiler", "_special")
_LIBRARY = {
    "_AutoDispatchBelowAutograd": ("operators", "BelowAutograd"), "DispatchKey": ("dispatch_keys", "DispatchKey"),
    "DispatchKeySet": ("dispatch_keys", "DispatchKeySet"), "_ExcludeDispatchKeyGuard": ("dispatch_keys", "ExcludeDispatchKeyGuard"),
}  # fmt: skip
_GRAPHS = {
    **dict.fromkeys(("Graph", "Node", "Use", "Value"), "jit._graph"), "TracingState": "_tracing_state", "Type": "jit._graph_types",
    **dict.fromkeys((
        "AnyType", "BoolType", "ComplexType", "DeviceObjType", "FloatType", "IntType", "ListType", "NoneType", "StringType", "TensorType",
        "TupleType",
    ), "jit._graph_types"),
    "_get_tracing_state": "_tracing_state", "_is_tracing": "_tracing_state",
}  # fmt: skip
_TensorMeta = type(_C.Tensor)
_LinAlgError = _C.LinAlgError


def _log_api_usage_once(event: str) -> None:
    """Does nothing: no statistics are recorded."""


def _set_grad_enabled(arg: bool) -> None:
    """Sets whether the calling thread records operations for gradients; recorded graphs call it."""
    _grad_mode._set_grad_enabled(arg)


def _get_default_device() -> str:
    """The name of the default device."""
    return str(_C.default_device())


def _get_accelerator() -> _C.device:
    """The device type of the engine's GPUs, or the CPU's without GPUs."""
    from .. import accelerator

    return accelerator.current_accelerator() or _C.device("cpu")


def _are_functorch_transforms_active() -> bool:
    """Whether a function transform of torch.func, such as vmap or grad, is running."""
    from .._transforms import running

    return bool(running.levels) or running.derivatives > 0


def _is_alias_of(tensor: _C.Tensor, other: _C.Tensor) -> bool:
    """Whether two tensors have the same storage."""
    return tensor.untyped_storage() == other.untyped_storage()


def _cuda_clearCublasWorkspaces() -> None:  # noqa: N802 - PyTorch's name
    """Does nothing: workspaces are the engine's."""


def _cuda_isInBadFork() -> bool:  # noqa: N802 - PyTorch's name
    """Always False: no CUDA context exists in this process."""
    return False


def _get_privateuse1_backend_name() -> str:
    """The name of the first type of devices of a device library."""
    from .._plugin_devices import backend_name

    return backend_name()


def _jit_setting(*args: Any, **kwargs: Any) -> None:
    """Does nothing: there is no TorchScript."""


_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_setting
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_texpr_fuser_enabled = _jit_setting
_jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _jit_set_fusion_strategy = _jit_setting


def _jit_can_fuse_on_cpu() -> bool:
    """Always False: there is no TorchScript."""
    return False


_jit_can_fuse_on_gpu = _jit_can_fuse_on_cpu


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _GRAPHS:
        return getattr(importlib.import_module(f"teletensor.{_GRAPHS[name]}"), name)
    if name in _LIBRARY:
        module, original = _LIBRARY[name]
        return getattr(importlib.import_module(f"teletensor._library.{module}"), original)
    raise AttributeError(f"module 'teletensor._C' has no attribute {name!r}")

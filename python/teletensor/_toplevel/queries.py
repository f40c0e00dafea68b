"""Properties of tensors and of the installation, as functions."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _C
from .._C import Tensor
from .._options import check_kind


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not zero. Waits for the engine."""
    return bool(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same sizes."""
    check_kind("is_same_size", "other", other, Tensor)
    return input.shape == other.shape


def is_signed(input: Tensor) -> bool:
    """Whether the dtype can represent negative numbers."""
    return input.dtype.is_signed


def is_inference(input: Tensor) -> bool:
    """Returns False: results of inference_mode are ordinary tensors (docs/differences.md)."""
    return False


def is_distributed(input: Tensor) -> bool:
    """Returns False, as PyTorch does."""
    return False


def get_device(input: Tensor) -> int:
    """The index of a tensor's GPU, -1 for a tensor on a CPU."""
    return input.get_device()


def typename(obj: Any, /) -> str:
    """The full name of an object's type; of a class or function, its own full name."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    module = getattr(obj, "__module__", "") or "" if named is obj else named.__module__ or ""
    name = getattr(named, "__qualname__", None) or named.__name__
    module = "torch" if module == "teletensor" else module.replace("teletensor.", "torch.", 1)
    return name if module in ("", "builtins") else f"{module}.{name}"


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device type, such as torch.cuda; by default of the accelerator, else of the CPU."""
    from .. import cpu, cuda, mps, mtia, xpu

    if device is None:
        name = "cuda" if cuda.is_available() else "cpu"
    elif isinstance(device, (str, _C.device)):
        name = _C.device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    module = {"cpu": cpu, "cuda": cuda, "mps": mps, "mtia": mtia, "xpu": xpu}.get(name)
    if module is None:
        raise RuntimeError(f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'.")
    return module

"""torch.nn: neural networks over tensors in an engine."""

from __future__ import annotations

from .._lazy import lazy_attributes
from . import common_types, functional, init, utils
from .modules import *  # noqa: F403
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

_FACTORY_KEYS = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict | None) -> dict:
    """Returns the keyword arguments of a module that are for factory functions: device, dtype and memory_format.

    They are given directly or in a dict ``factory_kwargs``; other arguments raise TypeError.
    """
    kwargs = kwargs or {}
    unexpected = kwargs.keys() - {*_FACTORY_KEYS, "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in _FACTORY_KEYS:
        if key in kwargs:
            if key in result:
                raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
            result[key] = kwargs[key]
    return result


__all__ = [  # noqa: F405, F822 - some are imported at their first use
    "Buffer", "DataParallel", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter", "factory_kwargs",
    "functional", "init", "parallel", "utils",
]  # fmt: skip

_MODULES = ("attention", "grad", "intrinsic", "parallel", "qat", "quantizable", "quantized")
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES, {"parallel": "DataParallel"})

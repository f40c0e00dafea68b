"""torch.nn: neural networks over tensors in an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_attributes
from ._names import CLASSES

if TYPE_CHECKING:  # for static type checkers
    from ._factory_kwargs import factory_kwargs
    from .modules import *  # noqa: F403
    from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {f"modules.{module}": names for module, names in CLASSES.items()} | {
    "_factory_kwargs": "factory_kwargs",
    "parallel.data_parallel": "DataParallel",
    "parameter": "Buffer Parameter UninitializedBuffer UninitializedParameter",
}
__all__ = [  # noqa: F405, F822 - imported at their first use
    "attention", "common_types", "functional", "grad", "init", "intrinsic", "modules", "parallel", "parameter", "qat", "quantizable",
    "quantized", "utils",
]  # fmt: skip
__all__ += sorted(name for names in _NAMES.values() for name in names.split())
__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)

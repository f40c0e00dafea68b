"""torch.backends: settings of libraries. Most have no effect because the engine selects the implementations."""

from __future__ import annotations

import sys
from types import ModuleType

from .._lazy import lazy_attributes
from ._precision import of_module

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack"]  # noqa: F822

__getattr__, __dir__ = lazy_attributes(globals(), __all__)


class _Settings(ModuleType):
    """The module, with a setting that is read and written by functions."""

    fp32_precision = of_module("", "The precision of float32, where libraries and kinds of operators leave it to this setting.")


sys.modules[__name__].__class__ = _Settings

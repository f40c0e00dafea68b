"""torch.backends: settings of libraries. Most have no effect because the engine selects the implementations."""

from __future__ import annotations

from .._lazy import lazy_attributes
from . import cpu, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized, xnnpack

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized", "xnnpack"]  # noqa: F822

__getattr__, __dir__ = lazy_attributes(globals(), ("cuda",))

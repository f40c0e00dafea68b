"""torch.cuda.jiterator: pointwise operators from CUDA source."""

from __future__ import annotations

from .._not_implemented import not_implemented

__all__ = []

not_implemented(globals(), "the engine does not compile source that clients send", "_create_jit_fn _create_multi_output_jit_fn")

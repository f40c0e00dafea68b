"""torch.ao.pruning._mappings: modules that store blocks of zeros in fewer bytes, of which there are none."""

from __future__ import annotations

from ..._not_implemented import not_implemented

__all__ = ["get_dynamic_sparse_quantized_mapping", "get_static_sparse_quantized_mapping"]  # noqa: F822 - defined below

not_implemented(
    globals(), "tensors that store blocks of zeros in fewer bytes do not exist",
    "get_dynamic_sparse_quantized_mapping get_static_sparse_quantized_mapping",
)  # fmt: skip

"""torch.sparse: functions of sparse tensors."""

from __future__ import annotations

from .._sparse.functions import addmm, log_softmax, mm, sampled_addmm, softmax, spdiags, sum
from .._sparse.invariants import as_sparse_gradcheck, check_sparse_tensor_invariants
from .._sparse.legacy import sparse_types
from .semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)

__all__ = [
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "addmm",
    "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum",
    "to_sparse_semi_structured",
]  # fmt: skip

globals().update(sparse_types("cpu"))

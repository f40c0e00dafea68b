"""torch.sparse: functions of sparse tensors."""

from __future__ import annotations

from typing import Any

from .._lazy import lazy_attributes
from .._sparse.legacy import sparse_types

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_sparse.functions": "addmm log_softmax mm sampled_addmm softmax spdiags sum",
    "_sparse.invariants": "as_sparse_gradcheck check_sparse_tensor_invariants",
    "sparse.semi_structured": (
        "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS to_sparse_semi_structured"
    ),
}

__all__ = [  # noqa: F822 - imported at their first use
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "addmm",
    "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum",
    "to_sparse_semi_structured",
]  # fmt: skip

globals().update(sparse_types("cpu"))

_name, __dir__ = lazy_attributes(globals(), (), _NAMES, package="teletensor")
_module, _ = lazy_attributes(globals(), ("semi_structured",))


def __getattr__(name: str) -> Any:
    return _module(name) if name == "semi_structured" else _name(name)

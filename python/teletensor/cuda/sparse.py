"""torch.cuda.sparse: legacy types of sparse tensors on GPUs."""

from __future__ import annotations

from .._sparse.legacy import sparse_types

globals().update(sparse_types("cuda"))

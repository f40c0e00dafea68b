"""torch.cuda.sparse: legacy types of sparse tensors on GPUs."""

from __future__ import annotations

from .._sparse.legacy import sparse_types

__all__ = [  # noqa: F822 - defined below
    "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor",
]  # fmt: skip

globals().update(sparse_types("cuda"))

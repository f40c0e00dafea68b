"""torch.cuda.sparse: legacy types of sparse tensors."""

from __future__ import annotations

from .._not_implemented import not_implemented

not_implemented(
    globals(), "there are no sparse layouts yet",
    classes="BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor",
)  # fmt: skip

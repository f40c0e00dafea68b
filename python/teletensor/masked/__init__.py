"""torch.masked: tensors with a mask, and functions over unmasked elements, i.e. those whose mask is True (docs/masked.md)."""

from __future__ import annotations

from ._creation import as_masked_tensor, masked_tensor
from ._functions import (
    _input_mask, amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp, logsumexp, mean, median, norm, normalize, prod,
    softmax, softmin, std, sum, var,
)  # fmt: skip
from ._tensor import MaskedTensor, is_masked_tensor
from . import _calls as _calls  # noqa: I001 - adds the operators

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip

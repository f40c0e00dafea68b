"""torch.nn.attention.bias: causal masks that scaled_dot_product_attention accepts without storing them."""

from __future__ import annotations

import enum
import warnings

from ... import _C
from ..._C import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The corner of the scores to which the diagonal of a causal mask is aligned."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias:
    """A causal mask of given sizes, for ``attn_mask``. Unlike in PyTorch it is not a tensor."""

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device=None) -> Tensor:
        """The mask as a tensor of bools, True where a query attends to a key."""
        ones = _C.torch.ones(self.seq_len_q, self.seq_len_kv, dtype=_C.bool, device=device)
        return ones.tril(self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0)

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of ``is_causal=True``: query i attends to keys 0 to i."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The last query attends to all keys, and each earlier query to one key fewer."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)

"""PyTorch's attention kernels by name (torch.ops.aten), as calls of the engine's one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor


def _forward(name: str, query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, mask: Any, scale: Any) -> tuple:
    if dropout_p != 0:
        raise NotImplementedError(
            f"[aten::{name}] expected dropout_p to be 0, got {dropout_p}; call torch.nn.functional.scaled_dot_product_attention"
        )
    if mask is not None:
        mask = mask.expand((*query.shape[:-1], key.size(-2)))
    return _C.ops.attention_forward(query, key, value, mask, is_causal, 1 / math.sqrt(query.size(-1)) if scale is None else scale)


def _flash(query: Tensor, key: Tensor, value: Tensor, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None) -> tuple:
    return _with_lengths("_scaled_dot_product_flash_attention", query, key, value, None, dropout_p, is_causal, return_debug_mask, scale)


def _flash_for_cpu(query: Tensor, key: Tensor, value: Tensor, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None) -> tuple:
    return _forward("_scaled_dot_product_flash_attention_for_cpu", query, key, value, dropout_p, is_causal, attn_mask, scale)


def _efficient(
    query: Tensor, key: Tensor, value: Tensor, attn_bias, compute_log_sumexp: bool, dropout_p=0.0, is_causal=False, *, scale=None
) -> tuple:  # fmt: skip
    name = "_scaled_dot_product_efficient_attention"
    result, sums = _forward(name, query, key, value, dropout_p, is_causal, attn_bias, scale)
    state = [query.new_zeros((), dtype=_C.int64) for _ in range(2)]
    return (result, sums if compute_log_sumexp else sums.new_empty((*sums.shape[:-1], 0)), *state)


def _cudnn(
    query: Tensor, key: Tensor, value: Tensor, attn_bias, compute_log_sumexp: bool, dropout_p=0.0, is_causal=False,
    return_debug_mask=False, *, scale=None,
) -> tuple:  # fmt: skip
    del compute_log_sumexp  # it is computed
    name = "_scaled_dot_product_cudnn_attention"
    return _with_lengths(name, query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask, scale)


def _with_lengths(
    name: str, query: Tensor, key: Tensor, value: Tensor, mask, dropout_p: float, is_causal: bool, return_debug_mask: bool, scale
) -> tuple:  # fmt: skip
    """The results of kernels that also take sequences of various lengths: without these, and without the state of dropout."""
    if return_debug_mask:
        raise NotImplementedError(f"[aten::{name}] expected return_debug_mask to be False, got True")
    result, sums = _forward(name, query, key, value, dropout_p, is_causal, mask, scale)
    state = [query.new_zeros((), dtype=_C.int64) for _ in range(2)]
    return (result, sums, None, None, query.size(-2), key.size(-2), *state, query.new_empty(0))


OPERATORS: dict[str, Callable] = {
    "_scaled_dot_product_flash_attention": _flash,
    "_scaled_dot_product_flash_attention_for_cpu": _flash_for_cpu,
    "_scaled_dot_product_efficient_attention": _efficient,
    "_scaled_dot_product_cudnn_attention": _cudnn,
}

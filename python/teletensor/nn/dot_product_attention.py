"""The attention functions of torch.nn.functional."""

from __future__ import annotations

import enum
import math
import sys

from .. import _C
from .._C import Tensor
from .._composites import one_operator

_ops = _C.ops


class SDPBackend(enum.Enum):
    """The implementations of scaled_dot_product_attention. As in PyTorch, not integers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


SDPBackend.__module__ = __name__.rpartition(".")[0] + ".attention"


# The implementations that may be used, the preferred ones first: sdpa_kernel and torch.backends.cuda change them.
_ORDER = (
    SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.OVERRIDEABLE, SDPBackend.MATH,
)  # fmt: skip
allowed: tuple[SDPBackend, ...] = _ORDER


def allow(backend: SDPBackend, enabled: bool) -> None:
    """Adds an implementation to the allowed ones, or removes it."""
    global allowed
    kept = tuple(b for b in allowed if b is not backend)
    allowed = tuple(sorted((*kept, backend), key=_ORDER.index)) if enabled else kept

# Replaces scaled_dot_product_attention in a context of torch.distributed.tensor.experimental.context_parallel.
over_ranks = None


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask=None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query key^T scale + mask) value. Without dropout the CPU never stores all scores at once."""
    if is_causal and isinstance(attn_mask, Tensor):
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None and not isinstance(attn_mask, Tensor):  # a CausalBias
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        is_causal = attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == 1  # aligned to the upper left corner
        attn_mask = None if is_causal else attn_mask._materialize(query.device)
    if query.is_nested:
        composed = _backend(query) is SDPBackend.MATH
        if dropout_p or enable_gqa or composed:
            options = [query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, composed, scaled_dot_product_attention]
            return query._handlers["attention with options"](options, None)
        return _ops.attention(query, key, value, attn_mask, is_causal, scale=scale)
    if enable_gqa and query.dim() > 2:
        groups = int(query.shape[-3] // key.shape[-3])  # repeat_interleave needs a number, also while a Program is traced
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    if over_ranks is not None:
        return over_ranks(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if dropout_p == 0.0:
        backend = _backend(query)
        if backend is SDPBackend.CUDNN_ATTENTION:
            return _ops.attention(query, key, value, attn_mask, is_causal, scale=scale, allow_cudnn=True)
        if backend is not SDPBackend.MATH:
            return _ops.attention(query, key, value, attn_mask, is_causal, scale=scale)
    return _composed_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


@one_operator("scaled_dot_product_attention")
def _composed_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask, dropout_p: float, is_causal: bool, scale) -> Tensor:
    attention_weights = _attention_weights(query, key, attn_mask, is_causal, scale)
    return (_ops.dropout(attention_weights, dropout_p, True) if dropout_p else attention_weights) @ value


def _backend(query: Tensor) -> SDPBackend:
    """The preferred implementation among those allowed. Raises RuntimeError if there is none.

    CUDNN_ATTENTION is for 16-bit numbers on GPUs. The engine decides whether cuDNN supports the case, and otherwise uses
    its own fused kernels.
    """
    for backend in allowed:
        if backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
            return backend
        if backend is SDPBackend.CUDNN_ATTENTION and query.is_cuda and _is_16_bit(query):
            return backend
    raise RuntimeError("No available kernel. Aborting execution.")


def _is_16_bit(query: Tensor) -> bool:
    """Whether the engine computes attention of this tensor in 16-bit numbers."""
    return query.dtype in (_C.float16, _C.bfloat16) or _C.autocast_dtype("cuda") is not None


def _attention_weights(query: Tensor, key: Tensor, mask, is_causal: bool = False, scale: float | None = None) -> Tensor:
    """The attention weights: softmax(query key^T scale + mask)."""
    scores = query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale) @ key.transpose(-2, -1)
    if is_causal:
        mask = _C.torch.ones(query.shape[-2], key.shape[-2], dtype=_C.bool, device=query.device).tril()
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf) if mask.dtype is _C.bool else scores + mask
    return _ops.softmax(scores, -1)


def _canonical_mask(mask: Tensor | None, dtype, what: str) -> Tensor | None:
    """Converts bool masks (True: not attended) to additive masks."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype is not _C.bool:
        raise AssertionError(f"only bool and floating types of {what} are supported")
    zeros = _C.torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return zeros.masked_fill(mask, -math.inf)


def _in_projection(query, key, value, weights, biases) -> list[Tensor]:
    """Projects query, key and value by one linear layer each."""
    return [_C.functional.linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases)]


def _split_heads(t: Tensor, batch: int, heads: int) -> Tensor:
    """Rearranges (L, N, heads * d) to (N, heads, L, d)."""
    if batch == 0:  # the size of a head does not follow from the number of elements
        return t.reshape(t.shape[0], 0, heads, t.shape[-1] // heads).permute(1, 2, 0, 3)
    return t.reshape(t.shape[0], batch, heads, -1).permute(1, 2, 0, 3)


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight, in_proj_bias,
    bias_k, bias_v, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias, training: bool = True,
    key_padding_mask=None, need_weights: bool = True, attn_mask=None, use_separate_proj_weight: bool = False,
    q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Returns (result, attention weights or None). Inputs have shape (L, N, E), or (L, E) without a batch."""
    public = sys.modules[f"{__package__}.functional"]  # which imports this module; a program may have replaced its functions
    _check_dimensions(query, key, value, key_padding_mask, attn_mask)
    single = query.dim() == 2
    if single:
        query, key, value = (t.unsqueeze(1) for t in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    if embed != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}")
    if embed % num_heads:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    _check_attention_sizes(key, value, key_padding_mask, attn_mask, length, batch, num_heads, use_separate_proj_weight)
    for what, bias, static in (("key", bias_k, static_k), ("value", bias_v, static_v)):
        if bias is not None and static is not None:
            raise AssertionError(f"bias cannot be added to static {what}.")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight.chunk(3)
    q, k, v = _in_projection(query, key, value, weights, (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3))
    if bias_k is not None:
        k, v = (_C.torch.cat([t, b.repeat(1, batch, 1)]) for t, b in ((k, bias_k), (v, bias_v)))
    q, k, v = (_split_heads(t, batch, num_heads) for t in (q, k, v))
    k = k if static_k is None else static_k.unflatten(0, (batch, num_heads))
    v = v if static_v is None else static_v.unflatten(0, (batch, num_heads))
    if add_zero_attn:
        k, v = (_ops.pad(t, [0, 0, 0, 1]) for t in (k, v))
    mask = _head_masks(attn_mask, key_padding_mask, q.dtype, num_heads, k.shape[-2] - key.shape[0])
    dropout_p = dropout_p if training else 0.0
    attention_weights = None
    if need_weights:
        attention_weights = _attention_weights(q, k, mask)
        result = (_ops.dropout(attention_weights, dropout_p, True) if dropout_p else attention_weights) @ v
    else:
        result = public.scaled_dot_product_attention(q, k, v, mask, dropout_p)
    result = result.permute(2, 0, 1, 3).reshape(length, batch, embed)
    result = public.linear(result, out_proj_weight, out_proj_bias)
    if attention_weights is not None and average_attn_weights:
        attention_weights = attention_weights.mean(1)
    if single:
        result = result.squeeze(1)
        attention_weights = None if attention_weights is None else attention_weights.squeeze(0)
    return result, attention_weights


def _check_dimensions(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None) -> None:
    """Raises AssertionError for numbers of dimensions that do not fit the query's."""
    n = query.dim()
    if n not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    kind = "batched (3-D)" if n == 3 else "unbatched (2-D)"
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
        )


def _differ(got: tuple, expected: tuple) -> bool:
    """Whether sizes differ. Sizes that a graph does not know are not compared, which would fix them."""
    return any(type(a) is int and type(b) is int and a != b for a, b in zip(got, expected, strict=True))


def _check_attention_sizes(key, value, key_padding_mask, attn_mask, length, batch: int, num_heads: int, is_separate: bool) -> None:
    """Raises PyTorch's errors for keys, values and masks of other sizes. All have a batch dimension."""
    known, seen = (key.shape[:2], value.shape[:2]) if is_separate else (key.shape, value.shape)
    if _differ(known, seen):
        what = "key's sequence and batch dims" if is_separate else "key shape"
        raise AssertionError(f"{what} {tuple(known)} does not match value{' ' if is_separate else ' shape '}{tuple(seen)}")
    expected = (batch, key.shape[0])
    if key_padding_mask is not None and _differ(key_padding_mask.shape, expected):
        raise AssertionError(f"expecting key_padding_mask shape of {expected}, but got {tuple(key_padding_mask.shape)}")
    if attn_mask is not None:
        expected = (length, key.shape[0]) if attn_mask.dim() == 2 else (batch * num_heads, length, key.shape[0])
        if _differ(attn_mask.shape, expected):
            raise RuntimeError(f"The shape of the {attn_mask.dim()}D attn_mask is {tuple(attn_mask.shape)}, but should be {expected}.")


def _head_masks(attn_mask, key_padding_mask, dtype, num_heads: int, added: int) -> Tensor | None:
    """Combines both masks into one to add to scores (N, heads, L, S). The last `added` keys are never masked."""
    attn_mask = _canonical_mask(attn_mask, dtype, "attn_mask")
    padding = _canonical_mask(key_padding_mask, dtype, "key_padding_mask")
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.unflatten(0, (-1, num_heads)) if attn_mask.shape[0] != 1 else attn_mask
    if padding is not None:
        padding = padding[:, None, None, :]
    mask = attn_mask if padding is None else padding if attn_mask is None else attn_mask + padding
    if mask is None:
        return None
    return (_ops.pad(mask, [0, added]) if added else mask).to(dtype)

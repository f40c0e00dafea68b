"""RotaryEmbedding and Attention of opset 23, computed with PyTorch's operators and registered as torch.ops.onnx."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from ..library import custom_op
from ._dtypes import dtype_of


def _rotary_embedding(
    x: Tensor, cos_cache: Tensor, sin_cache: Tensor, position_ids: Tensor | None = None, *, interleaved: bool = False, num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:  # fmt: skip
    """Rotates pairs of elements by angles of the positions."""
    if x.dim() not in (3, 4):
        raise RuntimeError(f"x should be a 3D or 4D tensor, got {x.dim()} dimensions")
    if x.dim() == 3 and num_heads == 0:
        raise RuntimeError(
            f"num_heads must be provided for 3D inputs. Received input tensor with shape {tuple(x.shape)}"
        )
    tokens = x.permute(0, 2, 1, 3) if x.dim() == 4 else x.unflatten(2, (num_heads, x.shape[2] // num_heads))
    cos, sin = (c if position_ids is None else c[position_ids] for c in (cos_cache, sin_cache))  # (batch, length, half)
    width = rotary_embedding_dim or tokens.shape[3]
    if cos.dim() != 3 or cos.shape[-1] * 2 != width:
        raise RuntimeError(
            f"Last dimension of cos cache ({cos.shape[-1]}) should match rotary_embedding_dim/2 ({width // 2})."
        )
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    part, rest = tokens[..., :width], tokens[..., width:]
    first, second = (
        (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., : width // 2], part[..., width // 2 :])
    )
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    turned = _C.torch.stack([real, imaginary], -1).flatten(3) if interleaved else _C.torch.cat([real, imaginary], -1)
    made = turned if width == tokens.shape[3] else _C.torch.cat([turned, rest], -1)
    return made.permute(0, 2, 1, 3) if x.dim() == 4 else made.flatten(2)


def _heads(x: Tensor, count: int) -> Tensor:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    if x.dim() == 4:
        return x
    if count == 0:
        raise RuntimeError("q_num_heads and kv_num_heads must be provided for 3D inputs")
    return x.unflatten(2, (count, x.shape[2] // count)).transpose(1, 2)


def _attention(
    Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None, past_key: Tensor | None = None, past_value: Tensor | None = None, *,  # noqa: N803
    is_causal: bool = False, kv_num_heads: int = 0, q_num_heads: int = 0, qk_matmul_output_mode: int = 0, scale: float | None = None,
    softcap: float = 0.0, softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """softmax(Q K' * scale + mask) V, with the steps of ONNX's definition."""
    flat = Q.dim() == 3
    q, k, v = _heads(Q, q_num_heads), _heads(K, kv_num_heads), _heads(V, kv_num_heads)
    k = k.clone() if past_key is None else _C.torch.cat([past_key, k], 2)
    v = v.clone() if past_value is None else _C.torch.cat([past_value, v], 2)
    if q.shape[1] % k.shape[1]:
        raise RuntimeError(f"q_num_heads ({q.shape[1]}) must be divisible by kv_num_heads ({k.shape[1]}) for GQA")
    groups = q.shape[1] // k.shape[1]
    keys, values = (x if groups == 1 else x.repeat_interleave(groups, 1) for x in (k, v))
    root = math.sqrt(1 / math.sqrt(q.shape[3]) if scale is None else scale)
    scores = (q * root) @ (keys * root).transpose(-2, -1)
    steps = [scores]
    if is_causal:
        rows = _C.torch.arange(q.shape[2], device=q.device).unsqueeze(1)
        scores = scores.masked_fill(_C.torch.arange(k.shape[2], device=q.device).unsqueeze(0) > rows, -math.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype is _C.bool else scores + attn_mask
    steps.append(scores)
    scores = softcap * (scores / softcap).tanh() if softcap else scores
    steps.append(scores)
    weights = scores.softmax(-1, dtype=None if softmax_precision is None else dtype_of(softmax_precision)).to(q.dtype)
    steps.append(weights)
    made = weights @ values
    out = made.transpose(1, 2).flatten(2) if flat else made
    return out, k, v, steps[qk_matmul_output_mode].clone()


@functools.cache
def operators() -> dict[str, Any]:
    """The operators, registered as torch.ops.onnx.RotaryEmbedding.opset23 and torch.ops.onnx.Attention.opset23."""
    rotary = custom_op("onnx::RotaryEmbedding.opset23", mutates_args=())(_with_types(_rotary_embedding))
    rotary.register_fake(_rotary_embedding)
    attention = custom_op("onnx::Attention.opset23", mutates_args=())(_with_types(_attention))
    attention.register_fake(_attention)
    return {"RotaryEmbedding": rotary, "Attention": attention}


def _with_types(function: Callable) -> Callable:
    """The function with types instead of their names, from which the operator's schema is inferred."""
    import typing

    function.__annotations__ = typing.get_type_hints(function, globals())
    return function


def decompositions() -> dict[Any, Callable]:
    """The functions by overload."""
    return {_overload("RotaryEmbedding"): _rotary_embedding, _overload("Attention"): _attention}


def _overload(name: str) -> Any:
    from .._library import registry

    operators()
    return registry.packet("onnx", name).opset23

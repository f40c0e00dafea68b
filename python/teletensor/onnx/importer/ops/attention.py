"""Attention and rotary embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .. import _types, _values
from .._call import Call

Tensor = torch.Tensor


def _heads(x: Tensor, count: int) -> Tensor:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    return x.reshape([x.shape[0], x.shape[1], count, x.shape[2] // count]).permute(0, 2, 1, 3)


def _offset(past: Tensor | None, lengths: Tensor | None, queries: Any) -> Any:
    """How many valid keys precede the queries: a number, or a tensor (batch, 1, 1, 1)."""
    if past is not None:
        return past.shape[2]
    return 0 if lengths is None else lengths.reshape([-1, 1, 1, 1]) - queries


def _allowed(
    call: Call, queries: Any, keys: Any, past: Tensor | None, lengths: Tensor | None, device: Any
) -> Tensor | None:
    """Which keys each query may read by causality, windows and valid lengths; None for all."""
    at = torch.arange(keys, device=device).reshape([1, 1, 1, -1])
    row = torch.arange(queries, device=device).reshape([1, 1, -1, 1])
    offset = _offset(past, lengths, queries)
    parts = []
    if call.get("is_causal", 0):
        parts.append(at <= row + offset)
    left, right = call.get("left_window_size", -1), call.get("right_window_size", -1)
    if left >= 0:
        parts.append(at >= row + offset - left)
    if right >= 0:
        parts.append(at <= row + offset + right)
    if lengths is not None:
        parts.append(at < lengths.reshape([-1, 1, 1, 1]))
    found = None
    for part in parts:
        found = part if found is None else found & part
    return found


def _attention(call: Call, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_k: Tensor | None = None,
               past_v: Tensor | None = None, lengths: Tensor | None = None) -> Any:  # fmt: skip
    flat = q.dim() == 3
    if flat:
        q_heads, kv_heads = call.need("q_num_heads"), call.need("kv_num_heads")
        q, k, v = _heads(q, q_heads), _heads(k, kv_heads), _heads(v, kv_heads)
    if past_k is not None:
        k = torch.cat([past_k, k], 2)
    if past_v is not None:
        v = torch.cat([past_v, v], 2)
    present = (k, v)
    if mask is not None:
        missing = k.shape[2] - mask.shape[-1]
        if (
            not (_values.fixed(missing) and missing == 0) and mask.shape[-1] != 1
        ):  # the mask may be shorter than the keys
            fill = False if mask.dtype == torch.bool else float("-inf")
            mask = (
                F.pad(mask.to(torch.uint8), [0, missing]).to(torch.bool)
                if mask.dtype == torch.bool
                else F.pad(mask, [0, missing], value=fill)
            )
    allowed = _allowed(call, q.shape[2], k.shape[2], past_k, lengths, q.device)
    scale = call.get("scale")
    plain = (
        not call.wants(3)
        and not call.get("softcap", 0.0)
        and "softmax_precision" not in call.attributes
        and q.dtype == torch.float32
    )
    grouped = q.shape[1] != k.shape[1]
    if grouped:
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
    if plain and allowed is None and (mask is None or mask.dtype != torch.bool):
        found, scores = F.scaled_dot_product_attention(q, k, v, mask, scale=scale), None
    else:
        found, scores = _written_out(call, q, k, v, mask, allowed, scale)
    if flat:
        found = found.permute(0, 2, 1, 3).reshape([found.shape[0], found.shape[2], -1])
    return (found, *present, scores)


def _written_out(call: Call, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, allowed: Tensor | None,
                 scale: float | None) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The result, and the scores at the stage that qk_matmul_output_mode names."""
    root = math.sqrt(scale) if scale is not None else math.sqrt(1.0 / math.sqrt(int(q.shape[-1])))
    root = float(np.float16(root)) if q.dtype == torch.float16 else root
    scores = torch.matmul(q * root, (k * root).transpose(-1, -2))
    stages = {0: scores}
    softcap = call.get("softcap", 0.0)
    scores = stages[1] = torch.tanh(scores / softcap) * softcap if softcap else scores
    if mask is not None and mask.dtype == torch.bool:
        allowed = mask if allowed is None else allowed & mask
    elif mask is not None:
        scores = scores + mask
    if allowed is not None:
        scores = torch.where(allowed, scores, torch.full_like(scores, float("-inf")))
    stages[2] = scores
    precision = call.get("softmax_precision")
    work = scores if precision is None else scores.to(_types.dtype_of(precision))
    chances = torch.softmax(work, -1).to(q.dtype)
    chances = torch.where(torch.isnan(chances), torch.zeros_like(chances), chances)
    stages[3] = chances
    return torch.matmul(chances, v).to(q.dtype), stages.get(call.get("qk_matmul_output_mode", 0))


def _rotary(call: Call, x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None) -> Tensor:
    flat = x.dim() == 3
    heads = call.get("num_heads", 0)
    values = x.reshape([x.shape[0], x.shape[1], heads, x.shape[2] // heads]) if flat else x.permute(0, 2, 1, 3)
    size = values.shape[-1]
    width = call.get("rotary_embedding_dim", 0) or size
    turned, rest = values[..., :width], values[..., width:]
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    if call.get("interleaved", 0):
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : width // 2], turned[..., width // 2 :]
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    if call.get("interleaved", 0):
        found = torch.stack([real, imaginary], -1).reshape(turned.shape)
    else:
        found = torch.cat([real, imaginary], -1)
    found = torch.cat([found, rest], -1) if width != size else found
    return found.reshape(x.shape) if flat else found.permute(0, 2, 1, 3)


def _flex(call: Call, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention whose scores and chances pass through graphs."""
    times = q.shape[1] // k.shape[1]
    if times != 1:
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
    root = math.sqrt(call.get("scale", 1.0 / math.sqrt(int(q.shape[-1]))))
    default = _types.DOUBLE if q.dtype == torch.float64 else _types.FLOAT
    work = _types.dtype_of(call.get("softmax_precision", default))
    scores = torch.matmul(q * root, (k * root).transpose(-1, -2)).to(work)
    if "score_mod" in call.attributes:
        scores = call.tensor(call.get("score_mod").run(call, scores)[0])
    chances = torch.softmax(scores, -1)
    if "prob_mod" in call.attributes:
        chances = call.tensor(call.get("prob_mod").run(call, chances)[0])
    return torch.matmul(chances.to(q.dtype), v)


TABLE: dict[str, tuple] = {"Attention": ((23, _attention),), "RotaryEmbedding": ((23, _rotary),)}
PREVIEW: dict[str, tuple] = {"FlexAttention": ((1, _flex),)}

"""Normalization."""

from __future__ import annotations

import teletensor as torch
from teletensor.nn import functional as F  # noqa: N812 - PyTorch's name

from .._call import Call

Tensor = torch.Tensor


def _by_channel(t: Tensor, x: Tensor) -> Tensor:
    return t.reshape([1, -1] + [1] * (x.dim() - 2)) if x.dim() > 1 else t


def _batch_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> object:
    eps = call.get("epsilon", 1e-5)
    training = call.get("training_mode", 0) if call.version >= 14 else call.version < 7 and not call.get("is_test", 0)
    if not training:
        if call.version < 9 and not call.get("spatial", 1):
            return (x - mean) / torch.sqrt(variance + eps) * scale + bias
        if scale.dtype == x.dtype and mean.dtype == x.dtype:
            return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, eps)
        m, v, s, b = (_by_channel(t, x) for t in (mean, variance, scale, bias))
        return ((x - m) / torch.sqrt(v + eps) * s + b).to(x.dtype)
    momentum = call.get("momentum", 0.9)
    dims = [d for d in range(x.dim()) if d != 1]
    now, spread = x.mean(dims), x.var(dims, correction=0)
    found = (x - _by_channel(now, x)) / torch.sqrt(_by_channel(spread, x) + eps) * _by_channel(scale, x) + _by_channel(
        bias, x
    )
    results = (found.to(x.dtype), mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum))
    return (*results, now, spread)


def _instance_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    eps = call.get("epsilon", 1e-5)
    if all(n == 1 for n in x.shape[2:]):  # which torch's function refuses
        dims = list(range(2, x.dim()))
        deviation = x - x.mean(dims, True)
        return deviation / torch.sqrt((deviation * deviation).mean(dims, True) + eps) * _by_channel(
            scale, x
        ) + _by_channel(bias, x)
    return F.instance_norm(x, None, None, scale, bias, True, 0.0, eps)


def _layer_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> object:
    axis, eps = call.get("axis", -1), call.get("epsilon", 1e-5)
    axis = axis + x.dim() if axis < 0 else axis
    if not call.wants(1) and not call.wants(2) and list(scale.shape) == list(x.shape[axis:]) and (
        bias is None or bias.shape == scale.shape
    ) and x.dtype == torch.float32:  # fmt: skip
        return F.layer_norm(x, list(scale.shape), scale, bias, eps)
    wide = x.to(torch.float32) if call.get("stash_type", 1) == 1 and x.element_size() < 4 else x
    dims = list(range(axis, x.dim()))
    mean = wide.mean(dims, True)
    deviation = wide - mean
    inverse = torch.rsqrt((deviation * deviation).mean(dims, True) + eps)
    found = (deviation * inverse).to(x.dtype) * scale
    return found if bias is None else found + bias, mean, inverse


def _rms_norm(call: Call, x: Tensor, scale: Tensor) -> Tensor:
    axis, eps = call.get("axis", -1), call.get("epsilon", 1e-5)
    axis = axis + x.dim() if axis < 0 else axis
    if x.dtype == torch.float32 and list(scale.shape) == list(x.shape[axis:]):
        return F.rms_norm(x, list(scale.shape), scale, eps)
    wide = x.to(torch.float32) if call.get("stash_type", 1) == 1 and x.element_size() < 4 else x
    inverse = torch.rsqrt((wide * wide).mean(list(range(axis, x.dim())), True) + eps)
    return (wide * inverse).to(x.dtype) * scale


def _group_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups, eps = call.need("num_groups"), call.get("epsilon", 1e-5)
    if call.version >= 21:
        return F.group_norm(x, groups, scale, bias, eps)
    found = F.group_norm(x, groups, None, None, eps)
    shape = [x.shape[0], groups, -1]
    found = found.reshape(shape) * scale.reshape([1, -1, 1]) + bias.reshape([1, -1, 1])
    return found.reshape(x.shape)


def _lrn(call: Call, x: Tensor) -> Tensor:
    size = call.need("size")
    alpha, beta, bias = call.get("alpha", 1e-4), call.get("beta", 0.75), call.get("bias", 1.0)
    square = F.pad(
        (x * x).unsqueeze(1), [0, 0] * (x.dim() - 2) + [(size - 1) // 2, size - 1 - (size - 1) // 2]
    ).squeeze(1)
    total = square.unfold(1, size, 1).sum(-1)
    return x / (bias + alpha / size * total).pow(beta)


def _lp_norm(call: Call, x: Tensor) -> Tensor:
    axis, p = call.get("axis", -1), call.get("p", 2)
    norm = x.abs().sum(axis, True) if p == 1 else torch.sqrt((x * x).sum(axis, True))
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)


def _mean_variance(call: Call, x: Tensor) -> Tensor:
    dims = call.get("axes") or [0, 2, 3]
    mean = x.mean(dims, True)
    centred = x - mean  # squares of these, for those of x lose digits
    return centred / (torch.sqrt((centred * centred).mean(dims, True)) + 1e-9)


TABLE: dict[str, tuple] = {
    "BatchNormalization": ((1, _batch_norm),), "InstanceNormalization": ((1, _instance_norm),),
    "LayerNormalization": ((17, _layer_norm),), "RMSNormalization": ((23, _rms_norm),),
    "GroupNormalization": ((18, _group_norm),), "LRN": ((1, _lrn),), "LpNormalization": ((1, _lp_norm),),
    "MeanVarianceNormalization": ((9, _mean_variance),),
}  # fmt: skip

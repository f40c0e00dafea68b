"""How vmap computes layers and losses for all entries at once (_batch_rules.py)."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from ._batch_call import RULES, Call, NoRule, rule
from ._batch_recurrent import layers_with_mapped_weights

# Layers that compute the entries of their first dimension apart: the dimensions of their inputs, with that one.
_BATCHED_LAYERS = {
    "max_pool2d": 4, "avg_pool2d": 4, "adaptive_avg_pool2d": 4, "adaptive_max_pool2d": 4, "max_pool3d": 5, "avg_pool3d": 5,
    "adaptive_avg_pool3d": 5, "im2col": 4, "col2im": 3, "max_pool2d_with_indices": 4,
    "adaptive_max_pool2d_with_indices": 4,
}  # fmt: skip


def _folded(value: Tensor) -> Tensor:
    """Values with the batch and the next dimension as one."""
    return value.flatten(0, 1)


def _unfolded(call: Call, result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [_unfolded(call, r) for r in result]
    return result.unflatten(0, (call.size, result.shape[0] // call.size))


def _layer(call: Call) -> Any:
    call.only_maps("input")
    x, ndim = call["input"], _BATCHED_LAYERS[call.op.name]
    value = call.value(x)
    if x.dim() == ndim - 1:
        return call.run()
    if x.dim() != ndim or 0 in value.shape:
        raise NoRule
    return _unfolded(call, call.run(input=_folded(value)))


RULES.update(dict.fromkeys(_BATCHED_LAYERS, _layer))


@rule("channel_shuffle")
def _channel_shuffle(call: Call) -> Tensor:
    return _unfolded(call, call.run(input=_folded(call.value(call["input"]))))


@rule("interpolate grid_sample")
def _resampled(call: Call) -> Any:
    if any(0 in t.shape for t in call.tensors()):
        raise NoRule
    tensors = {n: _folded(call.expanded(v)) for n, v in call.args.items() if isinstance(v, Tensor)}
    return _unfolded(call, call.run(**tensors))


@rule("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d")
def _convolution(call: Call) -> Tensor:
    x, weight, bias = call["input"], call["weight"], call["bias"]
    spatial = int(call.op.name[-2])
    one = x.dim() == spatial + 1  # without a dimension of images
    if x.dim() not in (spatial + 1, spatial + 2) or any(0 in t.shape for t in call.tensors()):
        raise NoRule
    plain_bias = bias if not call.is_mapped("bias") and not call.is_mapped("weight") else None
    if not call.is_mapped("weight"):
        if not call.is_mapped("input"):
            result = call.run(bias=None)
            result = result.expand(call.size, *result.shape)
        elif one:
            result = call.run(bias=plain_bias)
        else:
            result = _unfolded(call, call.run(input=_folded(call.value(x)), bias=plain_bias))
    else:  # each entry is a group of channels
        value = call.expanded(x if not one else x.unsqueeze(0)).movedim(0, 1).flatten(1, 2)
        groups = call.size * call["groups"]
        result = call.run(input=value, weight=_folded(call.value(weight)), bias=None, groups=groups)
        result = result.unflatten(1, (call.size, result.shape[1] // call.size)).movedim(1, 0)
        result = result.squeeze(1) if one else result
    if bias is None or plain_bias is not None:
        return result
    channels = bias.shape[0]
    sizes = [*([] if one else [1]), channels, *[1] * spatial]
    return result + (call.value(bias).reshape(call.size, *sizes) if call.is_mapped("bias") else bias.reshape(sizes))


@rule("batch_norm")
def _batch_norm(call: Call) -> Tensor:
    x, training = call["input"], call["training"]
    if training and call["running_mean"] is not None:
        raise NoRule  # writes
    if x.dim() < 2 or 0 in x.shape:
        raise NoRule
    value = call.expanded(x).movedim(0, 1).flatten(1, 2)  # each entry has its own channels
    names = ("running_mean", "running_var", "weight", "bias")
    given = {n: call.expanded(call[n]).reshape(-1) for n in names if call[n] is not None}
    return call.run(input=value, **given).unflatten(1, (call.size, x.shape[1])).movedim(1, 0)


@rule("group_norm")
def _group_norm(call: Call) -> Tensor:
    x = call["input"]
    if x.dim() < 2 or 0 in x.shape:
        raise NoRule
    result = _unfolded(call, call.run(input=_folded(call.expanded(x)), weight=None, bias=None))
    sizes = [1, x.shape[1], *[1] * (x.dim() - 2)]
    for name, combine in (("weight", _C.ops.mul), ("bias", _C.ops.add)):
        p = call[name]
        if p is not None:
            result = combine(result, call.value(p).reshape(call.size, *sizes) if call.is_mapped(name) else p.reshape(sizes))
    return result


@rule("layer_norm rms_norm")
def _norm(call: Call) -> Tensor:
    x = call["input"]
    parts = {n: call[n] for n in ("weight", "bias") if call.args.get(n) is not None}
    if call.is_mapped("input") and not any(map(call.level.has, parts.values())):
        return call.run()
    if not call.is_mapped("input"):
        raise NoRule
    result = call.run(**dict.fromkeys(parts))
    for name, combine in (("weight", _C.ops.mul), ("bias", _C.ops.add)):
        if name in parts:
            result = combine(result, call.aligned(parts[name], x.dim()))
    return result


@rule("affine_grid")
def _affine_grid(call: Call) -> Tensor:
    theta, size = call["theta"], call["size"]
    if 0 in theta.shape or call.size == 0:
        raise NoRule
    return _unfolded(call, call.run(theta=_folded(call.value(theta)), size=[call.size * size[0], *size[1:]]))


def _soft_class_loss(call: Call) -> Tensor:
    """cross_entropy() with probabilities as targets."""
    x, target, smoothing = call["input"], call["target"], call["label_smoothing"]
    if call["weight"] is not None or call["reduction"] not in ("none", "mean", "sum") or 0 in x.shape:
        raise NoRule
    if _C.float16 in (x.dtype, target.dtype) or _C.bfloat16 in (x.dtype, target.dtype):
        raise NoRule  # rounds in each step
    dim = 0 if x.dim() == 1 else 1
    count = x.shape[dim]
    soft = target * (1 - smoothing) + smoothing / count if smoothing else target
    losses = -(_C.torch.log_softmax(x, dim) * soft).sum(dim)
    if call["reduction"] != "none":
        losses = losses.sum() / (1 if call["reduction"] == "sum" else x.numel() // count)
    return call.level.expanded(losses)


@rule("cross_entropy nll_loss")
def _class_loss(call: Call) -> Tensor:
    x, target, reduction = call["input"], call["target"], call["reduction"]
    if call.op.name == "cross_entropy" and target.dtype.is_floating_point:
        return _soft_class_loss(call)
    if call.is_mapped("weight"):
        raise NoRule
    if reduction not in ("none", "mean", "sum") or 0 in x.shape:
        raise NoRule
    if reduction != "none" and x.dtype.itemsize < 4 and call.op.name == "cross_entropy" and call["label_smoothing"]:
        raise NoRule  # the operator does not round the losses before it adds them
    value, classes = call.expanded(x), call.expanded(target)
    if x.dim() > 1:
        losses = _unfolded(call, call.run(input=_folded(value), target=_folded(classes), reduction="none"))
    else:
        losses = call.run(input=value, target=classes, reduction="none")
    if reduction == "none":
        return losses
    total = losses.flatten(1).sum(1) if losses.dim() > 1 else losses
    if reduction == "sum":
        return total
    kept = classes != call["ignore_index"]
    if call["weight"] is None:
        weights = kept.to(losses.dtype)
    else:
        weights = _C.ops.index(call["weight"], [_C.torch.where(kept, classes, 0)]) * kept.to(losses.dtype)
    return total / (weights.flatten(1).sum(1) if weights.dim() > 1 else weights)


def _with_sequences(call: Call, tensor: Tensor, dim: int) -> Tensor:
    """The values for all entries, with the batch as a part of the dimension of sequences, which is `dim` of one entry."""
    return call.expanded(tensor).movedim(0, dim).flatten(dim, dim + 1)


@rule("lstm gru rnn")
def _recurrent(call: Call) -> list[Tensor]:
    """Sequences of all entries are one batch, unless entries have their own weights."""
    if any(map(call.level.has, call["params"])):
        return layers_with_mapped_weights(call)
    x, states = call["input"], call["hx"]
    is_list = isinstance(states, list)
    given = states if is_list else [states]
    packed = bool(call["batch_sizes"])  # sequences of several lengths
    if packed or x.dim() != 3 or 0 in x.shape:
        raise NoRule
    dim = 0 if call["batch_first"] else 1
    states = [_with_sequences(call, h, 1) for h in given]
    results = call.run(input=_with_sequences(call, x, dim), hx=states if is_list else states[0])
    count = x.shape[dim]
    return [r.unflatten(d, (call.size, count)).movedim(d, 0) for r, d in zip(results, (dim, 1, 1))]


@rule("bincount")
def _bincount(call: Call) -> Tensor:
    """Counts of all entries at once, if their numbers of bins are equal: entry i counts its values plus i times that number."""
    x, weights, least = call["input"], call["weights"], call["minlength"]
    if x.dim() != 1 or x.dtype == _C.bool or x.is_floating_point() or x.is_complex() or 0 in (call.size, x.shape[0]):
        raise NoRule
    if least < 0 or (weights is not None and weights.shape != x.shape):
        raise NoRule
    value = call.value(x).to(_C.int64)
    ends = _C.torch.stack(list(_C.torch.aminmax(value.reshape(-1, x.shape[0]), dim=1))).tolist()  # one read
    bins = {max(least, int(largest) + 1) for largest in ends[1]}
    if min(ends[0]) < 0 or len(bins) > 1:
        raise NoRule  # the calls of the entries raise the error
    (count,) = bins
    first = _C.torch.arange(call.size, device=value.device).unsqueeze(1) * count
    given = None if weights is None else call.expanded(weights).reshape(-1)
    return _C.ops.bincount((call.expanded(x).to(_C.int64) + first).reshape(-1), given, call.size * count).unflatten(0, (call.size, count))


@rule("ctc_loss_forward")
def _ctc_loss(call: Call) -> list[Tensor]:
    """Sequences of all entries are one batch, if targets are rows."""
    call.only_maps("log_probs", "targets")
    log_probs, targets = call["log_probs"], call["targets"]
    if log_probs.dim() != 3 or targets.dim() != 2 or 0 in log_probs.shape or 0 in targets.shape:
        raise NoRule
    lengths = {n: list(call[n]) * call.size for n in ("input_lengths", "target_lengths")}
    rows = _folded(call.expanded(targets))
    results = call.run(log_probs=_with_sequences(call, log_probs, 1), targets=rows, **lengths)
    return [r.unflatten(0, (call.size, log_probs.shape[1])) for r in results]

"""Loss functions."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import TRANSLATIONS, Untranslatable, translates

_NONE, _MEAN, _SUM = 0, 1, 2


def reduced(b: Builder, x: Value, reduction: Any) -> Value:
    reduction = {"none": 0, "mean": 1, "sum": 2}.get(reduction, reduction)
    if reduction == "batchmean":
        size = b.size(x, 0)
        count = b.cast(size, x.dtype) if isinstance(size, Value) else b.const(float(size), x.dtype)
        return b.op("Div", b.op("ReduceSum", x, keepdims=0), count)
    if reduction not in (_NONE, _MEAN, _SUM):
        raise Untranslatable(f"the reduction {reduction!r}")
    if reduction == _NONE:
        return x
    return b.op("ReduceMean" if reduction == _MEAN else "ReduceSum", x, keepdims=0)


@translates("aten.mse_loss.default")
def _mse_loss(b: Builder, self: Value, target: Value, reduction: Any = _MEAN) -> Value:
    d = b.op("Sub", self, target)
    return reduced(b, b.op("Mul", d, d), reduction)


@translates("aten.l1_loss.default")
def _l1_loss(b: Builder, self: Value, target: Value, reduction: Any = _MEAN) -> Value:
    return reduced(b, b.op("Abs", b.op("Sub", self, target)), reduction)


@translates("aten.smooth_l1_loss.default")
def _smooth_l1(b: Builder, self: Value, target: Value, reduction: Any = _MEAN, beta: float = 1.0) -> Value:
    return reduced(b, smooth(b, b.op("Abs", b.op("Sub", self, target)), beta), reduction)


def smooth(b: Builder, d: Value, beta: float) -> Value:
    """The terms of smooth_l1_loss of distances."""
    if beta == 0:
        return d
    near = b.op("Less", d, b.const(float(beta), d.dtype))
    return b.where(near, b.op("Mul", d, d) * (0.5 / beta), d - 0.5 * beta)


@translates("aten.huber_loss.default")
def _huber(b: Builder, self: Value, target: Value, reduction: Any = _MEAN, delta: float = 1.0) -> Value:
    d = b.op("Abs", b.op("Sub", self, target))
    near = b.op("LessOrEqual", d, b.const(float(delta), d.dtype))
    return reduced(b, b.where(near, b.op("Mul", d, d) * 0.5, (d - 0.5 * delta) * float(delta)), reduction)


@translates("aten.binary_cross_entropy.default")
def _bce(b: Builder, self: Value, target: Value, weight: Value | None = None, reduction: Any = _MEAN) -> Value:
    """Logarithms are at least -100."""
    one, low = b.const(1.0, self.dtype), b.const(-100.0, self.dtype)
    first = b.op("Mul", target, b.op("Max", b.op("Log", self), low))
    second = b.op("Mul", one - target, b.op("Max", b.op("Log", one - self), low))
    loss = b.op("Neg", b.op("Add", first, second))
    return reduced(b, loss if weight is None else b.op("Mul", loss, weight), reduction)


@translates("aten.binary_cross_entropy_with_logits.default")
def _bce_with_logits(
    b: Builder, self: Value, target: Value, weight: Value | None = None, pos_weight: Value | None = None, reduction: Any = _MEAN,
) -> Value:  # fmt: skip
    one = b.const(1.0, self.dtype)
    soft = b.op("Softplus", b.op("Neg", self))
    rest = b.op("Mul", one - target, self)
    if pos_weight is not None:
        soft = b.op("Mul", soft, b.op("Add", b.op("Mul", pos_weight - 1.0, target), one))
    loss = b.op("Add", rest, soft)
    return reduced(b, loss if weight is None else b.op("Mul", loss, weight), reduction)


@translates("aten.kl_div.default")
def _kl_div(b: Builder, self: Value, target: Value, reduction: Any = _MEAN, log_target: bool = False) -> Value:
    if log_target:
        return reduced(b, b.op("Mul", b.op("Exp", target), b.op("Sub", target, self), shape=self.shape), reduction)
    zero = b.op("Equal", target, b.const(0.0, target.dtype))
    own = b.where(zero, 0.0, b.op("Mul", target, b.op("Log", target)), target.dtype)
    return reduced(b, b.op("Sub", own, b.op("Mul", target, self), shape=self.shape), reduction)


def _picked(
    b: Builder, x: Value, target: Value, weight: Value | None, ignore_index: int, dim: int
) -> tuple[Value, Value]:
    """Minus the chosen elements times their weights, and the weights, which are 0 for ignored targets."""
    ignored = b.op("Equal", target, b.const(ignore_index, target.dtype))
    safe = b.where(ignored, 0, target, target.dtype)
    safe.shape = target.shape
    chosen = b.squeeze(b.op("GatherElements", x, b.unsqueeze(safe, [dim]), axis=dim, shape=_with_one(x, dim)), [dim])
    if weight is None:
        weights = b.cast(b.op("Not", ignored), x.dtype)
    else:
        weights = b.where(ignored, 0, b.op("Gather", weight, safe, axis=0), x.dtype)
    return b.op("Neg", b.op("Mul", chosen, weights)), weights


def _with_one(x: Value, dim: int) -> tuple:
    return tuple(1 if d == dim else n for d, n in enumerate(x.shape))


def _weighted(b: Builder, loss: Value, weights: Value, reduction: Any) -> Value:
    reduction = {"none": 0, "mean": 1, "sum": 2}.get(reduction, reduction)
    if reduction == _NONE:
        return loss
    total = b.op("ReduceSum", loss, keepdims=0)
    return total if reduction == _SUM else b.op("Div", total, b.op("ReduceSum", weights, keepdims=0))


@translates("aten.nll_loss.default aten.nll_loss_nd.default aten.nll_loss2d.default")
def _nll_loss(
    b: Builder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: Any = _MEAN,
    ignore_index: int = -100,
) -> Value:
    dim = 0 if self.rank == 1 else 1
    return _weighted(b, *_picked(b, self, target, weight, ignore_index, dim), reduction)


@translates("aten.nll_loss_forward.default aten.nll_loss2d_forward.default")
def _nll_loss_forward(
    b: Builder, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int
) -> list[Value]:
    loss, weights = _picked(b, self, target, weight, ignore_index, 0 if self.rank == 1 else 1)
    total = b.op("ReduceSum", weights, keepdims=0) if reduction != _NONE else b.const(0.0, self.dtype)
    return [_weighted(b, loss, weights, reduction), total]


@translates("aten.cross_entropy_loss.default")
def cross_entropy(
    b: Builder, self: Value, target: Value, weight: Value | None = None, reduction: Any = _MEAN, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Value:  # fmt: skip
    reduction = {"none": 0, "mean": 1, "sum": 2}.get(reduction, reduction)
    dim = 0 if self.rank == 1 else 1
    x = b.op("LogSoftmax", self, axis=dim)
    classes = self.shape[dim]
    if type(classes) is not int:
        raise Untranslatable("cross_entropy of a dynamic number of classes")
    wide = None if weight is None else b.reshape(weight, [-1] + [1] * (self.rank - 1 - dim))
    axis = b.const([dim], _C.int64)
    if target.dtype.is_floating_point:  # probabilities of classes
        aim = target if label_smoothing == 0 else target * (1 - label_smoothing) + label_smoothing / classes
        terms = b.op("Mul", x, aim)
        loss = b.op("Neg", b.op("ReduceSum", terms if wide is None else b.op("Mul", terms, wide), axis, keepdims=0))
        if reduction != _MEAN:
            return reduced(b, loss, reduction)
        total = b.op("ReduceSum", loss, keepdims=0)
        count: Any = 1
        for d in range(self.rank):
            count = count if d == dim else b.arithmetic("Mul", count, b.size(self, d))
        return b.op(
            "Div", total, b.cast(count, x.dtype) if isinstance(count, Value) else b.const(float(count), x.dtype)
        )
    loss, weights = _picked(b, x, target, weight, ignore_index, dim)
    if label_smoothing == 0:
        return _weighted(b, loss, weights, reduction)
    smooth = b.op("Neg", b.op("ReduceSum", x if wide is None else b.op("Mul", x, wide), axis, keepdims=0))
    kept = b.cast(b.op("Not", b.op("Equal", target, b.const(ignore_index, target.dtype))), x.dtype)
    smooth = b.op("Mul", smooth, kept)
    mixed = [_weighted(b, v, weights, reduction) for v in (loss, smooth)]
    return b.op("Add", mixed[0] * (1 - label_smoothing), mixed[1] * (label_smoothing / classes))


@translates("aten.soft_margin_loss.default")
def _soft_margin(b: Builder, self: Value, target: Value, reduction: Any = _MEAN) -> Value:
    return reduced(b, b.op("Softplus", b.op("Neg", b.op("Mul", self, b.cast(target, self.dtype)))), reduction)


@translates("aten.margin_ranking_loss.default")
def _margin_ranking(
    b: Builder, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: Any = _MEAN
) -> Value:
    loss = b.op("Mul", b.op("Neg", target), b.op("Sub", input1, input2)) + float(margin)
    return reduced(b, b.op("Relu", loss), reduction)


@translates("aten.hinge_embedding_loss.default")
def _hinge_embedding(b: Builder, self: Value, target: Value, margin: float = 1.0, reduction: Any = _MEAN) -> Value:
    zero = b.const(0.0, self.dtype)
    aim = b.cast(target, self.dtype)
    far = b.where(
        b.op("Equal", aim, b.const(1.0, self.dtype)), zero, b.op("Relu", b.const(float(margin), self.dtype) - self)
    )
    near = b.where(b.op("Equal", aim, b.const(-1.0, self.dtype)), zero, self)
    return reduced(b, b.op("Add", far, near), reduction)


@translates("aten.poisson_nll_loss.default")
def _poisson(
    b: Builder, input: Value, target: Value, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: Any = _MEAN,  # noqa: A002
) -> Value:  # fmt: skip
    if log_input:
        loss = b.op("Sub", b.op("Exp", input), b.op("Mul", target, input))
    else:
        loss = b.op("Sub", input, b.op("Mul", target, b.op("Log", input + float(eps))))
    if full:  # Stirling's approximation of the target's term
        one = b.op("Max", target, b.const(1.0, target.dtype))
        term = b.op("Add", b.op("Sub", b.op("Mul", one, b.op("Log", one)), one), b.op("Log", one * (2 * math.pi)) * 0.5)
        loss = b.op("Add", loss, b.where(b.op("Greater", target, b.const(1.0, target.dtype)), term, 0.0, loss.dtype))
    return reduced(b, loss, reduction)


@translates("aten.cosine_embedding_loss.default")
def _cosine_embedding(
    b: Builder, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: Any = _MEAN
) -> Value:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1; PyTorch adds a small number to the squares."""
    axis = b.const([-1], _C.int64)

    def product(x: Value, y: Value) -> Value:
        return b.op("ReduceSum", b.op("Mul", x, y), axis, keepdims=0)

    squares = b.op("Mul", product(input1, input1) + 1e-12, product(input2, input2) + 1e-12)
    cosine = b.op("Div", product(input1, input2), b.op("Sqrt", squares))
    one = b.const(1, target.dtype)
    near = b.where(b.op("Equal", target, one), b.const(1.0, cosine.dtype) - cosine, 0.0, cosine.dtype)
    far = b.where(b.op("Equal", target, b.op("Neg", one)), b.op("Relu", cosine - float(margin)), 0.0, cosine.dtype)
    return reduced(b, b.op("Add", near, far), reduction)


@translates("aten.triplet_margin_loss.default")
def _triplet(
    b: Builder, anchor: Value, positive: Value, negative: Value, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
    reduction: Any = _MEAN,
) -> Value:  # fmt: skip
    def distance(x: Value, y: Value) -> Value:
        return TRANSLATIONS["aten.pairwise_distance.default"](b, x, y, p, eps)

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = b.op("Min", far, distance(positive, negative))
    return reduced(b, b.op("Relu", b.op("Sub", near, far) + float(margin)), reduction)

"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._dtypes import is_float
from .._registry import TRANSLATIONS, Untranslatable, translates


@translates("aten.relu.default")
def _relu(b: Builder, self: Value) -> Value:
    return b.op("Relu", self) if is_float(self.dtype) else b.op("Max", self, b.const(0, self.dtype))


@translates("aten.relu6.default")
def _relu6(b: Builder, self: Value) -> Value:
    return b.op("Min", _relu(b, self), b.const(6, self.dtype))


@translates("aten.leaky_relu.default")
def _leaky_relu(b: Builder, self: Value, negative_slope: float = 0.01) -> Value:
    return b.op("LeakyRelu", self, alpha=float(negative_slope))


@translates("aten.prelu.default aten._prelu_kernel.default")
def _prelu(b: Builder, self: Value, weight: Value) -> Value:
    if weight.rank == 1 and self.rank > 2:
        weight = b.reshape(weight, [-1] + [1] * (self.rank - 2))
    return b.op("PRelu", self, weight)


@translates("aten.elu.default")
def _elu(b: Builder, self: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    if scale == input_scale == 1:
        return b.op("Elu", self, alpha=float(alpha))
    negative = (b.op("Exp", self * float(input_scale)) - 1) * float(alpha)
    return b.where(b.op("Greater", self, b.const(0, self.dtype)), self, negative) * float(scale)


@translates("aten.celu.default")
def _celu(b: Builder, self: Value, alpha: float = 1.0) -> Value:
    negative = (b.op("Exp", self / float(alpha)) - 1) * float(alpha)
    return b.where(b.op("Greater", self, b.const(0, self.dtype)), self, negative)


@translates("aten.selu.default")
def _selu(b: Builder, self: Value) -> Value:
    return b.op("Selu", self)


@translates("aten.gelu.default")
def _gelu(b: Builder, self: Value, approximate: str = "none") -> Value:
    if b.opset >= 20:
        return b.op("Gelu", self, approximate=approximate)
    if approximate == "tanh":
        inner = (self + b.op("Mul", b.op("Mul", self, self), self) * 0.044715) * math.sqrt(2 / math.pi)
        return b.op("Mul", self * 0.5, b.op("Tanh", inner) + 1)
    return b.op("Mul", self * 0.5, b.op("Erf", self * (1 / math.sqrt(2))) + 1)


@translates("aten.silu.default")
def _silu(b: Builder, self: Value) -> Value:
    return b.op("Mul", self, b.op("Sigmoid", self))


@translates("aten.mish.default")
def _mish(b: Builder, self: Value) -> Value:
    return b.op("Mul", self, b.op("Tanh", _softplus(b, self)))


@translates("aten.hardswish.default")
def _hardswish(b: Builder, self: Value) -> Value:
    return b.op("HardSwish", self) if self.dtype is _C.float32 else b.op("Mul", self, _hardsigmoid(b, self))


@translates("aten.hardsigmoid.default")
def _hardsigmoid(b: Builder, self: Value) -> Value:
    return b.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@translates("aten.hardtanh.default")
def _hardtanh(b: Builder, self: Value, min_val: float = -1, max_val: float = 1) -> Value:
    return b.op("Clip", self, b.const(min_val, self.dtype), b.const(max_val, self.dtype))


@translates("aten.softplus.default")
def _softplus(b: Builder, self: Value, beta: float = 1, threshold: float = 20) -> Value:
    x = self if beta == 1 else self * float(beta)
    soft = b.op("Softplus", x)
    soft = soft if beta == 1 else soft / float(beta)
    return b.where(b.op("Greater", x, b.const(threshold, self.dtype)), self, soft)


@translates("aten.softsign.default")
def _softsign(b: Builder, self: Value) -> Value:
    return b.op("Softsign", self)


@translates("aten.log_sigmoid.default aten.logsigmoid.default")
def _log_sigmoid(b: Builder, self: Value) -> Value:
    return b.op("Neg", b.op("Softplus", b.op("Neg", self)))


@translates("aten.hardshrink.default")
def _hardshrink(b: Builder, self: Value, lambd: float = 0.5) -> Value:
    inside = b.op("LessOrEqual", b.op("Abs", self), b.const(lambd, self.dtype))
    return b.where(inside, 0.0, self, self.dtype)


@translates("aten.softshrink.default")
def _softshrink(b: Builder, self: Value, lambd: float = 0.5) -> Value:
    return b.op("Mul", b.op("Sign", self), b.op("Relu", b.op("Abs", self) - float(lambd)))


@translates("aten.tanhshrink.default")
def _tanhshrink(b: Builder, self: Value) -> Value:
    return b.op("Sub", self, b.op("Tanh", self))


@translates("aten.threshold.default")
def _threshold(b: Builder, self: Value, threshold: float, value: float) -> Value:
    return b.where(b.op("Greater", self, b.const(threshold, self.dtype)), self, b.const(value, self.dtype))


@translates("aten.glu.default")
def _glu(b: Builder, self: Value, dim: int = -1) -> Value:
    size = b.size(self, dim)
    half = b.arithmetic("Div", size, 2)
    return b.op("Mul", b.slice(self, dim, 0, half), b.op("Sigmoid", b.slice(self, dim, half, size)))


@translates("aten.rrelu.default aten.rrelu_with_noise.default")
def _rrelu(
    b: Builder, self: Value, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Value:
    if training or generator is not None:
        raise Untranslatable("random slopes of a training step")
    return b.op("LeakyRelu", self, alpha=(lower + upper) / 2)


def _softmax(op_type: str) -> Any:
    def translate(b: Builder, self: Value, dim: int, dtype: Any = None) -> Value:
        x = b.cast(self, b.dtype) if dtype is None or isinstance(dtype, bool) else b.cast(self, dtype)
        if x.shape == ():
            return b.cast(b.op("Mul", x, b.const(0.0, x.dtype)) + (1.0 if op_type == "Softmax" else 0.0), b.dtype)
        return b.op(op_type, x, axis=dim)

    return translate


for _name in ("softmax.int", "_softmax.default", "special_softmax.int"):
    TRANSLATIONS[f"aten.{_name}"] = _softmax("Softmax")
for _name in ("log_softmax.int", "_log_softmax.default", "special_log_softmax.int"):
    TRANSLATIONS[f"aten.{_name}"] = _softmax("LogSoftmax")


@translates("aten._safe_softmax.default")
def _safe_softmax(b: Builder, self: Value, dim: int, dtype: Any = None) -> Value:
    """Rows that are -inf throughout become 0."""
    made = _softmax("Softmax")(b, self, dim, dtype)
    masked = b.op("Equal", b.reduce("ReduceMax", self, [dim], True), b.const(-math.inf, self.dtype))
    return b.where(masked, 0.0, made, made.dtype)

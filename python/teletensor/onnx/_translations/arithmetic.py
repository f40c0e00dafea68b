"""Elementwise arithmetic."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from ..._functions import finfo
from .._builder import Builder, Value
from .._dtypes import INTEGERS, is_float
from .._registry import TRANSLATIONS, Untranslatable, translates
from ._types import promoted
from .fourier import as_complex

_UNARY = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh",
    "erf": "Erf", "exp": "Exp", "log": "Log", "reciprocal": "Reciprocal", "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_NARROW = frozenset(
    ["Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Erf"]
)  # runtimes lack other types


def _unary(op_type: str) -> Any:
    def translate(b: Builder, self: Value) -> Value:
        x = b.computed(self)
        if op_type in _NARROW and x.dtype in (_C.float16, _C.bfloat16):
            return b.cast(b.op(op_type, b.cast(x, _C.float32)), x.dtype)
        return b.op(op_type, x)

    return translate


for _name, _op in _UNARY.items():
    TRANSLATIONS[f"aten.{_name}.default"] = _unary(_op)
TRANSLATIONS["aten.special_expit.default"] = TRANSLATIONS["aten.sigmoid.default"]
TRANSLATIONS["aten.special_erf.default"] = TRANSLATIONS["aten.erf.default"]


def _rounding(op_type: str) -> Any:
    def translate(b: Builder, self: Value) -> Value:
        return b.op(op_type, self) if is_float(self.dtype) else b.op("Identity", self)

    return translate


for _name, _op in {"ceil": "Ceil", "floor": "Floor", "round": "Round"}.items():
    TRANSLATIONS[f"aten.{_name}.default"] = _rounding(_op)


@translates("aten.round.decimals")
def _round_decimals(b: Builder, self: Value, decimals: int = 0) -> Value:
    scale = float(10 ** abs(decimals))
    if decimals >= 0:
        return b.op("Div", b.op("Round", self * scale), b.const(scale, self.dtype))
    return b.op("Round", self / scale) * scale


@translates("aten.trunc.default aten.fix.default")
def _trunc(b: Builder, self: Value) -> Value:
    if not is_float(self.dtype):
        return b.op("Identity", self)
    return b.op("Mul", b.op("Sign", self), b.op("Floor", b.op("Abs", self)))


@translates("aten.frac.default")
def _frac(b: Builder, self: Value) -> Value:
    return self - _trunc(b, self)


@translates("aten.abs.default aten.absolute.default")
def _abs(b: Builder, self: Value) -> Value:
    return b.op("Abs", self) if self.dtype is not _C.bool else b.op("Identity", self)


@translates("aten.neg.default aten.negative.default")
def _neg(b: Builder, self: Value) -> Value:
    if self.dtype in (_C.uint8, _C.int16):
        return b.cast(b.op("Neg", b.cast(self, _C.int32)), self.dtype)
    return b.op("Neg", self)


@translates("aten.positive.default aten.alias.default aten.detach.default aten.clone.default aten.lift_fresh_copy.default "
            "aten.contiguous.default aten.resolve_conj.default aten.resolve_neg.default aten.conj.default aten.real.default "
            "aten._conj.default aten.lift_fresh.default aten.alias_copy.default aten.detach_copy.default "
            "aten.conj_physical.default")  # fmt: skip
def _identity(b: Builder, self: Value, memory_format: Any = None) -> Value:
    del b, memory_format  # strides are no part of ONNX's tensors
    return self


@translates("aten.sign.default aten.sgn.default")
def _sign(b: Builder, self: Value) -> Value:
    return b.op("Identity", self) if self.dtype is _C.bool else b.op("Sign", self)


@translates("aten.rsqrt.default")
def _rsqrt(b: Builder, self: Value) -> Value:
    return b.op("Reciprocal", b.op("Sqrt", b.computed(self)))


@translates("aten.square.default")
def _square(b: Builder, self: Value) -> Value:
    x = b.cast(self, b.dtype)
    return b.op("Mul", x, x)


@translates("aten.expm1.default aten.special_expm1.default")
def _expm1(b: Builder, self: Value) -> Value:
    """tanh(x / 2) * (exp(x) + 1), which is exact near 0."""
    x = b.computed(self)
    small = b.op("Tanh", x * 0.5) * (b.op("Exp", x) + 1)
    return b.where(b.op("Less", b.op("Abs", x), b.const(0.5, x.dtype)), small, b.op("Exp", x) - 1)


@translates("aten.log1p.default aten.special_log1p.default")
def _log1p(b: Builder, self: Value) -> Value:
    """2 * atanh(x / (x + 2)) near 0, which is exact there."""
    x = b.computed(self)
    near = b.op("Less", b.op("Abs", x), b.const(0.5, x.dtype))
    ratio = b.where(near, x / (x + 2), 0.0)
    single = b.cast(ratio, _C.float32) if x.dtype in (_C.float16, _C.bfloat16) else ratio
    return b.where(near, b.cast(b.op("Atanh", single), x.dtype) * 2, b.op("Log", x + 1))


def _log_of(base: float) -> Any:
    def translate(b: Builder, self: Value) -> Value:
        return b.op("Log", b.computed(self)) * (1 / math.log(base))

    return translate


TRANSLATIONS["aten.log2.default"] = _log_of(2)
TRANSLATIONS["aten.log10.default"] = _log_of(10)


@translates("aten.exp2.default aten.special_exp2.default")
def _exp2(b: Builder, self: Value) -> Value:
    x = b.computed(self)
    return b.op("Pow", b.const(2.0, x.dtype), x)


@translates("aten.erfc.default aten.special_erfc.default")
def _erfc(b: Builder, self: Value) -> Value:
    return b.const(1.0, b.dtype) - b.op("Erf", b.computed(self))


@translates("aten.sinc.default aten.special_sinc.default")
def _sinc(b: Builder, self: Value) -> Value:
    x = b.computed(self) * math.pi
    zero = b.op("Equal", x, b.const(0.0, x.dtype))
    return b.where(zero, 1.0, b.op("Sin", x) / b.where(zero, 1.0, x), x.dtype)


@translates("aten.deg2rad.default")
def _deg2rad(b: Builder, self: Value) -> Value:
    return b.computed(self) * (math.pi / 180)


@translates("aten.rad2deg.default")
def _rad2deg(b: Builder, self: Value) -> Value:
    return b.computed(self) * (180 / math.pi)


@translates("aten.logit.default aten.special_logit.default")
def _logit(b: Builder, self: Value, eps: float | None = None) -> Value:
    x = b.computed(self)
    if eps is not None:
        x = b.op("Clip", x, b.const(eps, x.dtype), b.const(1 - eps, x.dtype))
    return b.op("Log", x / (b.const(1.0, x.dtype) - x))


# ---- Two operands


def _scaled(b: Builder, x: Value, alpha: Any) -> Value:
    return x if not isinstance(alpha, Value) and alpha == 1 else b.op("Mul", x, b.value(alpha, x.dtype))


@translates("aten.add.Tensor aten.add.Scalar")
def _add(b: Builder, self: Value, other: Any, alpha: Any = 1) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    if b.dtype is _C.bool:
        return b.op("Or", x, y)
    return b.op("Add", x, _scaled(b, y, alpha))


@translates("aten.sub.Tensor aten.sub.Scalar aten.subtract.Tensor aten.subtract.Scalar")
def _sub(b: Builder, self: Value, other: Any, alpha: Any = 1) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    return b.op("Sub", x, _scaled(b, y, alpha))


@translates("aten.rsub.Tensor aten.rsub.Scalar")
def _rsub(b: Builder, self: Value, other: Any, alpha: Any = 1) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    return b.op("Sub", y, _scaled(b, x, alpha))


@translates("aten.mul.Tensor aten.mul.Scalar aten.multiply.Tensor aten.multiply.Scalar")
def _mul(b: Builder, self: Value, other: Any) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    return b.op("And", x, y) if b.dtype is _C.bool else b.op("Mul", x, y)


@translates(
    "aten.div.Tensor aten.div.Scalar aten.true_divide.Tensor aten.true_divide.Scalar aten.divide.Tensor aten.divide.Scalar"
)
def _div(b: Builder, self: Value, other: Any) -> Value:
    return b.op("Div", *promoted(b, self, other, dtype=b.dtype))


@translates("aten.floor_divide.default aten.floor_divide.Scalar")
def _floor_divide(b: Builder, self: Value, other: Any) -> Value:
    return _div_mode(b, self, other, "floor")


@translates("aten.div.Tensor_mode aten.div.Scalar_mode aten.divide.Tensor_mode aten.divide.Scalar_mode")
def _div_mode(b: Builder, self: Value, other: Any, rounding_mode: str | None = None) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    if rounding_mode is None:
        return b.op("Div", x, y)
    if is_float(b.dtype):
        quotient = b.op("Div", x, y)
        if rounding_mode == "trunc":
            return _trunc(b, quotient)
        rest = b.op("Mod", x, y, fmod=1)  # as PyTorch: exact where the quotient rounds to an integer
        wrong = b.op(
            "And",
            b.op("Not", b.op("Equal", rest, b.const(0.0, x.dtype))),
            b.op("Less", b.op("Mul", rest, y), b.const(0.0, x.dtype)),
        )
        exact = b.op("Div", b.op("Sub", x, rest), y)
        exact = b.op("Sub", exact, b.cast(wrong, x.dtype))
        by_zero = b.op("Equal", y, b.const(0.0, x.dtype))
        return b.where(by_zero, quotient, b.op("Round", exact))
    if rounding_mode == "trunc":
        return b.op("Div", x, y)
    quotient = b.op("Div", x, y)
    rest = b.op("Sub", x, b.op("Mul", quotient, y))
    zero = b.const(0, x.dtype)
    wrong = b.op("Less", b.op("Mul", b.op("Sign", rest), b.op("Sign", y)), zero)
    return b.op("Sub", quotient, b.cast(wrong, x.dtype))


@translates("aten.remainder.Tensor aten.remainder.Scalar aten.remainder.Scalar_Tensor")
def _remainder(b: Builder, self: Any, other: Any) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    if not is_float(b.dtype):
        return b.op("Mod", x, y)
    rest = b.op("Mod", x, y, fmod=1)
    zero = b.const(0.0, x.dtype)
    other_sign = b.op("Less", b.op("Mul", rest, b.op("Sign", y)), zero)
    return b.where(other_sign, b.op("Add", rest, y), rest)


@translates("aten.fmod.Tensor aten.fmod.Scalar")
def _fmod(b: Builder, self: Value, other: Any) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    return b.op("Mod", x, y, fmod=1)


@translates(
    "aten.pow.Tensor_Tensor aten.pow.Tensor_Scalar aten.pow.Scalar aten.float_power.Tensor_Scalar aten.float_power.Tensor_Tensor"
)
def _pow(b: Builder, self: Any, exponent: Any) -> Value:
    if not isinstance(exponent, Value):
        x = b.value(self, b.dtype)
        if exponent == 2:
            return b.op("Mul", x, x)
        if exponent == 1:
            return b.op("Identity", x)
        if exponent == 0.5 and is_float(b.dtype):
            return b.op("Sqrt", x)
        if exponent == -0.5 and is_float(b.dtype):
            return b.op("Reciprocal", b.op("Sqrt", x))
    x, y = promoted(b, self, exponent, dtype=b.dtype)
    return b.op("Pow", x, y)


@translates("aten.atan2.default aten.arctan2.default")
def _atan2(b: Builder, self: Value, other: Value) -> Value:
    y, x = promoted(b, self, other, dtype=b.dtype)
    zero, half = b.const(0.0, b.dtype), b.const(math.pi / 2, b.dtype)
    at_zero = b.op("Equal", x, zero)
    base = b.op("Atan", b.op("Div", y, b.where(at_zero, 1.0, x, b.dtype)))
    turned = b.where(b.op("Less", y, zero), base - math.pi, base + math.pi)
    general = b.where(b.op("Less", x, zero), turned, base)
    signs = b.op("Mul", b.op("Sign", y), half)
    return b.where(at_zero, signs, general)


@translates("aten.hypot.default")
def _hypot(b: Builder, self: Value, other: Value) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    return b.op("Sqrt", b.op("Add", b.op("Mul", x, x), b.op("Mul", y, y)))


@translates("aten.copysign.Tensor aten.copysign.Scalar")
def _copysign(b: Builder, self: Value, other: Any) -> Value:
    """The sign of -0.0 is found by its reciprocal."""
    x, y = promoted(b, self, other, dtype=b.dtype)
    zero = b.const(0.0, b.dtype)
    negative = b.op("Less", b.where(b.op("Equal", y, zero), b.op("Reciprocal", y), y), zero)
    size = b.op("Abs", x)
    return b.where(negative, b.op("Neg", size), size)


@translates("aten.xlogy.Tensor aten.xlogy.Scalar_Other aten.special_xlogy.default")
def _xlogy(b: Builder, self: Value, other: Any) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    zero = b.const(0.0, b.dtype)
    silent = b.op("And", b.op("Equal", x, zero), b.op("Not", b.op("IsNaN", y)))
    return b.where(silent, zero, b.op("Mul", x, b.op("Log", y)))


@translates("aten.logaddexp.default")
def _logaddexp(b: Builder, self: Value, other: Value) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    high, low = b.op("Max", x, y), b.op("Min", x, y)
    return b.where(
        b.op("Equal", x, y),
        b.op("Add", x, b.const(math.log(2), b.dtype)),
        b.op("Add", high, b.op("Softplus", b.op("Sub", low, high))),
    )


@translates("aten.lerp.Scalar aten.lerp.Tensor")
def _lerp(b: Builder, self: Value, end: Value, weight: Any) -> Value:
    weight = b.value(weight, self.dtype)
    difference = b.op("Sub", end, self)
    from_end = b.op("Sub", end, b.op("Mul", difference, b.const(1.0, self.dtype) - weight))
    near = b.op("Less", b.op("Abs", weight), b.const(0.5, self.dtype))
    return b.where(near, b.op("Add", self, b.op("Mul", weight, difference)), from_end)


@translates("aten.addcmul.default")
def _addcmul(b: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    x, y, z = promoted(b, self, tensor1, tensor2, dtype=b.dtype)
    return b.op("Add", x, _scaled(b, b.op("Mul", y, z), value))


@translates("aten.addcdiv.default")
def _addcdiv(b: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1) -> Value:
    x, y, z = promoted(b, self, tensor1, tensor2, dtype=b.dtype)
    return b.op("Add", x, _scaled(b, b.op("Div", y, z), value))


def _extreme(op_type: str) -> Any:
    def translate(b: Builder, self: Value, other: Value) -> Value:
        x, y = promoted(b, self, other, dtype=b.dtype)
        if b.dtype is _C.bool:
            return b.op("Or" if op_type == "Max" else "And", x, y)
        if b.dtype in (_C.uint8, _C.int8, _C.int16):
            return b.cast(b.op(op_type, b.cast(x, _C.int32), b.cast(y, _C.int32)), b.dtype)
        return b.op(op_type, x, y)

    return translate


for _name, _op in {"maximum": "Max", "minimum": "Min", "max.other": "Max", "min.other": "Min"}.items():
    TRANSLATIONS[f"aten.{_name}" if "." in _name else f"aten.{_name}.default"] = _extreme(_op)


def _ignoring_nan(op_type: str) -> Any:
    def translate(b: Builder, self: Value, other: Value) -> Value:
        x, y = promoted(b, self, other, dtype=b.dtype)
        if not is_float(b.dtype):
            return _extreme(op_type)(b, x, y)
        return b.where(b.op("IsNaN", x), y, b.where(b.op("IsNaN", y), x, b.op(op_type, x, y)))

    return translate


TRANSLATIONS["aten.fmax.default"], TRANSLATIONS["aten.fmin.default"] = _ignoring_nan("Max"), _ignoring_nan("Min")


@translates("aten.clamp.default aten.clamp.Tensor aten.clip.default aten.clip.Tensor aten.clamp_min.default aten.clamp_max.default "
            "aten.clamp_min.Tensor aten.clamp_max.Tensor")  # fmt: skip
def _clamp(b: Builder, self: Value, min: Any = None, max: Any = None) -> Value:  # noqa: A002 - the schema's names
    x = b.cast(self, b.dtype)
    small = b.dtype in (_C.uint8, _C.int8, _C.int16)
    work = _C.int32 if small else b.dtype
    x = b.cast(x, work)
    if min is not None:
        x = b.op("Max", x, b.value(min, work))
    if max is not None:
        x = b.op("Min", x, b.value(max, work))
    return b.cast(x, b.dtype)


def _clamp_max(b: Builder, self: Value, max: Any) -> Value:  # noqa: A002
    return _clamp(b, self, None, max)


TRANSLATIONS["aten.clamp_max.default"] = TRANSLATIONS["aten.clamp_max.Tensor"] = _clamp_max


@translates("aten.nan_to_num.default")
def _nan_to_num(
    b: Builder, self: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    if not is_float(self.dtype):
        return b.op("Identity", self)
    limits = finfo(self.dtype)
    x = b.where(b.op("IsNaN", self), float(nan or 0.0), self, self.dtype)
    x = b.where(b.op("IsInf", x, detect_negative=0), float(limits.max if posinf is None else posinf), x, self.dtype)
    return b.where(b.op("IsInf", x, detect_positive=0), float(limits.min if neginf is None else neginf), x, self.dtype)


# ---- Bits


def _bitwise(name: str, logical: str) -> Any:
    def translate(b: Builder, self: Any, other: Any) -> Value:
        x, y = promoted(b, self, other, dtype=b.dtype)
        return b.op(logical if b.dtype is _C.bool else name, x, y)

    return translate


for _name, _op, _logical in (("and", "BitwiseAnd", "And"), ("or", "BitwiseOr", "Or"), ("xor", "BitwiseXor", "Xor")):
    for _form in (
        f"bitwise_{_name}.Tensor",
        f"bitwise_{_name}.Scalar",
        f"bitwise_{_name}.Scalar_Tensor",
        f"__{_name}__.Tensor",
        f"__{_name}__.Scalar",
    ):
        TRANSLATIONS[f"aten.{_form}"] = _bitwise(_op, _logical)


@translates("aten.bitwise_not.default")
def _bitwise_not(b: Builder, self: Value) -> Value:
    return b.op("Not" if self.dtype is _C.bool else "BitwiseNot", self)


@translates(
    "aten.bitwise_left_shift.Tensor aten.bitwise_left_shift.Tensor_Scalar aten.__lshift__.Scalar aten.__lshift__.Tensor"
)
def _left_shift(b: Builder, self: Value, other: Any) -> Value:
    x, y = promoted(b, self, other, dtype=b.dtype)
    return b.op("Mul", x, b.op("Pow", b.const(2, x.dtype), y))


@translates(
    "aten.bitwise_right_shift.Tensor aten.bitwise_right_shift.Tensor_Scalar aten.__rshift__.Scalar aten.__rshift__.Tensor"
)
def _right_shift(b: Builder, self: Value, other: Any) -> Value:
    """Rounded down: numbers below 0 keep their sign."""
    x, y = promoted(b, self, other, dtype=b.dtype)
    if b.dtype not in INTEGERS:
        raise Untranslatable("shifts are of integers")
    divisor = b.op("Pow", b.const(2, x.dtype), y)
    return _div_mode(b, x, divisor, "floor")


# ---- Logic


def _logical(op_type: str) -> Any:
    def translate(b: Builder, self: Value, other: Value) -> Value:
        return b.op(op_type, b.cast(self, _C.bool), b.cast(other, _C.bool))

    return translate


for _name in ("And", "Or", "Xor"):
    TRANSLATIONS[f"aten.logical_{_name.lower()}.default"] = _logical(_name)


@translates("aten.logical_not.default")
def _logical_not(b: Builder, self: Value) -> Value:
    return b.op("Not", b.cast(self, _C.bool))


@translates("aten.to.dtype aten.to.dtype_layout aten.to.device aten._to_copy.default aten.to.other aten.type_as.default "
            "aten.float.default prims.convert_element_type.default")  # fmt: skip
def _to(b: Builder, self: Value, *_: Any, **__: Any) -> Value:
    """The dtype is the result's; devices, strides and copies are no part of ONNX's graphs."""
    return as_complex(b, self) if b.dtype.is_complex else b.cast(self, b.dtype)

"""Random numbers. ONNX's generators have other sequences than the engine's: results agree in distribution only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._dtypes import elem_type, is_float
from .._registry import TRANSLATIONS, Untranslatable, translates


def _drawn(b: Builder, op_type: str, sizes: Sequence[Any], dtype: Any) -> Value:
    work = dtype if is_float(dtype) else _C.float32
    shape = tuple(n if type(n) is int else None for n in sizes)
    return b.op(f"{op_type}Like", b.expand(b.const(0.0, work), list(sizes), shape), shape=shape)


def _of_size(op_type: str) -> Any:
    def translate(b: Builder, size: Sequence[Any], **kwargs: Any) -> Value:
        if kwargs.get("generator") is not None:
            raise Untranslatable("a generator")
        return _drawn(b, op_type, size, b.dtype)

    return translate


def _like(op_type: str) -> Any:
    def translate(b: Builder, self: Value, **_: Any) -> Value:
        return b.cast(b.op(f"{op_type}Like", self if is_float(self.dtype) else b.cast(self, _C.float32)), b.dtype)

    return translate


TRANSLATIONS["aten.rand.default"], TRANSLATIONS["aten.randn.default"] = (
    _of_size("RandomUniform"),
    _of_size("RandomNormal"),
)
TRANSLATIONS["aten.rand_like.default"], TRANSLATIONS["aten.randn_like.default"] = (
    _like("RandomUniform"),
    _like("RandomNormal"),
)


@translates("aten.randperm.default")
def _randperm(b: Builder, n: Any, **_: Any) -> Value:
    """The order of random numbers."""
    drawn = _drawn(b, "RandomUniform", [n], _C.float32)
    places = b.op("TopK", drawn, b.ints([n]), outputs=2, dtype=[_C.float32, _C.int64])[1]
    return b.cast(places, b.dtype)


@translates("aten.randint.default aten.randint.low")
def _randint(b: Builder, *args: Any, **_: Any) -> Value:
    low, high, size = (0, *args) if len(args) == 2 else args
    drawn = _drawn(b, "RandomUniform", size, _C.float64)
    return b.cast(b.op("Floor", drawn * float(high - low) + float(low)), b.dtype)


@translates("aten.bernoulli.default")
def _bernoulli(b: Builder, self: Value, generator: Any = None) -> Value:
    if generator is not None:
        raise Untranslatable("a generator")
    return b.cast(b.op("Less", b.op("RandomUniformLike", self), self), self.dtype)


@translates("aten.bernoulli.p")
def _bernoulli_p(b: Builder, self: Value, p: float = 0.5, generator: Any = None) -> Value:
    if generator is not None:
        raise Untranslatable("a generator")
    return b.cast(b.op("Less", b.op("RandomUniformLike", self), b.const(p, self.dtype)), self.dtype)


@translates(
    "aten.dropout.default aten.feature_dropout.default aten.alpha_dropout.default aten.feature_alpha_dropout.default"
)
def _dropout(b: Builder, input: Value, p: float, train: bool) -> Value:  # noqa: A002
    if not train or p == 0:
        return input
    return _native_dropout(b, input, p, True)[0]


@translates("aten.native_dropout.default")
def _native_dropout(b: Builder, input: Value, p: float, train: bool | None) -> list[Value]:  # noqa: A002
    if not train or p == 0:
        return [input, b.expand(b.const(True, _C.bool), b.shape_of(input), input.shape)]
    kept = b.op("GreaterOrEqual", b.op("RandomUniformLike", input), b.const(p, input.dtype))
    scale = 0.0 if p >= 1 else 1 / (1 - p)
    return [b.where(kept, input * scale, 0.0, input.dtype), kept]


@translates("aten.multinomial.default")
def _multinomial(b: Builder, self: Value, num_samples: int, replacement: bool = False, generator: Any = None) -> Value:
    if generator is not None or (not replacement and num_samples > 1):
        raise Untranslatable("multinomial without replacement, or with a generator")
    rows = self if self.rank == 2 else b.unsqueeze(self, [0])
    made = b.op("Multinomial", b.op("Log", rows), sample_size=num_samples, dtype=_C.int64)
    b.nodes[-1].attributes["dtype"] = elem_type(_C.int64)
    return made if self.rank == 2 else b.op("Squeeze", made, b.const([0], _C.int64))

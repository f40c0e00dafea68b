"""Sizes and arithmetic of sizes: int64 scalars, which ONNX computes with Shape, Gather and the like."""

from __future__ import annotations

from typing import Any

from ... import _C
from .._builder import Builder, Value
from .._registry import translates


@translates("aten.sym_size.int aten.size.int")
def _sym_size(b: Builder, self: Value, dim: int) -> Any:
    return b.size(self, dim)


@translates("aten.sym_numel.default aten.numel.default")
def _sym_numel(b: Builder, self: Value) -> Any:
    total: Any = 1
    for n in b.sizes_of(self):
        total = b.arithmetic("Mul", total, n)
    return total


@translates("_operator.add")
def _add(b: Builder, x: Any, y: Any) -> Any:
    return b.arithmetic("Add", x, y)


@translates("_operator.sub")
def _sub(b: Builder, x: Any, y: Any) -> Any:
    return b.arithmetic("Sub", x, y)


@translates("_operator.mul")
def _mul(b: Builder, x: Any, y: Any) -> Any:
    return b.arithmetic("Mul", x, y)


@translates("_operator.neg")
def _neg(b: Builder, x: Any) -> Any:
    return b.op("Neg", x, shape=()) if isinstance(x, Value) else -x


@translates("_operator.floordiv")
def _floordiv(b: Builder, x: Any, y: Any) -> Any:
    """Rounded down, also for numbers below 0."""
    if not isinstance(x, Value) and not isinstance(y, Value):
        return x // y
    left, right = b.value(x, _C.int64), b.value(y, _C.int64)
    rest = b.op("Mod", left, right, shape=())
    return b.op("Div", b.op("Sub", left, rest, shape=()), right, shape=())


@translates("_operator.mod")
def _mod(b: Builder, x: Any, y: Any) -> Any:
    return (
        b.op("Mod", b.value(x, _C.int64), b.value(y, _C.int64), shape=())
        if isinstance(x, Value) or isinstance(y, Value)
        else x % y
    )


def _compares(name: str, op_type: str, negated: bool = False) -> None:
    """A comparison of numbers, one of which at least the graph computes."""

    def translate(b: Builder, x: Any, y: Any) -> Value:
        dtype = next(v.dtype for v in (x, y) if isinstance(v, Value))
        if dtype is not _C.bool and float in (type(x), type(y)):
            dtype = _C.float64
        made = b.op(op_type, b.value(x, dtype), b.value(y, dtype), shape=())
        return b.op("Not", made) if negated else made

    translates(name)(translate)


_compares("_operator.eq", "Equal")
_compares("_operator.ne", "Equal", True)
_compares("_operator.lt", "Less")
_compares("_operator.le", "LessOrEqual")
_compares("_operator.gt", "Greater")
_compares("_operator.ge", "GreaterOrEqual")


@translates("aten.scalar_tensor.default")
def _scalar_tensor(b: Builder, s: Any, **_: Any) -> Value:
    """dtype, layout and device are the result's."""
    return b.value(s, b.dtype)


@translates("aten.sym_constrain_range.default aten.sym_constrain_range_for_size.default aten._assert_async.msg "
            "aten._assert_scalar.default")
def _checked(b: Builder, *_: Any, **__: Any) -> None:
    """Checks compute nothing."""
    del b

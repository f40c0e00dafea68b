"""SymFloat: a float that a traced function has computed from sizes.

An operator that adds, subtracts, multiplies or divides a tensor by it receives a float64 tensor without dimensions, which every run of
the Program computes from its inputs' sizes. Every other use needs the number of the example, which runs are then required to have.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from . import _C
from ._C import Tensor

_BINARY: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow, "max": max, "min": min,
}  # fmt: skip
_UNARY: dict[str, Callable] = {"float": float, "neg": operator.neg, "sqrt": math.sqrt}
_BY_OPERATOR: dict[str, Callable] = {"max": _C.torch.maximum, "min": _C.torch.minimum, "**": _C.torch.pow}
# Names of functions of tensors that compute with a SymFloat.
_ARITHMETIC = frozenset(
    f"{name}{suffix}"
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide")
    for suffix in ("", "_")
)
# The functions of torch of symbolic numbers, by the sign of their operation.
_SYMBOLIC = {"sym_max": "max", "sym_min": "min", "sym_sqrt": "sqrt", "sym_float": "float"}
_MOST = 1 << 40  # sizes are searched below


def _value(operand: Any) -> Any:
    """A number of the example, of which no run is required."""
    return operand.value if type(operand) is SymFloat else operand


def _is_number(value: Any) -> bool:
    return type(value) in (SymFloat, float, int, _C.SymInt)


class SymFloat:
    """A float that a traced function has computed from sizes.

    Attributes:
        value: of the trace's example.
    """

    def __init__(self, node: Any) -> None:
        raise NotImplementedError("SymFloat: a traced function computes it from sizes, for example as x.size(0) * 0.5")

    @classmethod
    def of(cls, sign: str, *operands: Any) -> Any:
        """The result of an operation of numbers; a float if none of them depends on sizes."""
        examples = [_C.peek_symbolic_int(v) if type(v) is _C.SymInt else _value(v) for v in operands]
        value = (_UNARY if sign in _UNARY else _BINARY)[sign](*examples)
        if type(value) is not float or not math.isfinite(value):  # a complex root, a division by zero
            return (_UNARY if sign in _UNARY else _BINARY)[sign](*(float(v) if type(v) is SymFloat else v for v in operands))
        made = object.__new__(cls)
        made.value, made._sign, made._operands, made._tensor = value, sign, operands, None
        return made

    def __torch_function__(self, func: Any, _types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(func, "__name__", "") in _ARITHMETIC and len(args) == 2 and not kwargs and isinstance(args[0], Tensor):
            return _of_tensors(func, *args)
        sign = _SYMBOLIC.get(getattr(func, "__name__", ""))
        if sign is not None and not kwargs and all(map(_is_number, args)):
            return SymFloat.of(sign, *(SymFloat.of("float", a) if type(a) in (int, _C.SymInt) else a for a in args))
        args, kwargs = _plain((args, kwargs or {}))
        return func(*args, **kwargs)

    def as_tensor(self) -> Tensor:
        """A float64 tensor without dimensions, which the runs of the Program compute."""
        if self._tensor is None:
            before = _C.is_grad_enabled()
            _C.set_grad_enabled(False)
            try:
                operands = [_as_tensor(v) for v in self._operands]
                if self._sign in _UNARY:
                    self._tensor = {"float": lambda t: t, "neg": _C.torch.neg, "sqrt": _C.torch.sqrt}[self._sign](*operands)
                else:
                    self._tensor = _BY_OPERATOR.get(self._sign, _BINARY[self._sign])(*operands)
            finally:
                _C.set_grad_enabled(before)
        return self._tensor

    def _sizes(self) -> list[Any]:
        """The SymInts that it was computed from."""
        found = [v for v in self._operands if type(v) is _C.SymInt]
        for v in self._operands:
            found += v._sizes() if type(v) is SymFloat else []
        return found

    def _at(self, size: Any, number: int) -> float:
        """Its value if the SymInt `size` had another number."""
        given = [number if v is size else v._at(size, number) if type(v) is SymFloat else v for v in self._operands]
        return (_UNARY if self._sign in _UNARY else _BINARY)[self._sign](*given)

    def _direction(self, size: Any) -> int:
        """1: it does not decrease while `size` >= 1 grows; -1: it does not increase; 0: not known."""
        signs = [1 if v is size else v._direction(size) if type(v) is SymFloat else None for v in self._operands]
        numbers = [None if s is not None else v for s, v in zip(signs, self._operands)]
        if self._sign in ("float", "sqrt"):
            return signs[0]
        if self._sign == "neg":
            return -signs[0]
        (a, b), (m, n) = signs, numbers
        if self._sign in ("+", "max", "min"):
            return a if b is None else b if a is None else a if a == b else 0
        if self._sign == "-":
            return a if b is None else -b if a is None else a if a == -b else 0
        if self._sign == "*" and (a is None or b is None):
            sign, by = (a, n) if b is None else (b, m)
            return sign if by >= 0 else -sign
        if self._sign == "/" and b is None:
            return a if n > 0 else -a
        if self._sign == "/" and a is None and self._operands[1] is size:
            return -1 if m >= 0 else 1
        if self._sign == "**" and b is None and self._operands[0] is size:
            return 1 if n >= 0 else -1
        return 0

    def compared(self, relation: Callable, other: Any) -> bool:
        """Whether self <relation> other. Runs are required to have the outcome, whatever their sizes otherwise."""
        sizes = self._sizes()
        size = sizes[0] if sizes and all(s is sizes[0] for s in sizes) else None
        if type(other) not in (int, float) or size is None or relation in (operator.eq, operator.ne) or not self._direction(size):
            return relation(float(self), float(other))
        low, high = 1, _MOST  # the outcome changes once at most
        try:
            at_low = relation(self._at(size, low), other)
            if at_low == relation(self._at(size, high), other):
                return at_low
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if relation(self._at(size, middle), other) == at_low else (low, middle)
        except ArithmeticError:
            return relation(float(self), float(other))
        return at_low if size < high else not at_low

    def __float__(self) -> float:
        examples = [float(v) if type(v) is SymFloat else int(v) if type(v) is _C.SymInt else v for v in self._operands]
        return (_UNARY if self._sign in _UNARY else _BINARY)[self._sign](*examples)

    def __neg__(self) -> Any:
        return SymFloat.of("neg", self)

    def __pos__(self) -> SymFloat:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __bool__(self) -> bool:
        return bool(float(self))

    def __copy__(self) -> SymFloat:
        return self

    def __deepcopy__(self, memo: dict) -> SymFloat:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(float, name):
            raise AttributeError(f"'SymFloat' object has no attribute '{name}'")
        return getattr(float(self), name)


def _as_tensor(operand: Any) -> Any:
    if type(operand) is SymFloat:
        return operand.as_tensor()
    return _C.torch.full([], operand, dtype=_C.float64)


def _of_tensors(function: Callable, a: Any, b: Any) -> Any:
    """The result of an operator for a tensor and a SymFloat."""
    tensor = a if isinstance(a, Tensor) else b
    takes_tensor = tensor.dtype in (_C.float32, _C.float64) and tensor.dim() > 0 and tensor.device.type == "cpu"
    number = (lambda v: v.as_tensor()) if takes_tensor and _C.is_tracing() else float
    a, b = (number(v) if type(v) is SymFloat else v for v in (a, b))
    return function(a, b)


def _plain(value: Any) -> Any:
    """A value with floats in place of SymFloats."""
    if type(value) is SymFloat:
        return float(value)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {k: _plain(v) for k, v in value.items()} if type(value) is dict else value


def _arithmetic(sign: str, is_reflected: bool) -> Callable:
    def compute(self: SymFloat, other: Any) -> Any:
        other = int(other) if type(other) is bool else other
        a, b = (other, self) if is_reflected else (self, other)
        if isinstance(other, Tensor) and sign in ("+", "-", "*", "/"):
            return _of_tensors(_BINARY[sign], a, b)
        if isinstance(other, Tensor) or type(other) is complex:
            return _BINARY[sign](*(float(v) if v is self else v for v in (a, b)))
        return SymFloat.of(sign, a, b) if _is_number(other) else NotImplemented

    return compute


for _sign, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("**", "pow")):
    setattr(SymFloat, f"__{_name}__", _arithmetic(_sign, False))
    setattr(SymFloat, f"__r{_name}__", _arithmetic(_sign, True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _relation = getattr(operator, _name)
    setattr(
        SymFloat,
        f"__{_name}__",
        lambda self, other, relation=_relation: self.compared(relation, other) if _is_number(other) else NotImplemented,
    )


def _of_float(name: str) -> Callable:
    return lambda self, *args: getattr(float(self), name)(*map(_plain, args))


for _name in (
    "ceil", "divmod", "floor", "floordiv", "format", "hash", "int", "mod", "rdivmod", "repr", "rfloordiv", "rmod", "round", "str", "trunc",
):  # fmt: skip
    setattr(SymFloat, f"__{_name}__", _of_float(f"__{_name}__"))
SymFloat.__reduce__ = lambda self: (float, (float(self),))

"""Random numbers of Python's `random`: each call draws anew, before the graph and in the order of the function.

The capture knows their class only. What is computed from them is computed before the graph, too; decisions by them end the graph.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from typing import Any

from .. import _C
from ._values import Break, Constant, FloatOperand, ObjectValue, RunTimeNumber, TensorValue, Value

IN_C = ("random", "getrandbits")
_IN_PYTHON = (
    "uniform", "triangular", "gauss", "normalvariate", "expovariate", "betavariate", "gammavariate", "vonmisesvariate", "randint",
    "randrange", "choice", "seed",
)  # fmt: skip
_LARGEST = 1 << 53  # below it ints are floats exactly
# With the text of the generated code. No result raises, whatever is drawn: divisors are constants.
_OPERATIONS: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Draw:
    """A call of a method of a random.Random that exists, which each call of the compiled function repeats."""

    def __init__(self, generator: ObjectValue, name: str, args: list[Any], kwargs: dict[str, Any], result: Value) -> None:
        self.generator, self.name, self.args, self.kwargs, self.result = generator, name, args, kwargs, result

    def text(self, code: Any) -> str:
        """The expression of the generated code."""
        args = f"*{code.constant(tuple(self.args))}, **{code.constant(self.kwargs)}" if self.args or self.kwargs else ""
        return f"{code.read(self.generator.source)}.{self.name}({args})"


def _is_number(obj: Any) -> bool:
    return type(obj) in (int, float) and math.isfinite(obj) and abs(obj) <= _LARGEST


def draw(ex: Any, generator: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """generator.name(*args, **kwargs)"""
    if not isinstance(generator, ObjectValue) or generator.cls is not random.Random or generator.source is None or ex.has_bodies():
        raise Break(f"random.{name}() of a generator that the function makes, or in a function that an operator calls")
    if generator.attributes or vars(generator.original).keys() - {"gauss_next"}:
        raise Break(f"random.{name}() of a generator with attributes")
    if ex.has_custom_calls:
        raise Break("random numbers after a call of a custom operator, which may draw some")
    plain, keywords = [ex.python_value(v) for v in args], {k: ex.python_value(v) for k, v in kwargs.items()}
    given = [*plain, *keywords.values()]
    if name == "choice":
        if len(given) != 1 or not isinstance(given[0], (list, tuple, range)) or len({type(n) for n in given[0]}) != 1:
            raise Break("random.choice() of something else than numbers of one class")
        plain, keywords, given = [tuple(given[0])], {}, list(given[0])
    if name == "seed" and len(given) == 1 and type(given[0]) is int:
        result: Value = Constant(None)
    elif not all(n is None or _is_number(n) for n in given):
        raise Break(f"random.{name}() of something else than numbers")
    else:
        try:
            example = getattr(random.Random(0), name)(*plain, **keywords)  # noqa: S311 - of the same class
        except Exception as e:  # noqa: BLE001 - each call raises it
            raise Break(f"random.{name}() raises {type(e).__name__}") from None
        if type(example) not in (int, float) or abs(example) > _LARGEST:
            raise Break(f"random.{name}() returns no small number")
        result = RunTimeNumber(example)
    ex.draws.append(Draw(generator, name, plain, keywords, result))
    return result


def _method(name: str) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        generator = ex.real(args[0]) if args else None
        if isinstance(generator, ObjectValue) and generator.cls is random.Random:
            return draw(ex, generator, name, args[1:], kwargs)
        raise Break(f"random.{name}() of another generator")

    return handler


FUNCTIONS: dict[Callable, Callable] = {getattr(random.Random, name): _method(name) for name in _IN_PYTHON}


class RunTimeNumbers:
    """A part of Executor."""

    draws: list[Draw]
    has_custom_calls = False  # of operators in Python, whose effects are not known

    def computed_at_run_time(self, text: str, function: Callable, *operands: Value) -> RunTimeNumber:
        """A number that is computed from others in each call."""
        examples = [v.example if isinstance(v, RunTimeNumber) else v.value for v in operands]
        return RunTimeNumber(function(*examples), (text, *operands))

    def converted_at_run_time(self, cls: type, value: RunTimeNumber) -> RunTimeNumber:
        """int(value) or float(value). Constants are small and divisors no numbers that are drawn, so that the value is finite."""
        return value if value.cls is cls else self.computed_at_run_time(f"{cls.__name__}({{}})", cls, value)

    def operation_of_run_time(self, sign: str, a: Value, b: Value) -> Value | None:
        """a + b, a < b and the like of numbers of which one is drawn; None if the other one is no number."""
        for v in (a, b):
            if not isinstance(v, RunTimeNumber) and not (isinstance(v, Constant) and _is_number(v.value)):
                return None
        if sign not in _OPERATIONS or sign in ("/", "//", "%") and not (isinstance(b, Constant) and b.value):
            return None
        return self.computed_at_run_time(f"({{}} {sign} {{}})", _OPERATIONS[sign], a, b)

    def run_time_operand(self, value: Value, sign: str, other: Value) -> Value:
        """A number that differs from call to call as an operand of a tensor, where a tensor without dimensions has the same effect."""
        if not isinstance(value, RunTimeNumber):
            return value
        sign = sign.rstrip("=")
        if isinstance(other, TensorValue) and sign in (("+", "*") if value.cls is bool else ("+", "-", "*", "/")):
            example = other.example
            if example.dtype in (_C.float32, _C.float64) and example.dim() > 0 and example.device.type == "cpu":
                return FloatOperand(self.converted_at_run_time(float, value))
        raise Break(f"{sign} of a number that differs from call to call and a value that is no tensor of floats")
